"""Which task ids are legal, and which file names are derived from them.

Ids are hostile text. This module decides what is refused and how the rest becomes a path that stays
in its folder; it touches no disk.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
import unicodedata
from pathlib import Path
from typing import Final

__all__ = ["folder_of", "meta_file", "mistake_in_id", "named_beside", "trace_file"]

_MAX_ID: Final = 512
_MAX_SLUG: Final = 60
_UNSEEN_CATEGORIES: Final = frozenset({"Cc", "Cs", "Zl", "Zp"})
_BIDI_CLASSES: Final = frozenset({"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"})
_BIDI_MARKS: Final = "\u061c\u200e\u200f"
_SAFE_ID: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,59}")
# An id of this form could pose as the folder that another id was given.
_DERIVED: Final = re.compile(r".*-[0-9a-f]{10}")
_DEVICES: Final = re.compile(r"con|prn|aux|nul|com[0-9]|lpt[0-9]|conin|conout")


def mistake_in_id(task_id: str) -> str | None:
    """Return why a task id is refused, or None for a legal one.

    Legal are 1 to 512 characters without control, newline and bidirectional characters, lone
    surrogates, and white space at either end. Everything else is: slashes, quotes, emoji.
    """
    if not task_id:
        return "is empty"
    if len(task_id) > _MAX_ID:
        return f"has {len(task_id)} characters, at most {_MAX_ID} are allowed"
    if any(map(_is_unseen, task_id)):
        return "contains a control, newline or bidirectional character or a lone surrogate"
    return "begins or ends with white space" if task_id != task_id.strip() else None


def _is_unseen(char: str) -> bool:
    return (
        unicodedata.category(char) in _UNSEEN_CATEGORIES
        or unicodedata.bidirectional(char) in _BIDI_CLASSES
        or char in _BIDI_MARKS
    )


def folder_of(task_id: str) -> str:
    """Return the folder name of a task: one path component, safe on every system.

    An id of up to 60 characters of ``a-z 0-9 - _`` that begins with a letter or digit is its own
    folder, unless it is the name of a Windows device or ends as derived names do. Every other id
    becomes a readable slug, a hyphen and the first 10 hexadecimal digits of its SHA-256.
    """
    if _SAFE_ID.fullmatch(task_id) and not _is_reserved(task_id):
        return task_id
    digest = hashlib.sha256(task_id.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{_slug(task_id)}-{digest[:10]}"


def _is_reserved(slug: str) -> bool:
    return bool(_DEVICES.fullmatch(slug) or _DERIVED.fullmatch(slug))


def _slug(task_id: str) -> str:
    words = re.sub(r"[^a-z0-9_]+", "-", task_id[:_MAX_SLUG].lower()).strip("-_")
    return words[:_MAX_SLUG] or "task"


def named_beside(task_file_folder: str, name: str) -> str | None:
    """Return the path of a file that a task file names, None where it leaves the project.

    Parameters
    ----------
    task_file_folder : str
        Relative to the root of the project.
    name : str
        Relative to that folder; ``/`` separates.
    """
    path = posixpath.normpath(posixpath.join(task_file_folder, name))
    outside = path.startswith(("/", "../")) or path in ("..", ".") or "\\" in path or "\0" in path
    return None if outside else path


def trace_file(traces: Path, task_id: str, trial: int, repeat: int) -> Path:
    """Return where the trace of a trial is kept below the folder of all traces."""
    name = f"{trial}.jsonl" if repeat == 0 else f"{trial}.{repeat}.jsonl"
    return traces / folder_of(task_id) / name


def meta_file(trace: Path) -> Path:
    """Return where what may be published of a trace is kept, beside it."""
    return trace.with_name(f"{trace.name.removesuffix('.jsonl')}.meta.json")

"""In one line what the records of a trace say that are no calls: draws, and states of the world.

Their digests are for programs; a reader wants to know how many draws there were, and which files
are there or have changed. Whether a trace is to be believed is not known here: anything may stand
in it, and what has not the expected shape is shown as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from ci_gate.model.trace import TraceRecord
from ci_gate.model.trace_meta import is_draw
from ci_gate.render import figures
from ci_gate.render.escape import inert

__all__ = ["shown_input", "shown_state", "state_of"]

_STATE: Final = "state"
_MOST_FILES: Final = 6
_NAME_CHARS: Final = 60
_DIGEST: Final = "sha256"


def shown_input(record: TraceRecord) -> Any:
    """Return what is shown of a record's input: of draws, all but the digest of their values."""
    given = record.input
    if not is_draw(record.kind, record.name) or not isinstance(given, dict):
        return given
    return {name: value for name, value in given.items() if name != _DIGEST}


def state_of(record: TraceRecord) -> Mapping[str, Any] | None:
    """Return the files of a recorded state of the world by name; None where it is none."""
    if record.kind != _STATE or not isinstance(record.output, dict):
        return None
    files = record.output.get("files")
    return files if isinstance(files, dict) else None


def shown_state(record: TraceRecord, before: Mapping[str, Any] | None = None) -> str | None:
    """Return a recorded state of the world in words, safe to print.

    Parameters
    ----------
    record : TraceRecord
    before : mapping, optional
        The files of an earlier state of the same trial; with it, what has changed is told.

    Returns
    -------
    str or None
        None: it is no state, and is shown as any other record.
    """
    files = state_of(record)
    if files is None:
        return None
    parts = [_listed("", map(_sized, files.items()))] if before is None else _changes(before, files)
    withheld = record.output.get("withheld")
    parts += [f"not whole: {inert(str(withheld), limit=_NAME_CHARS)}"] if withheld else []
    told = "; ".join(part for part in parts if part)
    return told or ("no files" if before is None else "nothing has changed")


def _sized(item: tuple[str, Any]) -> str:
    name, entry = item
    size = entry.get("bytes") if isinstance(entry, dict) else None
    shown = inert(name, limit=_NAME_CHARS)
    return f"{shown} ({figures.counted(size, 'byte')})" if isinstance(size, int) else shown


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    made = [_sized(item) for item in after.items() if item[0] not in before]
    changed = [_sized(item) for item in after.items() if before.get(item[0], item[1]) != item[1]]
    removed = [inert(name, limit=_NAME_CHARS) for name in before if name not in after]
    return [_listed("changed: ", changed), _listed("made: ", made), _listed("removed: ", removed)]


def _listed(title: str, names: Iterable[str]) -> str:
    found = list(names)
    more = len(found) - _MOST_FILES
    shown = ", ".join(found[:_MOST_FILES]) + (f" and {more:,} more" if more > 0 else "")
    return f"{title}{shown}" if found else ""

"""Rubrics that lie in files of their own: read in the place of their names.

A judge's options are then the same whether its rubric stands in the task file or beside it, and so
is the task's digest. What a rubric means is not known here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ci_gate.errors import printable
from ci_gate.store.paths import named_beside
from ci_gate.store.schema_files import Mistake
from ci_gate.store.trees import FileReader

__all__ = ["with_rubric"]

_TYPE: Final = "judge"
_NAMED: Final = "rubric_file"
_HELD: Final = "rubric"
_MOST_BYTES: Final = 200_000


def with_rubric(
    kind: str, options: Mapping[str, Any], folder: str, files: FileReader
) -> tuple[Mapping[str, Any], list[Mistake]]:
    """Return a grader's options with its rubric in the place of the file that holds it.

    Parameters
    ----------
    kind : str
        The grader's type; others than ``judge`` name no rubric.
    options : mapping
    folder : str
        The task file's, relative to the root; the name is relative to it.
    files : FileReader
        Paths relative to the root.
    """
    if kind != _TYPE or _NAMED not in options:
        return options, []
    named = options[_NAMED]
    text, mistake = _read(named, folder, files)
    if _HELD in options:
        mistake = f"and '{_HELD}' exclude each other"
    found = {key: value for key, value in options.items() if key != _NAMED} | {_HELD: text}
    return found, [] if mistake is None else [(_NAMED, mistake)]


def _read(named: Any, folder: str, files: FileReader) -> tuple[str, str | None]:
    """Return the text, or what is wrong with it and a text that has no further mistake."""
    shown = printable(repr(named), limit=80)
    if not isinstance(named, str) or not named:
        return "?", f"must be a path, found {shown}"
    path = named_beside(folder, named)
    if path is None:
        return "?", f"must not leave the project, found {shown}"
    content = files.read(path)
    if content is None or len(content) > _MOST_BYTES:
        return "?", f"names no file of at most {_MOST_BYTES} bytes beside its task file: {shown}"
    try:
        return content.decode(), None
    except UnicodeDecodeError:
        return "?", f"names a file that is not UTF-8: {shown}"

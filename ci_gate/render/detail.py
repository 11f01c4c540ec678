"""The difference that goes with a failed grade, as lines of plain text.

Decides how many lines are shown and makes each inert; where they stand is the writer's to know.
"""

from __future__ import annotations

from ci_gate.render.escape import inert

__all__ = ["detail_lines"]

_SIGNS = ("+ ", "- ", "  ")
_LINE_CHARS = 300
_COMMAND = "::"


def detail_lines(detail: str, *, most: int) -> tuple[str, ...]:
    """Return the lines of a difference, and how many there are more.

    Parameters
    ----------
    detail : str
        As a run file has it: it may be hostile.
    most : int
        Lines that are shown.
    """
    lines = detail.split("\n")
    more = len(lines) - most
    shown = tuple(map(_inert_line, lines[:most]))
    return (*shown, f"  ... and {more} lines more") if more > 0 else shown


def _inert_line(line: str) -> str:
    sign = line[:2] if line.startswith(_SIGNS) else ""
    text = inert(line[len(sign) :], limit=_LINE_CHARS)
    # To a log, a command may be indented.
    return sign + (f": {text[1:]}" if text.startswith(_COMMAND) else text)

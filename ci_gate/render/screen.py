"""Lines on a terminal or in a log: plain text, aligned columns, nothing that wraps or is obeyed.

Decides how text becomes lines for a given console: which characters its encoding has, which columns
its width holds. It knows neither verdicts nor files.

Notes
-----
A continuous integration log obeys a line whose first characters are ``::``, and ``##[`` anywhere.
Text from outside is inert otherwise (``render.escape.inert``), so here no line has either, and no
line is wrapped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any, TypeVar, cast

import msgspec

from ci_gate.errors import unlike_command
from ci_gate.render.document import Column, Table

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["console_for", "in_encoding", "print_line", "print_table"]

_ASCII = {"−": "-", "–": "-", "→": "->", "∞": "inf", "…": "..."}  # noqa: RUF001 - what is replaced
_GIVEN_UP_FIRST = ("p", "First failure shown", "Detectable drop", "Adjusted p", "95 % interval")
_GAP = "  "
_Result = TypeVar("_Result")


class _LossyStream:
    """A stream whose reader may go away: what it cannot take is lost, and the work goes on."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._is_lost = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write the text while there is somebody to read it."""
        return self._unless_lost(lambda: self._stream.write(text), len(text))

    def flush(self) -> None:
        """Flush while there is somebody to read it."""
        self._unless_lost(self._stream.flush, None)

    def _unless_lost(self, action: Callable[[], _Result], otherwise: _Result) -> _Result:
        if self._is_lost:
            return otherwise
        try:
            return action()
        except (OSError, ValueError):
            self._is_lost = True
            return otherwise


def console_for(
    stream: IO[str], environ: Mapping[str, str] | None = None, *, lossy: bool = False
) -> Console:
    """Return a console on a stream: colours on a terminal, plain in CI and with ``NO_COLOR``.

    Parameters
    ----------
    stream : text file
    environ : mapping of str to str or None
        The environment; ``CI``, ``NO_COLOR``, ``TERM`` and ``COLUMNS`` are read. None leaves it to
        rich, which knows all of these but ``CI``.
    lossy : bool
        What the stream cannot take is lost; else ``BrokenPipeError`` says that its reader is gone.
    """
    from rich.console import Console

    class Plain(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    return Plain(
        file=cast("IO[str]", _LossyStream(stream)) if lossy else stream,
        force_terminal=False if environ and environ.get("CI") else None,
        highlight=False,
        markup=False,
        emoji=False,
        _environ=environ,
    )


def print_line(console: Console, text: str = "", *, style: str = "") -> None:
    """Print one line: no markup, no wrapping, no command, in characters the console has."""
    from rich.text import Text

    line = unlike_command(in_encoding(text, console.encoding))
    console.print(Text(line, style=style), soft_wrap=True)


def in_encoding(text: str, encoding: str) -> str:
    """Return text in the characters of an encoding; others are spelt out or escaped."""
    if encoding.lower().startswith("utf"):
        return text
    spelt = "".join(_ASCII.get(char, char) for char in text)
    return spelt.encode(encoding, "backslashreplace").decode(encoding)


def print_table(console: Console, table: Table, *, indent: str = "  ") -> None:
    """Print a table of aligned columns, each row as a bullet.

    On a terminal that is too narrow, the columns that matter least are left out.
    """
    fitting = _fitting(table, console.width - len(indent) - 2) if console.is_terminal else table
    widths = _widths(fitting)
    titles = [column.title for column in fitting.columns]
    print_line(console, f"{indent}  {_aligned(titles, fitting.columns, widths)}", style="dim")
    for row in fitting.rows:
        print_line(console, f"{indent}- {_aligned(row, fitting.columns, widths)}")
    if fitting.hidden:
        print_line(console, f"{indent}  and {fitting.hidden:,} more")


def _fitting(table: Table, width: int) -> Table:
    for title in _GIVEN_UP_FIRST:
        if sum(_widths(table)) + len(_GAP) * len(table.columns) <= width:
            return table
        table = _without_column(table, title)
    return table


def _without_column(table: Table, title: str) -> Table:
    kept = [index for index, column in enumerate(table.columns) if column.title != title]
    return msgspec.structs.replace(
        table,
        columns=tuple(table.columns[index] for index in kept),
        rows=tuple(tuple(row[index] for index in kept) for row in table.rows),
    )


def _widths(table: Table) -> list[int]:
    from rich.cells import cell_len

    titles = [column.title for column in table.columns]
    return [max(map(cell_len, column)) for column in zip(titles, *table.rows, strict=True)]


def _aligned(cells: Sequence[str], columns: Iterable[Column], widths: Sequence[int]) -> str:
    from rich.cells import cell_len

    padded = []
    for cell, column, width in zip(cells, columns, widths, strict=True):
        blank = " " * (width - cell_len(cell))
        padded.append(blank + cell if column.kind == "number" else cell + blank)
    return _GAP.join(padded).rstrip()

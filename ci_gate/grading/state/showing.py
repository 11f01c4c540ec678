"""Values and rows of a world as text for a reason or a difference: one line, bounded, harmless."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from ci_gate import codec
from ci_gate.errors import printable

__all__ = ["MOST_LINES", "bounded", "plain", "record_line", "row_line", "shown"]

_T = TypeVar("_T")

MOST_LINES: Final = 20
"""Lines shown of one check's difference."""

_VALUE: Final = 200
_LINE: Final = 600


def shown(value: Any) -> str:
    """Return a value as it is written in a task file or in SQL, at most some 200 characters."""
    if value is None:
        return "null"
    if isinstance(value, str):
        return f'"{printable(value, limit=_VALUE)}"'
    if isinstance(value, bytes):
        return f"x'{printable(value[:_VALUE].hex(), limit=_VALUE)}'"
    return printable(_json(value), limit=_VALUE)


def plain(value: Any) -> str:
    """Return a value without quotes: what ``[field=value]`` is compared with."""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return _json(value)


def _json(value: Any) -> str:
    try:
        return codec.encode(value).decode()
    except (TypeError, ValueError, RecursionError):
        return str(value)


def row_line(columns: Iterable[str], row: Sequence[Any]) -> str:
    """Return a row as ``field=value, ...``."""
    return record_line(dict(zip(columns, row, strict=True)))


def record_line(record: Mapping[str, Any]) -> str:
    """Return a record as ``field=value, ...``."""
    parts = (f"{printable(name, limit=60)}={shown(value)}" for name, value in record.items())
    return printable(", ".join(parts), limit=_LINE)


def bounded(items: Sequence[_T], line_of: Callable[[_T], str]) -> tuple[str, ...]:
    """Return the lines of the first items, and how many there are more.

    Parameters
    ----------
    items : sequence
        There may be as many as a world has rows.
    line_of : callable
        Makes the line of an item; only asked for those that are shown.
    """
    more = len(items) - MOST_LINES
    lines = tuple(map(line_of, items[:MOST_LINES]))
    return (*lines, f"  ... and {more} more") if more > 0 else lines

"""The content of a trial's world as plain values: tables, files, messages and payments.

Nothing here touches the disk; how a world is read is ``snapshot``'s to know.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

__all__ = ["EMPTY", "PUBLIC", "Entry", "Record", "Row", "Table", "WorldState", "frozen"]

Row = tuple[Any, ...]
"""The values of a row, one a column: None, int, float, str, bytes, or any JSON."""

PUBLIC: Final = "public"
"""The schema of PostgreSQL that need not be named."""

Record = Mapping[str, Any]
"""A message or a payment, as JSON has it."""


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """The rows of a table.

    Parameters
    ----------
    columns : tuple of str
        Those that are stored, not those that a database computes from others.
    rows : tuple of Row
        In whatever order they were found; nothing rests on it.
    key : tuple of str
        Columns whose values name a row; empty: rows have no name.
    is_json : bool
        From ``tables.json``, where true is not 1.
    """

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    key: tuple[str, ...] = ()
    is_json: bool = False


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """What lies at a path of the working directory.

    Parameters
    ----------
    kind : {"file", "link", "folder", "other"}
        A folder is told of only where it is empty; ``other`` is a pipe, socket or device.
    digest : str or None
        Hexadecimal SHA-256 of a file's content.
    size : int
        Bytes of a file.
    executable : bool
        Of a file, for its owner.
    target : str or None
        Where a link points to, as it is written.
    """

    kind: Literal["file", "link", "folder", "other"]
    digest: str | None = None
    size: int = 0
    executable: bool = False
    target: str | None = None


class WorldState(msgspec.Struct, frozen=True, kw_only=True):
    """A world at one moment, or the parts of it that somebody asked for.

    Parameters
    ----------
    tables : mapping of str to Table
    table_names : tuple of str
        Of all tables that the world has, also of those that were not read.
    files : mapping of str to Entry
        By path below the working directory, with forward slashes.
    messages, payments : tuple of Record
        In order.
    """

    tables: Mapping[str, Table] = msgspec.field(default_factory=dict)
    table_names: tuple[str, ...] = ()
    files: Mapping[str, Entry] = msgspec.field(default_factory=dict)
    messages: tuple[Record, ...] = ()
    payments: tuple[Record, ...] = ()

    def table(self, name: str) -> Table | None:
        """Return a table by its name, before which ``public.`` may stand; None where it is not."""
        return self.tables.get(name) or self.tables.get(name.removeprefix(f"{PUBLIC}."))


EMPTY: Final = WorldState()


def frozen(value: Any) -> Any:
    """Return what is equal, and hashes equal, for the same JSON value only: true is not 1.

    Whole numbers and fractions of the same value are the same number.
    """
    if isinstance(value, bool):
        return ("truth", value)
    if isinstance(value, Mapping):
        return ("object", frozenset((name, frozen(item)) for name, item in value.items()))
    if isinstance(value, list | tuple):
        return ("list", tuple(map(frozen, value)))
    return value

"""Reads the world of a trial into plain values, whatever the agent made of it.

The places are the work of the code under test: nothing is followed, waited for or run, and what is
read is bounded in size and time. Whatever is in the way ends in a sentence. What the values are
compared with is not known here.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from ci_gate import codec
from ci_gate.errors import printable
from ci_gate.grading.databases import SIDECARS, UnusableError, reading, said
from ci_gate.grading.opening import read_bytes, why_unread
from ci_gate.grading.state import postgres
from ci_gate.grading.state.tree import tree_of
from ci_gate.grading.state.world import Entry, Record, Row, Table, WorldState
from ci_gate.model.worlds import OUTBOX, PAYMENTS, TABLES

__all__ = [
    "LONGEST_READ_S",
    "MOST_BYTES",
    "MOST_ROWS",
    "OUTBOX",
    "PAYMENTS",
    "TABLES",
    "Parts",
    "Places",
    "snapshot",
]

MOST_ROWS: Final = 200_000
"""Rows of all tables together, and lines of a file of records, beyond which a world is refused."""

MOST_BYTES: Final = 64 * 2**20
"""Bytes of all texts and blobs of the tables together."""

LONGEST_READ_S: Final = 5.0
"""Seconds after which reading a database is ended."""

_LARGEST_VALUE: Final = MOST_BYTES
_MOST_TABLES: Final = 1_000
_ID: Final = "id"
# What SQLite keeps for itself (sqlite_sequence, sqlite_stat1, ...) is no table of anybody's world.
_LIST: Final = "SELECT name, sql FROM sqlite_master WHERE type = 'table' ORDER BY name"
_OWN: Final = "sqlite_"
_VIRTUAL: Final = "create virtual"
_STORED: Final = 0


class Places(msgspec.Struct, frozen=True, kw_only=True):
    """Where a world lies.

    Parameters
    ----------
    folder : Path or None
        Holds ``tables.json``, ``outbox.jsonl`` and ``payments.jsonl``, each where there is one.
    database, workdir : Path or None
    postgres : str or None
        URL of its PostgreSQL database.
    is_template : bool
        It is the state that trials start in: nobody writes to it, and nothing may be left in it.
    """

    folder: Path | None = None
    database: Path | None = None
    workdir: Path | None = None
    postgres: str | None = None
    is_template: bool = False


class Parts(msgspec.Struct, frozen=True, kw_only=True):
    """Which parts of a world are read.

    Parameters
    ----------
    tables : frozenset of str or None
        None: all.
    files, messages, payments : bool
    """

    tables: frozenset[str] | None = None
    files: bool = True
    messages: bool = True
    payments: bool = True


def snapshot(places: Places, parts: Parts = Parts()) -> WorldState:  # noqa: B008 - immutable
    """Return what lies in a world now.

    Parameters
    ----------
    places : Places
    parts : Parts
        What is wanted; a part that is not is empty. A named table that there is not is left out.

    Raises
    ------
    UnusableError
        Something cannot be read, in a sentence.
    """
    tables, names = _tables(places, parts)
    return WorldState(
        tables=tables,
        table_names=tuple(sorted(names)),
        files=_files(places) if parts.files else {},
        messages=_records(places.folder, OUTBOX) if parts.messages else (),
        payments=_records(places.folder, PAYMENTS) if parts.payments else (),
    )


def _tables(places: Places, parts: Parts) -> tuple[dict[str, Table], set[str]]:
    if parts.tables is not None and not parts.tables:
        return {}, set()
    room = _Room()
    stored, names = _database_tables(places, parts.tables, room)
    in_memory = _memory_tables(places.folder, room)
    _require_apart(names, set(in_memory), f"in the database and in {TABLES}")
    tables = stored | {n: t for n, t in in_memory.items() if _is_wanted(n, parts.tables)}
    names |= in_memory.keys()
    if places.postgres is None:
        return tables, names
    more, others = postgres.world_tables(
        places.postgres, parts.tables, room, longest_s=LONGEST_READ_S
    )
    _require_apart(names, others, "in PostgreSQL and elsewhere in the world")
    return tables | more, names | others


def _require_apart(names: Collection[str], others: Collection[str], where: str) -> None:
    both = sorted(set(names) & set(others))
    if both:
        raise UnusableError(f"table {_quoted(both[0])} is both {where}: rename one of them")


def _is_wanted(name: str, wanted: Collection[str] | None) -> bool:
    return wanted is None or name in wanted


def _quoted(name: str) -> str:
    return f"'{printable(name, limit=80)}'"


class _Room:
    """What may still be read."""

    def __init__(self) -> None:
        self._rows = MOST_ROWS
        self._bytes = MOST_BYTES

    def require(self, rows: int, size: int, table: str) -> None:
        self._refuse(self._rows - rows, self._bytes - size, table)

    def take(self, row: Row, table: str) -> None:
        self._rows -= 1
        for value in row:
            if value.__class__ is str or value.__class__ is bytes:
                self._bytes -= len(value)
        if self._rows < 0 or self._bytes < 0:
            self._refuse(self._rows, self._bytes, table)

    @staticmethod
    def _refuse(rows: int, size: int, table: str) -> None:
        if rows < 0:
            raise UnusableError(
                f"the tables have more than {MOST_ROWS} rows, with table {_quoted(table)}"
            )
        if size < 0:
            raise UnusableError(
                f"the tables hold more than {MOST_BYTES} bytes, with table {_quoted(table)}"
            )


def _database_tables(
    places: Places, wanted: Collection[str] | None, room: _Room
) -> tuple[dict[str, Table], set[str]]:
    if places.database is None:
        return {}, set()
    try:
        with reading(
            places.database,
            LONGEST_READ_S,
            largest_value=_LARGEST_VALUE,
            is_template=places.is_template,
        ) as connection:
            names = _table_names(connection)
            read = sorted(name for name in names if _is_wanted(name, wanted))
            return {name: _table(connection, name, room) for name in read}, names
    except (sqlite3.Error, sqlite3.Warning, OverflowError, UnicodeError) as error:
        raise UnusableError(said(error, is_query=False)) from error


def _table_names(connection: sqlite3.Connection) -> set[str]:
    names = set()
    for name, sql in connection.execute(_LIST).fetchmany(_MOST_TABLES + 1):
        # A virtual table is code that would run over what the agent wrote. What it keeps lies in
        # ordinary tables beside it.
        is_virtual = " ".join(str(sql).lower().split()).startswith(_VIRTUAL)
        if not is_virtual and not str(name).lower().startswith(_OWN):
            names.add(str(name))
    if len(names) > _MOST_TABLES:
        raise UnusableError(f"the database has more than {_MOST_TABLES} tables")
    return names


def _table(connection: sqlite3.Connection, name: str, room: _Room) -> Table:
    # A column that is computed would run what the agent may have written.
    info = connection.execute(f"PRAGMA table_xinfo({_identifier(name)})").fetchall()
    stored = [row for row in info if row[6] == _STORED]
    columns = tuple(row[1] for row in stored)
    keys = sorted((row[5], row[1]) for row in stored if row[5])
    query = f"SELECT {', '.join(map(_identifier, columns))} FROM {_identifier(name)}"  # noqa: S608 - quoted
    rows = _rows(connection, query, name, room) if columns else []
    return Table(columns=columns, rows=tuple(rows), key=tuple(column for _, column in keys))


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _rows(connection: sqlite3.Connection, query: str, table: str, room: _Room) -> list[Row]:
    rows: list[Row] = []
    try:
        _fill(rows, connection, query, table, room)
    except sqlite3.OperationalError as error:
        if "decode" not in str(error):
            raise
        rows.clear()
        connection.text_factory = _any_text
        _fill(rows, connection, query, table, room)
        connection.text_factory = str
    return rows


def _any_text(content: bytes) -> str:
    return content.decode("utf-8", "surrogateescape")


def _fill(
    rows: list[Row], connection: sqlite3.Connection, query: str, table: str, room: _Room
) -> None:
    for row in connection.execute(query):
        room.take(row, table)
        rows.append(row)


def _memory_tables(folder: Path | None, room: _Room) -> dict[str, Table]:
    content = _content(folder, TABLES)
    if content is None:
        return {}
    tables = _json(content, TABLES)
    if not isinstance(tables, dict):
        raise UnusableError(f"{TABLES} is not a JSON object of tables")
    return {name: _memory_table(name, rows, room) for name, rows in tables.items()}


def _memory_table(name: str, records: Any, room: _Room) -> Table:
    if not isinstance(records, list) or not all(isinstance(one, dict) for one in records):
        raise UnusableError(f"{TABLES}: table {_quoted(name)} is not a list of objects")
    columns = tuple(dict.fromkeys(column for record in records for column in record))
    rows = [tuple(record.get(column) for column in columns) for record in records]
    for row in rows:
        room.take(row, name)
    has_ids = _ID in columns and all(record.get(_ID) is not None for record in records)
    return Table(columns=columns, rows=tuple(rows), key=(_ID,) if has_ids else (), is_json=True)


def _content(folder: Path | None, name: str) -> bytes | None:
    try:
        return read_bytes(folder, name)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UnusableError(f"{name} cannot be read: {why_unread(error)}") from error


def _json(content: bytes, where: str) -> Any:
    try:
        return codec.decode(content)
    except ValueError as error:
        raise UnusableError(f"{where} is not JSON: {printable(error, limit=120)}") from error


def _records(folder: Path | None, name: str) -> tuple[Record, ...]:
    content = _content(folder, name)
    lines = [] if content is None else content.split(b"\n")
    if len(lines) > MOST_ROWS:
        raise UnusableError(f"{name} has more than {MOST_ROWS} lines")
    records = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            record = _json(line, f"{name}, line {number},")
            if not isinstance(record, dict):
                raise UnusableError(f"{name}, line {number}, is not a JSON object")
            records.append(record)
    return tuple(records)


def _files(places: Places) -> Mapping[str, Entry]:
    """Return what lies in the working directory, but for the database and what SQLite adds."""
    if places.workdir is None:
        return {}
    files = tree_of(places.workdir)
    database = places.database
    if database is not None and database.parent == places.workdir:
        for name in (database.name, *(database.name + ending for ending in SIDECARS)):
            files.pop(name, None)
    return files

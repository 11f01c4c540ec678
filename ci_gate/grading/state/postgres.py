"""Reads the PostgreSQL database that a trial left, whatever the agent made of it.

In a transaction that only reads, with bounded time and size. Only ordinary tables are read, and
values come as the server writes them, so that no view, cast or computed column of the agent's is
asked. What the tables are compared with is not known here. Needs ``psycopg``.

Notes
-----
Values become: truth values, whole numbers and ``real`` themselves; ``numeric`` the number that
stands for exactly it, else its text; ``bytea`` bytes; ``json`` what it holds; dates and times ISO
8601, those with a zone in UTC; anything else the text that PostgreSQL writes.
"""

from __future__ import annotations

import contextlib
import importlib
import re
import time
from collections.abc import Collection, Iterator, Sequence
from decimal import Decimal
from typing import Any, Final, NamedTuple, Protocol

from ci_gate import codec
from ci_gate.errors import printable
from ci_gate.grading.databases import UnusableError
from ci_gate.grading.state.world import PUBLIC, Row, Table

__all__ = ["Room", "explain", "query_rows", "value_of", "world_tables"]

_CONNECT_S: Final = 5
_LOCK_MS: Final = 500
_MOST_TABLES: Final = 1_000

# Output functions write a whole row; casts may be the agent's own.
_SIZE: Final = "SELECT count(*), coalesce(sum(octet_length(format('%s', t))), 0) FROM {} t"
_LIST: Final = """
SELECT c.oid, n.nspname, c.relname, c.relkind = 'r'
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relpersistence <> 't'
  AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
ORDER BY n.nspname, c.relname"""
_COLUMNS: Final = """
SELECT a.attname, coalesce(array_position(i.indkey::int2[], a.attnum), -1)
FROM pg_attribute a LEFT JOIN pg_index i ON i.indrelid = a.attrelid AND i.indisprimary
WHERE a.attrelid = {}::oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
ORDER BY a.attnum"""

_LONGEST_NUMBER: Final = 40
_LARGEST: Final = 2**63
_BOOLEAN: Final = 16
_BYTES: Final = 17
_INTEGERS: Final = frozenset({20, 21, 23, 26})
_REALS: Final = frozenset({700, 701})
_NUMERIC: Final = 1700
_JSON: Final = frozenset({114, 3802})
_MOMENTS: Final = frozenset({1114, 1184})
_MOMENT: Final = re.compile(r"(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d(?:\.\d+)?)([+-]\d\d)?", re.ASCII)


class Room(Protocol):
    """What may still be read."""

    def take(self, row: Row, table: str) -> None:
        """Take a row; raises UnusableError where there is no room."""

    def require(self, rows: int, size: int, table: str) -> None:
        """Raise UnusableError where there is no room for so many rows and bytes."""


class _Listed(NamedTuple):
    """A table as the catalog has it."""

    oid: int
    schema: str
    table: str
    is_plain: bool

    @property
    def name(self) -> str:
        """What checks call it."""
        return self.table if self.schema == PUBLIC else f"{self.schema}.{self.table}"


def world_tables(
    url: str, wanted: Collection[str] | None, room: Room, *, longest_s: float
) -> tuple[dict[str, Table], set[str]]:
    """Return the tables of a database, and the names of all that it has.

    Parameters
    ----------
    url : str
    wanted : collection of str or None
        Names ``schema.table``, without the schema where it is ``public``, which may stand there;
        None: all.
    room : Room
    longest_s : float
        Seconds after which reading is ended.

    Raises
    ------
    UnusableError
        It cannot be read, or is too large.
    """
    deadline = time.monotonic() + longest_s
    with _reading(url, longest_s, path="pg_catalog") as connection:
        listed = _listed(connection)
        tables = {}
        for one in listed:
            if wanted is None or not {one.name, f"{PUBLIC}.{one.name}"}.isdisjoint(wanted):
                if time.monotonic() > deadline:
                    raise UnusableError("reading the database was ended because it ran too long")
                tables[one.name] = _table(connection, one, room)
        return tables, {one.name for one in listed}


def _listed(connection: Any) -> list[_Listed]:
    rows = _fetched(connection.execute(_LIST))
    if len(rows) > _MOST_TABLES:
        raise UnusableError(f"the database has more than {_MOST_TABLES} tables")
    return [_Listed(*row) for row in rows]


def _table(connection: Any, one: _Listed, room: Room) -> Table:
    sql = importlib.import_module("psycopg.sql")
    place = sql.SQL("ONLY {}" if one.is_plain else "{}").format(
        sql.Identifier(one.schema, one.table)
    )
    [(rows, size)] = _fetched(connection.execute(sql.SQL(_SIZE).format(place)))
    # What it takes is known when it is here; of blobs, two characters stand for a byte.
    room.require(rows, size // 2, one.name)
    columns = _fetched(connection.execute(sql.SQL(_COLUMNS).format(sql.Literal(one.oid))))
    names = tuple(name for name, _ in columns)
    selected = sql.SQL(", ").join(map(sql.Identifier, names))
    found = _fetched(connection.execute(sql.SQL("SELECT {} FROM {}").format(selected, place)))
    for row in found:
        room.take(row, one.name)
    keys = sorted((place, name) for name, place in columns if place >= 0)
    return Table(columns=names, rows=tuple(found), key=tuple(name for _, name in keys))


def query_rows(url: str, query: str, *, most: int, longest_s: float) -> list[Row]:
    """Return the rows of a statement that only reads, at most one more than ``most``.

    Raises
    ------
    UnusableError
        It cannot be answered.
    """
    # The server keeps the result and hands over what is asked for; it does so for queries only.
    with (
        _reading(url, longest_s, path=PUBLIC, is_query=True) as connection,
        connection.cursor(name="ci_gate") as cursor,
    ):
        cursor.execute(query)
        return _converted(cursor, cursor.fetchmany(most + 1))


def explain(url: str, query: str, *, longest_s: float) -> None:
    """Raise ``UnusableError`` where the database cannot answer a query, without running it."""
    with _reading(url, longest_s, path=PUBLIC, is_query=True) as connection:
        connection.execute(f"EXPLAIN {query}")


@contextlib.contextmanager
def _reading(url: str, longest_s: float, *, path: str, is_query: bool = False) -> Iterator[Any]:
    psycopg = _driver()
    settings = {
        "statement_timeout": int(longest_s * 1000),
        "lock_timeout": _LOCK_MS,
        "search_path": path,
        "timezone": "UTC",
        "datestyle": "ISO",
        "bytea_output": "hex",
        "row_security": "off",
        "client_encoding": "UTF8",
    }
    options = " ".join(f"-c {name}={value}" for name, value in settings.items())
    try:
        with psycopg.connect(url, options=options, connect_timeout=_CONNECT_S) as connection:
            connection.read_only = True
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            _leave_as_text(connection, psycopg)
            yield connection
            connection.rollback()
    except (psycopg.Error, UnicodeError) as error:
        raise UnusableError(_said(error, psycopg, is_query=is_query)) from error


def _driver() -> Any:
    try:
        return importlib.import_module("psycopg")
    except ImportError as error:
        raise UnusableError("reading PostgreSQL needs psycopg: agent-gate[postgres]") from error


def _leave_as_text(connection: Any, psycopg: Any) -> None:
    loader = importlib.import_module("psycopg.types.string").TextLoader
    for info in psycopg.adapters.types:
        for oid in filter(None, (info.oid, info.array_oid)):
            connection.adapters.register_loader(oid, loader)


def _said(error: Exception, psycopg: Any, *, is_query: bool) -> str:
    if isinstance(error, psycopg.errors.LockNotAvailable):
        return "the agent left the database locked"
    if isinstance(error, psycopg.errors.QueryCanceled):
        what = "the query" if is_query else "reading the database"
        return f"{what} was ended because it ran too long"
    what = "the query cannot be answered" if is_query else "the database cannot be read"
    return f"{what}: {printable(str(error).strip().partition(chr(10))[0], limit=300)}"


def _fetched(cursor: Any) -> list[Row]:
    return _converted(cursor, cursor.fetchall())


def _converted(cursor: Any, rows: Sequence[Sequence[str | None]]) -> list[Row]:
    kinds = [column.type_code for column in cursor.description]
    return [tuple(map(value_of, kinds, row)) for row in rows]


def value_of(kind: int, text: str | None) -> Any:
    """Return the value that PostgreSQL writes as a text.

    Parameters
    ----------
    kind : int
        Number of its type in the catalog of the server.
    text : str or None
    """
    if text is None:
        return None
    if kind in _INTEGERS:
        return int(text)
    if kind in _REALS:
        return float(text)
    if kind == _NUMERIC:
        return _number(text)
    if kind == _BOOLEAN:
        return text == "t"
    return _other(kind, text)


def _other(kind: int, text: str) -> Any:
    if kind == _BYTES:
        return bytes.fromhex(text.removeprefix("\\x"))
    if kind in _JSON:
        try:
            return codec.decode(text)
        except ValueError:  # deeper or larger than any reader here takes it
            return text
    return _moment(text) if kind in _MOMENTS else text


def _number(text: str) -> Any:
    """Return the number that stands for exactly this decimal, else its text."""
    if len(text) > _LONGEST_NUMBER:
        return text
    exact = Decimal(text)
    if not exact.is_finite():
        return text
    if exact == exact.to_integral_value():
        return int(exact) if abs(exact) < _LARGEST else text
    near = float(text)
    return near if Decimal(repr(near)) == exact else text


def _moment(text: str) -> str:
    found = _MOMENT.fullmatch(text)
    if found is None:  # infinity, or before our era
        return text
    zone = found[3]
    return f"{found[1]}T{found[2]}" + (f"{zone}:00" if zone else "")

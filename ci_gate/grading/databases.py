"""Opens the database that a trial left, whatever the agent made of it.

The file is the work of the code under test and is treated as hostile: it is opened for reading
only, its schema is not trusted, and a statement can neither write, nor reach another file, nor run
without end. What is asked of it is not known here.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ci_gate.errors import printable

__all__ = ["MOST_VALUE_BYTES", "SIDECARS", "UnusableError", "permit", "reading", "said"]

SIDECARS: Final = ("-journal", "-wal", "-shm")
"""What SQLite puts beside a database, by the end of the name."""

MOST_VALUE_BYTES: Final = 1_000_000
"""Bytes of a text or blob, where nothing else is said."""

_MOST_OPERATIONS: Final = 200_000_000
_OPERATIONS_A_CHECK: Final = 20_000
_BUSY_S: Final = 0.2

# A query may read, compute and recurse.
_HARMLESS: Final = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE})
_READING_PRAGMAS: Final = frozenset(
    {
        "foreign_key_check",
        "foreign_key_list",
        "index_info",
        "index_list",
        "integrity_check",
        "quick_check",
        "table_info",
        "table_list",
        "table_xinfo",
    }
)
_FORBIDDEN_FUNCTIONS: Final = frozenset({"fts3_tokenizer", "load_extension"})


class UnusableError(Exception):
    """Why there is no result, in one sentence."""


def _require_plain_files(database: Path) -> None:
    """Refuse links, pipes and devices, also beside the database, before SQLite opens them."""
    for suffix in ("", *SIDECARS):
        path = f"{database}{suffix}"
        try:
            mode = os.lstat(path).st_mode
        except FileNotFoundError:
            continue
        except OSError as error:
            raise UnusableError(f"the database cannot be read: {error.strerror}") from error
        if not stat.S_ISREG(mode):
            raise UnusableError(f"world.db{suffix} is not a regular file any more")
    if not os.path.lexists(database):
        raise UnusableError("the database is gone")


@contextlib.contextmanager
def reading(
    database: Path,
    longest_s: float,
    *,
    largest_value: int = MOST_VALUE_BYTES,
    is_template: bool = False,
) -> Iterator[sqlite3.Connection]:
    """Open a database that cannot do anything but be read, for a bounded time.

    Parameters
    ----------
    database : Path
    longest_s : float
        Seconds after which a statement is ended.
    largest_value : int
        Bytes of a text or blob.
    is_template : bool
        Nobody writes to it, and nothing, not even what SQLite needs for a shared lock, may be put
        beside it.

    Raises
    ------
    UnusableError
        It is gone, or no regular file.
    sqlite3.Error, sqlite3.Warning
        As SQLite finds it, also in what is done with the connection; see ``said``.
    """
    _require_plain_files(database)
    mode = "mode=ro&immutable=1" if is_template else "mode=ro"
    connection = sqlite3.connect(f"{database.as_uri()}?{mode}", uri=True, timeout=_BUSY_S)
    try:
        for setting in ("trusted_schema=OFF", "query_only=ON", "cell_size_check=ON"):
            connection.execute(f"PRAGMA {setting}")
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, largest_value)
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        connection.set_authorizer(permit)
        connection.set_progress_handler(_Stopwatch(longest_s), _OPERATIONS_A_CHECK)
        yield connection
    finally:
        connection.close()


def permit(action: int, first: str | None, second: str | None, *_: object) -> int:
    """Allow a statement what only reads and computes: an authorizer for ``set_authorizer``."""
    return sqlite3.SQLITE_OK if _is_harmless(action, first, second) else sqlite3.SQLITE_DENY


def _is_harmless(action: int, first: str | None, second: str | None) -> bool:
    if action == sqlite3.SQLITE_PRAGMA:
        return first in _READING_PRAGMAS
    if action == sqlite3.SQLITE_FUNCTION:
        return second not in _FORBIDDEN_FUNCTIONS
    return action in _HARMLESS


class _Stopwatch:
    """Ends a statement after a number of operations, or of seconds, whichever comes first."""

    def __init__(self, longest_s: float) -> None:
        self._deadline = time.monotonic() + longest_s
        self._checks_left = _MOST_OPERATIONS // _OPERATIONS_A_CHECK

    def __call__(self) -> int:
        self._checks_left -= 1
        return int(self._checks_left < 0 or time.monotonic() > self._deadline)


def said(error: Exception, *, is_query: bool = True) -> str:
    """Return an error of SQLite in words for whoever reads the grade.

    Parameters
    ----------
    error : Exception
    is_query : bool
        It was met by a query of the task's, not by reading whole tables.
    """
    name = getattr(error, "sqlite_errorname", "")
    if name == "SQLITE_INTERRUPT":
        what = "the query" if is_query else "reading the database"
        return f"{what} was ended because it ran too long"
    if name == "SQLITE_READONLY_ROLLBACK":
        return "the agent left the database in the middle of a transaction"
    if name == "SQLITE_BUSY":
        return "the agent left the database locked"
    what = "the query cannot be answered" if is_query else "the database cannot be read"
    return f"{what}: {printable(error)}"

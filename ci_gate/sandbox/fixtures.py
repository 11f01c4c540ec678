"""From a task's fixture to the template that every trial's world is copied from.

A script or database becomes ``world.db``, a folder becomes ``work``, any other file lies in
``work``; tables in memory, earlier messages and payments lie beside it; a script for PostgreSQL is
only read, because the server is not known here. The fixture is read once: what changes on disk
later changes no trial. Nothing here knows trials, seeds or faults.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from ci_gate.errors import SuiteError, printable
from ci_gate.machine import is_of_the_machine, no_room
from ci_gate.model.worlds import TABLES
from ci_gate.sandbox.copying import copy_file, copy_folder
from ci_gate.sandbox.records import is_tables_file, move_out, require_tables, write_tables

__all__ = ["DATABASE", "FOLDER_SCRIPT", "WORK", "Template", "make_template"]

DATABASE: Final = "world.db"
WORK: Final = "work"
_DATABASE_SUFFIXES: Final = frozenset({".db", ".sqlite", ".sqlite3"})
FOLDER_SCRIPT: Final = "world.sql"
_POSTGRES_SUFFIX: Final = ".pg.sql"
_FOLDER_POSTGRES: Final = "world.pg.sql"
_SCRIPT_LIMIT_S: Final = 60.0
_PROGRESS_OPERATIONS: Final = 100_000


class Template(NamedTuple):
    """The known state of a task's world.

    Parameters
    ----------
    folder : Path
        Its content is what a trial's folder starts with.
    database : str or None
        Place of the database below the folder.
    work : str or None
        Place of the working directory below the folder.
    postgres : str or None
        Script that fills the trial's PostgreSQL database.
    """

    folder: Path
    database: str | None
    work: str | None
    postgres: str | None = None


def make_template(
    fixture: Path | None,
    folder: Path,
    *,
    source: str,
    tables: Mapping[str, Any] | None = None,
) -> Template:
    """Fill an existing empty folder with the state that the fixture describes.

    Parameters
    ----------
    fixture : Path or None
        An SQL script, SQLite database, other file, or folder.
    folder : Path
    source : str
        Where the task is defined, for messages.
    tables : mapping or None
        Tables in memory that the task itself gives.

    Raises
    ------
    SuiteError
        The fixture is missing, unreadable, no valid script or database, or holds a device, pipe or
        socket; or both it and the task have tables.
    """
    try:
        template = Template(folder, None, None)
        if fixture is not None:
            template = _kind_of(fixture)(fixture, folder)
        if tables is not None:
            write_tables(tables, folder)
        require_tables(folder)
        return template
    except (OSError, sqlite3.Error) as error:
        if is_of_the_machine(error):
            raise no_room(error, folder) from error
        what = f"the fixture {printable(fixture)} cannot be used: {printable(error)}"
        raise SuiteError(what, where=source, hint="Correct the task's fixture") from error
    except _ScriptError as error:
        raise SuiteError(str(error), where=source, hint="Correct the script") from error
    except (UnicodeError, RecursionError) as error:
        what = f"the fixture {printable(fixture)} cannot be used: {printable(error)}"
        raise SuiteError(what, where=source, hint="Correct the task's fixture") from error


def _kind_of(fixture: Path) -> Callable[[Path, Path], Template]:
    if fixture.is_dir():
        return _from_folder
    if fixture.name.lower().endswith(_POSTGRES_SUFFIX):
        return _from_postgres_script
    if is_tables_file(fixture.name):
        return _from_tables
    suffix = fixture.suffix.lower()
    if suffix == ".sql":
        return _from_script
    return _from_database if suffix in _DATABASE_SUFFIXES else _from_file


def _from_script(fixture: Path, folder: Path) -> Template:
    _run_script(fixture, folder / DATABASE)
    return Template(folder, DATABASE, None)


def _from_postgres_script(fixture: Path, folder: Path) -> Template:
    return Template(folder, None, None, _script_text(fixture))


def _from_tables(fixture: Path, folder: Path) -> Template:
    copy_file(fixture, folder / TABLES)
    return Template(folder, None, None)


def _from_database(fixture: Path, folder: Path) -> Template:
    _back_up(fixture, folder / DATABASE)
    return Template(folder, DATABASE, None)


def _from_file(fixture: Path, folder: Path) -> Template:
    (folder / WORK).mkdir(mode=0o700)
    copy_file(fixture, folder / WORK / fixture.name)
    return Template(folder, None, WORK)


def _from_folder(fixture: Path, folder: Path) -> Template:
    (folder / WORK).mkdir(mode=0o700)
    copy_folder(fixture, folder / WORK)
    postgres = folder / WORK / _FOLDER_POSTGRES
    text = _script_text(postgres) if _is_own_file(postgres) else None
    move_out(folder / WORK, folder)
    return _with_database(fixture, folder)._replace(postgres=text)


def _with_database(fixture: Path, folder: Path) -> Template:
    script, database = folder / WORK / FOLDER_SCRIPT, folder / WORK / DATABASE
    if _is_own_file(script) and _is_own_file(database):
        raise OSError(f"it has both {FOLDER_SCRIPT} and {DATABASE}")
    if _is_own_file(script):
        _run_script(script, folder / DATABASE)
        return Template(folder, DATABASE, WORK)
    if _is_own_file(database):
        _replace_by_backup(fixture / DATABASE, database)
        return Template(folder, f"{WORK}/{DATABASE}", WORK)
    return Template(folder, None, WORK)


def _is_own_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _replace_by_backup(source: Path, copied: Path) -> None:
    for suffix in ("", "-wal", "-shm", "-journal"):
        copied.with_name(copied.name + suffix).unlink(missing_ok=True)
    _back_up(source, copied)


def _back_up(source: Path, target: Path) -> None:
    _require_regular(source)
    address = f"{source.resolve().as_uri()}?mode=ro"
    with _connected(address) as original, _connected(target.as_uri()) as copied:
        original.execute("SELECT count(*) FROM sqlite_master").fetchone()
        original.backup(copied)


def _require_regular(path: Path) -> None:
    # Opening a pipe would wait for its other end.
    if not path.is_file():
        raise OSError("it is not a regular file" if os.path.lexists(path) else "it does not exist")


@contextlib.contextmanager
def _connected(address: str) -> Iterator[sqlite3.Connection]:
    # No implicit transactions: a script begins and commits its own.
    connection = sqlite3.connect(address, uri=True, isolation_level=None)
    try:
        yield connection
    finally:
        connection.close()


class _ScriptError(Exception):
    """A statement of a script failed; the text says in which line it ends."""


def _run_script(script: Path, target: Path) -> None:
    text = _script_text(script)
    with _connected(target.as_uri()) as connection:
        # Not durable: a template that is not finished is never used.
        connection.execute("PRAGMA synchronous=OFF")
        connection.execute("PRAGMA journal_mode=MEMORY")
        connection.set_authorizer(_permit)
        deadline = time.monotonic() + _SCRIPT_LIMIT_S
        connection.set_progress_handler(
            lambda: int(time.monotonic() > deadline), _PROGRESS_OPERATIONS
        )
        _execute_each(connection, text, script.name)


def _script_text(script: Path) -> str:
    _require_regular(script)
    return script.read_text(encoding="utf-8-sig")


def _permit(action: int, *_: object) -> int:
    # A script describes its own database and reaches no other file.
    outside = action in (sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH)
    return sqlite3.SQLITE_DENY if outside else sqlite3.SQLITE_OK


def _execute_each(connection: sqlite3.Connection, text: str, name: str) -> None:
    for line, statement in _statements(text):
        try:
            connection.execute(statement)
        except (sqlite3.Error, sqlite3.Warning) as error:
            if is_of_the_machine(error):
                raise
            message = f"{printable(name)}:{line}: {printable(error)}"
            raise _ScriptError(f"the fixture's script fails at {message}") from error
    if connection.in_transaction:
        connection.execute("COMMIT")


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Yield each statement with the number of the line in which it starts."""
    line, pending = 1, ""
    for piece in text.split(";"):
        pending += f"{piece};"
        if sqlite3.complete_statement(pending):
            blank = len(pending) - len(pending.lstrip())
            yield line + pending.count("\n", 0, blank), pending
            line, pending = line + pending.count("\n"), ""
    # What ends without a semicolon is a statement too; the last piece never had one.
    if pending.removesuffix(";").strip():
        yield line, pending.removesuffix(";")

"""PostgreSQL databases of trials: each a copy of its task's template, owned by a role of the run.

The server is one on which a run may make databases and roles. What it makes is named after the run,
which holds a lock as long as it lives; what killed runs left is removed by the next one. The agent
gets a role that owns its own databases and nothing else, with a password of this run, so that no
mistake of a task, a tool or an agent reaches anything else on the server. Needs ``psycopg``.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
import secrets
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlencode

from ci_gate.errors import AgentSetupError, SuiteError, printable

__all__ = [
    "SERVER",
    "PostgresServer",
    "PostgresTemplate",
    "TrialDatabase",
    "TrialDatabases",
    "state_digest",
]

SERVER: Final = "CI_GATE_POSTGRES_SERVER"
"""Environment variable with the address of the server; agents and graders do not see it."""

_HINT: Final = (
    "Set it to the URL of a server of your own for tests, with a role that may make databases and "
    "roles, such as postgresql://postgres@127.0.0.1/postgres."
)
_PREFIX: Final = "ci_gate_"
_LOCK_SPACE: Final = 0x63694761
_CONNECT_S: Final = 10
_STATEMENT_MS: Final = 60_000


class PostgresTemplate(NamedTuple):
    """The known state of a task's database.

    Parameters
    ----------
    name : str
        Of the database that trials' are copied from; nobody is connected to it.
    initial : str
        URL of a copy that is only read.
    digest : str
        See ``state_digest``.
    """

    name: str
    initial: str
    digest: str


class TrialDatabase(NamedTuple):
    """The database of one trial.

    Parameters
    ----------
    url : str
    digest : str
        Of what it held when it was made.
    drop : callable
        Removes it.
    """

    url: str
    digest: str
    drop: Callable[[], None]


class TrialDatabases:
    """Makes databases on the server that the environment names, reached when one is needed.

    Parameters
    ----------
    environment : mapping of str to str
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._url = environment.get(SERVER)
        self._server: PostgresServer | None = None

    def template(self, script: str, *, source: str) -> PostgresTemplate:
        """Make the state that a script describes.

        Raises
        ------
        AgentSetupError
            There is no server, or it cannot be used.
        SuiteError
            The script fails.
        """
        return self._reached().template(script, source=source)

    def _reached(self) -> PostgresServer:
        if self._server is None:
            if not self._url:
                what = "is not set, and a fixture of the suite needs a PostgreSQL server"
                raise AgentSetupError(what, where=SERVER, hint=_HINT)
            self._server = PostgresServer(self._url)
        return self._server

    def copy(self, template: PostgresTemplate) -> TrialDatabase:
        """Make a trial's database.

        Raises
        ------
        OSError
            The server does not make it.
        """
        server = self._reached()
        name, digest = server.copy(template)
        return TrialDatabase(server.url(name), digest, lambda: server.drop(name))

    def close(self) -> None:
        """Remove everything; safe to call twice."""
        server, self._server = self._server, None
        if server is not None:
            server.close()


class PostgresServer:
    """The databases that one run makes on a server; used from several threads.

    Parameters
    ----------
    url : str
        Of a database on it, for a role that may make databases and roles.

    Raises
    ------
    AgentSetupError
        ``psycopg`` is not installed, the server does not answer, or the role may not.
    """

    def __init__(self, url: str) -> None:
        self._driver = _driver()
        self._parts = self._parsed(url)
        self._run = f"{_PREFIX}{secrets.token_hex(6)}"
        self._password = secrets.token_urlsafe(18)
        self._count = itertools.count()
        self._lock = threading.Lock()
        self._made: list[str] = []
        self._session = self._opened()

    def _parsed(self, url: str) -> dict[str, Any]:
        try:
            return dict(importlib.import_module("psycopg.conninfo").conninfo_to_dict(url))
        except self._driver.Error as error:
            raise _unusable(f"is no address of a server: {printable(error)}") from error

    def _opened(self) -> Any:
        """Return the connection that says that this run lives, after the role was made."""
        try:
            session = self._connected(self._parts)
            session.execute("SELECT pg_advisory_lock(%s, %s)", (_LOCK_SPACE, _number(self._run)))
            self._sweep(session)
            # A utility statement takes no parameters; the driver quotes both.
            session.execute(
                self._composed("CREATE ROLE {} LOGIN PASSWORD {}", self._run, self._password)
            )
            session.execute(self._composed("GRANT {} TO CURRENT_USER", self._run))
        except self._driver.Error as error:
            raise _unusable(f"cannot be used: {_said(error)}") from error
        return session

    def _connected(self, parts: dict[str, Any]) -> Any:
        options = f"-c statement_timeout={_STATEMENT_MS}"
        wanted = {"connect_timeout": _CONNECT_S, "options": options} | parts
        return self._driver.connect(autocommit=True, **wanted)

    def _composed(self, text: str, name: str, *values: str) -> Any:
        sql = importlib.import_module("psycopg.sql")
        return sql.SQL(text).format(sql.Identifier(name), *map(sql.Literal, values))

    def _own(self, database: str) -> dict[str, Any]:
        return self._parts | {
            "user": self._run,
            "password": self._password,
            "dbname": database,
        }

    def url(self, database: str) -> str:
        """Return the address of a database for the role of this run, as libraries take it."""
        parts = self._own(database)
        user, secret, name = (quote(parts.pop(key), "") for key in ("user", "password", "dbname"))
        query = urlencode(
            parts, quote_via=quote
        )  # host and port as well: sockets have no other way
        return f"postgresql://{user}:{secret}@/{name}?{query}"

    def template(self, script: str, *, source: str) -> PostgresTemplate:
        """Make the state that a script describes.

        Parameters
        ----------
        script : str
            SQL; run by the role of this run, in a database of its own.
        source : str
            Where the task is defined, for messages.

        Raises
        ------
        SuiteError
            The script fails.
        """
        try:
            name = self._created("template0")
            with self._connected(self._own(name)) as connection:
                connection.execute(script)
            initial = self._created(name)
            with self._connected(self._own(initial)) as connection:
                digest = state_digest(connection)
        except self._driver.Error as error:
            what = f"the fixture's PostgreSQL script fails: {_said(error)}"
            raise SuiteError(what, where=source, hint="Correct the script") from error
        return PostgresTemplate(name, self.url(initial), digest)

    def copy(self, template: PostgresTemplate) -> tuple[str, str]:
        """Make a trial's database; returns its name and the digest of what it holds.

        Raises
        ------
        OSError
            The server does not make it.
        """
        try:
            name = self._created(template.name)
            with self._connected(self._own(name)) as connection:
                return name, state_digest(connection)
        except self._driver.Error as error:
            raise OSError(f"PostgreSQL: {_said(error)}") from error

    def _created(self, template: str) -> str:
        sql = importlib.import_module("psycopg.sql")
        name = f"{self._run}_{next(self._count)}"
        parts = map(sql.Identifier, (name, template, self._run))
        with self._lock:
            self._made.append(name)
            self._session.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {} OWNER {}").format(*parts))
            # By default every role of the server may connect.
            self._session.execute(self._composed("REVOKE CONNECT ON DATABASE {} FROM PUBLIC", name))
        return name

    def drop(self, name: str) -> None:
        """Remove a database, whoever is still connected to it."""
        with self._lock, contextlib.suppress(self._driver.Error):
            self._session.execute(self._composed("DROP DATABASE IF EXISTS {} WITH (FORCE)", name))
            self._made.remove(name)

    def close(self) -> None:
        """Remove everything of this run; safe to call twice."""
        for name in reversed(tuple(self._made)):
            self.drop(name)
        with self._lock, contextlib.suppress(self._driver.Error):
            self._session.execute(self._composed("DROP ROLE IF EXISTS {}", self._run))
            self._session.close()

    def _sweep(self, session: Any) -> None:
        """Remove what runs left that hold their lock no more."""
        for run in _runs_on(session):
            if run != self._run and _is_dead(session, run):
                _remove_run(session, run, self._composed)


def _runs_on(session: Any) -> list[str]:
    found = session.execute(
        "SELECT rolname FROM pg_roles WHERE rolname ~ '^ci_gate_[0-9a-f]{12}$' ORDER BY 1"
    )
    return [name for (name,) in found]


@contextlib.contextmanager
def _held(session: Any, run: str) -> Iterator[bool]:
    key = (_LOCK_SPACE, _number(run))
    (is_held,) = session.execute("SELECT pg_try_advisory_lock(%s, %s)", key).fetchone()
    try:
        yield is_held
    finally:
        if is_held:
            session.execute("SELECT pg_advisory_unlock(%s, %s)", key)


def _is_dead(session: Any, run: str) -> bool:
    with _held(session, run) as is_held:
        return is_held


def _remove_run(session: Any, run: str, composed: Any) -> None:
    names = session.execute(
        "SELECT datname FROM pg_database WHERE datname ~ %s ORDER BY 1", (f"^{run}_[0-9]+$",)
    ).fetchall()
    for (name,) in names:
        session.execute(composed("DROP DATABASE IF EXISTS {} WITH (FORCE)", name))
    session.execute(composed("DROP ROLE IF EXISTS {}", run))


def _number(run: str) -> int:
    """Return a run's key of a lock, a signed integer on 32 bits."""
    return zlib.crc32(run.encode()) - 2**31


_TABLES: Final = """
SELECT format('%I.%I', n.nspname, c.relname)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition
  AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname !~ '^pg_'
ORDER BY 1"""

_SEQUENCES: Final = """
SELECT format('%I.%I', schemaname, sequencename), coalesce(last_value, -1)
FROM pg_sequences ORDER BY 1"""


def state_digest(connection: Any) -> str:
    """Return a digest of all rows of all tables and of all sequences, whatever their order."""
    parts: list[str] = []
    for (table,) in connection.execute(_TABLES).fetchall():
        (rows,) = connection.execute(
            f"SELECT coalesce(md5(string_agg(m, '' ORDER BY m)), '') "  # noqa: S608 - it is quoted
            f"FROM (SELECT md5(t::text) AS m FROM {table} t) x"
        ).fetchone()
        parts.append(f"{table} {rows}")
    parts += [f"{name} {value}" for name, value in connection.execute(_SEQUENCES).fetchall()]
    (digest,) = connection.execute(
        "SELECT encode(sha256(%s::bytea), 'hex')", ("\n".join(parts).encode(),)
    ).fetchone()
    return f"sha256:{digest}"


def _driver() -> Any:
    try:
        return importlib.import_module("psycopg")
    except ImportError as error:
        raise _unusable(
            "needs the library psycopg, which is not installed",
            "Install agent-gate[postgres].",
        ) from error


def _said(error: Exception) -> str:
    # The rest names files and lines of the server.
    return printable(str(error).strip().partition("\n")[0], limit=300)


def _unusable(what: str, hint: str | None = None) -> AgentSetupError:
    return AgentSetupError(
        f"the PostgreSQL server {what}",
        where=SERVER,
        hint=hint or _HINT,
    )

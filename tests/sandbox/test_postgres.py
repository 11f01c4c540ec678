"""PostgreSQL databases of trials, on a real server: fresh, alone, and gone afterwards."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from ci_gate.errors import AgentSetupError, ContaminatedWorldError, SuiteError
from ci_gate.sandbox.postgres import SERVER, TrialDatabases
from ci_gate.sandbox.world_factory import WorldFactory
from tests.sandbox.postgres_servers import running_server
from tests.trials import task_of, trial_of

pytestmark = pytest.mark.slow

SCRIPT = """
CREATE SCHEMA shop;
CREATE TABLE shop.orders (id int PRIMARY KEY, status text);
INSERT INTO shop.orders VALUES (1, 'open'), (2, 'open');
CREATE SEQUENCE numbers START 100;
"""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Return the address of a server."""
    with running_server() as url:
        yield url


@pytest.fixture
def worlds(server: str, tmp_path: Path) -> Iterator[WorldFactory]:
    """Return what makes worlds with databases on the server."""
    databases = TrialDatabases({SERVER: server})
    with WorldFactory(tmp_path / "scratch", None, postgres=databases) as made:
        yield made


def task_with(folder: Path, script: str = SCRIPT):
    """Return a task whose fixture is a script for PostgreSQL."""
    fixture = folder / "world.pg.sql"
    fixture.write_text(script)
    return task_of(fixture_path=str(fixture))


def left_on(server: str) -> list[str]:
    """Return what runs made on a server that is still there."""
    with psycopg.connect(server) as connection:
        names = connection.execute(
            "SELECT datname FROM pg_database WHERE datname ~ '^ci_gate_' UNION ALL "
            "SELECT rolname FROM pg_roles WHERE rolname ~ '^ci_gate_'"
        ).fetchall()
    return [name for (name,) in names]


def test_each_trial_has_a_fresh_copy(worlds: WorldFactory, tmp_path: Path, server: str) -> None:
    """What one trial does, no other sees; the initial state can be read beside it."""
    trial = trial_of(task_with(tmp_path))
    first = worlds.open(trial)
    with psycopg.connect(first.postgres) as connection:
        connection.execute("DELETE FROM shop.orders")
        connection.execute("SELECT nextval('numbers')")
    second = worlds.open(trial)

    for url in (second.postgres, worlds.initial(trial)["postgres"]):
        with psycopg.connect(url) as connection:
            rows = connection.execute("SELECT * FROM shop.orders ORDER BY id").fetchall()
            assert rows == [(1, "open"), (2, "open")]
            assert connection.execute("SELECT nextval('numbers')").fetchone() == (100,)
    assert first.postgres != second.postgres
    first.close()
    second.close()
    worlds.close()
    assert left_on(server) == []


def test_an_open_connection_keeps_no_database(worlds: WorldFactory, tmp_path: Path) -> None:
    """An agent that does not hang up must not fill the server."""
    world = worlds.open(trial_of(task_with(tmp_path)))
    url = world.postgres
    connection = psycopg.connect(url)

    world.close()

    with pytest.raises(psycopg.OperationalError):
        connection.execute("SELECT 1")
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        psycopg.connect(url)


def test_the_trials_role_may_do_nothing_else(
    worlds: WorldFactory, tmp_path: Path, server: str
) -> None:
    """It makes no databases or roles and reads no file of the server."""
    world = worlds.open(trial_of(task_with(tmp_path)))
    with psycopg.connect(world.postgres, autocommit=True) as connection:
        for statement in (
            "CREATE DATABASE other",
            "CREATE ROLE other",
            "COPY shop.orders TO PROGRAM 'cat'",
            "SELECT pg_read_file('/etc/passwd')",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement)
    world.close()


def test_a_changed_template_is_contaminated(
    worlds: WorldFactory, tmp_path: Path, server: str
) -> None:
    """A trial is not judged on a state that its task does not have."""
    trial = trial_of(task_with(tmp_path))
    worlds.open(trial).close()
    template = min(left_on(server), key=lambda name: (not name.endswith("_0"), name))
    with psycopg.connect(server.removesuffix("postgres") + template) as connection:
        connection.execute("UPDATE shop.orders SET status = 'paid' WHERE id = 2")

    with pytest.raises(ContaminatedWorldError, match="PostgreSQL"):
        worlds.open(trial)


def test_a_broken_script_is_a_mistake_of_the_suite(worlds: WorldFactory, tmp_path: Path) -> None:
    """The server's words are shown, and the run does not begin."""
    with pytest.raises(
        SuiteError, match='PostgreSQL script fails: syntax error at or near "TABEL"'
    ):
        worlds.prepare([task_with(tmp_path, "CREATE TABEL x (y int)")])


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({}, "is not set, and a fixture of the suite needs a PostgreSQL server"),
        ({SERVER: "postgresql://nobody@127.0.0.1:1/x"}, "cannot be used: .*Connection refused"),
        ({SERVER: "nonsense"}, "is no address of a server"),
    ],
)
def test_a_server_that_cannot_be_used_is_said(
    environment: dict[str, str], words: str, tmp_path: Path
) -> None:
    """Before the first trial, with the name of the variable."""
    with (
        WorldFactory(tmp_path, None, postgres=TrialDatabases(environment)) as worlds,
        pytest.raises(AgentSetupError, match=f"^{SERVER}: .*{words}"),
    ):
        worlds.prepare([task_with(tmp_path)])


def test_what_a_killed_run_left_goes_at_the_next(server: str, tmp_path: Path) -> None:
    """And what a living run has is left alone."""
    program = """
import os, sys
from ci_gate.sandbox.postgres import TrialDatabases
made = TrialDatabases(os.environ)
made.copy(made.template("CREATE TABLE x (y int)", source="t"))
os.kill(os.getpid(), 9)
"""
    subprocess.run([sys.executable, "-c", program], env={**os.environ, SERVER: server}, timeout=60)
    assert len(left_on(server)) == 4  # template, initial state, trial; their role
    living = TrialDatabases({SERVER: server})
    living.template("CREATE TABLE x (y int)", source="t")
    assert len(left_on(server)) == 3
    other = TrialDatabases({SERVER: server})
    other.template("CREATE TABLE x (y int)", source="t")

    assert len(left_on(server)) == 6

    other.close()
    living.close()
    assert left_on(server) == []


def test_a_state_that_differs_when_a_run_is_resumed_is_contaminated(
    server: str, tmp_path: Path
) -> None:
    """Rows of PostgreSQL are part of what a trial starts in, and chance keeps no state."""
    task = task_with(tmp_path, "CREATE TABLE t (x) AS SELECT random()")
    before: dict[str, str] = {}
    for _ in range(2):
        databases = TrialDatabases({SERVER: server})
        with WorldFactory(
            tmp_path / "scratch", None, postgres=databases, state_of=lambda _: "0" * 16
        ) as worlds:
            worlds.expect(before)
            if before:
                with pytest.raises(ContaminatedWorldError, match="before the run was resumed"):
                    worlds.open(trial_of(task, 1))
            else:
                before[task.id] = worlds.open(trial_of(task)).initial_state or ""

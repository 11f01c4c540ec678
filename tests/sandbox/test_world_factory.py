"""Worlds: fresh in every trial, proven so, gone afterwards."""

from __future__ import annotations

import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ci_gate.errors import ContaminatedWorldError, SuiteError
from ci_gate.model.suite import Task
from ci_gate.ports import SandboxFactory, TrialSandbox
from ci_gate.sandbox.world import World
from ci_gate.sandbox.world_factory import DEFAULT_NOW, WorldFactory
from tests.trials import BareWorld, task_of, trial_of


@pytest.fixture
def factory(tmp_path: Path) -> Iterator[WorldFactory]:
    """A factory without faults."""
    with WorldFactory(tmp_path / "scratch", None) as worlds:
        yield worlds


@pytest.fixture
def task(tmp_path: Path) -> Task:
    """A task whose database has one order."""
    script = tmp_path / "world.sql"
    script.write_text("CREATE TABLE orders (id); INSERT INTO orders VALUES (4812);")
    return task_of(fixture_path=str(script))


@pytest.fixture
def folder_task(tmp_path: Path) -> Task:
    """A task with a working directory."""
    (tmp_path / "desk").mkdir()
    (tmp_path / "desk" / "note.txt").write_text("hello")
    return task_of(fixture_path=str(tmp_path / "desk"))


def orders_of(world: World) -> list[tuple[Any, ...]]:
    assert world.database is not None
    with closing(sqlite3.connect(world.database)) as connection:
        return connection.execute("SELECT id FROM orders").fetchall()


def empty_orders(world: World) -> None:
    assert world.database is not None
    with closing(sqlite3.connect(world.database)) as connection, connection:
        connection.execute("DELETE FROM orders")


def test_worlds_and_their_stand_in_fill_the_ports(factory: WorldFactory) -> None:
    """The real world and the bare one of other tests are sandboxes to whoever uses them."""
    makes: SandboxFactory = factory
    assert isinstance(makes.open(trial_of()), TrialSandbox)
    assert isinstance(BareWorld(), TrialSandbox)


def test_without_a_fixture_nothing_is_made(factory: WorldFactory, tmp_path: Path) -> None:
    """A task without a fixture costs no folder, not even the scratch folder."""
    world = factory.open(trial_of())
    assert (world.workdir, world.database) == (None, None)
    assert not (tmp_path / "scratch").exists()


def test_every_trial_starts_in_the_same_state(factory: WorldFactory, task: Task) -> None:
    """What one trial does to its database, no other trial sees."""
    first, second = factory.open(trial_of(task)), factory.open(trial_of(task, 1))
    empty_orders(first)
    assert orders_of(first) == []
    assert orders_of(second) == [(4812,)]
    assert orders_of(factory.open(trial_of(task, 2))) == [(4812,)]


def test_a_working_directory_is_private_to_its_trial(
    factory: WorldFactory, folder_task: Task
) -> None:
    """Files that a trial writes are not in the next one's folder, and others may not look."""
    first, second = factory.open(trial_of(folder_task)), factory.open(trial_of(folder_task, 1))
    assert first.workdir is not None
    assert second.workdir is not None
    (first.workdir / "note.txt").write_text("changed")
    (first.workdir / "more.txt").write_text("")
    assert [entry.name for entry in second.workdir.iterdir()] == ["note.txt"]
    assert (second.workdir / "note.txt").read_text() == "hello"
    assert stat.S_IMODE(first.workdir.parent.stat().st_mode) == 0o700


def test_paths_are_absolute_and_hold_nothing_of_the_task(
    factory: WorldFactory, tmp_path: Path, task: Task
) -> None:
    """A hostile id reaches no path, and every world lies in the scratch folder."""
    hostile = task_of("../../etc/passwd", fixture_path=task.fixture_path)
    world = factory.open(trial_of(hostile))
    assert world.database is not None
    assert world.database.is_relative_to((tmp_path / "scratch").resolve())
    assert "passwd" not in str(world.database)


def test_a_relative_scratch_folder_gives_absolute_paths(
    tmp_path: Path, task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Agents run in other folders, so paths do not depend on the current one."""
    monkeypatch.chdir(tmp_path)
    with WorldFactory(Path("scratch"), None) as worlds:
        world = worlds.open(trial_of(task))
        assert world.database is not None
        assert world.database.is_absolute()


def test_a_world_goes_when_its_trial_ends(factory: WorldFactory, task: Task) -> None:
    """Closing removes the trial's folder, and closing again is no error."""
    world = factory.open(trial_of(task))
    assert world.database is not None
    world.close()
    world.close()
    assert not world.database.parent.exists()


def test_nothing_is_left_at_the_end(tmp_path: Path, task: Task, folder_task: Task) -> None:
    """Worlds that were never closed go with the factory, templates too."""
    with WorldFactory(tmp_path / "scratch", None) as worlds:
        worlds.open(trial_of(task))
        worlds.open(trial_of(folder_task))
    worlds.close()
    assert list((tmp_path / "scratch").iterdir()) == []


def test_two_factories_share_a_scratch_folder(tmp_path: Path, task: Task) -> None:
    """Two runs at once do not meet, and the end of one leaves the other's worlds."""
    with WorldFactory(tmp_path / "scratch", None) as longer:
        world = longer.open(trial_of(task))
        with WorldFactory(tmp_path / "scratch", None) as shorter:
            shorter.open(trial_of(task))
        assert orders_of(world) == [(4812,)]


def test_agents_that_expect_a_folder_get_an_empty_one(tmp_path: Path, task: Task) -> None:
    """On request a trial has a working directory also where its fixture makes none."""
    with WorldFactory(tmp_path / "scratch", None, always_workdir=True) as worlds:
        bare, with_database = worlds.open(trial_of()), worlds.open(trial_of(task))
        for world in (bare, with_database):
            assert world.workdir is not None
            assert list(world.workdir.iterdir()) == []
        bare.close()
        assert bare.workdir is not None
        assert not bare.workdir.exists()


def test_fixtures_are_read_once(factory: WorldFactory, task: Task) -> None:
    """What happens to the fixture after the start changes no trial."""
    factory.prepare([task])
    Path(str(task.fixture_path)).write_text("CREATE TABLE orders (id);")
    assert orders_of(factory.open(trial_of(task))) == [(4812,)]


def test_bad_fixtures_are_said_together(factory: WorldFactory, tmp_path: Path) -> None:
    """Before the first trial, every fixture that cannot be used is named with its task."""
    (tmp_path / "bad.sql").write_text("nonsense;")
    tasks = [
        task_of("one", fixture_path=str(tmp_path / "bad.sql"), source="evals/a.toml:1"),
        task_of("two", fixture_path=str(tmp_path / "missing.db"), source="evals/a.toml:9"),
        task_of("three"),
    ]
    with pytest.raises(SuiteError) as caught:
        factory.prepare(tasks)
    assert [problem.where for problem in caught.value.problems] == [
        "evals/a.toml:1",
        "evals/a.toml:9",
    ]


def test_a_changed_template_is_contamination(factory: WorldFactory, task: Task) -> None:
    """A trial whose initial state differs from the first one's is refused, and the next too."""
    known = factory.initial(trial_of(task))["database"]
    assert known is not None
    with closing(sqlite3.connect(known)) as connection, connection:
        connection.execute("INSERT INTO orders VALUES (666)")
    for trial in (1, 2):
        with pytest.raises(ContaminatedWorldError, match="task refund, trial") as caught:
            factory.open(trial_of(task, trial))
        assert "contaminated: its initial state differs" in str(caught.value)


def test_a_world_that_is_there_already_is_contamination(factory: WorldFactory, task: Task) -> None:
    """An agent that makes the next trial's folder beforehand changes nothing unseen."""
    first = factory.open(trial_of(task))
    assert first.database is not None
    following = int(first.database.parent.name) + 1
    first.database.parent.with_name(f"{following:06d}").symlink_to("/")
    with pytest.raises(ContaminatedWorldError, match="the scratch folder was changed"):
        factory.open(trial_of(task, 1))


def test_the_initial_state_is_named_for_graders(
    factory: WorldFactory, task: Task, folder_task: Task
) -> None:
    """Graders find the state before the trial, untouched by it; None is what there is not."""
    empty_orders(factory.open(trial_of(task)))
    before = factory.initial(trial_of(task))
    assert before["workdir"] is None
    with closing(sqlite3.connect(str(before["database"]))) as connection:
        assert connection.execute("SELECT id FROM orders").fetchall() == [(4812,)]
    places = factory.initial(trial_of(folder_task))
    assert (Path(str(places["workdir"])) / "note.txt").read_text() == "hello"
    assert factory.initial(trial_of()) == dict.fromkeys(
        ("folder", "database", "workdir", "postgres")
    )


def test_every_trial_starts_at_the_same_moment(tmp_path: Path) -> None:
    """The clock's start is fixed, and can be chosen."""
    chosen = WorldFactory(tmp_path, None, now="2027-05-01T00:00:00Z")
    assert WorldFactory(tmp_path, None).open(trial_of()).now == DEFAULT_NOW
    assert chosen.open(trial_of()).now == "2027-05-01T00:00:00Z"

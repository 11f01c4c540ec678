"""Tables in memory, messages and payments on their way into the world of a trial."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ci_gate.errors import SuiteError
from ci_gate.sandbox.world import World
from ci_gate.sandbox.world_factory import WorldFactory
from tests.trials import task_of, trial_of

TABLES = {"orders": [{"id": 4812, "total": 4500}]}


@pytest.fixture
def factory(tmp_path: Path) -> Iterator[WorldFactory]:
    """A factory without faults."""
    with WorldFactory(tmp_path / "scratch", None) as worlds:
        yield worlds


def content(world: World, name: str) -> str:
    assert world.folder is not None
    return (world.folder / name).read_text()


def test_a_task_gives_tables_to_each_of_its_trials(factory: WorldFactory) -> None:
    """What one trial makes of the task's tables, no other trial sees; tasks have their own."""
    first = factory.open(trial_of(task_of(tables=TABLES)))
    assert json.loads(content(first, "tables.json")) == TABLES
    assert first.folder is not None
    (first.folder / "tables.json").write_text("{}")
    second = factory.open(trial_of(task_of(tables=TABLES), 1))
    assert json.loads(content(second, "tables.json")) == TABLES
    other = factory.open(trial_of(task_of("other", tables={"orders": []})))
    assert json.loads(content(other, "tables.json")) == {"orders": []}


@pytest.mark.parametrize("name", ["tables.json", "shop.tables.json"])
def test_a_fixture_may_be_tables(factory: WorldFactory, tmp_path: Path, name: str) -> None:
    """A file of this name becomes tables and no working directory."""
    (tmp_path / name).write_text(json.dumps(TABLES))
    world = factory.open(trial_of(task_of(fixture_path=str(tmp_path / name))))
    assert (world.workdir, world.database) == (None, None)
    assert json.loads(content(world, "tables.json")) == TABLES


def test_a_folder_may_have_all_three(factory: WorldFactory, tmp_path: Path) -> None:
    """They lie beside the working directory, so that an agent's files are its own."""
    desk = tmp_path / "desk"
    desk.mkdir()
    (desk / "note.txt").write_text("hello")
    for name in ("tables.json", "outbox.jsonl", "payments.jsonl"):
        (desk / name).write_text("{}")
    world = factory.open(trial_of(task_of(fixture_path=str(desk))))
    assert world.workdir is not None
    assert [entry.name for entry in world.workdir.iterdir()] == ["note.txt"]
    assert content(world, "outbox.jsonl") == content(world, "payments.jsonl") == "{}"


@pytest.mark.parametrize(
    ("text", "tables", "said"),
    [
        ("[", None, "tables.json is not JSON"),
        (
            '{"orders": 3}',
            None,
            "tables.json must be a table of lists of rows; 'orders' is no list",
        ),
        ("{}", TABLES, "it has tables.json, and the task has 'tables'"),
    ],
)
def test_tables_that_cannot_be_are_a_mistake(
    factory: WorldFactory, tmp_path: Path, text: str, tables: Any, said: str
) -> None:
    """It is said before the first trial, with the fixture."""
    (tmp_path / "tables.json").write_text(text)
    task = task_of(fixture_path=str(tmp_path / "tables.json"), tables=tables)
    with pytest.raises(SuiteError) as caught:
        factory.prepare([task])
    assert said in caught.value.problems[0].what


def test_a_world_without_a_folder_gets_one_when_something_is_put_there(
    factory: WorldFactory,
) -> None:
    """A trial's place is its own, costs nothing while it is empty, and goes with the trial."""
    world, other = factory.open(trial_of()), factory.open(trial_of())
    home = world.home
    assert home is not None
    assert home == world.home != other.home
    assert world.folder is None
    home.mkdir()
    (home / "outbox.jsonl").write_text("{}")
    assert world.folder == home
    world.close()
    assert not home.exists()
    assert world.home is None


def test_a_task_s_own_time_starts_its_clock(factory: WorldFactory) -> None:
    """Other tasks start at the default."""
    assert factory.open(trial_of(task_of(now="2026-03-01T00:00:00Z"))).now == "2026-03-01T00:00:00Z"
    assert factory.open(trial_of()).now == "2026-01-01T09:00:00Z"

"""Checks held against the states that trials start in, before the first trial."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ci_gate.errors import ContaminatedWorldError, SuiteError
from ci_gate.gate.initial_states import checked_states, state_digest, states_of
from ci_gate.model.suite import Task
from ci_gate.model.trial import Status, TrialRecord
from ci_gate.sandbox.world_factory import WorldFactory
from tests.trials import spec_of, task_of, trial_of

SHOP = "CREATE TABLE orders (id INTEGER PRIMARY KEY, status TEXT); CREATE TABLE refunds (cents);"

STATE = "e5d5226d59da2bfd"


def recorded(state: str | None) -> TrialRecord:
    assert state is not None
    return TrialRecord(task="refund", trial=0, status=Status.PASSED, initial_state=state)


@pytest.fixture
def worlds(tmp_path: Path) -> Iterator[WorldFactory]:
    """A factory of worlds."""
    with WorldFactory(tmp_path / "scratch", None) as factory:
        yield factory


def task_with(folder: Path, *checks: dict[str, Any]) -> Task:
    (folder / "world.sql").write_text(SHOP)
    spec = spec_of("state", checks=list(checks))
    path = str(folder / "world.sql")
    return task_of(graders=(spec,), fixture_path=path, source="evals/refund.toml:3")


def test_what_the_fixture_has_is_no_mistake(tmp_path: Path, worlds: WorldFactory) -> None:
    """Known tables and fields pass, and so does what only the agent can make."""
    checks: list[dict[str, Any]] = [
        {"table": "orders", "where": {"id": 1}, "field": "status", "equals": "x"},
        {"query": "SELECT count(*) FROM refunds", "equals": 0},
        {"document": "later.json", "exists": True},
        {"messages": {"template": "x"}, "count": 0},
        {"unchanged": {"except": ["re*[]", "orders[id=1].status", "./later.json", "messages"]}},
    ]
    checked_states([task_with(tmp_path, *checks)], worlds.initial)


def test_every_name_that_the_fixture_lacks_is_a_mistake(
    tmp_path: Path, worlds: WorldFactory
) -> None:
    """All are said at once, with file, task, grader, check and the nearest name."""
    checks: list[dict[str, Any]] = [
        {"table": "refund", "count": 1},
        {"table": "orders", "where": {"ident": 1}, "sum": "statu", "equals": 1},
        {"query": "SELECT amount FROM refunds", "equals": 1},
        {"query": "DELETE FROM refunds", "count": 0},
        {"unchanged": {"except": ["order[id=1]", "orders[id=1].state"]}},
    ]
    with pytest.raises(SuiteError) as caught:
        checked_states([task_with(tmp_path, *checks)], worlds.initial)
    where = "evals/refund.toml:3: task 'refund': grader 'state'"
    assert {problem.where for problem in caught.value.problems} == {where}
    assert [problem.what for problem in caught.value.problems] == [
        "check 1: there is no table 'refund' (did you mean 'refunds'?)",
        "check 2: there is no field 'ident' (there are id, status)",
        "check 2: there is no field 'statu' (did you mean 'status'?)",
        "check 3: the query cannot be answered: no such column: amount",
        "check 4: the query cannot be answered: not authorized",
        (
            "check 5: 'except': there is no table 'order' (did you mean 'orders'?);"
            " a path begins with './'"
        ),
        "check 5: 'except': there is no field 'state' (did you mean 'status'?)",
    ]


def test_a_world_without_tables_can_tell_nothing(worlds: WorldFactory) -> None:
    """A table that only the agent's tools make is known after the trial."""
    spec = spec_of("state", checks=[{"table": "orders", "count": 1}])
    checked_states([task_of(graders=(spec,))], worlds.initial)


def test_a_query_needs_a_database(worlds: WorldFactory) -> None:
    """Without a fixture that makes one, no trial could answer."""
    spec = spec_of("state", checks=[{"query": "SELECT 1", "equals": 1}])
    with pytest.raises(SuiteError, match="check 1: the trial has no database"):
        checked_states([task_of(graders=(spec,))], worlds.initial)


def test_a_state_that_differs_from_that_before_a_break_is_contaminated(tmp_path: Path) -> None:
    """A fixture that chance is part of makes another world when a run is resumed."""
    (tmp_path / "world.sql").write_text("CREATE TABLE t (x); INSERT INTO t VALUES (random());")
    task = task_of(fixture_path=str(tmp_path / "world.sql"))
    states = []
    for _ in range(2):
        with WorldFactory(tmp_path / "scratch", None, state_of=state_digest) as factory:
            factory.expect(states_of(states))
            if states:
                with pytest.raises(ContaminatedWorldError, match="before the run was resumed"):
                    factory.open(trial_of(task, 1))
            else:
                states.append(recorded(factory.open(trial_of(task, 0)).initial_state))


def test_the_same_state_goes_on(tmp_path: Path) -> None:
    """A fixture that is the same in every process is no contamination."""
    task = task_with(tmp_path)
    for expected in ({}, states_of([recorded(STATE)])):
        with WorldFactory(tmp_path / "scratch", None, state_of=state_digest) as factory:
            factory.expect(expected)
            assert factory.open(trial_of(task, 1)).initial_state == STATE


def test_a_state_that_cannot_be_read_whole_has_no_digest(tmp_path: Path) -> None:
    """What is not known is not recorded."""
    (tmp_path / "tables.json").write_text("[")
    assert state_digest({"folder": str(tmp_path)}) is None
    assert states_of([TrialRecord(task="refund", trial=0, status=Status.PASSED)]) == {}


def test_tables_in_memory_are_part_of_the_state(tmp_path: Path) -> None:
    """A row of the task's own tables makes another state, its identity and time make none."""
    states = []
    with WorldFactory(tmp_path / "scratch", None, state_of=state_digest) as factory:
        for number, fields in enumerate([{}, {"identity": {"user": "ada"}}, {"now": "x"}]):
            task = task_of(f"t{number}", tables={"orders": [{"id": 1}]}, **fields)
            states.append(factory.open(trial_of(task)).initial_state)
        other = task_of("other", tables={"orders": [{"id": 2}]})
        assert factory.open(trial_of(other)).initial_state not in {None, *states}
    assert len(set(states)) == 1

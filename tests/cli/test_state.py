"""States of worlds, as a user meets them: a task file with checks, and a run that is resumed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.places import Place

CONFIG = r"""
[[suite]]
name = "shop"
tasks = ["task.toml"]
seed = "0x1"
trials = 3
[agent]
command = ["sh", "-c", "echo done > $CI_GATE_WORKDIR/report.txt; echo '{\"answer\":\"\"}'"]
[gate]
metrics = ["pass^1"]
"""
TASK = """
id = "report"
instruction = "Write a report and nothing else."
fixture = "world.sql"
[[graders]]
type = "state"
checks = [
  { table = "orders", count = 1 },
  { unchanged = { except = ["./summary.txt"] } },
]
"""
CHANCE = "CREATE TABLE orders (id); INSERT INTO orders VALUES (random());"


@pytest.fixture
def shop(place: Place) -> Place:
    """A folder with a task whose fixture chance is part of."""
    (place.path / "ci-gate.toml").write_text(CONFIG)
    (place.path / "task.toml").write_text(TASK)
    (place.path / "world.sql").write_text(CHANCE)
    return place


def trials_in(place: Place) -> list[dict[str, Any]]:
    lines = (place.path / ".ci-gate" / "shop.run.jsonl").read_text().splitlines()
    return [line for line in map(json.loads, lines) if "trial" in line]


def test_checks_judge_what_a_trial_left_and_a_resumed_run_starts_as_before(shop: Place) -> None:
    """The grade has the difference and a partial score; another start is a contaminated trial."""
    assert shop.gate("run", "--quiet").status == 0
    before = trials_in(shop)
    (grade,) = before[0]["grades"]
    assert (grade["passed"], grade["score"]) == (False, 0.5)
    assert grade["detail"].splitlines()[1:] == ["+ file report.txt (5 bytes, sha256 d117fa006ba9)"]
    assert len({line["initial_state"] for line in before}) == 1

    path = shop.path / ".ci-gate" / "shop.run.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-2]))
    shop.gate("run", "--quiet", "--resume")

    last = trials_in(shop)[-1]
    assert (last["status"], last["cause"]) == ("errored", "contaminated")
    assert "before the run was resumed" in last["reason"]


def test_a_check_of_what_the_fixture_lacks_stops_before_the_first_trial(shop: Place) -> None:
    """A misspelt table is a mistake of the task, and costs no trial."""
    shop.replace("task.toml", 'table = "orders"', 'table = "order"')
    ended = shop.gate("run", "--quiet")
    assert ended.status == 2
    assert "task.toml:1: task 'report': grader 'state': check 1: there is no table" in ended.err
    assert not (shop.path / ".ci-gate" / "shop.run.jsonl").exists()

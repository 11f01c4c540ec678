"""Rules, expectations and process measures from task file to report, as a user meets them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.places import Place

CONFIG = """
[[suite]]
name = "desk"
tasks = ["tasks.toml"]
trials = 4

[agent]
python = "desk:run"

[gate]
curtail = false
metrics = ["pass^1"]

[[gate.guards]]
metric = "argument_correctness"
max_decrease = 0.2

[baseline]
repeats = 1
"""
TASKS = """
[[task]]
id = "refund"
instruction = "Refund order 4812."
input = { messages = [{ order = 4812 }] }
grader = "judges:is_asked"

[[task.graders]]
type = "rules"
forbidden = ["delete_*"]
before = [["read_order", "refund_order"]]
arguments = { refund_order = "schemas/refund.json" }

[task.expect]
tools = ["read_order", "refund_order"]
arguments = { refund_order = { order_id = 4812 } }
consistent = ["input.messages[0].order == args.refund_order.order_id"]
"""
AGENT = """
import json, pathlib
def run(task, env):
    plan = json.loads(pathlib.Path("plan.json").read_text())
    for name, arguments in plan:
        env.tools.register({name: lambda **given: {"ok": True}})
        env.tools.call(name, **arguments)
    return "done"
"""
JUDGES = """
import pathlib
def is_asked(task, trajectory, before, after):
    with open("asked.txt", "a") as file:
        file.write("x")
    return trajectory.duration_s > 0
"""
READ = ["read_order", {"order_id": 4812}]
GOOD = [READ, ["refund_order", {"order_id": 4812}]]


class Desk:
    """A suite whose agent calls what it is told, with a baseline of a good one."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def check(self, plan: Any) -> tuple[int, dict[str, Any]]:
        """Return the exit status and the verdict on an agent that calls this."""
        (self.path / "plan.json").write_text(json.dumps(plan))
        done = Place(self.path).gate(
            *("check", "--baseline", "baselines/desk.json", "--json", "-", "--fresh"),
            *("--markdown", "report.md"),
        )
        return done.status, json.loads(done.out)

    @property
    def trial(self) -> dict[str, Any]:
        """Return the first trial of the last run."""
        line = (self.path / ".ci-gate/desk.run.jsonl").read_text().splitlines()[1]
        found: dict[str, Any] = json.loads(line)
        return found


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    folder = tmp_path_factory.mktemp("desk")
    (folder / "schemas").mkdir()
    (folder / "schemas/refund.json").write_text('{"required": ["order_id"]}')
    files = {"ci-gate.toml": CONFIG, "tasks.toml": TASKS, "desk.py": AGENT, "judges.py": JUDGES}
    for name, text in files.items():
        (folder / name).write_text(text)
    (folder / "plan.json").write_text(json.dumps(GOOD))
    done = Place(folder).gate("baseline", "update", "--quiet")
    assert done.status == 0, done.err
    return Desk(folder)


def test_a_measure_moves_through_run_file_report_and_guard(desk: Desk) -> None:
    """Every trial passes, and the guard on correct arguments is broken all the same."""
    status, verdict = desk.check([READ, ["refund_order", {"order_id": 9999}]])

    assert desk.trial["process"] == {
        "tool_selection": 1.0,
        "argument_correctness": 0.0,
        "consistency": 0.0,
        "useless_retries": 0.0,
        "argument_hallucination": 0.5,
    }
    assert (status, [one["code"] for one in verdict["reasons"]]) == (1, ["guard"])
    found = {one["measure"]: one for one in verdict["process"]}
    assert found["argument_correctness"]["baseline"]["mean"] == 1.0
    assert found["argument_correctness"]["difference"] == -1.0
    assert found["tool_selection"]["difference"] == 0.0
    report = (desk.path / "report.md").read_text()
    assert "| Correct arguments | 100\N{NO-BREAK SPACE}% | 0\N{NO-BREAK SPACE}% |" in report


@pytest.mark.slow
def test_a_rule_that_fails_spares_the_teams_own_grader(desk: Desk) -> None:
    """Its reason names the call; what was not asked has no grade and is never called."""
    (desk.path / "asked.txt").write_text("")

    status, verdict = desk.check([["refund_order", {"order_id": 4812}], ["delete_order", {}]])

    assert (status, verdict["verdict"]) == (1, "regressed")
    assert [grade["grader"] for grade in desk.trial["grades"]] == ["rules"]
    assert desk.trial["cause"] == "agent"
    assert desk.trial["reason"] == (
        "rules: expected no call of 'delete_*', found one of delete_order (call 2); expected a "
        "call of 'read_order' that succeeds before each of 'refund_order', found refund_order "
        "without one (call 1)"
    )
    assert (desk.path / "asked.txt").read_text() == ""

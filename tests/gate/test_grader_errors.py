"""Whose fault a red trial is, from worker to exit status: the harness says, and nobody else."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.places import Place
from tests.speeds import slow

CONFIG = """
[[suite]]
name = "desk"
tasks = ["tasks.toml"]
trials = 8

[agent]
python = "desk:run"

[run]
retries = 0

[gate]
curtail = false

[baseline]
repeats = 1
"""
TASKS = "".join(
    f"""
[[task]]
id = "{name}"
instruction = "Say yes."
graders = [{{ type = "python", name = "state", function = "judges:says_yes" }}]
"""
    for name in ("refund", "cancel", "lookup")
)
AGENT = """
import json, pathlib
def run(task, env):
    results = json.loads(pathlib.Path("results.json").read_text())
    return results.get(f"{task['id']}-{env.trial}", results["other"])
"""
JUDGES = """
def says_yes(task, trajectory, before, after):
    return trajectory.answer == "yes"
"""
RAISES = """
def says_yes(task, trajectory, before, after):
    raise RuntimeError("no such table")
"""


@dataclass(frozen=True)
class Desk:
    """A suite whose agent gives back what it is told, with a baseline in which all trials pass."""

    path: Path

    def check(self, results: dict[str, Any], judges: str = JUDGES) -> tuple[int, dict[str, Any]]:
        """Return the exit status and the verdict on an agent with these results."""
        (self.path / "results.json").write_text(json.dumps(results))
        (self.path / "judges.py").write_text(judges)
        done = Place(self.path).gate(
            *("check", "--baseline", "baselines/desk.json", "--json", "-", "--fresh")
        )
        return done.status, json.loads(done.out)

    def details(self) -> list[str]:
        """Return the detail of each trial's grade in the last run's file."""
        lines = (self.path / ".ci-gate/desk.run.jsonl").read_text().splitlines()[1:-1]
        return [line["grades"][0]["detail"] for line in map(json.loads, lines)]

    def causes(self) -> set[tuple[str, str | None]]:
        """Return each pair of status and cause in the last run's file."""
        lines = (self.path / ".ci-gate/desk.run.jsonl").read_text().splitlines()[1:-1]
        return {(line["status"], line["cause"]) for line in map(json.loads, lines)}


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    desk = Desk(tmp_path_factory.mktemp("desk"))
    files = {"ci-gate.toml": CONFIG, "tasks.toml": TASKS, "desk.py": AGENT, "judges.py": JUDGES}
    for name, text in files.items():
        (desk.path / name).write_text(text)
    (desk.path / "results.json").write_text('{"other": "yes"}')
    done = Place(desk.path).gate("baseline", "update", "--quiet")
    assert done.status == 0, done.err
    return desk


def codes(verdict: dict[str, Any]) -> list[str]:
    """Return the reasons' codes in order."""
    return [reason["code"] for reason in verdict["reasons"]]


def test_a_grader_that_raises_is_not_held_against_the_agent(desk: Desk) -> None:
    """The verdict is inconclusive for the grader's sake, whatever the failed trials look like."""
    status, verdict = desk.check({"other": "yes"}, RAISES)

    assert (status, verdict["verdict"], codes(verdict)[0]) == (3, "inconclusive", "grader-errors")
    assert desk.causes() == {("failed", "grader-error")}
    raised = '  File "judges.py", line 3, in says_yes\n    raise RuntimeError("no such table")'
    details = list(desk.details())
    assert details
    assert all(raised in detail for detail in details)


@pytest.mark.parametrize(
    ("results", "causes"),
    [
        (
            {"other": {"status": "failed", "reason": "grader-error: x", "cause": "grader-error"}},
            {("failed", "agent")},
        ),
        *slow(
            (
                {"other": "no", "refund-0": {"status": "errored", "reason": "contaminated: x"}},
                {("failed", "agent"), ("errored", "environment")},
            )
        ),
    ],
    ids=["grader-error", "contaminated"],
)
def test_an_agent_cannot_claim_the_harness_words(
    desk: Desk, results: dict[str, Any], causes: set[tuple[str, str]]
) -> None:
    """A regression stays one, whatever the agent writes into its results."""
    status, verdict = desk.check(results)

    assert (status, verdict["verdict"], codes(verdict)[0]) == (1, "regressed", "task-regressed")
    assert desk.causes() == causes

"""Graders of the team's own run in workers, and their mistakes come back as text."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ci_gate.agents.own_graders import OwnGraderWorkers
from ci_gate.errors import AgentSetupError
from ci_gate.grading.own import OwnGrader
from ci_gate.model.agent import AgentSpec
from ci_gate.model.trial import Step, Trajectory
from tests.trials import BareWorld, trial_of

GRADERS = """
import os, time
class Grade:
    passed = True
    reason = None
    score = 0.5
def says(task, trajectory, before, after):
    steps = [step.name for step in trajectory.steps]
    return trajectory.answer == "yes" and steps == ["look"] and before["database"] is None
def score(*_): return 0.25
def table(*_): return {"passed": False, "reason": "no"}
def grade(*_): return Grade()
async def later(*_): return True
def words(*_): return "fine"
def raises(*_): raise ValueError("broken")
def exits(*_): os._exit(2)
def hangs(*_): time.sleep(60)
"""


def call(root: Path, *functions: str, timeout_s: float = 20.0) -> list[Mapping[str, Any]]:
    (root / "judges.py").write_text(GRADERS)
    workers = OwnGraderWorkers(spec(root), timeout_s=timeout_s)
    payload = {
        "task": {"id": "t"},
        "trajectory": {"answer": "yes", "steps": [{"name": "look"}]},
        "before": {"database": None},
        "after": {"database": None},
    }

    async def run() -> list[Mapping[str, Any]]:
        try:
            return [await workers.call(function, payload) for function in functions]
        finally:
            await workers.close()

    return asyncio.run(run())


def spec(root: Path) -> AgentSpec:
    return AgentSpec(protocol="command", root=str(root), interpreter=sys.executable)


def test_grades_of_every_form_come_back(tmp_path: Path) -> None:
    """Truth values, scores, tables, objects and asynchronous graders give a result."""
    functions = ("says", "score", "table", "grade", "later", "words")
    found = call(tmp_path, *(f"judges:{name}" for name in functions))
    assert [reply["result"] for reply in found] == [
        True,
        0.25,
        {"passed": False, "reason": "no"},
        {"passed": True, "score": 0.5, "reason": None},
        True,
        "str fine",
    ]


def test_a_grader_that_fails_is_an_error_and_the_next_is_fine(tmp_path: Path) -> None:
    """Exceptions, exits, time-outs and missing functions are told, and do not spread."""
    names = ("raises", "exits", "hangs", "missing", "later")
    found = call(tmp_path, *(f"judges:{name}" for name in names), timeout_s=0.3)
    assert [reply.get("error", "")[:30] for reply in found] == [
        "ValueError: broken (judges.py:",
        "crash: exit status 2",
        "timeout after 0.3 s",
        "AttributeError: module 'judges",
        "",
    ]


def test_the_grader_of_the_gate_works_with_these_workers(tmp_path: Path) -> None:
    """Both sides of the port agree on what is sent and what comes back."""
    (tmp_path / "judges.py").write_text(GRADERS)
    workers = OwnGraderWorkers(spec(tmp_path))
    trajectory = Trajectory(answer="yes", steps=(Step(kind="tool", name="look"),))

    async def run() -> list[bool]:
        try:
            graders = [
                OwnGrader(
                    name,
                    f"judges:{name}",
                    call=workers.call,
                    initial=lambda _: {"database": None, "workdir": None},
                )
                for name in ("says", "table", "raises", "words")
            ]
            grades = [await g.grade(trial_of(), trajectory, BareWorld()) for g in graders]
            return [grade.passed for grade in grades]
        finally:
            await workers.close()

    assert asyncio.run(run()) == [True, False, False, False]


def test_an_interpreter_that_is_missing_is_an_error_of_the_set_up(tmp_path: Path) -> None:
    """Without a Python for the graders nothing can be judged, and that is said."""
    broken = AgentSpec(protocol="command", root=str(tmp_path), interpreter="./missing")
    with pytest.raises(AgentSetupError, match="there is no file"):
        asyncio.run(OwnGraderWorkers(broken).call("judges:says", {}))

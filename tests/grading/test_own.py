"""The team's own graders: what they are asked, and how strictly their word is read."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

from ci_gate.grading.own import ERROR_PREFIX, build, grade_of, validate
from ci_gate.model.trial import Cause, Grade, Step, Trajectory
from tests.trials import BareWorld, spec_of, task_of, trial_of


class Worker:
    """Stands for the process that runs own graders: keeps the call and gives a fixed reply."""

    def __init__(self, reply: Mapping[str, Any]) -> None:
        self.reply = reply
        self.calls: list[tuple[str, Mapping[str, Any]]] = []

    async def __call__(self, function: str, payload: Mapping[str, Any]) -> Mapping[str, Any]:
        """Keep the call and reply."""
        self.calls.append((function, payload))
        return self.reply


def graded(worker: Worker) -> Grade:
    grader = build(
        spec_of("python", function="desk.graders:polite"),
        call=worker,
        initial=lambda trial: {"database": "/before/world.db", "workdir": None},
    )
    trajectory = Trajectory(
        answer="Done.", steps=(Step(kind="tool", name="refund", input={"n": 1}),)
    )
    trial = trial_of(task_of(input={"email": "ada"}, metadata={"k": 1}, tags=("a",)))
    world = BareWorld(database=Path("/after/world.db"))
    return asyncio.run(grader.grade(trial, trajectory, world))


def test_the_function_gets_task_trajectory_and_both_worlds() -> None:
    """An own grader is handed plain JSON: what was asked, what was done, before and after."""
    worker = Worker({"result": True})
    assert graded(worker) == Grade(grader="python", passed=True)
    ((function, payload),) = worker.calls
    assert function == "desk.graders:polite"
    assert payload["task"] == {
        "id": "refund",
        "instruction": "",
        "input": {"email": "ada"},
        "metadata": {"k": 1},
        "tags": ["a"],
    }
    assert payload["trajectory"]["answer"] == "Done."
    assert payload["trajectory"]["steps"][0]["name"] == "refund"
    none = {"workdir": None, "tables": None, "outbox": None, "payments": None}
    assert payload["before"] == {"database": "/before/world.db", **none}
    after = {"database": "/after/world.db", "postgres": None, **none}
    assert payload["after"] == after


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (
            {"error": "KeyError: 'x' (graders.py:3 in polite)"},
            "KeyError: 'x' (graders.py:3 in polite)",
        ),
        ({}, "the worker gave no result"),
    ],
)
def test_a_grader_that_raises_fails_the_trial_and_says_so(
    reply: dict[str, Any], reason: str
) -> None:
    """The trial is failed, and both cause and reason say that it was the grader."""
    grade = graded(Worker(reply))
    assert (grade.passed, grade.reason) == (False, ERROR_PREFIX + reason)
    assert grade.cause is Cause.GRADER_ERROR


def test_the_end_of_the_trace_goes_with_the_grade() -> None:
    """Whoever repairs the grader sees where it raised; no line of it can pass for another."""
    trace = "x" * 5_000 + "\n" + '  File "judges.py", line 3, in says\n\x1b[31mValueError: no\n'
    grade = graded(Worker({"error": "ValueError: no", "trace": trace}))
    assert isinstance(grade.detail, str)
    lines = grade.detail.split("\n")
    assert lines[-2:] == ['  File "judges.py", line 3, in says', "\\x1b[31mValueError: no"]
    assert len(grade.detail) <= 4_096
    assert graded(Worker({"error": "x", "trace": ""})).detail is UNSET


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (True, Grade(grader="g", passed=True)),
        (False, Grade(grader="g", passed=False, reason="the grader said no")),
        (1.0, Grade(grader="g", passed=True, score=1.0)),
        (1, Grade(grader="g", passed=True, score=1.0)),
        (0.75, Grade(grader="g", passed=False, reason="score 0.75 is below 1", score=0.75)),
        ({"passed": True, "reason": "fine"}, Grade(grader="g", passed=True)),
        (
            {"passed": False, "reason": "rude\n", "score": 0.2},
            Grade(grader="g", passed=False, reason="rude\\n", score=0.2),
        ),
        (
            {"passed": False, "score": None, "reason": None},
            Grade(grader="g", passed=False, reason="the grader said no"),
        ),
    ],
)
def test_a_grade_is_a_truth_value_a_score_or_a_table(result: Any, expected: Grade) -> None:
    """A score passes at 1 only; a table says itself whether it passes."""
    assert grade_of("g", result) == expected


@pytest.mark.parametrize(
    "result",
    [
        None,
        "yes",
        1.5,
        -0.1,
        float("nan"),
        [],
        {},
        {"passed": 1},
        {"passed": True, "reason": 3},
        {"passed": True, "score": 2},
        {"passed": True, "score": True},
        {"passed": True, "verdict": "ok"},
        {"passed": False, "cause": "agent"},
    ],
)
def test_anything_else_is_the_graders_mistake(result: Any) -> None:
    """What is no grade never passes a trial."""
    grade = grade_of("g", result)
    assert not grade.passed
    assert grade.reason is not None
    assert grade.reason.startswith(ERROR_PREFIX)
    assert grade.cause is Cause.GRADER_ERROR


def test_no_words_of_a_grader_make_it_a_broken_one() -> None:
    """A grader that says no has given its grade, whatever its reason speaks of."""
    grade = grade_of("g", {"passed": False, "reason": "grader-error: contaminated"})
    assert grade.cause is None


@pytest.mark.parametrize("function", ["graders:polite", "desk.eval.graders:Polite.check", "é:ü"])
def test_functions_are_named_with_their_module(function: str) -> None:
    """A module path, a colon and a name are what can be imported."""
    assert validate(spec_of("python", function=function)) == []


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"function": "polite"},
        {"function": "a.b:"},
        {"function": "a b:c"},
        {"function": "../x:y"},
        {"function": "os:system('x')"},
        {"function": 3},
        {"function": "a:b", "functions": "c:d"},
    ],
)
def test_mistakes_are_named_when_the_suite_is_loaded(options: dict[str, Any]) -> None:
    """What names no function, and options that there are not, are refused before any trial."""
    assert len(validate(spec_of("python", **options))) == 1

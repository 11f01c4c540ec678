"""From trajectory and grades to the status of a trial."""

from __future__ import annotations

from typing import Any

import pytest

from ci_gate.engine.judging import exceeded, judge
from ci_gate.model.suite import Limits
from ci_gate.model.trial import Cause, Grade, Status, Step, Trajectory

TOOL = Step(kind="tool", name="t")
GOOD = Grade(grader="good", passed=True)
BAD = Grade(grader="bad", passed=False, reason="expected 1, found 2")
BROKEN = Grade(
    grader="broken", passed=False, reason="grader-error: KeyError", cause=Cause.GRADER_ERROR
)
PARTIAL = Grade(grader="partial", passed=False, score=0.9)


@pytest.mark.parametrize(
    ("grades", "status", "reason"),
    [
        ([GOOD], Status.PASSED, None),
        ([GOOD, GOOD], Status.PASSED, None),
        ([GOOD, BAD], Status.FAILED, "bad: expected 1, found 2"),
        ([PARTIAL, BAD], Status.FAILED, "partial: not passed"),
    ],
)
def test_a_trial_passes_when_every_grade_does(
    grades: list[Grade], status: Status, reason: str | None
) -> None:
    """Success is a predicate: one grade that does not pass fails, whatever the scores."""
    judgement = judge(Trajectory(), grades)
    assert (judgement.status, judgement.reason) == (status, reason)
    assert judgement.grades == tuple(grades)


@pytest.mark.parametrize(
    ("grades", "cause", "reason"),
    [
        ([GOOD], None, None),
        ([GOOD, BAD], Cause.AGENT, "bad: expected 1, found 2"),
        ([GOOD, BROKEN], Cause.GRADER_ERROR, "broken: grader-error: KeyError"),
        ([BROKEN, BAD, PARTIAL], Cause.AGENT, "bad: expected 1, found 2"),
        ([], Cause.AGENT, "nothing judged it: the task has no graders"),
    ],
)
def test_a_broken_grader_is_to_blame_only_where_no_sound_one_says_no(
    grades: list[Grade], cause: Cause | None, reason: str | None
) -> None:
    """A trial that fails by a sound grade is the agent's, and that grade is its reason."""
    judgement = judge(Trajectory(), grades)
    assert (judgement.cause, judgement.reason) == (cause, reason)


def test_without_graders_only_the_agents_own_pass_counts() -> None:
    """An exit status of 0 is a pass; an answer that nobody judged is none."""
    assert judge(Trajectory(status=Status.PASSED), []).status is Status.PASSED
    unjudged = judge(Trajectory(answer="fine"), [])
    assert (unjudged.status, unjudged.grades) == (Status.FAILED, None)
    assert "no graders" in (unjudged.reason or "")


def test_a_grade_overrules_an_exit_status() -> None:
    """A command that exits 0 still fails by its graders."""
    assert judge(Trajectory(status=Status.PASSED), [BAD]).status is Status.FAILED


@pytest.mark.parametrize(
    ("limits", "used", "reason"),
    [
        ({"turns": 3}, {"turns": 3}, None),
        ({"turns": 3}, {"turns": 4}, "limit: turns 4 is beyond 3"),
        ({"tokens": 100}, {"tokens": 101}, "limit: tokens 101 is beyond 100"),
        ({"cost_usd": 0.5}, {"cost_usd": 0.51}, "limit: cost_usd 0.51 is beyond 0.5"),
        ({"tool_calls": 1}, {"steps": (TOOL, TOOL)}, "limit: tool_calls 2 is beyond 1"),
        ({"tool_calls": 1}, {"steps": (TOOL, Step(kind="kv", name="get"))}, None),
        ({"turns": 3, "tokens": 1}, {}, None),
        ({}, {"turns": 10**9}, None),
    ],
)
def test_limits_are_inclusive_and_hold_for_what_is_known(
    limits: dict[str, Any], used: dict[str, Any], reason: str | None
) -> None:
    """At the limit is within it; an unknown use is beyond none."""
    assert exceeded(Limits(**limits), Trajectory(**used)) == reason

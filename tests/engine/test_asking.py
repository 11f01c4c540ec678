"""Which graders are asked: in the order of their cost, and no dear one after a rule that failed."""

from __future__ import annotations

import asyncio

import pytest

from ci_gate.engine.asking import grades_of
from ci_gate.model.suite import PlannedTrial
from ci_gate.model.trial import Grade, Trajectory
from ci_gate.ports import GraderCost, RankedGrader, TrialSandbox
from tests.trials import BareWorld, trial_of


class Noting:
    """A grader that notes that it was asked, and says what it was told to."""

    def __init__(self, name: str, asked: list[str], *, passes: bool = True) -> None:
        self._name, self._asked, self._passes = name, asked, passes

    def grade(self, trial: PlannedTrial, trajectory: Trajectory, sandbox: TrialSandbox) -> Grade:
        """Say it."""
        self._asked.append(self._name)
        return Grade(grader=self._name, passed=self._passes)


@pytest.mark.parametrize(
    ("failing", "expected"),
    [
        ("", ["rule", "look", "own", "judge"]),
        ("rule", ["rule", "look"]),
        ("look", ["rule", "look", "own", "judge"]),
        ("own", ["rule", "look", "own", "judge"]),
    ],
)
def test_a_rule_that_fails_spares_the_dear_graders(failing: str, expected: list[str]) -> None:
    """Looks at the world are made all the same; only a rule has the veto."""
    asked: list[str] = []
    graders = [
        RankedGrader(Noting(cost.name.lower(), asked, passes=cost.name.lower() != failing), cost)
        for cost in GraderCost
    ]
    grades = asyncio.run(grades_of(graders, trial_of(), Trajectory(), BareWorld()))
    assert asked == [grade.grader for grade in grades] == expected

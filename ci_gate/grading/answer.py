"""The grader ``answer``: what the agent's final answer must be, contain or match."""

from __future__ import annotations

from typing import Final

from ci_gate.grading.conditions import TextConditions, condition_problems
from ci_gate.grading.options import unknown_options
from ci_gate.model.suite import GraderSpec, PlannedTrial
from ci_gate.model.trial import Grade, Trajectory
from ci_gate.ports import TrialSandbox

__all__ = ["AnswerGrader", "build", "validate"]

_CONDITIONS: Final = ("equals", "contains", "not_contains", "matches")
_OPTIONS: Final = (*_CONDITIONS, "ignore_case")


class AnswerGrader:
    """Passes when the answer meets every condition; no answer meets none.

    Parameters
    ----------
    name : str
    conditions : TextConditions

    Attributes
    ----------
    blocking : bool
        Only a pattern can take its time.
    """

    def __init__(self, name: str, conditions: TextConditions) -> None:
        self._name = name
        self._conditions = conditions
        self.blocking = conditions.matches is not None

    def grade(self, trial: PlannedTrial, trajectory: Trajectory, sandbox: TrialSandbox) -> Grade:
        """Return whether the answer is as asked."""
        del trial, sandbox
        if trajectory.answer is None:
            complaint: str | None = "the agent gave no answer"
        else:
            complaint = self._conditions.complaint(trajectory.answer)
        return Grade(grader=self._name, passed=complaint is None, reason=complaint)


def validate(spec: GraderSpec) -> list[str]:
    """Return what is wrong with the options, empty where nothing is."""
    return [
        *unknown_options(spec.options, _OPTIONS),
        *condition_problems(spec.options, _CONDITIONS),
    ]


def build(spec: GraderSpec) -> AnswerGrader:
    """Return the grader of options that ``validate`` has passed."""
    return AnswerGrader(spec.name, TextConditions.of(spec.options))

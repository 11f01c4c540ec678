"""Asks a task's graders about a finished trial, in their order, and stops where a rule has failed.

Knows what a grader costs and whether it holds others up; not what any of them looks at.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence

from ci_gate.engine.cancellation import in_thread
from ci_gate.errors import AgentSetupError
from ci_gate.model.suite import PlannedTrial
from ci_gate.model.trial import Grade, Trajectory
from ci_gate.ports import Grader, GraderCost, RankedGrader, TrialErrored, TrialSandbox

__all__ = ["grades_of", "unstarted"]


async def grades_of(
    graders: Sequence[RankedGrader],
    trial: PlannedTrial,
    trajectory: Trajectory,
    sandbox: TrialSandbox,
) -> list[Grade]:
    """Return the grades of the graders that were asked, in their order.

    Parameters
    ----------
    graders : sequence of RankedGrader
        The cheapest first.
    trial : PlannedTrial
    trajectory : Trajectory
    sandbox : TrialSandbox
        The world as the agent left it.

    Returns
    -------
    list of Grade
        Without those of own graders and judges where a rule failed: they are not asked, since the
        trial has failed whatever they would say.

    Raises
    ------
    TrialErrored
        A grader could not be started.
    """
    grades: list[Grade] = []
    is_vetoed = False
    for grader, cost in graders:
        if is_vetoed and cost > GraderCost.LOOK:
            continue
        grade = await _grade(grader, trial, trajectory, sandbox)
        grades.append(grade)
        is_vetoed |= cost is GraderCost.RULE and not grade.passed
    return grades


async def _grade(
    grader: Grader, trial: PlannedTrial, trajectory: Trajectory, sandbox: TrialSandbox
) -> Grade:
    if getattr(grader, "blocking", False):
        found = await in_thread(lambda: grader.grade(trial, trajectory, sandbox))
    else:
        found = grader.grade(trial, trajectory, sandbox)
    if not inspect.isawaitable(found):
        return found
    try:
        return await found
    except AgentSetupError as error:  # a trial can see to it that no grader starts after it
        raise TrialErrored(unstarted(error)) from error


def unstarted(error: AgentSetupError) -> str:
    """Return why a trial errored for which something could not be started."""
    return f"harness: {error.problems[0].what}"

"""Turns what an agent did and what graders say into the record of a trial: pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ci_gate.engine import process_measures
from ci_gate.errors import printable
from ci_gate.model.suite import Limits, PlannedTrial
from ci_gate.model.trial import Grade, Status, Trajectory, TrialRecord
from ci_gate.prng import format_seed

__all__ = ["Judgement", "errored", "exceeded", "judge", "record_of"]

_REASON_CHARS = 500


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """The status of a trial and why.

    Parameters
    ----------
    status : Status
    reason : str or None
        One line for a status that is not a pass.
    grades : tuple of Grade or None
        None where nothing was graded.
    """

    status: Status
    reason: str | None = None
    grades: tuple[Grade, ...] | None = None


def errored(reason: str) -> Judgement:
    """Return the judgement of a trial whose environment was at fault."""
    return Judgement(status=Status.ERRORED, reason=printable(reason, limit=_REASON_CHARS))


def exceeded(limits: Limits, trajectory: Trajectory) -> str | None:
    """Return which limit of the task the trial went beyond, None where it kept them all.

    A use that is not known cannot exceed its limit.
    """
    used = {
        "turns": trajectory.turns,
        "tool_calls": process_measures.tool_calls(trajectory.steps),
        "tokens": trajectory.tokens,
        "cost_usd": trajectory.cost_usd,
    }
    for name, amount in used.items():
        limit = getattr(limits, name)
        if limit is not None and amount is not None and amount > limit:
            return f"limit: {name} {amount:g} is beyond {limit:g}"
    return None


def judge(trajectory: Trajectory, grades: Sequence[Grade]) -> Judgement:
    """Return the judgement of a trial that was graded: it passes when every grade does.

    A trial that nobody graded passes only where its own status says so.
    """
    kept = tuple(grades) or None
    bad = next((grade for grade in grades if not grade.passed), None)
    if bad is not None:
        reason = printable(f"{bad.grader}: {bad.reason or 'not passed'}", limit=_REASON_CHARS)
        return Judgement(status=Status.FAILED, reason=reason, grades=kept)
    if kept is None and trajectory.status is not Status.PASSED:
        return Judgement(status=Status.FAILED, reason="nothing judged it: the task has no graders")
    return Judgement(status=Status.PASSED, grades=kept)


def record_of(
    trial: PlannedTrial,
    judgement: Judgement,
    trajectory: Trajectory | None,
    *,
    duration_s: float | None,
) -> TrialRecord:
    """Return the line of the run file.

    Parameters
    ----------
    trial : PlannedTrial
    judgement : Judgement
    trajectory : Trajectory or None
        None where the agent was not reached.
    duration_s : float or None
        Seconds that the agent took.
    """
    seen = trajectory or Trajectory()
    steps = seen.steps
    return TrialRecord(
        task=trial.task.id,
        task_digest=trial.task.digest,
        trial=trial.trial,
        repeat=trial.repeat,
        attempt=trial.attempt,
        seed=format_seed(trial.seed),
        status=judgement.status,
        reason=judgement.reason,
        turns=seen.turns,
        tool_calls=process_measures.tool_calls(steps),
        tokens=seen.tokens,
        cost_usd=seen.cost_usd,
        duration_s=None if duration_s is None else round(duration_s, 6),
        faults=process_measures.faults(steps),
        recovered=process_measures.recovered(steps, passed=judgement.status is Status.PASSED),
        looped=process_measures.looped(steps),
        measures=seen.measures or None,
        grades=judgement.grades,
    )

"""Turns what an agent did and what graders say into the record of a trial: pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from msgspec import UNSET

from ci_gate.engine import process_measures
from ci_gate.engine.answers import answers_of
from ci_gate.errors import printable
from ci_gate.model.reasons import without_addresses
from ci_gate.model.suite import Limits, PlannedTrial
from ci_gate.model.trace import TraceRef
from ci_gate.model.trial import Cause, Grade, Status, Trajectory, TrialRecord
from ci_gate.prng import format_seed

__all__ = ["UNGRADED", "Judgement", "errored", "exceeded", "failed", "judge", "record_of"]

UNGRADED: Final = "nothing judged it: the task has no graders"

_REASON_CHARS = 500


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """The status of a trial and why.

    Parameters
    ----------
    status : Status
    reason : str or None
        One line for a status that is not a pass, for people.
    cause : Cause or None
        None for a pass. Decided by what happened, never by the text of a reason.
    grades : tuple of Grade or None
        None where nothing was graded.
    """

    status: Status
    reason: str | None = None
    cause: Cause | None = None
    grades: tuple[Grade, ...] | None = None


def errored(reason: str, cause: Cause = Cause.ENVIRONMENT) -> Judgement:
    """Return the judgement of a trial that says nothing of the agent."""
    shown = printable(reason, limit=_REASON_CHARS)
    return Judgement(status=Status.ERRORED, reason=shown, cause=cause)


def failed(reason: str, cause: Cause = Cause.AGENT) -> Judgement:
    """Return the judgement of a trial that failed before anything was graded."""
    return Judgement(status=Status.FAILED, reason=reason, cause=cause)


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

    Where a sound grader says no, the agent failed, whichever other grader is broken. A trial that
    nobody graded passes only where its own status says so.
    """
    kept = tuple(grades) or None
    bad = [grade for grade in grades if not grade.passed]
    if bad:
        # False sorts first: a sound grader's word before a broken one's, else in their order.
        worst = min(bad, key=lambda grade: grade.cause is not None)
        reason = printable(f"{worst.grader}: {worst.reason or 'not passed'}", limit=_REASON_CHARS)
        return msgspec.structs.replace(failed(reason, worst.cause or Cause.AGENT), grades=kept)
    if kept is None and trajectory.status is not Status.PASSED:
        return failed(UNGRADED)
    return Judgement(status=Status.PASSED, grades=kept)


def _without_addresses(grade: Grade) -> Grade:
    if grade.reason is None:
        return grade
    detail = without_addresses(grade.detail) if grade.detail else grade.detail
    return msgspec.structs.replace(grade, reason=without_addresses(grade.reason), detail=detail)


def record_of(
    trial: PlannedTrial,
    judgement: Judgement,
    trajectory: Trajectory | None,
    *,
    duration_s: float | None,
    trace: TraceRef | None = None,
    initial_state: str | None = None,
    process: Mapping[str, float] | None = None,
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
    trace : TraceRef or None
        Where its calls were recorded.
    initial_state : str or None
        Digest of what its world held at the start.
    process : mapping of str to float or None
        Its process measures.
    """
    reason, grades = judgement.reason, judgement.grades
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
        reason=None if reason is None else without_addresses(reason),
        cause=judgement.cause,
        turns=seen.turns,
        tool_calls=process_measures.tool_calls(steps),
        tokens=seen.tokens,
        cost_usd=seen.cost_usd,
        duration_s=None if duration_s is None else round(duration_s, 6),
        faults=process_measures.faults(steps),
        recovered=process_measures.recovered(steps, passed=judgement.status is Status.PASSED),
        looped=process_measures.looped(steps),
        measures=seen.measures or None,
        process=process or None,
        grades=None if grades is None else tuple(map(_without_addresses, grades)),
        answers=answers_of(seen),
        trace=None if trace is None else trace.place,
        trace_digest=None if trace is None else trace.digest,
        initial_state=UNSET if initial_state is None else initial_state,
    )

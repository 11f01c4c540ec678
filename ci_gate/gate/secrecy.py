"""Secrets taken out of all that is kept and shown of trials, whichever file it ends up in.

What looks harmless can hold one: the text of an exception, a grader's reason, a measure's name.
Which values are secret is the redactor's to know.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from ci_gate.engine.attempts import WithoutSecrets
from ci_gate.errors import AgentSetupError, Problem
from ci_gate.model.trial import Grade, Step, Trajectory, TrialRecord
from ci_gate.ports import TrialSandbox
from ci_gate.redaction import Redactor
from ci_gate.sandbox.world import World

__all__ = ["error_without", "record_without", "redactor_of", "steps_without", "trajectory_without"]


def redactor_of(sandbox: TrialSandbox | None, otherwise: Callable[[], Redactor]) -> Redactor:
    """Return the redactor of a trial's world, which has learned from the trial's calls."""
    return sandbox.redactor if isinstance(sandbox, World) else otherwise()


def record_without(otherwise: Callable[[], Redactor]) -> WithoutSecrets:
    """Return what takes the secrets out of the record of a trial.

    Parameters
    ----------
    otherwise : callable
        Makes the redactor of a trial that did not come to a world.
    """

    def without(record: TrialRecord, sandbox: TrialSandbox | None) -> TrialRecord:
        if record.reason is None and record.measures is None and not record.grades:
            return record
        redactor = redactor_of(sandbox, otherwise)
        grades, measures = record.grades, record.measures
        return msgspec.structs.replace(
            record,
            reason=_reason(record.reason, redactor),
            grades=None if grades is None else tuple(_grade(grade, redactor) for grade in grades),
            measures=measures and {redactor.name(name): x for name, x in measures.items()},
        )

    return without


def _reason(reason: str | None, redactor: Redactor) -> str | None:
    return None if reason is None else redactor.reason(reason)


def _grade(grade: Grade, redactor: Redactor) -> Grade:
    if grade.reason is None and not grade.detail:
        return grade
    detail = grade.detail
    if detail:
        detail = "\n".join(redactor.reason(line) for line in detail.split("\n"))
    return msgspec.structs.replace(grade, reason=_reason(grade.reason, redactor), detail=detail)


def trajectory_without(trajectory: Trajectory, redactor: Redactor) -> Trajectory:
    """Return what is shown of a trajectory, without secrets."""
    answer = trajectory.answer
    return msgspec.structs.replace(
        trajectory,
        answer=None if answer is None else redactor.text(answer),
        steps=steps_without(trajectory.steps, redactor),
        reason=_reason(trajectory.reason, redactor),
        output_tail=redactor.text(trajectory.output_tail),
    )


def steps_without(steps: Sequence[Step], redactor: Redactor) -> tuple[Step, ...]:
    """Return steps without secrets."""
    return tuple(
        msgspec.structs.replace(
            step,
            kind=redactor.name(step.kind),
            name=redactor.name(step.name),
            input=redactor.value(step.input),
            output=redactor.value(step.output),
        )
        for step in steps
    )


def error_without(error: AgentSetupError, redactor: Redactor) -> AgentSetupError:
    """Return the error whose text, in which the agent's own output stands, has no secrets."""
    found = AgentSetupError.of(
        Problem(
            what=redactor.reason(problem.what),
            where=redactor.text(problem.where),
            hint=redactor.reason(problem.hint),
        )
        for problem in error.problems
    )
    assert isinstance(found, AgentSetupError)
    return found

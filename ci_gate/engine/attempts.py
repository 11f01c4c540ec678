"""One attempt at one trial: a fresh world, the agent, the graders, a record.

Trouble of one trial ends here: whatever breaks becomes an errored record, so that nothing but a
fault of the set-up reaches the run.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence

import msgspec

from ci_gate.engine.judging import Judgement, errored, exceeded, failed, judge, record_of
from ci_gate.engine.laundering import laundered_by, suspicions
from ci_gate.errors import AgentSetupError, ContaminatedWorldError, GateError
from ci_gate.model.suite import PlannedTrial
from ci_gate.model.trial import Cause, Grade, Status, Trajectory, TrialRecord
from ci_gate.ports import (
    Clock,
    Grader,
    GradersByTask,
    SandboxFactory,
    TrialErrored,
    TrialLost,
    TrialRunner,
    TrialSandbox,
)

__all__ = ["Attempt", "Bench"]

_MAX_LOSSES = 3


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """What came of an attempt.

    Parameters
    ----------
    record : TrialRecord
    trajectory : Trajectory or None
        None where the agent was not reached.
    suspicions : tuple of str
        Kinds of laundered error that it looks like.
    """

    record: TrialRecord
    trajectory: Trajectory | None = None
    suspicions: tuple[str, ...] = ()


class Bench:
    """Everything an attempt needs.

    Parameters
    ----------
    agent : TrialRunner
        Started by the caller.
    sandboxes : SandboxFactory
    graders : mapping of str to sequence of Grader
        By task id.
    clock : Clock
    laundered : sequence of re.Pattern
        Answers that are errors of the environment.
    """

    def __init__(
        self,
        *,
        agent: TrialRunner,
        sandboxes: SandboxFactory,
        graders: GradersByTask,
        clock: Clock,
        laundered: Sequence[re.Pattern[str]] = (),
    ) -> None:
        self._agent = agent
        self._sandboxes = sandboxes
        self._graders = graders
        self._clock = clock
        self._laundered = laundered

    async def attempt(self, trial: PlannedTrial) -> Attempt:
        """Run, judge and record one trial.

        Raises
        ------
        AgentSetupError
            The agent or a grader cannot be started at all.
        """
        try:
            return await self._judged(trial)
        except AgentSetupError:
            raise
        except TrialErrored as error:
            return _broken(trial, error.reason)
        except ContaminatedWorldError as error:
            return _broken(trial, error.problems[0].what, Cause.CONTAMINATED)
        except GateError as error:
            return _broken(trial, error.problems[0].what)
        except Exception as error:  # noqa: BLE001 - the one place where any trouble is a trial's own
            return _broken(trial, f"harness: {type(error).__name__}: {error}")

    async def _judged(self, trial: PlannedTrial) -> Attempt:
        for _ in range(_MAX_LOSSES):
            sandbox = self._sandboxes.open(trial)
            try:
                return await self._run(trial, sandbox)
            except TrialLost as error:
                lost = error
            finally:
                sandbox.close()
        raise TrialErrored(f"harness: lost {_MAX_LOSSES} times: {lost}")

    async def _run(self, trial: PlannedTrial, sandbox: TrialSandbox) -> Attempt:
        started_s = self._clock.monotonic()
        trajectory = await self._agent.run(trial, sandbox)
        duration_s = self._clock.monotonic() - started_s
        judgement = await self._judgement(trial, trajectory, sandbox)
        return Attempt(
            record=record_of(trial, judgement, trajectory, duration_s=duration_s),
            trajectory=trajectory,
            suspicions=suspicions(trajectory),
        )

    async def _judgement(
        self, trial: PlannedTrial, trajectory: Trajectory, sandbox: TrialSandbox
    ) -> Judgement:
        if trajectory.status is Status.ERRORED:
            return errored(trajectory.reason or "the environment was at fault")
        if trajectory.status is Status.FAILED:
            return failed(trajectory.reason or "failed")
        beyond = exceeded(trial.task.limits, trajectory)
        if beyond is not None:
            return failed(beyond, Cause.LIMIT)
        pattern = laundered_by(trajectory, self._laundered)
        if pattern is not None:
            return errored(f"the answer is an error of the environment: it matches {pattern}")
        return judge(trajectory, await self._grades(trial, trajectory, sandbox))

    async def _grades(
        self, trial: PlannedTrial, trajectory: Trajectory, sandbox: TrialSandbox
    ) -> list[Grade]:
        grades: list[Grade] = []
        for grader in self._graders.get(trial.task.id, ()):
            grade = await _grade(grader, trial, trajectory, sandbox)
            grades.append(grade)
        return grades


async def _grade(
    grader: Grader, trial: PlannedTrial, trajectory: Trajectory, sandbox: TrialSandbox
) -> Grade:
    found = grader.grade(trial, trajectory, sandbox)
    if inspect.isawaitable(found):
        return await found
    return found


def _broken(trial: PlannedTrial, reason: str, cause: Cause = Cause.HARNESS) -> Attempt:
    return Attempt(record=record_of(trial, errored(reason, cause), None, duration_s=None))

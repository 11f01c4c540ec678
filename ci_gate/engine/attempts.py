"""One attempt at one trial: a fresh world, the agent, the graders, a record.

Trouble of one trial ends here: whatever breaks becomes an errored record, so that nothing but a
fault of the set-up, found before the agent ran at all, reaches the run. What may take its time
beside the agent happens in threads, so that it takes none from the trials next to it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import msgspec

from ci_gate.engine.asking import grades_of, unstarted
from ci_gate.engine.cancellation import in_thread
from ci_gate.engine.judging import Judgement, errored, exceeded, failed, judge, record_of
from ci_gate.engine.laundering import beyond, laundered_by, may_take_long, suspicions
from ci_gate.errors import AgentSetupError, ContaminatedWorldError, GateError
from ci_gate.model.suite import PlannedTrial
from ci_gate.model.trace import TraceRef
from ci_gate.model.trial import Cause, Status, Trajectory, TrialRecord
from ci_gate.ports import (
    Clock,
    GradersByTask,
    SandboxFactory,
    TrialErrored,
    TrialLost,
    TrialRunner,
    TrialSandbox,
)
from ci_gate.process.measures import process_of

__all__ = ["Attempt", "Bench", "WithoutSecrets", "as_it_is", "nothing_there"]

_MAX_LOSSES = 3

WithoutSecrets = Callable[[TrialRecord, TrialSandbox | None], TrialRecord]


def nothing_there(_: PlannedTrial) -> str:
    """Return the text of a world that nobody has read."""
    return ""


def as_it_is(record: TrialRecord, _: TrialSandbox | None) -> TrialRecord:
    """Return the record, where nobody says what is secret."""
    return record


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """What came of an attempt.

    Parameters
    ----------
    record : TrialRecord
    trajectory : Trajectory or None
        None where the agent was not reached.
    suspicions : tuple of str
        Kinds of laundered error that it looks like, and of numbers that are no amounts.
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
    graders : mapping of str to sequence of RankedGrader
        By task id, in the order in which they are asked.
    clock : Clock
    laundered : sequence of re.Pattern
        Answers that are errors of the environment.
    without_secrets : callable
        Returns a record as it may be kept and shown, given the trial's world where it had one.
    fixture_text : callable
        Gives all that lies in the world in which a trial starts as one text.
    """

    def __init__(
        self,
        *,
        agent: TrialRunner,
        sandboxes: SandboxFactory,
        graders: GradersByTask,
        clock: Clock,
        laundered: Sequence[re.Pattern[str]] = (),
        without_secrets: WithoutSecrets = as_it_is,
        fixture_text: Callable[[PlannedTrial], str] = nothing_there,
    ) -> None:
        self._agent = agent
        self._sandboxes = sandboxes
        self._graders = graders
        self._clock = clock
        self._laundered = laundered
        self._without_secrets = without_secrets
        self._fixture_text = fixture_text
        self._has_run = False

    async def attempt(self, trial: PlannedTrial) -> Attempt:
        """Run, judge and record one trial.

        Raises
        ------
        AgentSetupError
            The agent cannot be started, and no trial of it ever ended.
        """
        try:
            return await self._judged(trial)
        except AgentSetupError:
            raise
        except TrialErrored as error:
            return self._broken(trial, error.reason, error.cause)
        except ContaminatedWorldError as error:
            return self._broken(trial, error.problems[0].what, Cause.CONTAMINATED)
        except GateError as error:
            return self._broken(trial, error.problems[0].what)
        except Exception as error:  # noqa: BLE001 - the one place where any trouble is a trial's own
            return self._broken(trial, f"harness: {type(error).__name__}: {error}")

    def _broken(self, trial: PlannedTrial, reason: str, cause: Cause = Cause.HARNESS) -> Attempt:
        record = record_of(trial, errored(reason, cause), None, duration_s=None)
        return Attempt(record=self._without_secrets(record, None))

    async def _judged(self, trial: PlannedTrial) -> Attempt:
        for _ in range(_MAX_LOSSES):
            sandbox = await self._opened(trial)
            try:
                return await self._run(trial, sandbox)
            except TrialLost as error:
                lost = error
            finally:
                await _close(sandbox)
        raise TrialErrored(f"harness: lost {_MAX_LOSSES} times: {lost}")

    async def _opened(self, trial: PlannedTrial) -> TrialSandbox:
        if not trial.task.has_world:
            return self._sandboxes.open(trial)
        return await in_thread(lambda: self._sandboxes.open(trial), undo=lambda s: s.close())

    async def _run(self, trial: PlannedTrial, sandbox: TrialSandbox) -> Attempt:
        started_s = self._clock.monotonic()
        trajectory = await self._ran(trial, sandbox)
        duration_s = self._clock.monotonic() - started_s
        if trajectory.duration_s is not None:  # known from when it ran
            duration_s = trajectory.duration_s
        trajectory = msgspec.structs.replace(trajectory, duration_s=duration_s)
        judgement = await self._judgement(trial, trajectory, sandbox)
        record = record_of(
            trial,
            judgement,
            trajectory,
            duration_s=duration_s,
            trace=await _finished(sandbox, trajectory),
            initial_state=sandbox.initial_state,
            process=await self._process(trial, trajectory),
        )
        return Attempt(
            record=self._without_secrets(record, sandbox),
            trajectory=trajectory,
            suspicions=(*suspicions(trajectory), *beyond(trajectory)),
        )

    async def _ran(self, trial: PlannedTrial, sandbox: TrialSandbox) -> Trajectory:
        try:
            trajectory = await self._agent.run(trial, sandbox)
        except AgentSetupError as error:
            if self._has_run:  # it could be started, so this is a trouble of the moment
                raise TrialErrored(unstarted(error)) from error
            raise
        self._has_run = True
        return trajectory

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
        pattern = await self._laundered_by(trajectory)
        if pattern is not None:
            return errored(f"the answer is an error of the environment: it matches {pattern}")
        graders = self._graders.get(trial.task.id, ())
        return judge(trajectory, await grades_of(graders, trial, trajectory, sandbox))

    async def _process(self, trial: PlannedTrial, trajectory: Trajectory) -> dict[str, float]:
        def measured() -> dict[str, float]:
            return process_of(trial.task, trajectory, lambda: self._fixture_text(trial))

        return await in_thread(measured) if trajectory.steps else measured()

    async def _laundered_by(self, trajectory: Trajectory) -> str | None:
        if may_take_long(trajectory, self._laundered):
            return await in_thread(lambda: laundered_by(trajectory, self._laundered))
        return laundered_by(trajectory, self._laundered)


async def _finished(sandbox: TrialSandbox, trajectory: Trajectory) -> TraceRef | None:
    """End the trial's trace, which keeps the world as the graders saw it."""
    if _is_empty(sandbox):
        return sandbox.finish(trajectory)
    return await in_thread(lambda: sandbox.finish(trajectory))


def _is_empty(sandbox: TrialSandbox) -> bool:
    places = sandbox.folder, sandbox.workdir, sandbox.database, sandbox.postgres
    return all(place is None for place in places)


async def _close(sandbox: TrialSandbox) -> None:
    if _is_empty(sandbox):
        sandbox.close()
    else:  # the agent decides how much there is to remove
        await in_thread(sandbox.close)

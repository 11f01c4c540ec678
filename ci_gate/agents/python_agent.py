"""The Python protocol: ``run(task, env)`` in worker processes of the agent's own interpreter.

Isolation ``process`` gives each worker one trial at a time. Isolation ``inline`` lets many trials
wait in one worker; a trial that might have been ended by a neighbour is lost there and is run
again by itself, so that a failure always has the right name.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

import msgspec

from ci_gate.agents.capabilities import Capabilities
from ci_gate.agents.evidence import Ending, Patterns, time_up, told, with_ending
from ci_gate.agents.inline_workers import InlineWorkers
from ci_gate.agents.launching import Launcher, Mode, WorkerSetting
from ci_gate.agents.orders import timeout_of
from ci_gate.agents.pools import WorkerPool
from ci_gate.agents.processes import (
    Nursery,
    clean_environment,
    require_memory_limit,
    require_posix,
)
from ci_gate.agents.results import GarbageError, one_line, trajectory_of
from ci_gate.agents.strictness import Strictness
from ci_gate.agents.trial_calls import SandboxCalls
from ci_gate.agents.wire import Failure, Incoming, RunOrder
from ci_gate.agents.workers import TimeUpError, TooManyCallsError, Worker, WorkerEndedError
from ci_gate.codec import encode
from ci_gate.errors import AgentSetupError
from ci_gate.model.agent import AgentSpec
from ci_gate.model.suite import PlannedTrial, Task
from ci_gate.model.trial import Trajectory
from ci_gate.ports import TrialErrored, TrialLost, TrialSandbox

__all__ = ["PythonAgent"]

_HELD_UP = 0.05


class PythonAgent:
    """An agent that is a Python function.

    Parameters
    ----------
    spec : AgentSpec
        With ``python``.
    jobs : int
        Worker processes with isolation ``process``, and trials at a time in either.
    real_delays : bool
        Whether an injected fault's delay is waited for.
    environment : mapping of str to str or None
        None: this process's, without the runner's credentials.
    strictness : Strictness or None
        What its trials are held to beside their calls; None: to ``[agent] network`` alone.
    """

    def __init__(
        self,
        spec: AgentSpec,
        *,
        jobs: int = 1,
        real_delays: bool = False,
        environment: Mapping[str, str] | None = None,
        strictness: Strictness | None = None,
    ) -> None:
        self._spec = spec
        self._strictness = strictness or Strictness()
        self._capabilities = Capabilities(spec.allow)
        self._patterns = Patterns(spec.environment_errors)
        self._jobs = max(1, jobs)
        self._setting = WorkerSetting(
            spec,
            clean_environment(environment or os.environ),
            real_delays,
            self._jobs,
            self._strictness,
        )
        self._nursery = Nursery()
        self._serial: WorkerPool | None = None
        self._inline: InlineWorkers | None = None
        self._alone: set[tuple[str, int, int]] = set()
        self._tasks: dict[str, tuple[Task, msgspec.Raw]] = {}

    async def start(self) -> None:
        """Start the workers and load the agent in them.

        Raises
        ------
        AgentSetupError
            The interpreter or the function cannot be used.
        PlatformError
            Windows, or a memory limit where the system has none.
        """
        require_posix("running an agent")
        require_memory_limit(self._spec.memory_mb)
        self._nursery.open()
        if self._spec.isolation == "inline" and self._strictness.determinism == "off":
            self._inline = InlineWorkers(self._launcher("inline"))
            await self._inline.current()
        else:
            await self._serial_pool().fill()

    def _launcher(self, mode: Mode) -> Launcher:
        function = self._spec.python or ""
        return self._setting.launcher(mode, function, self._nursery, "agent.python")

    def _serial_pool(self) -> WorkerPool:
        if self._serial is None:
            lone = self._spec.isolation == "inline"
            size = min(self._jobs, os.cpu_count() or 1) if lone else self._jobs
            self._serial = WorkerPool(self._launcher("serial"), size)
        return self._serial

    async def run(self, trial: PlannedTrial, sandbox: TrialSandbox) -> Trajectory:
        """Run one trial; the agent's failures are in the result.

        Raises
        ------
        TrialLost
            A neighbour in the same worker may have ended the trial.
        TrialErrored
            No worker could be started.
        """
        calls = SandboxCalls(sandbox, self._capabilities, self._strictness.noted)
        try:
            if self._inline is not None and trial.key not in self._alone:
                return calls.judged(await self._run_inline(trial, sandbox, calls, self._inline))
            return calls.judged(await self._run_alone(trial, sandbox, calls))
        except AgentSetupError as error:
            if isinstance(error.__cause__, OSError):
                raise TrialErrored(f"harness: {one_line(error)}") from error
            return self._failed(Ending(reason=one_line(error)), sandbox)

    async def _run_alone(
        self, trial: PlannedTrial, sandbox: TrialSandbox, calls: SandboxCalls
    ) -> Trajectory:
        pool = self._serial_pool()
        worker = await pool.acquire()
        worker.begin_output()
        is_well = False
        try:
            number = worker.number()
            message = await worker.ask(
                self._order(number, trial, sandbox),
                number,
                calls,
                timeout_s=timeout_of(self._spec, trial),
            )
            is_well = True
            calls.end(message)
            return self._trajectory(message, sandbox, worker)
        except TimeUpError:
            worker.kill()
            return self._failed(time_up(timeout_of(self._spec, trial)), sandbox, worker)
        except (WorkerEndedError, TooManyCallsError) as error:
            return self._failed(Ending(reason=one_line(error)), sandbox, worker)
        finally:
            if is_well and not worker.is_retired and not worker.has_left:
                pool.release(worker)
            else:
                worker.kill()
                await pool.discard(worker)

    async def _run_inline(
        self,
        trial: PlannedTrial,
        sandbox: TrialSandbox,
        calls: SandboxCalls,
        workers: InlineWorkers,
    ) -> Trajectory:
        worker = await workers.current()
        number = worker.number()
        order = self._order(number, trial, sandbox)
        future = worker.start(order, number, calls, batched=True)
        workers.deadlines.add(worker, number, timeout_of(self._spec, trial))
        try:
            message = await future
        except WorkerEndedError as error:
            self._alone.add(trial.key)
            raise TrialLost(str(error)) from error
        except TooManyCallsError as error:
            worker.cancel(number)
            return self._failed(Ending(reason=one_line(error)), sandbox)
        finally:
            workers.deadlines.drop(worker, number)
            worker.forget(number)
            workers.settle(worker)
        if message.op == "lost":
            worker.is_retired = worker.is_retired or not message.stoppable
            self._alone.add(trial.key)
            raise TrialLost("cancelled by code in its worker")
        if message.op == "cancelled":
            return self._cancelled(message, trial, sandbox, worker)
        calls.end(message)
        return self._trajectory(message, sandbox, None)

    def _cancelled(
        self, message: Incoming, trial: PlannedTrial, sandbox: TrialSandbox, worker: Worker
    ) -> Trajectory:
        """Judge a trial whose time was up while the worker's loop was alive."""
        timeout_s = timeout_of(self._spec, trial)
        worker.is_retired = worker.is_retired or not message.stoppable
        if message.blocked_s > _HELD_UP * timeout_s:
            self._alone.add(trial.key)
            raise TrialLost(f"held up for {message.blocked_s:.1f} s by others in its worker")
        return self._failed(time_up(timeout_s), sandbox)

    def _order(self, number: int, trial: PlannedTrial, sandbox: TrialSandbox) -> RunOrder:
        return RunOrder(
            id=number,
            task=self._task(trial.task),
            trial=trial.trial,
            seed=trial.seed,
            now=sandbox.now,
            workdir=None if sandbox.workdir is None else str(sandbox.workdir),
            database=None if sandbox.database is None else str(sandbox.database),
            postgres=sandbox.postgres,
            home=None if sandbox.home is None else str(sandbox.home),
            identity=trial.task.identity,
            asks=sandbox.answers,
        )

    def _task(self, task: Task) -> msgspec.Raw:
        """Return the task's JSON, which is made once for all its trials."""
        known, shown = self._tasks.get(task.id, (None, msgspec.Raw()))
        if known is not task:
            shown = msgspec.Raw(encode(task.shown()))
            self._tasks[task.id] = task, shown
        return shown

    def _trajectory(
        self, message: Incoming, sandbox: TrialSandbox, worker: Worker | None
    ) -> Trajectory:
        if message.failure is not None:
            return self._failed(_raised(message.failure), sandbox, worker, message.failure.trace)
        try:
            trajectory = trajectory_of(message.result, sandbox.steps)
        except GarbageError as error:
            return self._failed(Ending(reason=f"garbage: {one_line(error)}"), sandbox, worker)
        if trajectory.status is None:
            printed = "" if worker is None else worker.output()
            return msgspec.structs.replace(trajectory, output_tail=printed)
        return self._with_status(trajectory, told(trajectory), worker)

    def _failed(
        self,
        ending: Ending,
        sandbox: TrialSandbox,
        worker: Worker | None = None,
        trace: str = "",
    ) -> Trajectory:
        trajectory = Trajectory(steps=tuple(sandbox.steps))
        return self._with_status(trajectory, ending, worker, trace)

    def _with_status(
        self, trajectory: Trajectory, ending: Ending, worker: Worker | None, trace: str = ""
    ) -> Trajectory:
        output = (worker.output() if worker is not None else "") + trace
        return with_ending(trajectory, ending, self._patterns, output=output)

    async def close(self) -> None:
        """End every worker; safe to call twice."""
        inline, self._inline = self._inline, None
        serial, self._serial = self._serial, None
        if inline is not None:
            await inline.close()
        if serial is not None:
            await serial.close()
        await self._nursery.close()


def _raised(failure: Failure) -> Ending:
    reason = one_line(failure.reason)
    return Ending(
        reason=reason,
        # A result that the worker refused is no exception of the agent's.
        said=reason if failure.exceptions else "",
        exceptions=failure.exceptions,
        through_provider=failure.provider,
        through_fault=failure.fault,
    )

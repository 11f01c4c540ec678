"""Runs the trials of a plan to their end, their budget or an interruption.

A pool of pullers takes trials from the schedule; an attempt is in the sink before it is counted.
Who the agent, the worlds, the graders and the sink are is not known here, nor who starts and ends
them.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

from ci_gate.engine.attempts import Attempt, Bench
from ci_gate.engine.cancellation import to_its_end
from ci_gate.engine.laundering import compiled
from ci_gate.engine.pacing import Pace
from ci_gate.engine.schedule import Schedule, in_order
from ci_gate.engine.settings import EngineSettings, RunResult
from ci_gate.model.run import StopReason
from ci_gate.model.suite import PlannedTrial
from ci_gate.model.trial import Status, TrialRecord
from ci_gate.ports import (
    Clock,
    GradersByTask,
    OutcomeSink,
    ProgressSink,
    SandboxFactory,
    TrialRunner,
)

__all__ = ["run_trials"]


async def run_trials(
    trials: Sequence[PlannedTrial],
    *,
    agent: TrialRunner,
    sandboxes: SandboxFactory,
    graders: GradersByTask,
    sink: OutcomeSink,
    progress: ProgressSink,
    clock: Clock,
    settings: EngineSettings,
    spent_usd: float = 0.0,
    done: int = 0,
) -> RunResult:
    """Run every trial.

    Parameters
    ----------
    trials : sequence of PlannedTrial
        What is to be run, in any order; a resumed run leaves out what is finished.
    agent : TrialRunner
        Started, and closed after this returns, by the caller.
    sandboxes : SandboxFactory
    graders : mapping of str to sequence of Grader
        By task id.
    sink : OutcomeSink
        Gets a record of each attempt that ended, so that what it holds is what was spent; the
        highest attempt of a trial is the one that counts.
    progress : ProgressSink
    clock : Clock
    settings : EngineSettings
    spent_usd : float
        What a resumed run had spent before, in US dollars.
    done : int
        Trials that a resumed run had finished before.

    Returns
    -------
    RunResult
        ``INTERRUPTED`` where this coroutine was cancelled: it cancels the trials in flight, which
        are not in the sink, and returns.

    Raises
    ------
    AgentSetupError
        The agent turned out to be impossible to start, at its first trial.
    GateError
        The sink cannot keep a record; what it has is as it was.
    """
    progress.planned(len(trials) + done, done)
    bench = Bench(
        agent=agent,
        sandboxes=sandboxes,
        graders=graders,
        clock=clock,
        laundered=compiled(settings.laundered_patterns),
    )
    run = _Run(trials, bench, sink, progress, clock, settings, spent_usd)
    try:
        if trials:
            await run.all()
    except asyncio.CancelledError:
        run.interrupt()
        _take_note_of_cancellation()
    return run.result()


def _take_note_of_cancellation() -> None:
    """Let what the caller awaits from here on, such as the agent's end, be no cancelled task's."""
    task = asyncio.current_task()
    while task is not None and task.uncancel():
        pass


class _Run:
    """The state of one run."""

    def __init__(
        self,
        trials: Sequence[PlannedTrial],
        bench: Bench,
        sink: OutcomeSink,
        progress: ProgressSink,
        clock: Clock,
        settings: EngineSettings,
        spent_usd: float,
    ) -> None:
        self._bench = bench
        self._sink = sink
        self._progress = progress
        self._settings = settings
        self._spent_usd = spent_usd
        self._planned = len(trials)
        self._pace = Pace(settings.max_per_minute, clock)
        self._schedule = Schedule(in_order(trials), settings=settings, clock=clock)
        self._rounds = Counter((trial.repeat, trial.trial) for trial in trials)
        self._statuses: Counter[Status] = Counter()
        self._laundered: Counter[str] = Counter()
        self._is_interrupted = False

    async def all(self) -> None:
        """Run the pool of pullers until nothing is left or the run is stopped."""
        self._check_budget()
        count = min(max(1, self._settings.jobs), self._planned)
        pullers = [asyncio.ensure_future(self._pull()) for _ in range(count)]
        try:
            await asyncio.wait(pullers, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            self._schedule.close()
            await to_its_end(_ended(pullers))
        for puller in pullers:
            if not puller.cancelled():
                puller.result()
        for record in self._schedule.left_errored():
            self._count(record)

    async def _pull(self) -> None:
        while (trial := await self._schedule.next()) is not None:
            await self._pace.turn()
            if self._schedule.is_stopped:  # while this one waited for its turn
                return
            self._settle(trial, await self._bench.attempt(trial))

    def _settle(self, trial: PlannedTrial, attempt: Attempt) -> None:
        record = attempt.record
        is_errored = record.status is Status.ERRORED
        # Also an attempt that is tried again: what it cost must outlive this process.
        self._sink.append(record)
        self._spent_usd += record.cost_usd or 0.0
        if self._schedule.settle(trial, record, is_errored=is_errored):
            self._count(record)
        if not is_errored:
            self._laundered.update(attempt.suspicions)
        self._check_budget()

    def _count(self, record: TrialRecord) -> None:
        """Count a trial by the last record of it, which is in the sink."""
        self._statuses[record.status] += 1
        self._rounds[record.repeat, record.trial] -= 1
        self._progress.finished(record)

    def _check_budget(self) -> None:
        budget_usd = self._settings.budget_usd
        if budget_usd is not None and self._spent_usd >= budget_usd:
            self._schedule.stop()

    def interrupt(self) -> None:
        """Take note that the run was interrupted."""
        self._is_interrupted = True

    def result(self) -> RunResult:
        """Return how the run ended."""
        return RunResult(
            reason=self._reason(),
            rounds=self._finished_rounds(),
            planned=self._planned,
            passed=self._statuses[Status.PASSED],
            failed=self._statuses[Status.FAILED],
            errored=self._statuses[Status.ERRORED],
            spent_usd=self._spent_usd,
            laundered=dict(self._laundered),
        )

    def _reason(self) -> StopReason:
        if self._statuses.total() == self._planned:
            return StopReason.COMPLETE
        return StopReason.INTERRUPTED if self._is_interrupted else StopReason.BUDGET

    def _finished_rounds(self) -> int:
        count = 0
        for place in sorted(self._rounds):
            if self._rounds[place]:
                break
            count += 1
        return count


async def _ended(pullers: Sequence[asyncio.Future[None]]) -> None:
    for puller in pullers:
        puller.cancel()
    await asyncio.gather(*pullers, return_exceptions=True)

"""Runs the trials of a plan to their end, their budget or an interruption.

A pool of pullers takes trials from the schedule; an attempt is in the sink before it is counted.
Where a steering is given, it says after each round what comes next. Who the agent, the worlds, the
graders and the sink are is not known here, nor who starts and ends them, nor why a steering ends a
run.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence

from ci_gate.engine.attempts import Attempt, Bench, WithoutSecrets, as_it_is, nothing_there
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
    Steering,
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
    planned: int | None = None,
    steering: Steering | None = None,
    late: Sequence[PlannedTrial] = (),
    without_secrets: WithoutSecrets = as_it_is,
    fixture_text: Callable[[PlannedTrial], str] = nothing_there,
) -> RunResult:
    """Run every trial.

    Parameters
    ----------
    trials : sequence of PlannedTrial
        What is to be run first, in any order; a resumed run leaves out what is finished.
    agent : TrialRunner
        Started, and closed after this returns, by the caller.
    sandboxes : SandboxFactory
    graders : mapping of str to sequence of RankedGrader
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
    planned : int or None
        Trials of the whole plan, those done and those that the steering may add among them; None:
        there are no others than the trials that are given.
    steering : Steering or None
        Says what is run after these trials; None: nothing.
    late : sequence of PlannedTrial
        Trials that errored in an earlier session and have only their attempt at the end left.
    without_secrets : callable
        Returns a record as it may be kept and shown, given the trial's world where it had one.

    Returns
    -------
    RunResult
        ``COMPLETE`` where the trials and the steering came to their end, ``INTERRUPTED`` where this
        coroutine was cancelled: it cancels the trials in flight, which are not in the sink, and
        returns.

    Raises
    ------
    AgentSetupError
        The agent turned out to be impossible to start, at its first trial.
    GateError
        The sink cannot keep a record; what it has is as it was.
    """
    given = len(trials) + len(late)
    progress.planned(given + done if planned is None else planned, done)
    bench = Bench(
        agent=agent,
        sandboxes=sandboxes,
        graders=graders,
        clock=clock,
        laundered=compiled(settings.laundered_patterns),
        without_secrets=without_secrets,
        fixture_text=fixture_text,
    )
    schedule = Schedule(in_order(trials), late=late, settings=settings, clock=clock)
    pace = Pace(settings.max_per_minute, clock)
    run = _Run(schedule, pace, bench, sink, progress, steering, settings, spent_usd)
    try:
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
        schedule: Schedule,
        pace: Pace,
        bench: Bench,
        sink: OutcomeSink,
        progress: ProgressSink,
        steering: Steering | None,
        settings: EngineSettings,
        spent_usd: float,
    ) -> None:
        self._schedule = schedule
        self._pace = pace
        self._bench = bench
        self._sink = sink
        self._progress = progress
        self._steering = steering
        self._settings = settings
        self._spent_usd = spent_usd
        self._statuses: Counter[Status] = Counter()
        self._laundered: Counter[str] = Counter()
        self._is_interrupted = False
        self._is_ended = False

    async def all(self) -> None:
        """Run what there is and what the steering adds, until nothing is left or it is stopped."""
        self._check_budget()
        try:
            await self._run_pool()
            while self._has_more():
                await self._run_pool()
        finally:
            self._schedule.close()
        for record in self._schedule.left_errored():
            self._count(record)

    def _has_more(self) -> bool:
        """Put in the schedule what follows on the trials that were tried; False: nothing does."""
        is_stopped = self._schedule.is_stopped
        if is_stopped and not self._schedule.is_tried:
            return False
        # What is left to a stopped run are further attempts, which it does not make.
        settled = is_stopped or self._schedule.is_settled
        steering = self._steering
        trials = None if steering is None else steering.next_trials(settled=settled)
        if trials is not None:
            self._schedule.add(in_order(trials))
        elif settled:
            self._is_ended = True
        else:
            self._schedule.begin_last()
        return not (self._is_ended or is_stopped)

    async def _run_pool(self) -> None:
        """Let pullers run until nobody finds a further trial."""
        count = min(max(1, self._settings.jobs), self._schedule.ready)
        pullers = [asyncio.ensure_future(self._pull()) for _ in range(count)]
        if not pullers:
            return
        try:
            await asyncio.wait(pullers, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            await to_its_end(_ended(pullers))
        for puller in pullers:
            if not puller.cancelled():
                puller.result()

    async def _pull(self) -> None:
        while (trial := await self._schedule.next()) is not None:
            await self._pace.turn()
            if self._schedule.is_stopped:  # while this one waited for its turn
                self._schedule.give_back(trial)
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
            passed=self._statuses[Status.PASSED],
            failed=self._statuses[Status.FAILED],
            errored=self._statuses[Status.ERRORED],
            spent_usd=self._spent_usd,
            laundered=dict(self._laundered),
        )

    def _reason(self) -> StopReason:
        if self._is_ended:
            return StopReason.COMPLETE
        return StopReason.INTERRUPTED if self._is_interrupted else StopReason.BUDGET


async def _ended(pullers: Sequence[asyncio.Future[None]]) -> None:
    for puller in pullers:
        puller.cancel()
    await asyncio.gather(*pullers, return_exceptions=True)

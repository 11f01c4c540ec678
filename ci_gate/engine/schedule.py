"""Which trial is next: the plan's order, errored trials after a pause, and once more at the end."""

from __future__ import annotations

import asyncio
import heapq
import math
from collections import deque
from collections.abc import Iterable

import msgspec

from ci_gate.engine.pacing import backoff_s
from ci_gate.engine.settings import EngineSettings
from ci_gate.model.suite import PlannedTrial
from ci_gate.model.trial import TrialRecord
from ci_gate.ports import Clock

__all__ = ["Schedule", "in_order"]

_Key = tuple[str, int, int]


def in_order(trials: Iterable[PlannedTrial]) -> list[PlannedTrial]:
    """Return trials by repeat, trial index and task: round r is trial r of every task."""
    return sorted(trials, key=lambda t: (t.repeat, t.trial, t.task.id))


class Schedule:
    """Hands out trials to whoever asks.

    Parameters
    ----------
    trials : iterable of PlannedTrial
        In the order in which they shall start.
    late : iterable of PlannedTrial
        Trials that errored in an earlier session and have only their attempt at the end left.
    settings : EngineSettings
    clock : Clock
    """

    def __init__(
        self,
        trials: Iterable[PlannedTrial],
        *,
        late: Iterable[PlannedTrial] = (),
        settings: EngineSettings,
        clock: Clock,
    ) -> None:
        self._ready = deque(trials)
        self._paused: list[tuple[float, int, PlannedTrial]] = []
        # What each trial that errored would try next, and the record it has until then.
        self._errored: dict[_Key, tuple[PlannedTrial, TrialRecord | None]] = {
            trial.key: (trial, None) for trial in late
        }
        self._last: set[_Key] = set()
        self._settings = settings
        self._clock = clock
        self._in_flight = 0
        self._count = 0
        self._is_stopped = False
        self._waiting: list[asyncio.Future[None]] = []
        self._alarm: asyncio.Task[None] | None = None
        self._alarm_due_s = math.inf

    async def next(self) -> PlannedTrial | None:
        """Return the next trial, waiting for one that pauses or may yet error.

        None: every trial was tried as often as it may be before its attempt at the end.
        """
        while not self._is_stopped:
            self._wake_paused()
            if self._ready:
                self._in_flight += 1
                return self._ready.popleft()
            if self._is_idle():
                return None
            await self._change()
        return None

    def _is_idle(self) -> bool:
        return not self._in_flight and not self._paused

    def _wake_paused(self) -> None:
        while self._paused and self._paused[0][0] <= self._clock.monotonic():
            self._ready.appendleft(heapq.heappop(self._paused)[2])

    def give_back(self, trial: PlannedTrial) -> None:
        """Take back a trial that was handed out and was not tried."""
        self._in_flight -= 1
        self._ready.appendleft(trial)

    def add(self, trials: Iterable[PlannedTrial]) -> None:
        """Hand out further trials, in this order, after all that were given before."""
        self._ready.extend(trials)

    def begin_last(self) -> None:
        """Give every trial that stayed errored its attempt at the end."""
        for key, (trial, _) in sorted(self._errored.items(), key=_place):
            self._last.add(key)
            self._ready.append(trial)

    @property
    def ready(self) -> int:
        """Number of trials that could start now."""
        return len(self._ready)

    @property
    def is_settled(self) -> bool:
        """Whether every trial that was handed in is done with, attempts at the end included."""
        return not (self._ready or self._errored) and self._is_idle()

    @property
    def is_tried(self) -> bool:
        """Whether every trial that was handed in has a record: what is left are more attempts."""
        return not self._in_flight and all(trial.key in self._errored for trial in self._ready)

    async def _change(self) -> None:
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        self._set_alarm()
        await future

    def _set_alarm(self) -> None:
        if self._paused and self._paused[0][0] < self._alarm_due_s:
            self.close()
            self._alarm_due_s = self._paused[0][0]
            self._alarm = asyncio.ensure_future(self._ring(self._alarm_due_s))

    async def _ring(self, due_s: float) -> None:
        await self._clock.sleep(max(0.0, due_s - self._clock.monotonic()))
        self._alarm_due_s = math.inf
        self._notify()

    def _notify(self) -> None:
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    def settle(self, trial: PlannedTrial, record: TrialRecord, *, is_errored: bool) -> bool:
        """Take back a trial that was tried; return whether its record is the final one.

        An errored one pauses for its next attempt, waits for the end of the run, or is final.
        """
        self._in_flight -= 1
        is_final = not is_errored or not self._again(trial, record)
        if is_final:
            self._errored.pop(trial.key, None)
        if self._waiting and (self._paused or not self._in_flight):
            self._notify()
        return is_final

    def _again(self, trial: PlannedTrial, record: TrialRecord) -> bool:
        retries = self._settings.retries
        # A session that continues another can be given a trial for its last attempt.
        if not retries or trial.key in self._last or trial.attempt > retries + 1:
            return False
        self._errored[trial.key] = _next_attempt(trial), record
        if trial.attempt <= self._settings.retries:
            self._pause(trial)
        return True

    def _pause(self, trial: PlannedTrial) -> None:
        pause_s = backoff_s(
            trial.attempt,
            seed=self._settings.seed,
            trial_seed=trial.seed,
            base_s=self._settings.backoff_s,
            longest_s=self._settings.longest_backoff_s,
        )
        self._count += 1
        due_s = self._clock.monotonic() + pause_s
        heapq.heappush(self._paused, (due_s, self._count, _next_attempt(trial)))

    def stop(self) -> None:
        """Hand out no more trials."""
        self._is_stopped = True
        self._notify()

    @property
    def is_stopped(self) -> bool:
        """Whether ``stop`` was called."""
        return self._is_stopped

    def left_errored(self) -> list[TrialRecord]:
        """Return the last records of trials that were to be tried again and were not, in order.

        Those of an earlier session are not among them.
        """
        left = (record for _, (_, record) in sorted(self._errored.items(), key=_place))
        return [record for record in left if record is not None]

    def close(self) -> None:
        """Forget the alarm; for a run that ends early."""
        if self._alarm is not None:
            self._alarm.cancel()


def _place(errored: tuple[_Key, object]) -> tuple[int, int, str]:
    task, trial, repeat = errored[0]
    return repeat, trial, task


def _next_attempt(trial: PlannedTrial) -> PlannedTrial:
    return msgspec.structs.replace(trial, attempt=trial.attempt + 1)

"""The one worker in which many trials wait: its replacement, and the time of its trials."""

from __future__ import annotations

import asyncio

from ci_gate.agents.launching import Launcher
from ci_gate.agents.workers import Worker

__all__ = ["Deadlines", "InlineWorkers"]

_LOOK_S = 0.05
_GRACE_S = 1.0


class Deadlines:
    """Asks for the end of trials whose time is up, and ends a worker that does not answer.

    Notes
    -----
    One look over all trials every 50 ms costs less than a timer for each.
    """

    def __init__(self) -> None:
        self._due_s: dict[tuple[Worker, int], float] = {}
        self._grace: dict[tuple[Worker, int], asyncio.TimerHandle] = {}
        self._timer: asyncio.TimerHandle | None = None

    def add(self, worker: Worker, number: int, timeout_s: float) -> None:
        """Begin the time of a trial."""
        loop = asyncio.get_running_loop()
        self._due_s[worker, number] = loop.time() + timeout_s
        if self._timer is None:
            self._timer = loop.call_later(_LOOK_S, self._look)

    def drop(self, worker: Worker, number: int) -> None:
        """End the time of a trial that has ended."""
        self._due_s.pop((worker, number), None)
        timer = self._grace.pop((worker, number), None)
        if timer is not None:
            timer.cancel()

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        now_s = loop.time()
        for key in [key for key, due_s in self._due_s.items() if due_s <= now_s]:
            worker, number = key
            del self._due_s[key]
            worker.cancel(number)
            self._grace[key] = loop.call_later(_GRACE_S, worker.kill)
        self._timer = loop.call_later(_LOOK_S, self._look) if self._due_s else None

    def close(self) -> None:
        """Forget every trial."""
        if self._timer is not None:
            self._timer.cancel()
        for timer in self._grace.values():
            timer.cancel()
        self._due_s.clear()
        self._grace.clear()


class InlineWorkers:
    """The worker in which trials wait together, replaced when it is gone or must not get more.

    Parameters
    ----------
    launcher : Launcher
    """

    def __init__(self, launcher: Launcher) -> None:
        self.deadlines = Deadlines()
        self._launcher = launcher
        self._starting = asyncio.Lock()
        self._worker: Worker | None = None
        self._retired: set[Worker] = set()
        self._ending: set[asyncio.Task[None]] = set()

    async def current(self) -> Worker:
        """Return the worker that gets the next trial, started if there is none.

        Raises
        ------
        AgentSetupError
            A new one was needed and could not be started.
        """
        worker = self._usable()
        if worker is not None:
            return worker
        async with self._starting:
            worker = self._usable()
            if worker is None:
                worker = self._worker = await self._launcher.launch()
            return worker

    def _usable(self) -> Worker | None:
        worker = self._worker
        if worker is not None and (worker.is_retired or not worker.is_alive):
            self._worker = None
            self._retired.add(worker)
            self.settle(worker)
        return self._worker

    def settle(self, worker: Worker) -> None:
        """End a retired worker once its last trial has ended."""
        if worker in self._retired and not worker.in_flight:
            self._retired.discard(worker)
            task = asyncio.ensure_future(worker.end())
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    async def close(self) -> None:
        """End every worker."""
        self.deadlines.close()
        current = [] if self._worker is None else [self._worker]
        self._worker = None
        for worker in self._retired:
            worker.kill()
        ends = [worker.end() for worker in self._retired]
        await asyncio.gather(*ends, *(worker.close() for worker in current), *self._ending)
        self._retired.clear()

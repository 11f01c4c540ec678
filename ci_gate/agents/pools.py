"""Lends workers, one trial at a time, and replaces those that ended."""

from __future__ import annotations

import asyncio
from collections import deque

from ci_gate.agents.launching import Launcher
from ci_gate.agents.workers import Worker

__all__ = ["WorkerPool"]


class WorkerPool:
    """A bounded number of workers that are lent one at a time.

    Parameters
    ----------
    launcher : Launcher
    size : int
        How many there may be.
    """

    def __init__(self, launcher: Launcher, size: int) -> None:
        self._launcher = launcher
        self._size = size
        self._idle: list[Worker] = []
        self._all: set[Worker] = set()
        self._starting = 0
        self._waiters: deque[asyncio.Future[None]] = deque()

    async def fill(self) -> None:
        """Start every worker; raises the first ``AgentSetupError``."""
        missing = self._size - len(self._all)
        workers = await asyncio.gather(
            *(self._launch() for _ in range(missing)), return_exceptions=True
        )
        for worker in workers:
            if isinstance(worker, BaseException):
                raise worker
            self._idle.append(worker)

    async def acquire(self) -> Worker:
        """Return a worker that nobody else has, as soon as there is one.

        Raises
        ------
        AgentSetupError
            A new one was needed and could not be started.
        """
        while True:
            while self._idle:
                worker = self._idle.pop()
                if worker.is_alive:
                    return worker
                await self.discard(worker)
            if len(self._all) + self._starting < self._size:
                return await self._launch()
            await self._turn()

    async def _turn(self) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self._wake()
            raise

    async def _launch(self) -> Worker:
        self._starting += 1
        try:
            worker = await self._launcher.launch()
        except BaseException:
            self._wake()
            raise
        finally:
            self._starting -= 1
        self._all.add(worker)
        return worker

    def _wake(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    def release(self, worker: Worker) -> None:
        """Give back a worker that is well."""
        self._idle.append(worker)
        self._wake()

    async def discard(self, worker: Worker) -> None:
        """End a worker that was lent; another takes its place when one is needed."""
        self._all.discard(worker)
        self._wake()
        await worker.end()

    def kill(self) -> None:
        """Kill every worker; returns at once."""
        for worker in self._all:
            worker.kill()

    async def close(self) -> None:
        """End every worker; those that are idle may end by themselves."""
        for worker in self._all.difference(self._idle):
            worker.kill()
        workers, self._all = self._all, set()
        self._idle = []
        await asyncio.gather(*(worker.close() for worker in workers))

"""One worker process of the agent's interpreter: loaded, asked, watched and ended.

A worker is one process that runs ``worker.py``. What a trial's end means is not decided here.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable

import msgspec

from ci_gate.agents.capture import Capture, Drain
from ci_gate.agents.processes import Child, described_exit
from ci_gate.agents.wire import Answer, Cancel, Incoming, Line, LoadOrder

__all__ = [
    "TimeUpError",
    "TooManyCallsError",
    "TrialCalls",
    "Worker",
    "WorkerEndedError",
]

_EXIT_S = 0.5
_CLOSE_S = 0.5
_MAX_CALLS = 100_000
_MAX_CALL_BYTES = 256 * 1024 * 1024
_MAX_UNREAD_BYTES = 64 * 1024 * 1024

TrialCalls = Callable[[Incoming], Answer]
"""Passes a call of a running trial by its sandbox and returns what the agent sees."""


class WorkerEndedError(Exception):
    """The worker ended in the middle of a trial; the text says how."""


class TimeUpError(Exception):
    """The time of an order was up before it was done."""


class TooManyCallsError(Exception):
    """A trial made more or larger calls than are kept; the text says which."""


class _Order:
    """An order that a worker is at."""

    __slots__ = ("_bytes", "_count", "calls", "future")

    def __init__(self, future: asyncio.Future[Incoming], calls: TrialCalls | None) -> None:
        self.future = future
        self.calls = calls
        self._count = 0
        self._bytes = 0

    def count(self, size: int) -> None:
        """Count a call; an agent in an endless loop must not fill this process's memory."""
        self._count += 1
        self._bytes += size
        if self._count > _MAX_CALLS:
            raise TooManyCallsError(f"limit: more than {_MAX_CALLS} calls")
        if self._bytes > _MAX_CALL_BYTES:
            raise TooManyCallsError(f"limit: calls of more than {_MAX_CALL_BYTES} bytes in memory")

    def fail(self, error: Exception) -> None:
        """End the order with an error unless it has ended."""
        if not self.future.done():
            self.future.set_exception(error)


class Worker:
    """One worker process.

    Parameters
    ----------
    child : Child
    incoming, outgoing, printed : int
        Descriptors of its line and of its output; owned from here on.
    """

    def __init__(self, child: Child, incoming: int, outgoing: int, printed: int) -> None:
        self._child = child
        self._line = Line(incoming, outgoing, take=self._take, ended=self._hung_up)
        self._capture = Capture()
        self._drain = Drain(printed, self._capture)
        self._drain.begin()
        self._loop = asyncio.get_running_loop()
        self._loaded: asyncio.Future[Incoming] = self._loop.create_future()
        self._numbers = itertools.count(1)
        self._orders: dict[int, _Order] = {}
        self._why = ""
        self.is_retired = False
        self._loaded_with: frozenset[int] = frozenset()
        child.on_exit(self._exited)

    @property
    def is_alive(self) -> bool:
        """Whether trials can be given to it."""
        return self._child.running and not self._why

    @property
    def has_left(self) -> bool:
        """Whether something that was started after loading left it and still runs."""
        return not self._child.orphans() <= self._loaded_with

    @property
    def in_flight(self) -> int:
        """How many trials it is running."""
        return len(self._orders)

    async def load(self, order: LoadOrder, *, timeout_s: float) -> Incoming:
        """Send the first message and return the answer.

        Raises
        ------
        WorkerEndedError
            It ended without an answer.
        TimeoutError
            It gave none in time.
        """
        self._line.send(order)
        answer = await asyncio.wait_for(self._loaded, timeout_s)
        self._loaded_with = self._child.orphans()
        return answer

    def number(self) -> int:
        """Return the number of a new trial of this worker."""
        return next(self._numbers)

    def start(
        self, order: msgspec.Struct, number: int, calls: TrialCalls | None, *, batched: bool = False
    ) -> asyncio.Future[Incoming]:
        """Send an order and return the future of its end.

        The future holds a ``done``, ``cancelled`` or ``lost`` message, or a ``WorkerEndedError``.
        """
        future: asyncio.Future[Incoming] = self._loop.create_future()
        self._orders[number] = _Order(future, calls)
        (self._line.post if batched else self._line.send)(order)
        return future

    async def ask(
        self, order: msgspec.Struct, number: int, calls: TrialCalls | None, *, timeout_s: float
    ) -> Incoming:
        """Send an order and return its end.

        Raises
        ------
        WorkerEndedError
            The worker ended first.
        TimeUpError
            It took longer than ``timeout_s``; the worker is still at it.
        """
        future = self.start(order, number, calls)
        timer = self._loop.call_later(timeout_s, self._orders[number].fail, TimeUpError())
        try:
            return await future
        finally:
            timer.cancel()
            self.forget(number)

    def cancel(self, number: int) -> None:
        """Ask for the end of a trial, which answers with how long it was held up by others."""
        self._line.post(Cancel(id=number))

    def forget(self, number: int) -> None:
        """Take no more notice of a trial."""
        self._orders.pop(number, None)

    def _take(self, message: Incoming) -> None:
        if message.op == "call":
            self._answer(message)
        elif message.op in ("done", "cancelled", "lost"):
            self._settle(message)
        elif message.op == "retire":
            self.is_retired = True
        elif not self._loaded.done():
            self._loaded.set_result(message)

    def _settle(self, message: Incoming) -> None:
        order = self._orders.pop(message.id, None)
        if order is not None and not order.future.done():
            order.future.set_result(message)

    def _answer(self, message: Incoming) -> None:
        if self._line.unsent_bytes > _MAX_UNREAD_BYTES:
            self._line.refuse("calls whose answers are not read")
            return
        order = self._orders.get(message.id)
        if order is None or order.calls is None or order.future.done():
            self._line.post(Answer(call=message.call, over=True))
            return
        try:
            order.count(self._line.weight_bytes)
            answer = order.calls(message)
        except Exception as error:  # noqa: BLE001 - the sandbox broke: the trial's end, not the run's
            order.fail(error)
            self._line.post(Answer(call=message.call, over=True))
        else:
            self._line.send(answer)

    def _hung_up(self, why: str) -> None:
        self._why = f"garbage: {why}" if why else "crash: the worker's line was closed"
        if why:
            self._child.kill()
        else:  # it is probably ending by itself, and then its exit status says more
            self._loop.call_later(_EXIT_S, self._child.kill)

    def _exited(self, status: int) -> None:
        self._line.read_rest()
        if not self._why.startswith("garbage"):
            self._why = f"crash: {described_exit(status)}"
        self._line.close()
        for order in (_Order(self._loaded, None), *self._orders.values()):
            order.fail(WorkerEndedError(self._why))
        if not self._loaded.cancelled():
            self._loaded.exception()  # nobody may be waiting for it any more
        self._orders.clear()

    def begin_output(self) -> None:
        """Forget what was printed so far."""
        self._drain.take_rest()
        self._capture.clear()

    def output(self) -> str:
        """Return the kept part of what was printed since ``begin_output``."""
        self._drain.take_rest()
        return self._capture.text()

    def kill(self) -> None:
        """Kill it and all its descendants; returns at once."""
        self._child.kill()

    async def end(self) -> None:
        """Kill it and all its descendants, and wait until they are gone."""
        await self._child.end()
        self._drain.close()

    async def close(self) -> None:
        """Let it end by itself, for a moment; then end it."""
        self._line.hang_up()
        waiting = asyncio.ensure_future(self._child.wait())
        await asyncio.wait([waiting], timeout=_CLOSE_S)
        await self.end()

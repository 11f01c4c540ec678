"""What must come to its end whatever is cancelled meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

__all__ = ["in_thread", "to_its_end"]

_Result = TypeVar("_Result")


async def to_its_end(work: Coroutine[Any, Any, _Result]) -> _Result:
    """Wait for work that must not be left half done, such as the end of processes.

    Cancellations of the caller that come in meanwhile are dropped: who asks twice for an end that
    is already under way gets it no sooner.
    """
    caller = asyncio.current_task()
    working = asyncio.ensure_future(work)
    while not working.done():
        try:
            await asyncio.shield(working)
        except asyncio.CancelledError:
            if working.cancelled():
                raise
            if caller is not None:
                caller.uncancel()
    return working.result()


async def in_thread(
    work: Callable[[], _Result], *, undo: Callable[[_Result], object] | None = None
) -> _Result:
    """Return the result of work that may take its time, done in a thread meanwhile.

    A cancellation takes effect when the work has ended, because a thread cannot be stopped and
    would work on with what the caller takes away.

    Parameters
    ----------
    work : callable
    undo : callable, optional
        Gets the result that the caller, being cancelled, does not.
    """
    working = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        await to_its_end(_waited_for(working))
        if undo is not None and working.exception() is None:
            undo(working.result())
        raise


async def _waited_for(working: asyncio.Future[Any]) -> None:
    await asyncio.wait([working])

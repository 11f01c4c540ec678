"""What must come to its end whatever is cancelled meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

__all__ = ["to_its_end"]

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

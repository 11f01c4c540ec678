"""What must come to its end does, however often its caller is cancelled."""

from __future__ import annotations

import asyncio

import pytest

from ci_gate.engine.cancellation import to_its_end


async def slow(done: list[str]) -> str:
    await asyncio.sleep(0.02)
    done.append("ended")
    return "result"


def test_cancellations_of_the_caller_do_not_reach_the_work() -> None:
    """Two cancellations on the way change nothing: the work ends and its result comes back."""
    done: list[str] = []

    async def main() -> tuple[str, int]:
        waiting = asyncio.ensure_future(to_its_end(slow(done)))
        for _ in range(2):
            await asyncio.sleep(0.001)
            waiting.cancel()
        return await waiting, waiting.cancelling()

    assert asyncio.run(main()) == ("result", 0)
    assert done == ["ended"]


def test_an_error_of_the_work_is_the_callers() -> None:
    """What the work raises, a cancellation of its own included, reaches who waits for it."""

    async def broken() -> None:
        raise OSError("disk")

    async def cancelled() -> None:
        raise asyncio.CancelledError

    with pytest.raises(OSError, match="disk"):
        asyncio.run(to_its_end(broken()))
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(to_its_end(cancelled()))

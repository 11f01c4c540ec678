"""Runs the engine from synchronous code; here signals become a cancellation."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from ci_gate.errors import PlatformError

__all__ = ["run_locally"]

_Result = TypeVar("_Result")
_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")


def run_locally(main: Callable[[], Coroutine[Any, Any, _Result]]) -> _Result:
    """Run a coroutine to its end in this process.

    In the main thread, SIGINT, SIGTERM and SIGHUP cancel it; ``engine.runner.run_trials`` then
    returns what it has. A coroutine that lets the cancellation through ends in
    ``KeyboardInterrupt``.

    Parameters
    ----------
    main : callable
        Makes the coroutine.

    Raises
    ------
    KeyboardInterrupt
        A signal ended the coroutine.
    PlatformError
        Windows has no processes as the engine needs them.
    """
    if sys.platform == "win32":
        raise PlatformError(
            "running trials needs POSIX processes, which Windows does not have",
            hint="Run them under Linux, macOS or WSL; comparing and reporting work here.",
        )
    try:
        return asyncio.run(_watched(main))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


async def _watched(main: Callable[[], Coroutine[Any, Any, _Result]]) -> _Result:
    task = asyncio.ensure_future(main())
    if threading.current_thread() is not threading.main_thread():
        return await task
    loop = asyncio.get_running_loop()
    _let_children_be_waited_for()
    for name in _SIGNALS:
        loop.add_signal_handler(getattr(signal, name), task.cancel)
    try:
        return await task
    finally:
        for name in _SIGNALS:
            loop.remove_signal_handler(getattr(signal, name))


def _let_children_be_waited_for() -> None:
    """Undo an inherited ``SIG_IGN``, under which every exit status would read as 0."""
    if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)

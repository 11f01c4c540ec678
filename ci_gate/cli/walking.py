"""The terminal of ``ci-gate replay --step``: a call and its answer, then Enter."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ci_gate.gate.walking import Walk
    from ci_gate.model.trace import TraceRecord

__all__ = ["walk_of"]

_ASK = "       Enter: the next call, q: stop "


def walk_of(*, until: int | None, step: bool) -> Walk | None:
    """Return how far a replay goes; None: to its end, at once.

    Raises
    ------
    UsageError
        ``step`` without a terminal, on which somebody could be asked.
    """
    if until is None and not step:
        return None
    from ci_gate.gate.walking import Walk

    if step:
        _require_terminal()
    return Walk(until=until, goes_on=_goes_on if step else None)


def _require_terminal() -> None:
    from ci_gate.errors import UsageError

    streams = (sys.stdin, sys.stdout)
    if not all(stream is not None and stream.isatty() for stream in streams):
        raise UsageError(
            "asks before each call, and this is no terminal",
            where="--step",
            hint="Use --until N, or `ci-gate trace show` on the recording.",
        )


def _goes_on(record: TraceRecord) -> bool:
    """Show a call and ask whether to go on; the end of the input and Ctrl-C are no."""
    from ci_gate.render.screen import console_for
    from ci_gate.render.trace import print_call

    print_call(record, console_for(sys.stdout, os.environ))
    # The engine's own handler only takes note of Ctrl-C, which nobody would see while this waits.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        sys.stdout.write(_ASK)
        sys.stdout.flush()
        answer = sys.stdin.readline()
    except KeyboardInterrupt:
        return False
    finally:
        signal.signal(signal.SIGINT, before)
    return bool(answer) and answer.strip().lower() not in ("q", "quit")

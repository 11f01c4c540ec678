"""Measures of the way a trial went, from its steps alone: faults that it met, and loops.

What they are called together, self-healing and blind retries, is defined here and nowhere else; the
turns and goals that they rest on in ``ci_gate.process``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ci_gate.model.trial import Step
from ci_gate.process import calls as tools
from ci_gate.process.turns import HEALING_TURNS, CallInTurn, in_turns, is_achieved_later

__all__ = ["HEALING_TURNS", "faults", "looped", "recovered", "tool_calls"]

# The answer arrives whole, late or of a second delivery: the faulted call achieves its goal itself.
_WHOLE: Final = frozenset({"latency", "duplicate"})


def tool_calls(steps: Sequence[Step]) -> int | None:
    """Return how many tools were called; None where no step is known at all."""
    return len(tools.tool_calls(steps)) if steps else None


def faults(steps: Sequence[Step]) -> int:
    """Return how many injected faults were delivered."""
    return sum(step.fault is not None for step in steps)


def recovered(steps: Sequence[Step], *, passed: bool) -> int:
    """Return from how many delivered faults the agent recovered.

    It recovered where the trial passed and the goal of the faulted call was achieved within two
    further turns: the same tool or model answered without error and without fault.

    Parameters
    ----------
    steps : sequence of Step
        In the order in which they ended.
    passed : bool
        Whether the trial did. From what a trial met that did not pass, nothing was recovered.

    Notes
    -----
    Turns and what achieves a goal are those of ``ci_gate.process.turns``. A delayed or doubled
    answer has arrived. That the trial passed in some other way, by another tool or by the part of
    an answer that was left, is no recovery.
    """
    if not passed:
        return 0
    calls = list(in_turns(steps))
    return sum(
        call.step.fault is not None and (_has_arrived(call) or is_achieved_later(call, rest))
        for call, rest in ((call, calls[place + 1 :]) for place, call in enumerate(calls))
    )


def _has_arrived(call: CallInTurn) -> bool:
    return call.step.fault in _WHOLE and not call.step.is_error


def looped(steps: Sequence[Step]) -> bool | None:
    """Return whether a tool was called with the same arguments three times or more.

    None where no step is known at all.
    """
    if not steps:
        return None
    return bool(tools.repeated(tools.tool_calls(steps), tools.LOOP))

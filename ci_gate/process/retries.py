"""Measures of what an agent makes of calls that failed or said what it knew already."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ci_gate.model.calls import TOOL_CALL
from ci_gate.model.trial import Step
from ci_gate.process.calls import ToolCall, identity, json_bytes
from ci_gate.process.turns import in_turns, is_achieved_later

__all__ = ["error_recovery", "useless_retries"]


def error_recovery(steps: Sequence[Step]) -> float | None:
    """Return the share of the tool calls that failed by themselves and were made good.

    By themselves: no fault was injected. Made good: the same tool answered within two further
    turns, as for faults (``ci_gate.process.turns``). None where no call failed so.
    """
    calls = list(in_turns(steps))
    recovered = [
        is_achieved_later(call, calls[place + 1 :])
        for place, call in enumerate(calls)
        if call.step.kind == TOOL_CALL and call.step.is_error and call.step.fault is None
    ]
    return sum(recovered) / len(recovered) if recovered else None


def useless_retries(calls: Iterable[ToolCall]) -> int:
    """Return how many calls repeated an earlier one and got the same answer or error again.

    What may have changed the answer makes a repetition an honest question: a call of another tool
    or with other arguments that succeeded in between, and an injected fault in either of the two.
    """
    useless = 0
    known: dict[tuple[str, bytes], tuple[bool, bytes]] = {}
    for step in (call.step for call in calls):
        question = identity(step)
        if step.fault is not None:
            known.pop(question, None)
            continue
        result = step.is_error, json_bytes(step.output)
        if known.get(question) == result:
            useless += 1
        elif not step.is_error:
            known.clear()
        known[question] = result
    return useless

"""Measures of the way a trial went, from its steps alone.

What they are called together, self-healing and blind retries, is defined here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from ci_gate.model.calls import MODEL_CALL
from ci_gate.model.trial import Step
from ci_gate.process import calls as tools

__all__ = ["HEALING_TURNS", "faults", "looped", "recovered", "tool_calls"]

HEALING_TURNS: Final = 2
"""Turns after that of a fault within which the goal of the faulted call must be achieved."""

_MEETING_FAULTS: Final = frozenset({tools.TOOL, MODEL_CALL})
# The answer arrives whole, late or of a second delivery: the faulted call achieves its goal itself.
_WHOLE: Final = frozenset({"latency", "duplicate"})


def tool_calls(steps: Sequence[Step]) -> int | None:
    """Return how many tools were called; None where no step is known at all."""
    return sum(step.kind == tools.TOOL for step in steps) if steps else None


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
    The turn of a call is the one that the agent said, where it says turns; else the number of calls
    to models up to it, where there is one; else its place among the tool calls of its lane, a lane
    beginning where the others are. The answer counts if it is to the same
    arguments, in the same turn or later, or if the same lane asks with other arguments in a later
    turn: what runs beside the faulted call, or was asked for together with it, was not asked in
    knowledge of the fault. A delayed or doubled answer has arrived. That the trial passed in some
    other way, by another tool or by the part of an answer that was left, is no recovery.
    """
    if not passed:
        return 0
    calls = list(_in_turns(steps))
    return sum(
        call.step.fault is not None and _is_achieved(call, calls[place + 1 :])
        for place, call in enumerate(calls)
    )


class _Call(NamedTuple):
    step: Step
    turn: int


def _in_turns(steps: Sequence[Step]) -> Iterator[_Call]:
    calls = [step for step in steps if step.kind in _MEETING_FAULTS]
    if any(step.turn is not None for step in calls):
        return _by_word(calls)
    of_models = any(step.kind == MODEL_CALL for step in calls)
    return _by_models(calls) if of_models else _by_places(calls)


def _by_word(calls: Iterable[Step]) -> Iterator[_Call]:
    turn = 0
    for step in calls:
        turn = turn if step.turn is None else step.turn
        yield _Call(step, turn)


def _by_models(calls: Iterable[Step]) -> Iterator[_Call]:
    turn = 0
    for step in calls:
        turn += step.kind == MODEL_CALL
        yield _Call(step, turn)


def _by_places(calls: Iterable[Step]) -> Iterator[_Call]:
    latest, reached = 0, dict[str, int]()
    for step in calls:
        turn = reached.get(step.lane, latest) + 1
        reached[step.lane] = turn
        latest = max(latest, turn)
        yield _Call(step, turn)


def _is_achieved(faulted: _Call, later: Iterable[_Call]) -> bool:
    step = faulted.step
    if step.fault in _WHOLE and not step.is_error:
        return True
    return any(
        (call.step.kind, call.step.name) == (step.kind, step.name)
        and not call.step.is_error
        and call.step.fault is None
        and call.turn <= faulted.turn + HEALING_TURNS
        and _is_asked_again(faulted, call)
        for call in later
    )


def _is_asked_again(faulted: _Call, call: _Call) -> bool:
    same_lane, later = call.step.lane == faulted.step.lane, call.turn > faulted.turn
    if tools.json_bytes(call.step.input) == tools.json_bytes(faulted.step.input):
        return same_lane or later
    return same_lane and later


def looped(steps: Sequence[Step]) -> bool | None:
    """Return whether a tool was called with the same arguments three times or more.

    None where no step is known at all.
    """
    if not steps:
        return None
    return bool(tools.repeated(tools.tool_calls(steps), tools.LOOP))

"""The turns of a trial's calls, and whether what a failed call was for was achieved after all.

This is the one place that says what a turn is and what achieves the goal of a call, whether a fault
was injected into it or it failed by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from ci_gate.model.calls import MODEL_CALL, TOOL_CALL
from ci_gate.model.trial import Step
from ci_gate.process.calls import json_bytes

__all__ = ["HEALING_TURNS", "CallInTurn", "in_turns", "is_achieved_later"]

HEALING_TURNS: Final = 2
"""Turns after that of a call within which its goal must be achieved."""

_MEETING_FAULTS: Final = frozenset({TOOL_CALL, MODEL_CALL})


class CallInTurn(NamedTuple):
    """A call of a tool or model and the turn it was made in."""

    step: Step
    turn: int


def in_turns(steps: Sequence[Step]) -> Iterator[CallInTurn]:
    """Yield the calls of tools and models with their turns.

    Notes
    -----
    The turn of a call is the one that the agent said, where it says turns; else the number of calls
    to models up to it, where there is one; else its place among the tool calls of its lane, a lane
    beginning where the others are.
    """
    calls = [step for step in steps if step.kind in _MEETING_FAULTS]
    if any(step.turn is not None for step in calls):
        return _by_word(calls)
    of_models = any(step.kind == MODEL_CALL for step in calls)
    return _by_models(calls) if of_models else _by_places(calls)


def _by_word(calls: Iterable[Step]) -> Iterator[CallInTurn]:
    turn = 0
    for step in calls:
        turn = turn if step.turn is None else step.turn
        yield CallInTurn(step, turn)


def _by_models(calls: Iterable[Step]) -> Iterator[CallInTurn]:
    turn = 0
    for step in calls:
        turn += step.kind == MODEL_CALL
        yield CallInTurn(step, turn)


def _by_places(calls: Iterable[Step]) -> Iterator[CallInTurn]:
    latest, reached = 0, dict[str, int]()
    for step in calls:
        turn = reached.get(step.lane, latest) + 1
        reached[step.lane] = turn
        latest = max(latest, turn)
        yield CallInTurn(step, turn)


def is_achieved_later(failed: CallInTurn, later: Iterable[CallInTurn]) -> bool:
    """Return whether the same tool or model answered within two further turns, truly and unharmed.

    Parameters
    ----------
    failed : CallInTurn
    later : iterable of CallInTurn
        The calls that ended after it.

    Notes
    -----
    The answer counts if it is to the same arguments, in the same turn or later, or if the same lane
    asks with other arguments in a later turn: what runs beside the failed call, or was asked for
    together with it, was not asked in knowledge of its failure.
    """
    step = failed.step
    return any(
        (call.step.kind, call.step.name) == (step.kind, step.name)
        and not call.step.is_error
        and call.step.fault is None
        and call.turn <= failed.turn + HEALING_TURNS
        and _is_asked_again(failed, call)
        for call in later
    )


def _is_asked_again(failed: CallInTurn, call: CallInTurn) -> bool:
    same_lane, later = call.step.lane == failed.step.lane, call.turn > failed.turn
    if json_bytes(call.step.input) == json_bytes(failed.step.input):
        return same_lane or later
    return same_lane and later

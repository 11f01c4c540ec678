"""Reads what an agent hands back, under every protocol, into a ``Trajectory``.

The result is hostile: whatever is not exactly as documented is garbage, with words that say what
was found. Who decides what garbage means for the trial is not here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec

from ci_gate.codec import encode
from ci_gate.errors import printable
from ci_gate.model.amounts import MOST_MEASURE, amount_within, count_within
from ci_gate.model.calls import all_cached, names_of_answers
from ci_gate.model.trial import Status, Step, Trajectory

__all__ = ["GarbageError", "one_line", "trajectory_of"]

_REASON_CHARS = 500
_MAX_STEPS = 100_000
_Number = TypeVar("_Number", int | None, float | None)
# How a worker writes what JSON cannot: NaN, infinities, whole numbers of any size.
_TAG: Final = "$ci-gate"
_TAGGED_NUMBERS: Final = ("int", "float")


class GarbageError(Exception):
    """What the agent handed back is not a result; the text says why."""


def one_line(text: object) -> str:
    """Return a reason from outside as one safe line of bounded length."""
    return printable(text, limit=_REASON_CHARS)


def trajectory_of(result: Any, seen: Sequence[Step] = ()) -> Trajectory:
    """Return the trajectory that a result describes.

    Parameters
    ----------
    result : Any
        A JSON value: ``answer``, ``turns``, ``tokens``, ``cost_usd``, ``steps``, ``measures``,
        ``cached``, ``response_ids``, ``status``, ``reason``, all optional; other keys are the
        agent's own and left alone. An answer that is not text becomes its JSON. A number that is
        no amount (``ci_gate.model.amounts``) is named in ``beyond`` and unknown.
    seen : sequence of Step
        The calls that passed the sandbox; the agent's own ``steps`` count where there are none.
        What these say of the answers of models counts in any case.

    Raises
    ------
    GarbageError
        Not a mapping, or a value of the wrong type.
    """
    if not isinstance(result, Mapping):
        raise GarbageError(f"a result is a JSON object, found {_shown(result)}")
    steps = _steps(result.get("steps"))
    status = _status(result.get("status"))
    amounts = _Amounts(result)
    return Trajectory(
        answer=_answer(result.get("answer")),
        steps=tuple(seen) or steps,
        turns=amounts.count("turns"),
        tokens=amounts.count("tokens"),
        cost_usd=amounts.cost_usd(),
        measures=amounts.measures(),
        beyond=tuple(amounts.beyond),
        cached=all_cached(_flag(result, "cached"), steps),
        response_ids=names_of_answers(_names(result.get("response_ids")), steps),
        status=status,
        reason=None if status is None else _reason(result.get("reason")),
    )


def _shown(value: Any) -> str:
    return f"{type(value).__name__} {printable(repr(value), limit=80)}"


def _answer(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return encode(value).decode()


class _Amounts:
    """Reads the numbers of a result, and notes which of them are no amounts."""

    def __init__(self, result: Mapping[str, Any]) -> None:
        self._result = result
        self.beyond: list[str] = []

    def count(self, key: str) -> int | None:
        value = self._result.get(key)
        if value is None:
            return None
        number = _number(value, key, what="a whole number from 0")
        if isinstance(number, float):
            raise GarbageError(f"{key} is a whole number from 0, found {_shown(value)}")
        return self._noted(key, count_within(number))

    def cost_usd(self) -> float | None:
        value = self._result.get("cost_usd")
        if value is None:
            return None
        number = _number(value, "cost_usd", what="a number from 0")
        return self._noted("cost_usd", amount_within(number))

    def measures(self) -> dict[str, float]:
        value = self._result.get("measures")
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            raise GarbageError(f"measures are an object of numbers, found {_shown(value)}")
        read = {str(name): _measure(name, item) for name, item in value.items() if item is not None}
        if None in read.values():
            self.beyond.append("measures")
        return {name: item for name, item in read.items() if item is not None}

    def _noted(self, key: str, found: _Number) -> _Number:
        if found is None:
            self.beyond.append(key)
        return found


def _measure(name: object, item: Any) -> float | None:
    number = _number(item, f"measures.{printable(name, limit=40)}", what="a number")
    size = amount_within(None if number is None else abs(number), MOST_MEASURE)
    return None if size is None or number is None else float(number)


def _number(value: Any, key: str, *, what: str) -> int | float | None:
    """Return a number; None for one that JSON does not have."""
    if _is_tagged_number(value) or (isinstance(value, float) and not math.isfinite(value)):
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise GarbageError(f"{key} is {what}, found {_shown(value)}")
    return value


def _is_tagged_number(value: Any) -> bool:
    tag = value.get(_TAG) if isinstance(value, dict) and len(value) == 1 else None
    return isinstance(tag, list) and len(tag) == 2 and tag[0] in _TAGGED_NUMBERS


def _flag(result: Mapping[str, Any], key: str) -> bool | None:
    value = result.get(key)
    if not isinstance(value, bool | None):
        raise GarbageError(f"{key} is true or false, found {_shown(value)}")
    return value


def _names(value: Any) -> tuple[str, ...] | None:
    if value is None:
        return None
    if not isinstance(value, list) or len(value) > _MAX_STEPS:
        raise GarbageError(f"response_ids are a list of at most {_MAX_STEPS} texts")
    for name in value:
        if not isinstance(name, str):
            raise GarbageError(f"response_ids are a list of texts, found {_shown(name)}")
    return tuple(value)


def _steps(value: Any) -> tuple[Step, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or len(value) > _MAX_STEPS:
        raise GarbageError(f"steps are a list of at most {_MAX_STEPS} objects")
    try:
        return tuple(_step(step) for step in value)
    except msgspec.ValidationError as error:
        raise GarbageError(f"a step is not as documented: {printable(error)}") from error


def _step(value: Any) -> Step:
    step = msgspec.convert(_with_defaults(value), Step)
    # Of which turn it was said nothing, where that is no number of a turn.
    return msgspec.structs.replace(step, turn=count_within(step.turn))


def _with_defaults(step: Any) -> Any:
    """Let a step be as short as its name; what was injected is known here, not to the agent."""
    if not isinstance(step, Mapping):
        return step
    return {"kind": "tool", **{key: item for key, item in step.items() if key != "fault"}}


def _status(value: Any) -> Status | None:
    # "passed" leaves the word to the graders, like no status at all.
    known = {None: None, "passed": None, "failed": Status.FAILED, "errored": Status.ERRORED}
    if not isinstance(value, str | None) or value not in known:
        raise GarbageError(f"status is passed, failed or errored, found {_shown(value)}")
    return known[value]


def _reason(value: Any) -> str | None:
    return one_line(value) if isinstance(value, str) and value else None

"""Reads what an agent hands back, under every protocol, into a ``Trajectory``.

The result is hostile: whatever is not exactly as documented is garbage, with words that say what
was found. Who decides what garbage means for the trial is not here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ci_gate.codec import encode
from ci_gate.errors import printable
from ci_gate.model.calls import all_cached, names_of_answers
from ci_gate.model.trial import Status, Step, Trajectory

__all__ = ["GarbageError", "one_line", "trajectory_of"]

_REASON_CHARS = 500
_MAX_STEPS = 100_000


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
        agent's own and left alone. An answer that is not text becomes its JSON.
    seen : sequence of Step
        The calls that passed the sandbox; the agent's own ``steps`` count where there are none.
        What these say of the answers of models counts in any case.

    Raises
    ------
    GarbageError
        Not a mapping, or a value of the wrong type or range.
    """
    if not isinstance(result, Mapping):
        raise GarbageError(f"a result is a JSON object, found {_shown(result)}")
    steps = _steps(result.get("steps"))
    status = _status(result.get("status"))
    return Trajectory(
        answer=_answer(result.get("answer")),
        steps=tuple(seen) or steps,
        turns=_count(result, "turns"),
        tokens=_count(result, "tokens"),
        cost_usd=_amount(result.get("cost_usd"), "cost_usd"),
        measures=_measures(result.get("measures")),
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


def _count(result: Mapping[str, Any], key: str) -> int | None:
    value = result.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**53:
        raise GarbageError(f"{key} is a whole number from 0, found {_shown(value)}")
    return value


def _amount(value: Any, key: str, *, signed: bool = False) -> float | None:
    if value is None:
        return None
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or (value < 0 and not signed):
        raise GarbageError(f"{key} is a number{'' if signed else ' from 0'}, found {_shown(value)}")
    return float(value)


def _measures(value: Any) -> dict[str, float]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise GarbageError(f"measures are an object of numbers, found {_shown(value)}")
    found = {
        name: _amount(item, f"measures.{printable(name, limit=40)}", signed=True)
        for name, item in value.items()
    }
    return {str(name): item for name, item in found.items() if item is not None}


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
        return tuple(msgspec.convert(_with_defaults(step), Step) for step in value)
    except msgspec.ValidationError as error:
        raise GarbageError(f"a step is not as documented: {printable(error)}") from error


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

"""What stays of a trial's answers, by which a copy of it can be known again: pure.

Only digests stay, short ones: names of answers may let their reader fetch them, and lines are many.
"""

from __future__ import annotations

import hashlib
from typing import Final

import msgspec

from ci_gate.model.calls import all_cached, names_of_answers
from ci_gate.model.trial import Answers, Trajectory

__all__ = ["answers_of"]

_DIGITS: Final = 16
"""Hexadecimal digits that are kept: two of a million trials are hardly ever equal by chance."""

_VALUE_CHARS: Final = 40
"""Up to here an answer may be the value that a task asks for, which is to be the same each time."""

_encode: Final = msgspec.json.Encoder(order="deterministic").encode


def answers_of(trajectory: Trajectory) -> Answers | None:
    """Return what is known of a trial's answers, None where that is nothing.

    Notes
    -----
    Names of answers count in any order, since calls may run side by side.
    """
    names = names_of_answers(trajectory.response_ids, trajectory.steps)
    found = Answers(
        digest=_digest_of_bytes(trajectory),
        responses=None if names is None else _digest(sorted(names)),
        cached=bool(all_cached(trajectory.cached, trajectory.steps)),
    )
    return None if found == Answers() else found


def _digest_of_bytes(trajectory: Trajectory) -> str | None:
    told = len(trajectory.answer or "") > _VALUE_CHARS
    if not (told or trajectory.steps or trajectory.tokens is not None):
        return None
    steps = [(s.kind, s.name, s.input, s.output, s.is_error) for s in trajectory.steps]
    return _digest((trajectory.answer, steps, trajectory.tokens))


def _digest(value: object) -> str | None:
    """Return the digest of a value; None of one that no JSON holds, as an agent may make them."""
    try:
        content = _encode(value)
    except (msgspec.MsgspecError, TypeError, ValueError, OverflowError, RecursionError):
        return None
    return hashlib.sha256(content).hexdigest()[:_DIGITS]

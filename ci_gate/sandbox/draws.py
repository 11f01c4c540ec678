"""What an agent took from its trial's generators and clock, as records of its trace.

A record is all that one lane took between two of its calls: how many values, and one digest of
them, so that a replay which draws otherwise is noticed at the next call. What a tool took itself is
made up for where a replay answers it. How values are drawn is not known here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from ci_gate.model.trace import TraceRecord
from ci_gate.ports import Skipped
from ci_gate.sandbox.faults import DELAY_S

__all__ = ["skipped_by"]

_MOST_WORDS: Final = 2**28
_MOST_UUIDS: Final = 10**7


def skipped_by(records: Iterable[TraceRecord]) -> Skipped:
    """Return what calls took from their trial, which a replay does not make again.

    Parameters
    ----------
    records : iterable of TraceRecord
        Everything that was recorded within a call; it comes from a file and may be hostile.
    """
    words = uuids = 0
    slept_s = 0.0
    for record in records:
        given = record.input if isinstance(record.input, dict) else {}
        if record.kind == "rng":
            words += int(_amount(given, "words", _MOST_WORDS))
            uuids += int(_amount(given, "count", _MOST_UUIDS)) if record.name == "uuid" else 0
        elif record.kind == "clock":
            slept_s += _amount(given, "slept_s", float("inf"))
        slept_s += DELAY_S.get(record.fault, 0.0) if record.fault else 0.0
    return Skipped(words=min(words, _MOST_WORDS), uuids=min(uuids, _MOST_UUIDS), slept_s=slept_s)


def _amount(given: dict[str, Any], name: str, most: float) -> float:
    amount = given.get(name, 0)
    is_number = isinstance(amount, int | float) and not isinstance(amount, bool)
    return min(amount, most) if is_number and amount >= 0 else 0

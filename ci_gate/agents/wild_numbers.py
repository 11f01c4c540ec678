"""Reads a result whose amounts are numbers that JSON does not have, as many programs print them.

Python prints ``NaN`` and ``Infinity`` unasked, and integers of any length. Such an amount is
unknown and costs the trial nothing; anywhere else they are no JSON. What an amount may be is not
decided here.
"""

from __future__ import annotations

import json
import math
from typing import Any, Final

from ci_gate import codec

__all__ = ["result_with_wild_numbers"]

_AMOUNTS: Final = ("turns", "tokens", "cost_usd", "measures")
_TAG: Final = "$ci-gate"
_MAX_DIGITS: Final = 300


def result_with_wild_numbers(line: bytes) -> dict[str, Any] | None:
    """Return a result in which such numbers are tagged, as a worker tags them.

    Parameters
    ----------
    line : bytes
        What no reader of JSON takes.

    Returns
    -------
    dict or None
        None: it is no JSON object even so, or has such a number elsewhere.
    """
    try:
        found = json.loads(line, parse_constant=_constant, parse_float=_float, parse_int=_int)
        if not isinstance(found, dict):
            return None
        amounts = {key: found[key] for key in _AMOUNTS if key in found}
        rest = json.dumps({key: found[key] for key in found if key not in amounts})
        return None if _TAG in rest else {**codec.decode(rest), **amounts}
    except (ValueError, RecursionError):
        return None


def _constant(text: str) -> dict[str, Any]:
    return {_TAG: ["float", text]}


def _float(text: str) -> Any:
    number = float(text)
    return number if math.isfinite(number) else _constant(text)


def _int(text: str) -> Any:
    return int(text) if len(text) <= _MAX_DIGITS else {_TAG: ["int", "beyond"]}

"""How large a number may be that says what something took, from whoever it comes.

Decides the bounds, in one place: what an agent, a tool or a file says beyond them is no amount.
Within them sums over a million trials, and squares of them, stay finite. It must not know who said
a number, nor what becomes of one that is none.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Final

import msgspec

__all__ = [
    "MOST_COUNT",
    "MOST_MEASURE",
    "MOST_MS",
    "MOST_S",
    "MOST_TOKENS",
    "MOST_USD",
    "Count",
    "Milliseconds",
    "Real",
    "Seconds",
    "Usd",
    "amount_within",
    "count_within",
    "require_counts",
]

MOST_COUNT: Final = 2**53 - 1
"""Beyond it JSON numbers are no longer whole numbers everywhere."""

MOST_TOKENS: Final = 10**12
"""Of tokens, turns and the like that one call or trial may say it took."""

MOST_USD: Final = 1e9
"""Of what one call or trial may say it cost."""

MOST_S: Final = 1e9
MOST_MS: Final = 1e12
MOST_MEASURE: Final = 1e100
"""Of a measure of an agent's own, either way from 0."""

Count = Annotated[int, msgspec.Meta(ge=0, le=MOST_COUNT)]
Usd = Annotated[float, msgspec.Meta(ge=0, le=MOST_USD)]
Seconds = Annotated[float, msgspec.Meta(ge=0, le=MOST_S)]
Milliseconds = Annotated[float, msgspec.Meta(ge=0, le=MOST_MS)]
# A standard deviation lies beyond the values that it is of, but by less than this.
Real = Annotated[float, msgspec.Meta(ge=-10 * MOST_MEASURE, le=10 * MOST_MEASURE)]


def require_counts(value: Any) -> None:
    """Refuse a JSON value in which a whole number is none that any count reaches.

    For a file of which every whole number is shown to somebody.

    Raises
    ------
    ValueError
        One lies beyond 2**53 - 1, either way from 0.
    """
    left = [value]
    while left:
        item = left.pop()
        if isinstance(item, dict):
            left += item.values()
        elif isinstance(item, list):
            left += item
        elif isinstance(item, int) and not -MOST_COUNT <= item <= MOST_COUNT:
            raise ValueError(f"a whole number in it lies beyond {MOST_COUNT}")


def count_within(value: int | None, most: int = MOST_TOKENS) -> int | None:
    """Return a whole number from 0 to ``most``; None, which is unknown, for any other."""
    return value if value is not None and 0 <= value <= most else None


def amount_within(value: float | None, most: float = MOST_USD) -> float | None:
    """Return a number from 0 to ``most`` as a float; None, which is unknown, for any other."""
    # Compared before it is converted: a whole number can be beyond every float.
    if value is None or (isinstance(value, float) and math.isnan(value)) or not 0 <= value <= most:
        return None
    return float(value)

"""Sums of amounts without rounding.

Whole numbers are added as they are; a fraction counts as the shortest decimal number that stands
for it, so that 0.1 and 0.2 make 0.3; a text counts where it is a decimal number. Null is left out,
as in SQL.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any, Final

__all__ = ["NotANumber", "decimal_text", "exact", "total"]

_DECIMAL: Final = re.compile(r"[-+]?[0-9]{1,60}(?:\.[0-9]{1,60})?")
# A sum of doubles has some 309 digits before the point and 325 after it.
_WIDE: Final = Context(prec=800)


class NotANumber(ValueError):
    """A value that cannot be added; ``value`` is it."""

    def __init__(self, value: Any) -> None:
        super().__init__(str(value))
        self.value = value


def exact(value: Any) -> Fraction:
    """Return a number without rounding.

    Raises
    ------
    NotANumber
        It is none, or not finite.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return Fraction(value)
    text = repr(value) if isinstance(value, float) else value
    is_decimal = isinstance(value, str) and _DECIMAL.fullmatch(value)
    if is_decimal or (isinstance(value, float) and abs(value) < float("inf")):
        return Fraction(Decimal(text))
    raise NotANumber(value)


def total(values: Iterable[Any]) -> Fraction:
    """Return the sum of all values that are not null.

    Raises
    ------
    NotANumber
        One is no number.
    """
    return sum((exact(value) for value in values if value is not None), Fraction(0))


def decimal_text(number: Fraction) -> str:
    """Return a sum as a decimal number without an exponent."""
    if number.denominator == 1:
        return str(number.numerator) if abs(number.numerator) < 10**100 else "over 100 digits"
    quotient = _WIDE.divide(Decimal(number.numerator), Decimal(number.denominator))
    return format(quotient.normalize(_WIDE), "f")

"""How numbers are written: the only place of the project that rounds.

Rounding never says more than is known: 100 % and 0 % appear only where they are exact, a p-value is
never 0, and a figure that is held against a limit keeps digits until it differs from the limit. It
knows no metric and no layout, and nothing is decided on what it returns.
"""

from __future__ import annotations

import math

__all__ = [
    "MINUS",
    "UNKNOWN",
    "amount",
    "count",
    "counted",
    "interval",
    "level",
    "p_value",
    "percent",
    "points",
    "rate",
]

UNKNOWN = "–"  # noqa: RUF001 - the dash that stands for a figure that does not exist
MINUS = "−"  # noqa: RUF001 - as wide as a digit, so that columns of differences align
_SMALLEST_P = 0.001
_MOST_DIGITS = 6


def percent(share: float | None, *, against: float | None = None) -> str:
    """Return a share of one in per cent with one decimal.

    Parameters
    ----------
    share : float or None
        From 0 to 1; None is shown as unknown.
    against : float or None
        A limit the share is compared with: digits are added until the two look different.
    """
    if share is None or not math.isfinite(share):
        return UNKNOWN
    if share in {0.0, 1.0}:
        return f"{share:.0%}".replace("%", " %")
    return _between_bounds(share, _apart(share * 100, _scaled(against), digits=1))


def _between_bounds(share: float, shown: str) -> str:
    if float(shown) == 0.0:
        return "< 0.1 %"
    return "> 99.9 %" if share < 1.0 and float(shown) >= 100.0 else f"{shown} %"


def _scaled(share: float | None) -> float | None:
    return None if share is None else share * 100


def _apart(value: float, limit: float | None, *, digits: int) -> str:
    """Return the value with the fewest decimals that tell it from the limit."""
    for decimals in range(digits, _MOST_DIGITS):
        if limit is None or value == limit or f"{value:.{decimals}f}" != f"{limit:.{decimals}f}":
            return f"{value:.{decimals}f}"
    return f"{value:.{_MOST_DIGITS}f}"


def points(difference: float | None) -> str:
    """Return a difference of two shares in percentage points, signed, with one decimal.

    A difference that is not zero is never written as 0, nor one short of 100 as 100.
    """
    if difference is None or not math.isfinite(difference):
        return UNKNOWN
    if difference == 0.0:
        return "0"
    return _signed(difference, _magnitude(abs(difference) * 100))


def _magnitude(value: float) -> str:
    if value == 100.0:
        return "100"
    for decimals in range(1, 4):
        shown = f"{value:.{decimals}f}"
        if 0.0 < float(shown) < 100.0 or value > 100.0:
            return shown
    return "99.999" if value > 1.0 else "0.001"


def _signed(difference: float, magnitude: str) -> str:
    return f"{MINUS if difference < 0 else '+'}{magnitude}"


def interval(bounds: tuple[float, float] | None) -> str:
    """Return an interval of differences in percentage points."""
    return UNKNOWN if bounds is None else f"{points(bounds[0])} to {points(bounds[1])}"


def p_value(p: float | None, *, against: float | None = None) -> str:
    """Return a p-value with three decimals, never 0, and 1 only where it is exact.

    Parameters
    ----------
    p : float or None
        From 0 to 1.
    against : float or None
        The level it is compared with: digits are added until the two look different.
    """
    if p is None or not math.isfinite(p):
        return UNKNOWN
    if p < _SMALLEST_P:
        return f"< {_SMALLEST_P}"
    if p == 1.0:
        return "1"
    shown = _apart(p, against, digits=3)
    return "> 0.999" if float(shown) >= 1.0 else shown


def level(alpha: float) -> str:
    """Return a level of a test as it was configured."""
    return f"{alpha:.6g}"


def rate(passed: int, trials: int) -> str:
    """Return passed of judged trials with the rate, which is left out without trials."""
    return f"{passed}/{trials} ({percent(passed / trials)})" if trials else "0/0"


def count(number: int) -> str:
    """Return a count with a separator of thousands."""
    return f"{number:,}"


def counted(number: int, noun: str) -> str:
    """Return a count with its noun, in the plural but for one."""
    return f"{count(number)} {noun}" if number == 1 else f"{count(number)} {noun}s"


def amount(value: object) -> str:
    """Return a measure of any unit to three significant digits, an integer in full."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return UNKNOWN if value is None else str(value)
    if isinstance(value, int):
        return count(value)
    return _significant(value).replace("-", MINUS) if math.isfinite(value) else UNKNOWN


def _significant(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"

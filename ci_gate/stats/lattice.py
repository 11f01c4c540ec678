"""Exact distributions of sums of independent integers, by adding up positive terms only.

Each term is a small distribution. Where the sums lie close together they are kept as an array of
consecutive integers, where they are few and far between as those that occur. Knows integers and
chances; what they count is told by ``exact_null``.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import msgspec
import numpy as np
from numpy.typing import NDArray

SMALLEST_P = 1e-30
"""No p-value below this is told from it; tails far lighter are cut off."""
SQUARING_PAYS = 16
"""From so many equal terms on, their sum is made by repeated squaring."""
_NEGLIGIBLE = 1e-40
_NEGLIGIBLE_EXPONENT = 92.2


class Term(msgspec.Struct, frozen=True):
    """One summand, repeated.

    Attributes
    ----------
    shifts
        Distinct values, rising, 0 or more.
    chances
        Their chances; they may sum to less than 1.
    times
        How many independent summands are like this.
    """

    shifts: tuple[int, ...]
    chances: tuple[float, ...]
    times: int


class Mass(msgspec.Struct, frozen=True):
    """Chances of integers.

    Attributes
    ----------
    values
        Rising.
    chances
        Of each value.
    """

    values: NDArray[np.int64]
    chances: NDArray[np.float64]

    def lower_tails(self) -> NDArray[np.float64]:
        """P(sum <= value) for each value, at least :data:`SMALLEST_P`."""
        return np.maximum(np.cumsum(self.chances), SMALLEST_P)


def dense_sum(terms: Sequence[Term], *, squaring: bool) -> Mass:
    """Distribution of the sum of all terms, by direct convolution of arrays.

    Parameters
    ----------
    terms
        Independent; the order only moves the last bits.
    squaring
        Whether many equal terms are summed by repeated squaring first. That pays where far tails
        fall away; sums of codes for several statistics have gaps, and are better added one by one.

    Returns
    -------
    Mass
        Relative error of about 1e-13 wherever a tail is above :data:`SMALLEST_P`.
    """
    total = _POINT
    for term in terms:
        single = _Run.of(term)
        if squaring and term.times >= SQUARING_PAYS:
            total = _convolve(total, _power(single, term.times))
        else:
            for _ in range(term.times):
                total = _convolve(total, single)
    return Mass(total.first + np.arange(len(total.chances)), total.chances)


def sparse_sum(terms: Sequence[Term]) -> Mass:
    """Distribution of the sum of all terms, value by value.

    Parameters
    ----------
    terms
        As in :func:`dense_sum`; few enough that all sums can be listed.

    Returns
    -------
    Mass
    """
    total = {0: 1.0}
    for term in terms:
        for _ in range(term.times):
            total = _every_sum(total, term)
    values = sorted(total)
    return Mass(
        np.array(values, dtype=np.int64), np.array([total[value] for value in values], dtype=float)
    )


def reach(largest: float, variance: float) -> float:
    """Distance from the mean beyond which a sum's tail is cut off.

    Parameters
    ----------
    largest
        Largest deviation of one term.
    variance
        Of the sum.

    Returns
    -------
    float
        Bernstein's bound for a tail of 1e-40.
    """
    skew = largest * _NEGLIGIBLE_EXPONENT / 3
    return skew + sqrt(skew * skew + 2 * variance * _NEGLIGIBLE_EXPONENT)


class _Run(msgspec.Struct, frozen=True):
    """Chances of consecutive integers from ``first`` on."""

    first: int
    chances: NDArray[np.float64]

    @classmethod
    def of(cls, term: Term) -> _Run:
        chances = np.zeros(term.shifts[-1] - term.shifts[0] + 1)
        chances[np.array(term.shifts) - term.shifts[0]] = term.chances
        return cls(term.shifts[0], chances)


_POINT = _Run(0, np.ones(1))


def _power(base: _Run, times: int) -> _Run:
    power = _POINT
    while times:
        if times % 2:
            power = _convolve(power, base)
        times //= 2
        if times:
            base = _convolve(base, base)
    return power


def _convolve(left: _Run, right: _Run) -> _Run:
    """Direct convolution: no transform, whose error would drown small tails.

    Only elementwise operations in a fixed order, so that the bits are the same on every machine.
    """
    long, short = left.chances, right.chances
    if np.count_nonzero(long) < np.count_nonzero(short):
        long, short = short, long
    chances = np.zeros(len(long) + len(short) - 1)
    for shift in np.flatnonzero(short).tolist():
        chances[shift : shift + len(long)] += short[shift] * long
    return _trimmed(left.first + right.first, chances)


def _trimmed(first: int, chances: NDArray[np.float64]) -> _Run:
    low = int(np.searchsorted(np.cumsum(chances), _NEGLIGIBLE))
    high = int(np.searchsorted(np.cumsum(chances[::-1]), _NEGLIGIBLE))
    if low + high >= len(chances):
        return _Run(first, chances[:1])
    return _Run(first + low, chances[low : len(chances) - high])


def _every_sum(total: dict[int, float], term: Term) -> dict[int, float]:
    sums: dict[int, float] = {}
    for value, chance in total.items():
        for shift, share in zip(term.shifts, term.chances, strict=True):
            sums[value + shift] = sums.get(value + shift, 0.0) + chance * share
    return sums

"""What one task's candidate may do if the change altered nothing, as exact integers.

Given all passes of a stratum, every way to deal them to the two sides is equally likely, so the
candidate's are hypergeometric; a task of several strata (its seeds) is their convolution. Weights
are counts of deals, so equal chances are equal numbers whatever parameters they came from, and no
tie is decided by a rounding error. Knows one task at a time; suites are in ``permutation``.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from itertools import accumulate
from math import comb

import msgspec

Stratum = tuple[int, int, int]
"""Baseline trials, candidate trials and passes of both sides together."""


class CandidateNull(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Null distribution of the candidate's passes in one task.

    Attributes
    ----------
    first
        The fewest passes possible.
    weights
        Deals with ``first``, ``first + 1``, ... candidate passes.
    deals
        Their sum.
    """

    first: int
    weights: tuple[int, ...]
    deals: int

    @cached_property
    def chances(self) -> tuple[float, ...]:
        """P(X = x) for each outcome, correctly rounded."""
        return tuple(weight / self.deals for weight in self.weights)

    @cached_property
    def lower_tails(self) -> tuple[float, ...]:
        """P(X <= x) for each outcome, correctly rounded: the task's one-sided p-value there."""
        return tuple(tail / self.deals for tail in accumulate(self.weights))


@lru_cache(maxsize=65536)
def candidate_null(strata: tuple[Stratum, ...]) -> CandidateNull:
    """Convolve the hypergeometrics of a task's strata.

    Parameters
    ----------
    strata
        In any order; callers sort them so that equal tasks share one cached result. Strata with
        only one possible deal shift the result.

    Returns
    -------
    CandidateNull
        With no strata, or no trials on a side, all weight on one outcome.
    """
    first, deals = 0, 1
    weights: tuple[int, ...] = (1,)
    for baseline_n, candidate_n, passed in strata:
        low, stratum = _stratum_weights(baseline_n, candidate_n, passed)
        first += low
        weights = _product(weights, stratum)
        deals *= comb(baseline_n + candidate_n, passed)
    return CandidateNull(first=first, weights=weights, deals=deals)


@lru_cache(maxsize=4096)
def _stratum_weights(baseline_n: int, candidate_n: int, passed: int) -> tuple[int, tuple[int, ...]]:
    low, high = max(0, passed - baseline_n), min(passed, candidate_n)
    weight = comb(candidate_n, low) * comb(baseline_n, passed - low)
    weights = [weight]
    for x in range(low, high):
        # The ratio of neighbours is exact, and for 10,000 trials far cheaper than two binomials.
        weight = weight * (candidate_n - x) * (passed - x)
        weight //= (x + 1) * (baseline_n - passed + x + 1)
        weights.append(weight)
    return low, tuple(weights)


def _product(left: tuple[int, ...], right: tuple[int, ...]) -> tuple[int, ...]:
    if len(right) == 1:
        return tuple(weight * right[0] for weight in left)
    product = [0] * (len(left) + len(right) - 1)
    for i, a in enumerate(left):
        for j, b in enumerate(right):
            product[i + j] += a * b
    return tuple(product)

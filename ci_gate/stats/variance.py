"""How far a task's pass^k may scatter: the terms that intervals and margins are made of.

Knows one task on one or both sides; sums over tasks and the bounds made of them are elsewhere.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

PSEUDO_TASK_PASS_1 = 0.5
"""Share of the largest variance a task can have that is added for pass^1."""
PSEUDO_TASK_PASS_K = 0.125
"""The same for pass^k, k > 1."""


def task_variance(
    baseline_passed: int, baseline_n: int, candidate_passed: int, candidate_n: int, k: int
) -> float:
    """Variance of one task's difference of pass^k estimates.

    Parameters
    ----------
    baseline_passed, baseline_n, candidate_passed, candidate_n
        Counts with at least ``k`` trials on each side.
    k
        At least 1.

    Returns
    -------
    float
        For pass^1 the two binomial variances; for pass^k, and for pass^1 where a side has a single
        trial, half the permutation variance at each side's number of trials.
    """
    if k == 1 and min(baseline_n, candidate_n) > 1:
        return side_variance(baseline_passed, baseline_n, 1) + side_variance(
            candidate_passed, candidate_n, 1
        )
    candidate_total = candidate_passed + baseline_passed * candidate_n / baseline_n
    baseline_total = baseline_passed + candidate_passed * baseline_n / candidate_n
    return 0.5 * _interpolated(candidate_n, candidate_total, k) + 0.5 * _interpolated(
        baseline_n, baseline_total, k
    )


def pseudo_variance(baseline_n: int, candidate_n: int, k: int) -> float:
    """Variance that keeps a width positive when every task is constant.

    Parameters
    ----------
    baseline_n, candidate_n
        At least ``k`` each.
    k
        At least 1.

    Returns
    -------
    float
        A share of the largest variance that a task with so many trials can have.
    """
    if k == 1 and min(baseline_n, candidate_n) > 1:
        return side_pseudo_variance(baseline_n, 1) + side_pseudo_variance(candidate_n, 1)
    largest = 0.5 * _largest(candidate_n, k) + 0.5 * _largest(baseline_n, k)
    return largest * (PSEUDO_TASK_PASS_1 if k == 1 else PSEUDO_TASK_PASS_K)


def side_variance(passed: int, n: int, k: int) -> float:
    """One side's term of :func:`task_variance`, the other side taken to be like it.

    Parameters
    ----------
    passed, n
        Counts with ``n >= k``.
    k
        At least 1.

    Returns
    -------
    float
    """
    if k == 1 and n > 1:
        return (passed * (n - passed)) / (n * n * (n - 1))
    return 0.5 * permutation_variance(n, 2 * passed, k)


def side_pseudo_variance(n: int, k: int) -> float:
    """One side's term of :func:`pseudo_variance`.

    Parameters
    ----------
    n
        At least ``k``.
    k
        At least 1.

    Returns
    -------
    float
    """
    if k == 1 and n > 1:
        return PSEUDO_TASK_PASS_1 * 0.25 / (n - 1)
    return 0.5 * _largest(n, k) * (PSEUDO_TASK_PASS_1 if k == 1 else PSEUDO_TASK_PASS_K)


@lru_cache(maxsize=65536)
def permutation_variance(n: int, passed: int, k: int) -> float:
    """Variance of ``C(X, k) / C(n, k) - C(t - X, k) / C(n, k)`` when ``t`` passes are dealt out.

    Parameters
    ----------
    n
        Trials on each of two sides, at least ``k``.
    passed
        ``t``, the passes of both, in ``[0, 2 n]``.
    k
        At least 1.

    Returns
    -------
    float
        Its mean is 0, the sides being alike.
    """
    x = np.arange(max(0, passed - n), min(passed, n) + 1)
    chances = _deal_chances(n, passed, x)
    difference = _pass_hat_k(x, n, k) - _pass_hat_k(passed - x, n, k)
    return _sequential_sum(chances * difference * difference)


def _interpolated(n: int, passed: float, k: int) -> float:
    below = int(passed)
    share = passed - below
    variance = permutation_variance(n, below, k)
    if share == 0:
        return variance
    return (1 - share) * variance + share * permutation_variance(n, below + 1, k)


@lru_cache(maxsize=4096)
def _largest(n: int, k: int) -> float:
    """Largest permutation variance over all totals; it rises to one peak, then falls."""
    low, high = 0, 2 * n
    while low < high:
        middle = (low + high) // 2
        here, after = permutation_variance(n, middle, k), permutation_variance(n, middle + 1, k)
        # Equal only on the flat start, where too few passes make any pass^k.
        if here < after or (after == 0 and middle < n):
            low = middle + 1
        else:
            high = middle
    return permutation_variance(n, low, k)


def _deal_chances(n: int, passed: int, x: NDArray[np.int64]) -> NDArray[np.float64]:
    """Hypergeometric chances by the ratios of neighbours, outwards from the most likely one.

    Only basic operations, in a fixed order: the same bits everywhere, and no overflow at any n.
    """
    middle = len(x) // 2
    rising = (passed - x[:-1]) * (n - x[:-1]) / ((x[:-1] + 1) * (n - passed + x[:-1] + 1))
    weights = np.ones(len(x))
    weights[middle + 1 :] = np.cumprod(rising[middle:])
    weights[:middle] = np.cumprod(1 / rising[:middle][::-1])[::-1]
    return np.asarray(weights / _sequential_sum(weights))


def _pass_hat_k(passed: NDArray[np.int64], n: int, k: int) -> NDArray[np.float64]:
    value = np.ones(len(passed))
    for i in range(k):
        value *= np.maximum(passed - i, 0) / (n - i)
    return value


def _sequential_sum(values: NDArray[np.float64]) -> float:
    """Sum from left to right; numpy's own sum may group differently from machine to machine."""
    return float(np.cumsum(values)[-1])

"""How sure a printed difference or rate is: intervals given the tasks, never resampled over them.

Decides widths; says nothing of verdicts. Knows counts only.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum, sqrt
from statistics import NormalDist

import msgspec

from ci_gate.stats.counts import TaskCounts
from ci_gate.stats.passk import pass_hat_k, pass_hat_k_by_seed
from ci_gate.stats.variance import (
    pseudo_variance,
    side_pseudo_variance,
    side_variance,
    task_variance,
)


class Interval(msgspec.Struct, frozen=True, kw_only=True):
    """An interval for a suite's difference, candidate - baseline.

    Attributes
    ----------
    difference
        Of the means over the tasks with at least ``k`` trials on both sides.
    low, high
        Bounds within [-1, 1].
    variance
        Of the difference.
    """

    difference: float
    low: float
    high: float
    variance: float


def difference_interval(
    tasks: Sequence[TaskCounts],
    k: int,
    *,
    level: float = 0.95,
    by_seed: bool = False,
    phi: float | None = None,
) -> Interval | None:
    """Interval for the suite's difference in pass^k, given these tasks.

    Parameters
    ----------
    tasks
        Tasks with fewer than ``k`` trials on a side are left out.
    k
        At least 1.
    level
        Coverage, in (0, 1).
    by_seed
        Estimate pass^k over distinct seeds (:func:`.pass_hat_k_by_seed`), as is printed where
        seeds matter; a task with fewer than ``k`` seeds on a side is left out too.
    phi
        What the gate's test is corrected by where whole runs scatter too much; above 1, the
        variance is multiplied by it, so that interval and test agree.

    Returns
    -------
    Interval or None
        None where no task qualifies.

    Raises
    ------
    ValueError
        If ``level`` is not in (0, 1) or ``k < 1``.

    Notes
    -----
    ``D +- z sqrt(V) / T``. For pass^1, V sums the binomial variances; for pass^k the permutation
    variance of the gate's own test, so that interval and test agree. Both add a pseudo-task, which
    keeps the width positive when every task is constant. Trials given their task are taken to be
    independent; where seeds matter the interval is wider than it needs to be.
    """
    _require_level(level)
    tasks = [task for task in tasks if _qualifies(task, k, by_seed=by_seed)]
    if not tasks:
        return None
    estimate = _estimate_by_seed if by_seed else _estimate
    difference = fsum(estimate(task, k) for task in tasks) / len(tasks)
    variance = suite_variance(tasks, k) * max(1.0, phi or 1.0)
    reach = NormalDist().inv_cdf((1 + level) / 2) * sqrt(variance)
    return Interval(
        difference=difference,
        low=max(-1.0, difference - reach),
        high=min(1.0, difference + reach),
        variance=variance,
    )


def suite_variance(tasks: Sequence[TaskCounts], k: int) -> float:
    """Variance of the suite's difference in pass^k, never zero.

    Parameters
    ----------
    tasks
        At least one, each with at least ``k`` trials on both sides.
    k
        At least 1.

    Returns
    -------
    float
    """
    sides = [_totals(task) for task in tasks]
    scatter = fsum(task_variance(cb, nb, cc, nc, k) for cb, nb, cc, nc in sides)
    # One more task like the others: their mean where numbers of trials differ.
    pseudo = fsum(pseudo_variance(nb, nc, k) for _, nb, _, nc in sides) / len(sides)
    return (scatter + pseudo) / len(sides) ** 2


def side_upper_bound(passed: Sequence[int], n: Sequence[int], k: int, alpha: float) -> float | None:
    """Upper confidence bound of one side's suite pass^k.

    Parameters
    ----------
    passed, n
        Passed and judged trials of each task; tasks with fewer than ``k`` trials are left out.
    k
        At least 1.
    alpha
        One-sided level, in (0, 1).

    Returns
    -------
    float or None
        At most 1; None where no task qualifies.

    Raises
    ------
    ValueError
        If ``alpha`` is not in (0, 1), ``k < 1``, or counts are impossible.
    """
    _require_level(alpha)
    sides = [(c, m) for c, m in zip(passed, n, strict=True) if m >= k]
    if not sides:
        return None
    estimate = fsum(pass_hat_k(c, m, k) for c, m in sides) / len(sides)
    scatter = fsum(side_variance(c, m, k) for c, m in sides)
    pseudo = fsum(side_pseudo_variance(m, k) for _, m in sides) / len(sides)
    reach = NormalDist().inv_cdf(1 - alpha) * sqrt(scatter + pseudo) / len(sides)
    return min(1.0, estimate + reach)


def _qualifies(task: TaskCounts, k: int, *, by_seed: bool) -> bool:
    if by_seed:
        return min(sum(map(bool, task.baseline_n)), sum(map(bool, task.candidate_n))) >= k
    return min(sum(task.baseline_n), sum(task.candidate_n)) >= k


def _estimate(task: TaskCounts, k: int) -> float:
    baseline_passed, baseline_n, candidate_passed, candidate_n = _totals(task)
    return pass_hat_k(candidate_passed, candidate_n, k) - pass_hat_k(baseline_passed, baseline_n, k)


def _estimate_by_seed(task: TaskCounts, k: int) -> float:
    return pass_hat_k_by_seed(task.candidate_passed, task.candidate_n, k) - pass_hat_k_by_seed(
        task.baseline_passed, task.baseline_n, k
    )


def _totals(task: TaskCounts) -> tuple[int, int, int, int]:
    return (
        sum(task.baseline_passed),
        sum(task.baseline_n),
        sum(task.candidate_passed),
        sum(task.candidate_n),
    )


def _require_level(level: float) -> None:
    if not 0 < level < 1:
        raise ValueError(f"a level is between 0 and 1, found {level}")

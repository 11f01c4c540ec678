"""How far one agent's pass rate moves between two conditions that ran on the same seeds.

Knows differences by task and seed; not what the conditions are, nor what is too much.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum, sqrt
from statistics import NormalDist

from ci_gate.stats.intervals import Interval, side_upper_bound
from ci_gate.stats.variance import pseudo_variance

__all__ = ["paired_interval", "pass_rate_interval"]


def paired_interval(tasks: Sequence[Sequence[float]], *, level: float = 0.95) -> Interval | None:
    """Interval for the mean over these tasks of their mean difference, seed by seed.

    Parameters
    ----------
    tasks
        For each task one difference in [-1, 1] a seed; tasks without any are left out.
    level
        Coverage, in (0, 1).

    Returns
    -------
    Interval or None
        None where there is no difference, or no task has a second seed to tell the scatter by.

    Notes
    -----
    ``D +- z sqrt(V) / T`` as for unpaired sides (:func:`.difference_interval`), V summing ``s^2/n``
    of each task with the sample variance ``s^2`` of its n differences: what a seed does to both
    conditions cancels. A task with one seed takes the variance over all seeds around their tasks'
    means, as far as there are any. The same pseudo-task keeps the width positive.
    """
    if not 0 < level < 1:
        raise ValueError(f"a level is between 0 and 1, found {level}")
    tasks = [task for task in tasks if task]
    freedom = sum(len(task) - 1 for task in tasks)
    if not freedom:
        return None
    squares = [_squares(task) for task in tasks]
    pooled = fsum(squares) / freedom
    scatter = fsum(
        square / (len(task) - 1) / len(task) if len(task) > 1 else pooled
        for task, square in zip(tasks, squares, strict=True)
    )
    pseudo = fsum(pseudo_variance(len(task), len(task), 1) for task in tasks) / len(tasks)
    difference = fsum(map(_mean, tasks)) / len(tasks)
    variance = (scatter + pseudo) / len(tasks) ** 2
    reach = NormalDist().inv_cdf((1 + level) / 2) * sqrt(variance)
    return Interval(
        difference=difference,
        low=max(-1.0, difference - reach),
        high=min(1.0, difference + reach),
        variance=variance,
    )


def _mean(values: Sequence[float]) -> float:
    return fsum(values) / len(values)


def _squares(values: Sequence[float]) -> float:
    mean = _mean(values)
    return fsum((value - mean) * (value - mean) for value in values)


def pass_rate_interval(
    passed: Sequence[int], n: Sequence[int], *, level: float = 0.95
) -> tuple[float, float] | None:
    """Interval for one side's pass^1 over these tasks.

    Parameters
    ----------
    passed, n
        Passed and judged trials of each task; tasks without a judged trial are left out.
    level
        Coverage, in (0, 1).

    Returns
    -------
    (float, float) or None
        None where no trial was judged.

    Notes
    -----
    Both bounds are one-sided ones of ``(1 - level) / 2`` (:func:`.side_upper_bound`), the lower of
    them that of the trials that failed.
    """
    tail = (1 - level) / 2
    failed = [m - c for c, m in zip(passed, n, strict=True)]
    high, miss = side_upper_bound(passed, n, 1, tail), side_upper_bound(failed, n, 1, tail)
    return None if high is None or miss is None else (1.0 - miss, high)

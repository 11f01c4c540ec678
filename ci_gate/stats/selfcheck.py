"""What a suite's own runs say beyond the test: a rate from few tries, and whose noise it is.

Decides nothing. It knows counts and outcomes; neither task ids nor what an alarm is.
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp, fsum, lgamma, log, log1p

from ci_gate.stats.counts import Outcomes, Strata

_HALVINGS = 60


def exact_interval(hits: int, tries: int, *, level: float = 0.95) -> tuple[float, float]:
    """Interval for a chance, from independent tries.

    Parameters
    ----------
    hits, tries
        ``0 <= hits <= tries``, at least one try.
    level
        Coverage, in (0, 1); it is at least that for every chance.

    Returns
    -------
    tuple of float
        Lower and upper bound, within [0, 1].

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    The lower bound is the chance at which ``hits`` or more have the probability
    ``(1 - level) / 2``, the upper one that at which ``hits`` or fewer have it.

    References
    ----------
    Clopper and Pearson (1934), Biometrika 26.
    """
    if not 0 <= hits <= tries or tries < 1:
        raise ValueError(f"found {hits} hits of {tries} tries")
    if not 0 < level < 1:
        raise ValueError(f"a level is between 0 and 1, found {level}")
    tail = (1 - level) / 2
    return (
        _solved(lambda chance: _at_least(hits, tries, chance) < tail) if hits else 0.0,
        _solved(lambda chance: _at_least(hits + 1, tries, chance) < 1 - tail)
        if hits < tries
        else 1.0,
    )


def _solved(is_below: Callable[[float], bool]) -> float:
    """Return the chance up to which a condition holds, by halving."""
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if is_below(middle) else (low, middle)
    return (low + high) / 2


def _at_least(hits: int, tries: int, chance: float) -> float:
    """Probability of so many hits or more; ``chance`` lies strictly between 0 and 1."""
    log_hit, log_miss = log(chance), log1p(-chance)
    whole = lgamma(tries + 1)
    return fsum(
        exp(whole - lgamma(i + 1) - lgamma(tries - i + 1) + i * log_hit + (tries - i) * log_miss)
        for i in range(hits, tries + 1)
    )


def tries_to_show(rate: float, *, level: float = 0.95) -> int:
    """Fewest independent tries without a hit whose interval ends at or below a rate.

    Parameters
    ----------
    rate
        In (0, 1).
    level
        As in :func:`exact_interval`.

    Returns
    -------
    int

    Raises
    ------
    ValueError
        If an argument is outside its range.
    """
    if not (0 < rate < 1 and 0 < level < 1):
        raise ValueError(f"rate and level are between 0 and 1, found {rate} and {level}")
    tries = max(1, int(log((1 - level) / 2) / log1p(-rate)))
    while exact_interval(0, tries, level=level)[1] > rate:
        tries += 1
    return tries


def run_noise(task: Outcomes, *, strata: Strata) -> float:
    """Variance of one task's rate from run to run, as far as its trials explain it.

    Parameters
    ----------
    task
        Runs x seeds.
    strata
        "task": trials scatter about the task's rate. "task,seed": about their seed's.

    Returns
    -------
    float
        0 where nothing moves, or where nothing was judged twice.

    Notes
    -----
    ``sum_s v_s m_s / m^2``, ``v_s = c (n - c) / (n (n - 1))`` of the ``n`` judged trials in a
    stratum of which ``c`` passed, ``m_s`` of them in a run on average, and ``m`` their sum.
    """
    columns = _columns(task)
    cells = columns if strata == "task,seed" else [[x for column in columns for x in column]]
    judged = sum(map(len, cells))
    runs = sum(any(x is not None for x in run) for run in task)
    if not judged:
        return 0.0
    return runs * fsum(_variance(cell) * len(cell) for cell in cells) / (judged * judged)


def _columns(task: Outcomes) -> list[list[int]]:
    seeds = max((len(run) for run in task), default=0)
    return [
        [x for run in task for x in run[seed : seed + 1] if x is not None] for seed in range(seeds)
    ]


def _variance(outcomes: list[int]) -> float:
    n, passed = len(outcomes), sum(outcomes)
    return passed * (n - passed) / (n * (n - 1)) if n > 1 else 0.0

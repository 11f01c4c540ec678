"""How far a ratio of sums moved between two sides, and how sure that is: the delta method.

A mean is the ratio whose denominator counts trials. Knows moments of two quantities by task; not
what they measure, nor what change is too much.

References
----------
Cochran (1977), Sampling Techniques, chapters 5A (collapsed strata) and 6 (ratio estimators).
Satterthwaite (1946), Biometrics Bulletin 2. Abramowitz and Stegun (1964), 26.7.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, fsum, inf, isfinite, log, sqrt
from statistics import NormalDist

import msgspec


class Moments(msgspec.Struct, frozen=True, kw_only=True):
    """Two quantities over the trials of one task on one side.

    Attributes
    ----------
    n
        Trials, at least 1.
    x, y
        Means of numerator and denominator.
    xx, yy, xy
        Sums over the trials of squared deviations and of their products.
    """

    n: int
    x: float
    y: float
    xx: float = 0.0
    yy: float = 0.0
    xy: float = 0.0

    @classmethod
    def merged(cls, parts: Sequence[Moments]) -> Moments:
        """Return the moments of all trials together; of at least one part."""
        n = sum(part.n for part in parts)
        x = fsum(part.n * part.x for part in parts) / n
        y = fsum(part.n * part.y for part in parts) / n
        return cls(
            n=n,
            x=x,
            y=y,
            xx=fsum(part.xx + part.n * (part.x - x) * (part.x - x) for part in parts),
            yy=fsum(part.yy + part.n * (part.y - y) * (part.y - y) for part in parts),
            xy=fsum(part.xy + part.n * (part.x - x) * (part.y - y) for part in parts),
        )

    def spread(self, ratio: float) -> float | None:
        """Sample variance of ``x - ratio * y`` over the trials; None for a single one."""
        if self.n < 2:
            return None
        # Moments that were rounded to 3 digits may contradict each other by a little.
        squares = self.xx - 2 * ratio * self.xy + ratio * ratio * self.yy
        return max(0.0, squares / (self.n - 1))


class Ratio(msgspec.Struct, frozen=True, kw_only=True):
    """A ratio of weighted sums of one side.

    Attributes
    ----------
    value
        Infinite where only the denominator is 0.
    variance
        Of ``value``; where that is infinite, of the numerator's mean over the trials.
    freedom
        Degrees of freedom of that variance (Satterthwaite); infinite where nothing was estimated.
    numerator
        Mean over the trials.
    trials
        That were weighed.
    dilution
        What the mean over the trials leaves of one trial's variance: ``sum w^2 / n / (sum w)^2``.
    """

    value: float
    variance: float
    freedom: float
    numerator: float
    trials: int
    dilution: float


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """From baseline to candidate: the estimate, and its one-sided bounds, ``1 - alpha`` each."""

    value: float
    low: float
    high: float


def ratio_of(
    tasks: Sequence[Moments], weights: Sequence[int], *, yes_or_no: tuple[bool, bool]
) -> Ratio | None:
    """Ratio of the weighted sums of x and y, with its variance given these tasks.

    Parameters
    ----------
    tasks
        At least one.
    weights
        Of each task's means: the trials of the side whose mix of tasks both sides are shown for.
    yes_or_no
        Whether x, and whether y, is 0 or 1 in every trial (and not 1 in every trial by definition).

    Returns
    -------
    Ratio or None
        None where numerator and denominator are both 0, or no task has a second trial to tell the
        scatter by.

    Notes
    -----
    ``R = sum w x / sum w y`` with variance ``sum w^2 s^2 / n / (sum w y)^2``, ``s^2`` a task's
    sample variance of ``x - R y``. A task with one trial takes the variance over all trials of the
    side, which is larger on average. What is counted by yes or no gets a pseudo-task, as in the
    interval of pass^1: half the largest variance of a task, so that constant tasks do not mean
    certainty.
    """
    total = sum(weights)
    above = fsum(w * task.x for w, task in zip(weights, tasks, strict=True))
    below = fsum(w * task.y for w, task in zip(weights, tasks, strict=True))
    if not below:
        scatter = _scatter(tasks, weights, 0.0, 0.0) if above else None
        value, divisor = inf, float(total)
    else:
        value, divisor = above / below, below
        span = max(float(yes_or_no[0]), abs(value) if yes_or_no[1] else 0.0)
        scatter = _scatter(tasks, weights, value, span)
    if scatter is None:
        return None
    return Ratio(
        value=value,
        variance=scatter[0] / divisor / divisor,
        freedom=scatter[1],
        numerator=above / total,
        trials=total,
        dilution=fsum(w * w / t.n for w, t in zip(weights, tasks, strict=True)) / total / total,
    )


_Scatter = tuple[float, float]
"""A variance and its degrees of freedom."""


def _scatter(
    tasks: Sequence[Moments], weights: Sequence[int], ratio: float, span: float
) -> _Scatter | None:
    """Variance of ``sum w (x - ratio y)``; ``span`` is how far x - ratio y can lie apart."""
    side = Moments.merged(tasks)
    of_side = side.spread(ratio)
    if of_side is None:
        return None
    weighed = list(zip(weights, tasks, strict=True))
    parts = [
        (w * w / task.n * spread, task.n - 1)
        for w, task in weighed
        if (spread := task.spread(ratio)) is not None
    ]
    parts.append((fsum(w * w * of_side for w, task in weighed if task.n == 1), side.n - 1))
    pseudo = fsum(w * w / max(task.n - 1, 1) for w, task in weighed) / len(tasks)
    variance = fsum(part for part, _ in parts) + span * span / 8 * pseudo
    return variance, _freedom(variance, parts)


def _freedom(variance: float, parts: Sequence[tuple[float, float]]) -> float:
    uncertain = fsum(part / variance * (part / variance) / n for part, n in parts if part)
    return 1 / uncertain if uncertain else inf


def mean_interval(mean: Ratio, *, level: float = 0.95) -> tuple[float, float] | None:
    """Interval of a side's ratio, by Student's quantile; None where the ratio is infinite."""
    if not isfinite(mean.value):
        return None
    reach = _reach([(mean.variance, mean.freedom)], (1 - level) / 2)
    return mean.value - reach, mean.value + reach


def absolute_change(baseline: Ratio, candidate: Ratio, *, alpha: float) -> Change | None:
    """Difference of two ratios; None where one is infinite."""
    if not (isfinite(baseline.value) and isfinite(candidate.value)):
        return None
    difference = candidate.value - baseline.value
    reach = _reach(
        [(baseline.variance, baseline.freedom), (candidate.variance, candidate.freedom)], alpha
    )
    return Change(value=difference, low=difference - reach, high=difference + reach)


def relative_change(baseline: Ratio, candidate: Ratio, *, alpha: float) -> Change | None:
    """Change of a ratio of amounts relative to the baseline's; 0.25 is a quarter more.

    Parameters
    ----------
    baseline, candidate
        Neither is negative.
    alpha
        Of each bound, in (0, 1).

    Returns
    -------
    Change or None
        None where there is nothing to be relative to: the baseline is infinite, or it is 0 and the
        candidate is not.

    Notes
    -----
    Bounds are on the logarithmic scale, on which ratios of few successes are closer to normal. A
    sample of skewed amounts that missed the large ones has too low a mean and shows too little
    scatter as well, so both sides take the relative scatter of a trial from the side that shows
    more of it. Without that, a candidate of 8 trials a task looked cheaper than it is in up to 13
    of 100 cases (lognormal costs, sigma 1.5, baseline of 32).
    A candidate without one success has an infinite value and still a lower bound: with ``n`` trials
    the mean success rate is below ``1 - (alpha / 2)^(1/n)`` with confidence ``1 - alpha / 2``, and
    the other half of alpha is spent on the amounts.
    """
    if baseline.value == candidate.value == 0:
        return Change(value=0.0, low=0.0, high=0.0)
    if not baseline.value or not isfinite(baseline.value):
        return None
    if not candidate.value:
        return Change(value=-1.0, low=-1.0, high=-1.0)
    if not isfinite(candidate.value):
        return Change(value=inf, low=_least_rise(baseline, candidate, alpha), high=inf)
    ratio = candidate.value / baseline.value
    reach = _reach(_larger_scatter(_relative(baseline), _relative(candidate)), alpha)
    # Beyond a few hundred the exponential leaves the floats; nothing is known then.
    low, high = log(ratio) - reach, log(ratio) + reach
    return Change(value=ratio - 1, low=exp(low) - 1, high=exp(high) - 1 if high < 700 else inf)


def _least_rise(baseline: Ratio, candidate: Ratio, alpha: float) -> float:
    likeliest = 1 - (alpha / 2) ** (1 / candidate.trials)
    before, after = _relative(baseline), _relative(candidate)
    reach = _reach([(part.variance, part.freedom) for part in (before, after)], alpha / 2)
    return exp(log(candidate.numerator / likeliest / baseline.value) - reach) - 1


class _Relative(msgspec.Struct, frozen=True):
    """Variance of a side's logarithm, and how it comes from that of one trial."""

    variance: float
    freedom: float
    dilution: float


def _relative(side: Ratio) -> _Relative:
    level = side.value if isfinite(side.value) else side.numerator
    error = sqrt(side.variance) / level
    return _Relative(error * error, side.freedom, side.dilution)


def _larger_scatter(baseline: _Relative, candidate: _Relative) -> list[_Scatter]:
    """Scatter of both sides as if a trial scattered on either as on the one where it does more."""
    sides = (baseline, candidate)
    more = max(sides, key=lambda side: side.variance / side.dilution)
    spread = more.variance / more.dilution
    return [(spread * side.dilution, min(side.freedom, more.freedom)) for side in sides]


def _reach(scatters: Sequence[_Scatter], alpha: float) -> float:
    """How far a bound lies from the estimate: Student's quantile, as Welch takes it."""
    variance = fsum(part for part, _ in scatters)
    return _student(alpha, _freedom(variance, scatters)) * sqrt(variance) if variance else 0.0


def _student(alpha: float, freedom: float) -> float:
    """Upper quantile of Student's t by its expansion around the normal's."""
    z, n = NormalDist().inv_cdf(1 - alpha), freedom
    return (
        z
        + (z**3 + z) / (4 * n)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n * n)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * n**3)
    )

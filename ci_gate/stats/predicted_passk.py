"""What a suite's pass^k will be, told from fewer than ``k`` trials a task: a Beta fit.

The unbiased estimate does not exist below ``k`` trials, and pass^r of the ``r`` there are is no
stand-in for it: it lies higher. Here the suite lends every task what it knows of chances to pass,
and a whole suite's pass^k can be foretold with an interval. A single task's cannot (its error is
about 0.2), so none is given. Knows one side's counts; decides nothing.

References
----------
Skellam (1948), J. R. Stat. Soc. B 10 (the beta-binomial). Robbins (1956), An empirical Bayes
approach to statistics.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import fsum, lgamma, prod

import msgspec
import numpy as np
from numpy.typing import NDArray

from ci_gate.stats.draws import Counter as Draws
from ci_gate.stats.draws import stream_of

_Floats = NDArray[np.float64]
_Classes = list[tuple[tuple[int, int], int]]
"""Judged and passed trials, and how many tasks have them."""

_SHAPES = 0.02 * 1000 ** (np.arange(31) / 30)
_A, _B = (side.reshape(-1) for side in np.meshgrid(_SHAPES, _SHAPES, indexing="ij"))
"""Parameters of the Beta distributions that are tried, 0.02 to 20 each."""

_DRAWS, _SEED = 4000, 0x20261030
_ENDS = (_DRAWS // 40, _DRAWS - 1 - _DRAWS // 40)
"""Places of the 95 % interval's ends among the draws."""
_DIGITS = 9
"""Of log likelihoods when the largest is looked for: equal ones differ by rounding alone."""

_EDGE, _STEP = 10.0, 0.1
_LOGITS = np.arange(-_EDGE - _STEP / 2, _EDGE + _STEP, _STEP)
_LOG_P, _LOG_MISS = -np.log1p(np.exp(-_LOGITS)), -np.log1p(np.exp(_LOGITS))
_P: _Floats = np.concatenate([[0.0], np.exp(_LOG_P[1:-1]), [1.0]])


class PredictedPassK(msgspec.Struct, frozen=True, kw_only=True):
    """A suite's pass^k, predicted.

    Attributes
    ----------
    estimate
        Mean over the tasks of the expected ``p^k``, in [0, 1].
    lower, upper
        95 % interval of the mean over the tasks of ``p^k``; the estimate lies within.
    """

    estimate: float
    lower: float
    upper: float


def predict_pass_hat_k(passed: Sequence[int], judged: Sequence[int], k: int) -> PredictedPassK:
    """Predict the suite's pass^k from the trials there are.

    Parameters
    ----------
    passed, judged
        Of each task, all of one side; numbers of trials may differ, and may be below ``k``. A task
        without a judged trial is taken for one like the others.
    k
        Trials that all have to pass, at least 1.

    Returns
    -------
    PredictedPassK
        The same for any order of the tasks.

    Raises
    ------
    ValueError
        If the lengths differ, no trial was judged, a count is impossible or ``k < 1``.

    Notes
    -----
    Tasks' chances are Beta(a, b); given c of n passed, ``E p^k = B(a+c+k, b+n-c) / B(a+c, b+n-c)``.
    The estimate takes the a, b of the largest marginal likelihood on a grid of 31 x 31 between 0.02
    and 20 (even steps of the logarithm). For the interval a and b are uncertain too: of
    4,000 draws every pair gets a share by its likelihood, and each draw gives every task a chance
    from its Beta(a+c, b+n-c). The draws are the project's own: the same counts, the same interval.
    """
    _require_counts(passed, judged, k)
    classes = sorted(Counter(zip(judged, passed, strict=True)).items())
    evidence = np.round(_evidence(classes), _DIGITS)
    drawn = _drawn(classes, k, evidence)
    likeliest = int(evidence.argmax())
    estimate = _expected(classes, k, float(_A[likeliest]), float(_B[likeliest]))
    lower, upper = (float(drawn[place]) for place in _ENDS)
    return PredictedPassK(estimate=estimate, lower=min(lower, estimate), upper=max(upper, estimate))


def _require_counts(passed: Sequence[int], judged: Sequence[int], k: int) -> None:
    if k < 1:
        raise ValueError(f"k is at least 1, found {k}")
    if len(passed) != len(judged):
        raise ValueError(f"{len(passed)} passed counts for {len(judged)} tasks")
    if not any(judged):
        raise ValueError("no task has a judged trial: nothing to predict from")
    for c, n in zip(passed, judged, strict=True):
        if not 0 <= c <= n:
            raise ValueError(f"found {c} passed of {n} trials")


def _evidence(classes: _Classes) -> _Floats:
    """Log marginal likelihood of all tasks for each a, b; a constant apart."""
    total = np.zeros(len(_A))
    for (n, c), tasks in classes:
        total += tasks * (_log_rising(_A, c) + _log_rising(_B, n - c) - _log_rising(_A + _B, n))
    return total


def _log_rising(start: _Floats, steps: int) -> _Floats:
    """Log of ``start (start + 1) ... (start + steps - 1)``."""
    total = np.zeros(len(start))
    for step in range(steps):
        total += np.log(start + step)
    return total


def _expected(classes: _Classes, k: int, a: float, b: float) -> float:
    """Mean over the tasks of ``E p^k`` given a, b."""
    parts = (tasks * _power(a + c, b + n - c, k) for (n, c), tasks in classes)
    return fsum(parts) / sum(tasks for _, tasks in classes)


def _power(a: float, b: float, k: int) -> float:
    """``E p^k`` of Beta(a, b)."""
    return prod((a + step) / (a + b + step) for step in range(k))


def _drawn(classes: _Classes, k: int, evidence: _Floats) -> _Floats:
    """Draws of the suite's mean of ``p^k``, in rising order."""
    tails = np.cumsum(np.exp(evidence - evidence.max()))
    # Every pair of a, b gets its share of the draws; only the tasks' chances are left to chance.
    shares = (np.arange(_DRAWS) + 0.5) / _DRAWS * tails[-1]
    used, shape = np.unique(np.searchsorted(tails, shares), return_inverse=True)
    counter, total, task = Draws.at(0, _DRAWS), np.zeros(_DRAWS), 0
    for (n, c), tasks in classes:
        rows = _tails(_A[used] + c, _B[used] + n - c)
        for _ in range(tasks):
            words = counter.words(stream_of(_SEED, task)) >> np.uint64(11)
            uniform = words.astype(np.float64) * 2.0**-53
            total += _chances(rows, shape, uniform) ** k
            task += 1
    return np.sort(total / task)


def _tails(a: _Floats, b: _Floats) -> _Floats:
    """Beta distribution functions at the steps of the logit: shape (distributions, steps).

    The first and the last step take what lies beyond them.
    """
    height = np.array([lgamma(x + y) - lgamma(x) - lgamma(y) for x, y in zip(a, b, strict=True)])
    mass = _STEP * np.exp(height[:, None] + np.outer(a, _LOG_P) + np.outer(b, _LOG_MISS))
    mass[:, 0] = np.exp(height - a * _EDGE) / a
    mass[:, -1] = np.exp(height - b * _EDGE) / b
    tails = np.cumsum(mass, axis=1)
    return np.asarray(tails / tails[:, -1:])


def _chances(rows: _Floats, shape: NDArray[np.intp], uniform: _Floats) -> _Floats:
    """Chance to pass at the uniform's quantile, one of each draw's distribution."""
    steps = rows.shape[1]
    # Row i lies in [i, i + 1): one search serves all rows.
    flat = (rows[:, :-1].clip(0, 1 - 1e-12) + np.arange(len(rows))[:, None]).reshape(-1)
    step = np.searchsorted(flat, shape + uniform, side="right") - shape * (steps - 1)
    return np.asarray(_P[step])

"""Which claims would be red? For thousands of futures of one check at once.

The same test as ``permutation``, one approximation coarser than ``quick_verdict``: a suite's tail
is an Edgeworth expansion about its exact null cumulants, a task's and the task family's are exact,
and how much the families overlap is calibrated by deals of the futures' own passes. Few tasks go to
``few_tasks``. It knows neither rounds nor what a red future means.

References
----------
Westfall and Young (1993), Resampling-based multiple testing. Kolassa and McCullagh (1990),
Edgeworth series for lattice distributions, Ann. Statist. 18.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from statistics import NormalDist

import msgspec
import numpy as np
from numpy.typing import NDArray

from ci_gate.stats.few_tasks import OwnNull
from ci_gate.stats.future_kinds import DIGITS, Kinds, differences

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

FEW_TASKS = 5
"""So many tasks that can come out in more than one way, or fewer, are not judged by expansion."""
_DEALT_TASKS = 30_000
_MOST_DEALS = 32
"""Of a future, to learn how much the families overlap."""
_USUAL_OVERLAP, _WEIGHT = 0.75, 10
"""What is thought of it before, with the weight of so many hits."""
_MOST_LEVELS = 96
_POINTS = np.linspace(-9, 9, 3601)
_BELOW = np.array([NormalDist().cdf(z) for z in _POINTS.tolist()])


class Claims(msgspec.Struct, frozen=True, kw_only=True):
    """What would be red.

    Attributes
    ----------
    suites
        Shape (futures, ks).
    tasks
        Shape (futures, tasks).
    exact
        Whether no draw and no expansion was needed.
    """

    suites: Bools
    tasks: Bools
    exact: bool

    @property
    def red(self) -> Bools:
        """Whether any claim is, shape (futures,)."""
        return np.asarray(self.suites.any(axis=1) | self.tasks.any(axis=1))


def judge(
    fixed: Ints,
    passed: Ints,
    *,
    ks: Sequence[int],
    level: float,
    seed: int,
    phi: float | None = None,
) -> Claims:
    """Say of each future which claims the joint test would call red.

    Parameters
    ----------
    fixed
        Baseline trials, baseline passes and candidate trials, shape (tasks, positions, 3). All
        trials of a position are exchangeable; a position that a side did not judge has none.
    passed
        The candidate's passes, shape (futures, tasks, positions).
    ks
        The suite metrics, pass^k.
    level
        Of the joint test, in (0, 1).
    seed
        Of the deals.
    phi
        By which observed suite statistics are shrunk; None where they are not.

    Returns
    -------
    Claims

    Notes
    -----
    A claim is red when its family's p-value is at or below the critical value of the joint min-p,
    in a single step, so that the future is red if and only if some claim is.
    """
    kinds = Kinds.among(fixed, passed)
    few = kinds.informative.sum(axis=1) <= FEW_TASKS
    suites = np.zeros((len(passed), len(ks)), dtype=bool)
    tasks = np.zeros(kinds.of.shape, dtype=bool)
    exact = bool(few.all())
    if few.any():
        suites[few], tasks[few], listed = _judge_few(kinds.some(few), ks, level, seed, phi)
        exact &= listed
    if not few.all():
        suites[~few], tasks[~few] = _judge_many(kinds.some(~few), ks, level, seed, phi)
    return Claims(suites=suites, tasks=tasks, exact=exact)


def _judge_few(
    kinds: Kinds, ks: Sequence[int], level: float, seed: int, phi: float | None
) -> tuple[Bools, Bools, bool]:
    """Each of the different futures against its own null; tasks that cannot tell are left out."""
    width = max(1, int(kinds.informative.sum(axis=1).max()))
    order = np.lexsort((kinds.of, ~kinds.informative), axis=1)[:, :width]
    telling, same = np.unique(
        np.take_along_axis(kinds.of, order, axis=1), axis=0, return_inverse=True
    )
    null = OwnNull.of(msgspec.structs.replace(kinds, of=telling), seed)
    suites, found = null.red(ks, level, phi)
    tasks = np.zeros(kinds.of.shape, dtype=bool)
    same = same.reshape(-1)
    np.put_along_axis(tasks, order, found[same], axis=1)
    return suites[same], tasks, null.exact


def _judge_many(
    kinds: Kinds, ks: Sequence[int], level: float, seed: int, phi: float | None
) -> tuple[Bools, Bools]:
    """All futures at once, by expansion."""
    suites = [_Suite.of(kinds, k) for k in ks]
    tasks = _Tasks.of(kinds, level)
    varying = np.sum([suite.varies for suite in suites], axis=0) + np.zeros(len(kinds.of))
    bound = _Bound(varying, tasks.family)
    observed = [suite.observed(phi) for suite in suites]
    ranks = tasks.ranks[kinds.of, kinds.passed[kinds.of]]
    least = np.min([*observed, tasks.p_values(ranks)], axis=0)
    critical = level / _overlap(kinds, suites, tasks, bound.of(least), least, level, seed)
    # The joint chance is no less than the family's own: nothing above the level can be red.
    found = [(bound.of(p_values) <= critical) & (p_values <= level) for p_values in observed]
    reached = ((bound.of_family <= critical) & (tasks.family <= level)).sum(axis=1)
    red = np.array(found, dtype=bool).reshape(len(ks), len(kinds.of)).T
    return red, ranks < reached[:, None]


def _overlap(
    kinds: Kinds,
    suites: Sequence[_Suite],
    tasks: _Tasks,
    bounds: Floats,
    least: Floats,
    level: float,
    seed: int,
) -> float:
    """Joint chance of the families over the bound of it, which hardly differs between futures.

    It is learnt from deals of those futures that neither the bound nor a family alone settles.
    """
    unsettled = np.flatnonzero((bounds > level) & (least <= level))
    if not len(unsettled):
        return 1.0
    some = kinds.some(unsettled)
    deals = min(_MOST_DEALS, max(1, _DEALT_TASKS // some.of.size))
    at, of = (np.repeat(own, deals, axis=0) for own in (unsettled, some.of))
    dealt = some.deal(seed, 0, deals).reshape(of.shape)
    smallest = tasks.p_values(tasks.ranks[of, dealt], at)
    for suite in suites:
        np.minimum(smallest, suite.p_values(suite.dealt(of, dealt), at), out=smallest)
    hits, expected = int((smallest <= least[at]).sum()), float(bounds[at].sum())
    return min(1.0, (hits + _USUAL_OVERLAP * _WEIGHT) / (expected + _WEIGHT))


class _Bound(msgspec.Struct, frozen=True):
    """The sum of the families' chances to be as extreme: above the chance that any of them is."""

    suites: Floats
    family: Floats

    def of(self, p_values: Floats) -> Floats:
        """The sum at a p-value of each future."""
        below = (self.family <= p_values[:, None]).sum(axis=1)
        attained = self.family[np.arange(len(below)), np.maximum(below - 1, 0)]
        return np.round(self.suites * p_values + np.where(below > 0, attained, 0.0), DIGITS)

    @property
    def of_family(self) -> Floats:
        """The sum at each p-value that the task family may have: shape (futures, ranks)."""
        return np.round((self.suites[:, None] + 1) * self.family, DIGITS)


class _Suite(msgspec.Struct, frozen=True):
    """One suite metric of every future: deviations by kind and outcome, and its null's shape."""

    deviations: Floats
    deviation: Floats
    skewness: Floats
    kurtosis: Floats
    half_step: float
    seen: Floats

    @classmethod
    def of(cls, kinds: Kinds, k: int) -> _Suite:
        values, unit = differences(kinds, k)
        means = (kinds.chances * values).sum(axis=1, keepdims=True)
        deviations = values - means
        second, third, fourth = (
            (kinds.chances * deviations**power).sum(axis=1) for power in (2, 3, 4)
        )
        own = deviations[np.arange(len(means)), kinds.passed]
        sums = kinds.sums(np.stack([own, second, third, fourth - 3 * second**2], axis=1))
        spread = np.sqrt(sums[:, 1].clip(0))
        safe = np.where(spread > _FLAT, spread, 1.0)
        return cls(
            deviations,
            np.where(spread > _FLAT, spread, 0.0),
            sums[:, 2] / safe**3,
            sums[:, 3] / safe**4,
            unit / 2,
            sums[:, 0],
        )

    @property
    def varies(self) -> Bools:
        """Whether it can come out in more than one way."""
        return self.deviation > 0

    def dealt(self, of: Ints, outcomes: Ints) -> Floats:
        """Its value, from its mean, for kinds and dealt outcomes of shape (deals, tasks)."""
        return np.asarray(self.deviations[of, outcomes].sum(axis=1))

    def observed(self, phi: float | None) -> Floats:
        """Its p-value in each future."""
        shrink = sqrt(phi) if phi is not None and phi > 1 else 1.0
        return self.p_values(self.seen / shrink, slice(None))

    def p_values(self, values: Floats, at: Ints | slice) -> Floats:
        """P(value or less) in these futures, by Edgeworth; 1 where nothing varies."""
        varies, skewness = self.varies[at], self.skewness[at]
        z = (values + self.half_step) / np.where(varies, self.deviation[at], 1.0)
        square = z * z
        skew = skewness / 6 * (square - 1)
        tailed = self.kurtosis[at] / 24 * z * (square - 3)
        twice = skewness**2 / 72 * z * (square * (square - 10) + 15)
        below = _normal(z) - np.exp(-square / 2) / _ROOT_2PI * (skew + tailed + twice)
        return np.where(varies, np.round(below.clip(_LEAST, 1.0), DIGITS), 1.0)


_FLAT = 1e-9
_LEAST = 1e-9
_ROOT_2PI = sqrt(2 * np.pi)


class _Tasks(msgspec.Struct, frozen=True):
    """Single tasks: rank of every outcome's p-value, and what the ranks mean for the family.

    ``ranks`` has shape (kinds, outcomes), the last rank standing for all p-values that cannot
    matter; ``family`` shape (futures, ranks).
    """

    ranks: Ints
    family: Floats

    @classmethod
    def of(cls, kinds: Kinds, level: float) -> _Tasks:
        tails = kinds.tails
        levels = _levels(tails[kinds.chances > 0], level, kinds.of.shape[1])
        attained = np.zeros((len(tails), len(levels)))
        for column in tails.T[:, :, None]:
            attained = np.where(column <= levels, np.maximum(attained, column), attained)
        misses = kinds.sums(np.log1p(-attained))
        ends = np.ones((len(kinds.of), 1))
        family = np.concatenate([np.round(-np.expm1(misses), DIGITS), ends], axis=1)
        return cls(np.searchsorted(levels, tails), family)

    def p_values(self, ranks: Ints, at: Ints | slice = slice(None)) -> Floats:
        """The family's p-value in these futures, for ranks of shape (futures, tasks)."""
        family = self.family[at]
        return np.asarray(family[np.arange(len(family)), ranks.min(axis=1)])


def _levels(tails: Floats, level: float, tasks: int) -> Floats:
    """P-values of single tasks that matter; of very many some, the others count as the next."""
    few = 1e-3 * level / tasks
    levels = np.unique(np.maximum(tails[tails <= min(4 * level, (1 + level) / 2)], few))
    every = -(-len(levels) // _MOST_LEVELS) or 1
    return np.asarray(levels[::-1][::every][::-1])


def _normal(z: Floats) -> Floats:
    """Standard normal distribution, from a table; to 1e-6."""
    return np.asarray(np.interp(z, _POINTS, _BELOW))

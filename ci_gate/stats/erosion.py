"""What becomes of a suite statistic when each trial that passes begins to fail with one chance.

Under erosion both sides are dealt as if nothing had changed, and then each of the candidate's
passes is kept with the same chance, whatever its task and seed. Mean and variances of the
difference of pass^k are then polynomials in the share that is kept. Knows groups of tasks; decides
neither a level nor a power.

References
----------
Hoeffding (1948), A class of statistics with asymptotically normal distribution: pass^k is the mean
over all choices of ``k`` trials, so a product of two is a mean over the unions of two choices.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb, fsum, sqrt

import msgspec
import numpy as np
from numpy.typing import NDArray

from ci_gate.stats.suite_null import Group

_Floats = NDArray[np.float64]
_SMALLEST_VARIANCE = 1e-12
"""Less is what rounding leaves of 0."""


class Erosion(msgspec.Struct, frozen=True, kw_only=True):
    """One suite statistic under erosion, summed over the tasks that enter.

    Polynomials in the kept share have their coefficients in rising order, shape (2 k + 1,).

    Attributes
    ----------
    k
        Trials that all have to pass.
    size
        Tasks with at least ``k`` trials on both sides.
    rate
        Their mean pass^k before the change, of both sides together.
    step
        Mean change of a task's difference when one pass moves to the other side.
    fall
        Expected fall of the difference below its null mean.
    chance
        Variance of the difference because both sides scatter, though nothing changed.
    loss
        Variance that the loss of passes adds.
    null
        Expected variance under the test's null, which is made of the passes that are left.
    """

    k: int
    size: int
    rate: float
    step: float
    fall: _Floats
    chance: _Floats
    loss: _Floats
    null: _Floats

    @classmethod
    def of(cls, groups: Sequence[Group], k: int) -> Erosion | None:
        """Add the tasks up.

        Parameters
        ----------
        groups
            From :func:`.group_tasks`.
        k
            At least 1.

        Returns
        -------
        Erosion or None
            None where no task enters.
        """
        shapes: dict[tuple[int, int], list[Group]] = {}
        for group in groups:
            if min(group.baseline_n, group.candidate_n) >= k:
                shapes.setdefault((group.baseline_n, group.candidate_n), []).append(group)
        parts = [_eroded(_Deals.of(alike), k) for alike in shapes.values()]
        return _together(parts) if parts else None

    def lead(self, kept: float, *, z: float, margin: float = 0.0) -> float:
        """How far the expected fall is ahead of the one that the test needs.

        Parameters
        ----------
        kept
            Share of the passes, in [0, 1].
        z
            Normal quantile at which the test rejects.
        margin
            Drop of the suite metric that is accepted.

        Returns
        -------
        float
            In standard deviations: the normal quantile of the power.

        Notes
        -----
        Half a step is taken off: the tail of a discrete null includes what was observed. A lost
        pass also adds to the null variance, so that only a part of its scatter is ahead of what the
        test needs. Both matter where few lost passes are proof.
        """
        null = max(_value(self.null, kept), 0.0)
        needed = self.size * margin + self.step / 2 + z * sqrt(null)
        ahead = 1 - z * self._spread_per_fall(kept, null)
        scatter = max(_value(self.chance, kept), 0.0) + max(_value(self.loss, kept), 0.0) * ahead**2
        return (_value(self.fall, kept) - needed) / sqrt(max(scatter, _SMALLEST_VARIANCE))

    def _spread_per_fall(self, kept: float, null: float) -> float:
        """Growth of the null's standard deviation with the expected fall."""
        fall = _value(_derivative(self.fall), kept)
        if null < _SMALLEST_VARIANCE or fall == 0:
            return 0.0
        return _value(_derivative(self.null), kept) / (2 * sqrt(null) * fall)


class _Deals(msgspec.Struct, frozen=True):
    """Every outcome of every task of one shape, in one row, with its chance under the null."""

    baseline_n: int
    candidate_n: int
    tasks: _Floats
    owner: NDArray[np.intp]
    chances: _Floats
    candidate: _Floats
    baseline: _Floats

    @classmethod
    def of(cls, groups: Sequence[Group]) -> _Deals:
        """Lay out groups that have the same trials on each side."""
        owner = np.repeat(np.arange(len(groups)), [len(g.outcomes) for g in groups])
        candidate = np.array([float(x) for g in groups for x in g.outcomes])
        passed = np.array([float(g.passed) for g in groups])
        return cls(
            baseline_n=groups[0].baseline_n,
            candidate_n=groups[0].candidate_n,
            tasks=np.array([float(len(g.members)) for g in groups]),
            owner=owner,
            chances=np.array([p for g in groups for p in g.null.chances]),
            candidate=candidate,
            baseline=passed[owner] - candidate,
        )

    def of_candidate(self, k: int) -> _Floats:
        """The candidate's pass^k at each outcome."""
        return _pass_hat(self.candidate, self.candidate_n, k)

    def of_baseline(self, k: int) -> _Floats:
        """The baseline's pass^k at each outcome."""
        return _pass_hat(self.baseline, self.baseline_n, k)

    def by_group(self, values: _Floats) -> _Floats:
        """Null mean of one task of each group."""
        return np.bincount(self.owner, self.chances * values, len(self.tasks)).astype(np.float64)

    def total(self, values: _Floats) -> float:
        """Sum of the null means over all tasks."""
        return self.over_tasks(self.by_group(values))

    def over_tasks(self, by_group: _Floats) -> float:
        """Sum over all tasks of what each group's tasks have."""
        return fsum((self.tasks * by_group).tolist())


class _Products(msgspec.Struct, frozen=True):
    """Null means that ``E (A - B)^2`` is made of: A the candidate's pass^k, B the baseline's.

    ``own`` and ``other`` are A and B of one task of each group, ``both`` is the sum of A B over all
    tasks. The squares are sums over all tasks too, in parts: with the number of trials that all
    have to pass in a part.
    """

    own: _Floats
    other: _Floats
    both: float
    own_square: Sequence[tuple[int, float]]
    other_square: Sequence[tuple[int, float]]

    @classmethod
    def of(cls, deals: _Deals, k: int) -> _Products:
        own, other = deals.of_candidate(k), deals.of_baseline(k)
        return cls(
            own=deals.by_group(own),
            other=deals.by_group(other),
            both=deals.total(own * other),
            own_square=[
                (m, share * deals.total(deals.of_candidate(m)))
                for m, share in _unions(deals.candidate_n, k)
            ],
            other_square=[
                (m, share * deals.total(deals.of_baseline(m)))
                for m, share in _unions(deals.baseline_n, k)
            ],
        )


class _Powers(msgspec.Struct, frozen=True):
    """Polynomials in the kept share, up to degree ``2 k``."""

    k: int
    baseline_n: int
    candidate_n: int

    def alone(self, m: int) -> _Floats:
        """Chance to keep ``m`` passes of the candidate."""
        power = np.zeros(2 * self.k + 1)
        power[m] = 1.0
        return power

    def mixed(self, m: int) -> _Floats:
        """Chance to keep ``m`` passes, dealt from both sides. Exact where strata are tasks.

        Where they are seeds, how many of the ``m`` are the candidate's scatters a little otherwise.
        """
        nb, nc = self.baseline_n, self.candidate_n
        deals = [comb(nc, i) * comb(nb, m - i) / comb(nb + nc, m) for i in range(m + 1)]
        return np.array(deals + [0.0] * (2 * self.k - m))


def _eroded(deals: _Deals, k: int) -> Erosion:
    """Add up tasks of one shape."""
    means = _Products.of(deals, k)
    powers = _Powers(k, deals.baseline_n, deals.candidate_n)
    own, other = deals.over_tasks(means.own), deals.over_tasks(means.other)
    size = round(fsum(deals.tasks.tolist()))
    return Erosion(
        k=k,
        size=size,
        rate=own / size,
        step=min(1.0, k / deals.baseline_n) + min(1.0, k / deals.candidate_n),
        fall=powers.mixed(k) * (own - other) - powers.alone(k) * own + powers.alone(0) * other,
        chance=_chance(deals, means, powers),
        loss=_loss(means, powers),
        null=_null(deals, means, powers),
    )


def _chance(deals: _Deals, means: _Products, powers: _Powers) -> _Floats:
    """Variance over the deals of the expected difference once passes are lost."""
    own = _all(means.own_square) - deals.over_tasks(means.own * means.own)
    other = _all(means.other_square) - deals.over_tasks(means.other * means.other)
    both = means.both - deals.over_tasks(means.own * means.other)
    k = powers.k
    return powers.alone(2 * k) * own - 2 * powers.alone(k) * both + powers.alone(0) * other


def _loss(means: _Products, powers: _Powers) -> _Floats:
    """Variance of the lost passes, given the deal: overlapping choices of trials fail together."""
    loss = -powers.alone(2 * powers.k) * _all(means.own_square)
    for m, square in means.own_square:
        loss += square * powers.alone(m)
    return loss


def _null(deals: _Deals, means: _Products, powers: _Powers) -> _Floats:
    """Expected variance of a second deal, of what is left of the first."""
    null = np.zeros(2 * powers.k + 1)
    for m, square in (*means.own_square, *means.other_square):
        null += square * powers.mixed(m)
    gap = np.convolve(powers.mixed(powers.k), powers.mixed(powers.k))[: 2 * powers.k + 1]
    of_gaps = deals.over_tasks((means.own - means.other) ** 2)
    return null - 2 * means.both * powers.mixed(2 * powers.k) - gap * of_gaps


def _together(parts: Sequence[Erosion]) -> Erosion:
    """Add up tasks of all shapes."""
    size = sum(part.size for part in parts)
    fall, chance, loss, null = (
        np.array([fsum(column) for column in zip(*(p.tolist() for p in each), strict=True)])
        for each in zip(*((p.fall, p.chance, p.loss, p.null) for p in parts), strict=True)
    )
    return Erosion(
        k=parts[0].k,
        size=size,
        rate=fsum(part.size * part.rate for part in parts) / size,
        step=fsum(part.size * part.step for part in parts) / size,
        fall=fall,
        chance=chance,
        loss=loss,
        null=null,
    )


def _all(square: Sequence[tuple[int, float]]) -> float:
    return fsum(part for _, part in square)


def _unions(n: int, k: int) -> list[tuple[int, float]]:
    """Sizes of the union of two choices of ``k`` of ``n`` trials, each with its chance."""
    return [
        (k + more, comb(k, more) * comb(n - k, more) / comb(n, k))
        for more in range(min(k, n - k) + 1)
    ]


def _pass_hat(passed: _Floats, n: int, k: int) -> _Floats:
    value = np.ones(len(passed))
    for i in range(k):
        value *= np.maximum(passed - i, 0.0) / (n - i)
    return value


def _value(coefficients: _Floats, at: float) -> float:
    value = 0.0
    for coefficient in coefficients[::-1].tolist():
        value = value * at + coefficient
    return value


def _derivative(coefficients: _Floats) -> _Floats:
    return coefficients[1:] * np.arange(1, len(coefficients))

"""Do seeds matter? Decides which trials the test may exchange, before it looks at the difference.

Agreement of two runs on the same seeds is measured given how often each passed, so it says nothing
of which side is better. Knows outcomes by task, run and seed; not the test that reads its answer.

References
----------
Mantel and Haenszel (1959), J. Natl Cancer Inst. 22. Cochran (1950), Biometrika 37.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations, product
from math import erfc, exp, fsum, isfinite, lgamma, log, sqrt
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from ci_gate.stats.counts import Outcomes, Strata

Pairing = Literal["auto", "seed", "none"]
Rule = Literal["baseline repeats", "pair", "many seeds", "forced", "no seeds"]

CRITICAL_Z = 1.645
"""One-sided 5 % point of the normal: agreement above it makes the seeds strata."""
CRITICAL_TAIL = 0.05
"""Level of Cochran's Q where z alone may miss seeds that are hard for all tasks."""


class StrataChoice(msgspec.Struct, frozen=True, kw_only=True):
    """Within what outcomes are exchanged, and why.

    Attributes
    ----------
    strata
        "task" or "task,seed".
    rule
        "baseline repeats": z among the baseline's runs. "pair": z between the sides, there being
        one baseline run. "many seeds": a side has seeds the other never ran; z or Q. "forced": by
        the caller. "no seeds": nothing to pair.
    z
        Agreement by seed, standard normal if seeds do not matter.
    q, q_p_value
        Cochran's Q and its chi-squared tail; None where the rule does not ask.
    """

    strata: Strata
    rule: Rule
    z: float
    q: float | None = None
    q_p_value: float | None = None


class SeedColumns(msgspec.Struct, frozen=True, kw_only=True):
    """Cochran's Q over the seeds.

    Attributes
    ----------
    q
        Compares the seeds' sums over tasks and runs; mean ``degrees_of_freedom`` if all are alike.
    degrees_of_freedom
        Judged seeds less one.
    p_value
        Upper chi-squared tail; 1 where nothing varies.
    """

    q: float
    degrees_of_freedom: int
    p_value: float


def choose_strata(
    baseline: Sequence[Outcomes],
    candidate: Sequence[Outcomes],
    *,
    seeded: bool = True,
    pairing: Pairing = "auto",
) -> StrataChoice:
    """Decide whether the seeds are strata.

    Parameters
    ----------
    baseline, candidate
        The same tasks in the same order, each runs x seeds. Column ``s`` is the same seed on both
        sides.
    seeded
        False where the sides' seeds have nothing to do with each other; then nothing pairs,
        whatever ``pairing`` says.
    pairing
        "auto" lets the outcomes decide; "seed" and "none" force the answer.

    Returns
    -------
    StrataChoice

    Raises
    ------
    ValueError
        If the sides have different numbers of tasks.

    Notes
    -----
    With repeats in the baseline the choice is made before the candidate is seen. From a pair it is
    not, but the agreement given both sides' passes is free of the difference between them.
    Where one side ran many seeds and the other some of them, an unpaired test is invalid given the
    seeds as soon as seeds are hard or easy for all tasks, which Q sees and z may miss.
    """
    if len(baseline) != len(candidate):
        raise ValueError(f"{len(baseline)} baseline tasks, {len(candidate)} candidate tasks")
    left, right = _Side.of(baseline), _Side.of(candidate)
    z, from_repeats = _agreement(left, right)
    if not seeded or not left.seeds & right.seeds:
        return StrataChoice(strata="task", rule="no seeds", z=z)
    if pairing != "auto":
        forced: Strata = "task,seed" if pairing == "seed" else "task"
        return StrataChoice(strata=forced, rule="forced", z=z)
    if left.seeds != right.seeds:
        columns = _columns(max((left, right), key=lambda side: len(side.seeds)))
        matters = z > CRITICAL_Z or columns.p_value < CRITICAL_TAIL
        return StrataChoice(
            strata="task,seed" if matters else "task",
            rule="many seeds",
            z=z,
            q=columns.q,
            q_p_value=columns.p_value,
        )
    return StrataChoice(
        strata="task,seed" if z > CRITICAL_Z else "task",
        rule="baseline repeats" if from_repeats else "pair",
        z=z,
    )


def z_seed(tasks: Sequence[Outcomes]) -> float:
    """Agreement by seed among one side's runs.

    Parameters
    ----------
    tasks
        Each runs x seeds. A pair of runs is compared on the seeds that both judged.

    Returns
    -------
    float
        About standard normal if seeds do not matter, large if they do; 0 where nothing varies or
        there is one run.

    Notes
    -----
    With ``a`` the seeds on which both runs of a pair passed, ``c_i, c_j`` the passes of each and
    ``n`` the seeds compared, summed over tasks and pairs,
    ``z = sum(a - c_i c_j / n) / sqrt(sum(c_i c_j (n - c_i)(n - c_j) / (n^2 (n - 1))))``.
    """
    side = _Side.of(tasks)
    return _mantel_haenszel(
        (side.run(i), side.run(j)) for i, j in combinations(range(side.runs), 2)
    )


def cochran_q(tasks: Sequence[Outcomes]) -> SeedColumns:
    """Compare the seeds' sums over all tasks and runs of one side.

    Parameters
    ----------
    tasks
        Each runs x seeds; each run of each task is a block.

    Returns
    -------
    SeedColumns

    Notes
    -----
    ``Q = (S - 1) sum_s (O_s - E_s)^2 / sum_blocks c (n - c) / n``, which is Cochran's Q where every
    block is complete; ``E_s`` is the sum of ``c / n`` over the blocks that judged seed ``s``.
    """
    return _columns(_Side.of(tasks))


def chi_squared_tail(x: float, degrees_of_freedom: int) -> float:
    """Upper tail of the chi-squared distribution for whole degrees of freedom.

    Parameters
    ----------
    x
        0 or more.
    degrees_of_freedom
        At least 1.

    Returns
    -------
    float
        P(X > x).

    Raises
    ------
    ValueError
        If ``degrees_of_freedom < 1`` or ``x`` is negative or not finite.

    Notes
    -----
    The finite sum for whole degrees: the same digits on every machine, and no dependency.
    """
    if degrees_of_freedom < 1 or not (isfinite(x) and x >= 0):
        raise ValueError(f"no chi-squared tail of {x} with {degrees_of_freedom} degrees of freedom")
    if x / 2 == 0:
        return 1.0
    half = x / 2
    odd = degrees_of_freedom % 2
    start = erfc(sqrt(half)) if odd else 0.0
    powers = (i + odd / 2 for i in range(degrees_of_freedom // 2))
    terms = (exp(power * log(half) - half - lgamma(power + 1)) for power in powers)
    return min(1.0, start + fsum(terms))


class _Side(msgspec.Struct, frozen=True):
    """All outcomes of one side: tasks x runs x seeds, padded."""

    passed: NDArray[np.int64]
    judged: NDArray[np.int64]

    @classmethod
    def of(cls, tasks: Sequence[Outcomes]) -> _Side:
        runs = max((len(task) for task in tasks), default=0)
        seeds = max((len(run) for task in tasks for run in task), default=0)
        outcomes = np.full((len(tasks), runs, seeds), -1, dtype=np.int64)
        for t, task in enumerate(tasks):
            for r, run in enumerate(task):
                outcomes[t, r, : len(run)] = [-1 if x is None else x for x in run]
        return cls((outcomes == 1).astype(np.int64), (outcomes >= 0).astype(np.int64))

    @property
    def runs(self) -> int:
        return int(self.judged.shape[1])

    @property
    def seeds(self) -> frozenset[int]:
        """Seeds that were judged at all; one errored trial does not make a seed unshared."""
        return frozenset(np.flatnonzero(self.judged.any(axis=(0, 1))).tolist())

    def run(self, index: int) -> _Side:
        return _Side(self.passed[:, index], self.judged[:, index])


def _agreement(baseline: _Side, candidate: _Side) -> tuple[float, bool]:
    """Agreement among the baseline's runs where it has any two, else between the sides."""
    judged_runs = np.flatnonzero(baseline.judged.any(axis=(0, 2)))
    if judged_runs.size < 2:
        return _agreement_between(baseline, candidate), False
    pairs = combinations(judged_runs.tolist(), 2)
    return _mantel_haenszel((baseline.run(i), baseline.run(j)) for i, j in pairs), True


def _agreement_between(baseline: _Side, candidate: _Side) -> float:
    seeds = min(baseline.judged.shape[2], candidate.judged.shape[2])
    pairs = product(range(baseline.runs), range(candidate.runs))
    return _mantel_haenszel(
        (_first_seeds(baseline.run(i), seeds), _first_seeds(candidate.run(j), seeds))
        for i, j in pairs
    )


def _first_seeds(run: _Side, seeds: int) -> _Side:
    return _Side(run.passed[:, :seeds], run.judged[:, :seeds])


def _mantel_haenszel(pairs: Iterable[tuple[_Side, _Side]]) -> float:
    excess: list[float] = []
    variance: list[float] = []
    for left, right in pairs:
        both = left.judged & right.judged
        n = both.sum(axis=1)
        usable = n > 1
        n = n[usable]
        c_left = (left.passed & both).sum(axis=1)[usable]
        c_right = (right.passed & both).sum(axis=1)[usable]
        agreed = (left.passed & right.passed).sum(axis=1)[usable]
        spread = c_left * c_right * (n - c_left) * (n - c_right)
        excess.extend((agreed - c_left * c_right / n).tolist())
        variance.extend((spread / (n * n * (n - 1))).tolist())
    # fsum is exact, so the answer does not depend on the order of the tasks.
    total = fsum(variance)
    return fsum(excess) / sqrt(total) if total > 0 else 0.0


def _columns(side: _Side) -> SeedColumns:
    seeds = sorted(side.seeds)
    blocks = side.judged.shape[0] * side.judged.shape[1]
    judged = side.judged.reshape(blocks, side.judged.shape[2])[:, seeds]
    passed = side.passed.reshape(blocks, side.passed.shape[2])[:, seeds]
    n, c = judged.sum(axis=1), passed.sum(axis=1)
    rate = np.divide(c, n, out=np.zeros(len(n)), where=n > 0)
    excess = [fsum(column) for column in (passed - judged * rate[:, None]).T.tolist()]
    expected = fsum((c * (1 - rate)).tolist())
    freedom = len(seeds) - 1
    if expected <= 0 or freedom < 1:
        return SeedColumns(q=0.0, degrees_of_freedom=max(freedom, 0), p_value=1.0)
    q = freedom * fsum(x * x for x in excess) / expected
    return SeedColumns(q=q, degrees_of_freedom=freedom, p_value=chi_squared_tail(q, freedom))

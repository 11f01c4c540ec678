"""Would the gate be red? For thousands of simulated runs at once.

The same test as ``permutation``, read for one question only. Every suite metric's exact tail comes
from its characteristic function, every task's from its table; between the bounds that settle most
runs the joint chance is drawn for the run itself. Agreement with ``permutation`` is measured in
``tests/stats/test_quick_verdict.py``. It knows no plans and no chances to pass.

References
----------
Davies (1973), Numerical inversion of a characteristic function, Biometrika 60.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, sqrt
from typing import TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from ci_gate.stats.counts import Strata, TaskCounts
from ci_gate.stats.draws import Counter, mix, stream_of
from ci_gate.stats.permutation import joint_test
from ci_gate.stats.suite_null import Group, SuiteStatistic, group_tasks, suite_statistic

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_Number = TypeVar("_Number", np.float64, np.complex128)

_TIE = 1 + 1e-9
_STEPS_A_DEVIATION = 32
_FEW_TASKS = 10
_STEPS_WITH_FEW_TASKS = 320
_LISTED_TASKS = 5
_LISTED_OUTCOMES = 17
_TEST_DRAWS = 1 << 12
_TEST_SEED = 1
_DEVIATIONS = 15
_WINDOW = 128
_MOST_LEVELS = 192
_MOST_DEALS = 1_500_000
_MOST_DEALS_A_RUN = 1000
_POOLED_WEIGHT = 8


class SimulatedRuns(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of many runs of one suite; position ``s`` is a seed.

    Attributes
    ----------
    baseline_n, candidate_n
        Judged trials, shape (tasks, seeds).
    baseline_passed, candidate_passed
        How many passed, shape (runs, tasks, seeds).
    """

    baseline_n: Ints
    baseline_passed: Ints
    candidate_n: Ints
    candidate_passed: Ints

    def pooled(self) -> SimulatedRuns:
        """The same with all seeds of a task as one."""
        return SimulatedRuns(
            baseline_n=self.baseline_n.sum(axis=1, keepdims=True),
            baseline_passed=self.baseline_passed.sum(axis=2, keepdims=True),
            candidate_n=self.candidate_n.sum(axis=1, keepdims=True),
            candidate_passed=self.candidate_passed.sum(axis=2, keepdims=True),
        )


def blocked(
    runs: SimulatedRuns,
    *,
    strata: Strata,
    ks: Sequence[int],
    level: float,
    seed: int,
    phi: float | None = None,
) -> NDArray[np.bool_]:
    """Say of each run whether the joint test would be red.

    Parameters
    ----------
    runs
        At least one run of at least one task.
    strata, ks, phi
        As in :func:`.joint_test`, without a margin.
    level
        In (0, 1).
    seed
        Of the draws where bounds do not settle it.

    Returns
    -------
    ndarray of bool, shape (runs,)

    Notes
    -----
    With ``m`` the smallest of the ``f`` families' p-values, the gate's lies between ``m`` and
    ``f m``. Where that does not settle it, it is the share of deals of the same passes whose
    smallest p-value is ``m`` or less, drawn towards the share over all such runs: neighbours in
    totals have nearly one null.
    """
    runs = runs if strata == "task,seed" else runs.pooled()
    table = _Table.of(runs, strata, ks, level)
    smallest = table.smallest(seed, phi)
    families = 1 + len(table.suites)
    red = np.asarray(smallest * families * _TIE <= level)
    few = table.groups.shape[1] <= _LISTED_TASKS and table.chances.shape[1] <= _LISTED_OUTCOMES
    open_runs = np.flatnonzero(~red & (smallest <= level * (families if few else _TIE)))
    if open_runs.size and few:
        # Among few tasks no two sums may be taken for one: the test itself is asked.
        different, same = table.different(open_runs)
        red[open_runs] = np.array([_tested(runs, at, strata, ks, level, phi) for at in different])[
            same
        ]
    elif open_runs.size:
        red[open_runs] = table.joint(open_runs, smallest[open_runs], seed) <= level
    return red


def _tested(
    runs: SimulatedRuns,
    run: int,
    strata: Strata,
    ks: Sequence[int],
    level: float,
    phi: float | None,
) -> bool:
    tasks = [_example(runs, run, task) for task in range(len(runs.baseline_n))]
    test = joint_test(
        tasks,
        strata=strata,
        ks=ks,
        level=level,
        seed=_TEST_SEED,
        phi=phi,
        max_draws=_TEST_DRAWS,
    )
    return test.p_value <= level


class _Table(msgspec.Struct, frozen=True):
    """All nulls that occur among the runs, and where each task of each run lies in them.

    ``groups`` and ``outcomes`` have shape (runs, tasks); an outcome counts from its group's first.
    ``chances`` has shape (groups, most outcomes), padded by zeros.
    """

    groups: Ints
    outcomes: Ints
    chances: Floats
    suites: tuple[_Suite, ...]
    tasks: _Tasks

    @classmethod
    def of(cls, runs: SimulatedRuns, strata: Strata, ks: Sequence[int], level: float) -> _Table:
        kinds, first_of_kind = _kinds(runs)
        examples = [_example(runs, *at) for at in zip(*first_of_kind, strict=True)]
        groups = group_tasks(examples, strata)
        place = np.empty(len(examples), dtype=np.int64)
        for index, group in enumerate(groups):
            place[list(group.members)] = index
        own = place[kinds]
        first = np.array([group.first for group in groups])
        judged_by_both = (runs.baseline_n > 0) & (runs.candidate_n > 0)
        passed = (runs.candidate_passed * judged_by_both).sum(axis=2)
        suites = (suite_statistic(groups, k) for k in ks)
        chances = _padded([group.null.chances for group in groups])
        return cls(
            own,
            passed - first[own],
            chances,
            tuple(_Suite.of(s, groups, chances, own) for s in suites if s.informative),
            _Tasks.of(groups, level),
        )

    def smallest(self, seed: int, phi: float | None) -> Floats:
        """Smallest family p-value of each run, its suite statistics shrunk by phi."""
        groups, outcomes = self.groups, self.outcomes
        found: Floats = self.tasks.p_values(groups, outcomes[None])[0]
        for index, suite in enumerate(self.suites):
            breaks = suite.breaks((1, len(groups)), seed, -1 - index)[0]
            np.minimum(found, suite.observed(groups, outcomes, breaks, phi), out=found)
        return found

    def different(self, runs: Ints) -> tuple[list[int], Ints]:
        """Runs of which no two are alike, and for each run the place of the one it is like."""
        places = np.sort(self.groups * self.chances.shape[1] + self.outcomes, axis=1)[runs]
        _, first, same = np.unique(places, axis=0, return_index=True, return_inverse=True)
        return runs[first].tolist(), same.reshape(-1)

    def joint(self, runs: Ints, smallest: Floats, seed: int) -> Floats:
        """The gate's p-value of each run, from its families' chances and deals of its passes.

        The chance that any family is as extreme lies below the sum of their chances, by a ratio
        that hardly differs between runs; the deals of all runs give it, and a run's own correct it.
        """
        groups, limit = self.groups[runs], smallest * _TIE
        deals = int(np.clip(_MOST_DEALS // groups.size, 1, _MOST_DEALS_A_RUN))
        dealt = self._deal(groups, deals, seed)
        least = self.tasks.p_values(groups, dealt)
        sums = self.tasks.attained(groups, limit)
        for index, suite in enumerate(self.suites):
            breaks = suite.breaks(dealt.shape[:2], seed, 1 + index)
            np.minimum(least, suite.p_values(runs, groups, dealt, breaks), out=least)
            sums += suite.attained(runs, limit)
        own = (least <= limit).sum(axis=0)
        ratio = min(1.0, float(own.sum()) / (deals * float(sums.sum())))
        weight = _POOLED_WEIGHT * groups.shape[1]
        return np.asarray((own + weight * ratio * sums) / (deals + weight))

    def _deal(self, groups: Ints, deals: int, seed: int) -> Ints:
        """Deal the passes of every task afresh: shape (deals, runs, tasks)."""
        tails = np.cumsum(self.chances, axis=1)
        last = (self.chances > 0).sum(axis=1) - 1
        words = Counter.at(0, deals * groups.size).words(stream_of(seed, 0))
        chance = _uniform(words).reshape(deals, *groups.shape)
        dealt = np.zeros(chance.shape, dtype=np.int64)
        for outcome in range(self.chances.shape[1] - 1):
            dealt += chance > tails[:, outcome][groups]
        return np.asarray(np.minimum(dealt, last[groups]))


def _uniform(words: NDArray[np.uint64]) -> Floats:
    """In [0, 1), from the upper 53 bits."""
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _kinds(runs: SimulatedRuns) -> tuple[Ints, tuple[Ints, Ints]]:
    """Number the tasks of all runs by what their trials and passes are, whatever the seeds' order.

    Returns the numbers, shape (runs, tasks), and a run and task of each kind.
    """
    passed = runs.baseline_passed + runs.candidate_passed
    most = 1 + int(runs.baseline_n.max() + runs.candidate_n.max())
    cells = (runs.baseline_n * most + runs.candidate_n) * most + passed
    known, number = np.unique(cells, return_inverse=True)
    # A sum of scrambled numbers stands for the set of a task's cells; its 64 bits do not collide.
    marks = np.array([mix(mix(cell)) for cell in known.tolist()], dtype=np.uint64)
    sums = marks[number.reshape(passed.shape)].sum(axis=2, dtype=np.uint64)
    _, first, kinds = np.unique(sums, return_index=True, return_inverse=True)
    at_run, at_task = np.unravel_index(first, sums.shape)
    return kinds.reshape(sums.shape), (at_run, at_task)


def _example(runs: SimulatedRuns, run: int, task: int) -> TaskCounts:
    return TaskCounts(
        baseline_n=tuple(runs.baseline_n[task].tolist()),
        baseline_passed=tuple(runs.baseline_passed[run, task].tolist()),
        candidate_n=tuple(runs.candidate_n[task].tolist()),
        candidate_passed=tuple(runs.candidate_passed[run, task].tolist()),
    )


def _padded(rows: Sequence[Sequence[float]]) -> Floats:
    """Rows of different lengths as one array, filled up with zeros."""
    table = np.zeros((len(rows), max(map(len, rows))))
    for index, row in enumerate(rows):
        table[index, : len(row)] = row
    return table


def _sum_over_tasks(table: NDArray[_Number], groups: Ints) -> NDArray[_Number]:
    """Sum of a row of the table for each task of each run: shape (runs, columns)."""
    total: NDArray[_Number] = np.zeros((len(groups), table.shape[1]), dtype=table.dtype)
    if len(table) <= groups.shape[1]:
        for index, row in enumerate(table):
            total += (groups == index).sum(axis=1)[:, None] * row
        return total
    for column in groups.T:
        total += table[column]
    return total


class _Suite(msgspec.Struct, frozen=True):
    """One suite metric: its rises in steps, shape (groups, outcomes), and every run's exact tails.

    ``tails`` has shape (runs, sums), from the sum ``lowest`` of the run on; what lies outside of
    that window about the mean has no chance worth telling from 0. ``merged``: a step holds several
    sums of the statistic. Where a run's lies among them is then left to chance, which is right on
    average; to count all of them as extreme would not be.
    """

    steps: Ints
    means: Floats
    lowest: Ints
    tails: Floats
    merged: bool

    @classmethod
    def of(
        cls, suite: SuiteStatistic, groups: Sequence[Group], chances: Floats, own: Ints
    ) -> _Suite:
        rises = _padded([[float(rise) for rise in rises] for rises in suite.rises])
        rises -= rises[:, :1]
        means = (chances * rises).sum(axis=1)
        variances = (chances * (rises - means[:, None]) ** 2).sum(axis=1)
        deviation = sqrt(float(variances[own].sum(axis=1).max()))
        # One step of the statistic where so many can be told apart, else as fine as is needed.
        few = own.shape[1] <= _FEW_TASKS
        step = max(1.0, deviation / (_STEPS_WITH_FEW_TASKS if few else _STEPS_A_DEVIATION))
        steps = np.rint(rises / step).astype(np.int64)
        widest = _DEVIATIONS * deviation / step + 2 * int(steps.max()) + 8
        size = _WINDOW * ceil(widest / _WINDOW)
        turns = np.exp(-2j * np.pi * np.arange(size) / size)
        angles = np.arange(size // 2 + 1)
        transforms = np.zeros((len(groups), len(angles)), dtype=np.complex128)
        for outcome in range(steps.shape[1]):
            places = steps[:, outcome, None] * angles % size
            transforms += chances[:, outcome, None] * turns[places]
        vanishing = np.abs(transforms) < 1e-300
        logs = np.log(np.where(vanishing, 1e-300, transforms))
        middles = (chances * steps).sum(axis=1)[own].sum(axis=1)
        lowest = np.rint(middles).astype(np.int64) - size // 2
        shifts = 2j * np.pi * (lowest[:, None] * angles % size) / size
        summed = np.exp(_sum_over_tasks(logs, own) + shifts)
        tails = np.cumsum(np.fft.irfft(summed, size, axis=1), axis=1)
        return cls(steps, middles, lowest, np.round(tails, 10), merged=step > 1)

    def breaks(self, shape: tuple[int, int], seed: int, stream: int) -> Floats:
        """How much of a step counts as extreme: all of it unless it holds several sums."""
        if not self.merged:
            return np.ones(shape)
        words = Counter.at(0, shape[0] * shape[1]).words(stream_of(seed, stream))
        return _uniform(words).reshape(shape)

    def attained(self, runs: Ints, limit: Floats) -> Floats:
        """P(its p-value <= limit) of each run."""
        if self.merged:
            return limit.copy()
        below = (self.tails[runs] <= limit[:, None]).sum(axis=1)
        found = self.tails[runs, np.maximum(below - 1, 0)]
        return np.where(below > 0, found, 0.0)

    def observed(self, groups: Ints, outcomes: Ints, breaks: Floats, phi: float | None) -> Floats:
        """P(sum <= observed) of each run, drawn towards its mean by phi as the test does it."""
        sums = self.steps[groups, outcomes].sum(axis=1)
        if phi is not None and phi > 1:
            shrunk = self.means + (sums - self.means) / sqrt(phi)
            sums = np.floor(shrunk + 1e-9 * np.maximum(1.0, np.abs(shrunk))).astype(np.int64)
        return self._tail(np.arange(len(groups)), sums, breaks)

    def p_values(self, runs: Ints, groups: Ints, outcomes: Ints, breaks: Floats) -> Floats:
        """P(sum <= dealt) of these runs, for outcomes of shape (deals, runs, tasks)."""
        dealt = (self.steps[groups, own].sum(axis=1) for own in outcomes)
        return np.array(
            [self._tail(runs, sums, own) for sums, own in zip(dealt, breaks, strict=True)]
        )

    def _tail(self, runs: Ints, sums: Ints, breaks: Floats) -> Floats:
        place = sums - self.lowest[runs]
        last = self.tails.shape[1] - 1
        upper = np.where(place < 0, 0.0, self.tails[runs, np.clip(place, 0, last)])
        lower = np.where(place < 1, 0.0, self.tails[runs, np.clip(place - 1, 0, last)])
        return np.asarray(np.where(breaks < 1, lower + breaks * (upper - lower), upper))


class _Tasks(msgspec.Struct, frozen=True):
    """Single tasks: the rank of every outcome's p-value, and what each rank means for a suite.

    ``misses`` has shape (groups, ranks): log of the chance that a task's p-value lies above the
    rank's. The last rank is for all p-values that cannot matter.
    """

    ranks: Ints
    misses: Floats

    @classmethod
    def of(cls, groups: Sequence[Group], level: float) -> _Tasks:
        tails = np.concatenate([np.array(group.null.lower_tails) for group in groups])
        levels = np.unique(tails[tails <= level])
        # Of very many levels some are kept, and the others counted as the next higher one.
        every = -(-len(levels) // _MOST_LEVELS) or 1
        levels = levels[::-1][::every][::-1]
        ranks = np.full((len(groups), max(len(g.outcomes) for g in groups)), len(levels))
        misses = np.zeros((len(groups), len(levels) + 1))
        for index, group in enumerate(groups):
            own = np.array(group.null.lower_tails)
            ranks[index, : len(own)] = np.searchsorted(levels, own)
            attained = np.concatenate([[0.0], own])
            misses[index, :-1] = np.log1p(-attained[np.searchsorted(own, levels, side="right")])
        misses[:, -1] = -np.inf
        return cls(ranks, misses)

    def _family(self, groups: Ints) -> Floats:
        """P(some task's p-value has the rank or a lower one), for each run and rank."""
        family = -np.expm1(_sum_over_tasks(self.misses[:, :-1], groups))
        return np.round(np.concatenate([family, np.ones((len(groups), 1))], axis=1), 10)

    def attained(self, groups: Ints, limit: Floats) -> Floats:
        """P(the family's p-value <= limit) of each run."""
        family = self._family(groups)
        return np.asarray(np.where(family <= limit[:, None], family, 0.0).max(axis=1))

    def p_values(self, groups: Ints, outcomes: Ints) -> Floats:
        """P(some task looks as bad) for outcomes of shape (deals, runs, tasks)."""
        family = self._family(groups)
        runs = np.arange(len(groups))
        ranks = (self.ranks[groups, own].min(axis=1) for own in outcomes)
        return np.array([family[runs, rank] for rank in ranks])

"""The suite under "this change altered no task": equal tasks grouped, every statistic an integer.

Turns counts into groups of tasks with one and the same null distribution, and a family of tests
into an integer for each outcome of each group. Sorted by content, so that nothing after it can
depend on the order of the tasks. Decides no p-value.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb, fsum, gcd, lcm, sqrt

import msgspec
import numpy as np
from numpy.typing import NDArray

from ci_gate.stats.counts import Strata, TaskCounts
from ci_gate.stats.hypergeometric import CandidateNull, Stratum, candidate_null


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """Tasks whose null distribution is the same.

    Attributes
    ----------
    baseline_n, candidate_n
        Trials that enter, of one task.
    passed
        Passes of both sides together, of one task.
    first
        The fewest passes that the candidate can have.
    null
        Of its passes beyond what seeds with a single possible deal add.
    members
        Positions of the tasks in the caller's sequence.
    observed
        The candidate's passes of each member.
    """

    baseline_n: int
    candidate_n: int
    passed: int
    first: int
    null: CandidateNull
    members: tuple[int, ...]
    observed: tuple[int, ...]

    @property
    def outcomes(self) -> range:
        """All passes that the candidate may have."""
        return range(self.first, self.first + len(self.null.weights))

    @property
    def constant(self) -> bool:
        """Whether there is only one outcome: the task carries no information."""
        return len(self.null.weights) == 1


class SuiteStatistic(msgspec.Struct, frozen=True, kw_only=True):
    """The difference of suite pass^k, candidate - baseline, in integers.

    Attributes
    ----------
    k
        Trials that all have to pass.
    included
        Positions of the tasks with at least ``k`` trials on both sides.
    difference
        Of the means over those tasks; None if there is none.
    lowest
        Sum over those tasks of the lowest differences that they can have.
    unit
        What one step of the integers is worth in that sum.
    rises
        For each group the rise of a task's difference above its lowest outcome, in units; all 0
        for a group that is left out.
    observed
        Sum of the rises over all tasks as observed.
    """

    k: int
    included: tuple[int, ...]
    difference: float | None
    lowest: float
    unit: float
    rises: tuple[tuple[int, ...], ...]
    observed: int

    @property
    def informative(self) -> bool:
        """Whether any outcome of any task changes it."""
        return any(rises[-1] for rises in self.rises)

    def largest(self, groups: Sequence[Group]) -> int:
        """Largest value that it can take, the lowest being 0."""
        return sum(r[-1] * len(g.members) for r, g in zip(self.rises, groups, strict=True))

    def mean(self, groups: Sequence[Group]) -> float:
        """Its mean under the null."""
        return fsum(
            len(group.members) * rise * chance
            for group, rises in zip(groups, self.rises, strict=True)
            for rise, chance in zip(rises, group.null.chances, strict=True)
        )

    def deviation(self, groups: Sequence[Group]) -> float:
        """Its standard deviation under the null."""
        variance = 0.0
        for group, rises in zip(groups, self.rises, strict=True):
            centre = fsum(r * p for r, p in zip(rises, group.null.chances, strict=True))
            spread = ((r - centre) ** 2 * p for r, p in zip(rises, group.null.chances, strict=True))
            variance += len(group.members) * fsum(spread)
        return sqrt(variance)


def group_tasks(tasks: Sequence[TaskCounts], strata: Strata) -> tuple[Group, ...]:
    """Group tasks by null distribution.

    Parameters
    ----------
    tasks
        Any number, also of tasks without trials on a side.
    strata
        "task": all trials of a task are exchangeable. "task,seed": those on one seed; only seeds
        that both sides judged enter.

    Returns
    -------
    tuple of Group
        In an order that depends on the counts alone.
    """
    found: dict[_Key, list[tuple[int, int]]] = {}
    for index, task in enumerate(tasks):
        key, observed = _key(task, strata)
        found.setdefault(key, []).append((observed, index))
    return tuple(_group(key, sorted(found[key])) for key in sorted(found))


def suite_statistic(groups: Sequence[Group], k: int) -> SuiteStatistic:
    """Pass^k of the suite as integers on one scale.

    Parameters
    ----------
    groups
        From :func:`group_tasks`.
    k
        At least 1.

    Returns
    -------
    SuiteStatistic
    """
    entering = [g for g in groups if min(g.baseline_n, g.candidate_n) >= k]
    scale = lcm(*(comb(n, k) for g in entering for n in (g.baseline_n, g.candidate_n)))
    differences = {id(g): [_difference(g, x, k, scale) for x in g.outcomes] for g in entering}
    step = gcd(*(d - values[0] for values in differences.values() for d in values)) or 1
    included = tuple(sorted(index for g in entering for index in g.members))
    rises = tuple(
        tuple((d - values[0]) // step for d in values)
        if (values := differences.get(id(g)))
        else (0,) * len(g.outcomes)
        for g in groups
    )
    observed = sum(r[x - g.first] for g, r in zip(groups, rises, strict=True) for x in g.observed)
    lowest = sum(differences[id(g)][0] * len(g.members) for g in entering)
    total = lowest + observed * step
    return SuiteStatistic(
        k=k,
        included=included,
        difference=total / (scale * len(included)) if included else None,
        lowest=lowest / scale,
        unit=step / scale,
        rises=rises,
        observed=observed,
    )


class TaskTails(msgspec.Struct, frozen=True):
    """One-sided p-values of single tasks, and the distribution of the smallest of them.

    Attributes
    ----------
    levels
        All p-values that any task can have, rising; then 1 once more if it was not there.
    ranks
        For each group the position in ``levels`` of each outcome.
    smallest
        P(some task's p <= level) under the null, for each level.
    """

    levels: NDArray[np.float64]
    ranks: tuple[NDArray[np.int64], ...]
    smallest: NDArray[np.float64]

    @classmethod
    def of(cls, groups: Sequence[Group]) -> TaskTails:
        """Tabulate all p-values of all groups.

        Parameters
        ----------
        groups
            From :func:`group_tasks`.

        Returns
        -------
        TaskTails
        """
        tails = [np.array(group.null.lower_tails) for group in groups]
        levels = _distinct(np.concatenate([np.ones(1), *tails]))
        ranks = tuple(np.searchsorted(levels, tail) for tail in tails)
        members = [len(group.members) for group in groups]
        smallest = _chance_of_any(levels, tails, members)
        return cls(levels, ranks, smallest)

    def any_of(self, level: float, groups: Sequence[Group], members: Sequence[int]) -> float:
        """P(smallest p <= level) over some members of each group only.

        Parameters
        ----------
        level
            One of ``levels``.
        groups
            From :func:`group_tasks`.
        members
            How many tasks of each group are meant.

        Returns
        -------
        float
        """
        tails = [np.array(group.null.lower_tails) for group in groups]
        return float(_chance_of_any(np.array([level]), tails, members)[0])


_Key = tuple[int, int, int, int, tuple[Stratum, ...]]


def _key(task: TaskCounts, strata: Strata) -> tuple[_Key, int]:
    """What determines the null of a task, and what its candidate did."""
    if strata == "task,seed":
        task = task.shared
        cells: tuple[Stratum, ...] = tuple(
            (nb, nc, cb + cc)
            for nb, nc, cb, cc in zip(
                task.baseline_n,
                task.candidate_n,
                task.baseline_passed,
                task.candidate_passed,
                strict=True,
            )
        )
    else:
        nb, nc = sum(task.baseline_n), sum(task.candidate_n)
        cells = ((nb, nc, sum(task.baseline_passed) + sum(task.candidate_passed)),)
    return _key_of_cells(cells), sum(task.candidate_passed)


def _key_of_cells(cells: tuple[Stratum, ...]) -> _Key:
    """Seeds with a single possible deal differ only in what they add."""
    open_cells = tuple(sorted(cell for cell in cells if _open(cell)))
    added = sum(nc for nb, nc, passed in cells if passed and not _open((nb, nc, passed)) and nb)
    added += sum(passed for nb, _, passed in cells if not nb)
    return (
        sum(nb for nb, _, _ in cells),
        sum(nc for _, nc, _ in cells),
        sum(passed for _, _, passed in cells),
        added,
        open_cells,
    )


def _open(cell: Stratum) -> bool:
    baseline_n, candidate_n, passed = cell
    return bool(baseline_n and candidate_n and 0 < passed < baseline_n + candidate_n)


def _group(key: _Key, members: Sequence[tuple[int, int]]) -> Group:
    baseline_n, candidate_n, passed, added, cells = key
    null = candidate_null(cells)
    return Group(
        baseline_n=baseline_n,
        candidate_n=candidate_n,
        passed=passed,
        first=null.first + added,
        null=null,
        members=tuple(index for _, index in members),
        observed=tuple(observed for observed, _ in members),
    )


def _difference(group: Group, x: int, k: int, scale: int) -> int:
    candidate = comb(x, k) * (scale // comb(group.candidate_n, k))
    return candidate - comb(group.passed - x, k) * (scale // comb(group.baseline_n, k))


def _distinct(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the values without repeats, sorted; there must be one.

    ``np.unique`` imports numpy's masked arrays to ask whether these are such, which costs a small
    suite more than all the rest of its test.
    """
    ordered = np.sort(values)
    is_new = np.append(True, ordered[1:] != ordered[:-1])
    return np.compress(is_new, ordered)


def _chance_of_any(
    levels: NDArray[np.float64], tails: Sequence[NDArray[np.float64]], members: Sequence[int]
) -> NDArray[np.float64]:
    """P(any task's p <= level): unions of independent events, added up without cancellation."""
    union = np.zeros(len(levels))
    for tail, count in zip(tails, members, strict=True):
        if len(tail) > 1 and count:
            attained = np.concatenate([np.zeros(1), tail])
            event = attained[np.searchsorted(tail, levels, side="right")]
            union = _either(union, _any_of_equal(event, count))
    return np.where(levels >= 1, 1.0, union)


def _any_of_equal(event: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    union = np.zeros(len(event))
    while count:
        if count % 2:
            union = _either(union, event)
        event = _either(event, event)
        count //= 2
    return union


def _either(left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    return left + right * (1 - left)

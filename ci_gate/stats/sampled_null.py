"""The joint null distribution by seeded draws, where no lattice permits it exactly.

A draw deals every task's passes afresh; all families are read off the same draw, which is what
makes their joint distribution come out. Knows groups and statistics; when there are enough draws is
decided by ``permutation``.

References
----------
Phipson and Smyth (2010), Permutation p-values should never be zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum, sqrt
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from ci_gate.stats.draws import AliasTable, Counter, stream_of
from ci_gate.stats.exact_null import SuiteTails
from ci_gate.stats.suite_null import Group, SuiteStatistic, TaskTails
from ci_gate.stats.variance import pseudo_variance, task_variance

_CHUNK = 1 << 14
_LARGEST_WORD = 1 << 62
_STUDENT_DECIMALS = 9


class Studentised(msgspec.Struct, frozen=True):
    """A suite statistic over its own standard error, against an accepted drop.

    Attributes
    ----------
    variances
        Variance of a task's difference for each outcome of each group.
    constant
        What is added to their sum: the pseudo-task.
    """

    variances: tuple[NDArray[np.float64], ...]
    constant: float

    @classmethod
    def of(cls, suite: SuiteStatistic, groups: Sequence[Group]) -> Studentised:
        """Tabulate the variances of a suite that includes at least one task."""
        entering = [min(g.baseline_n, g.candidate_n) >= suite.k for g in groups]
        variances = tuple(
            np.array(
                [
                    task_variance(g.passed - x, g.baseline_n, x, g.candidate_n, suite.k)
                    for x in g.outcomes
                ]
            )
            if enters
            else np.zeros(len(g.outcomes))
            for g, enters in zip(groups, entering, strict=True)
        )
        pseudo = fsum(
            len(g.members) * pseudo_variance(g.baseline_n, g.candidate_n, suite.k)
            for g, enters in zip(groups, entering, strict=True)
            if enters
        )
        return cls(variances, pseudo / len(suite.included))

    def at_constant(self, groups: Sequence[Group]) -> float:
        """What the pseudo-task and tasks with a single outcome add to every draw."""
        return self.constant + fsum(
            len(group.members) * float(variance[0])
            for group, variance in zip(groups, self.variances, strict=True)
            if group.constant
        )

    def observed(self, groups: Sequence[Group]) -> float:
        """Sum of the variances at the observed outcomes."""
        return self.constant + fsum(
            variance[x - group.first]
            for group, variance in zip(groups, self.variances, strict=True)
            for x in group.observed
        )


class Score(msgspec.Struct, frozen=True):
    """A suite statistic, and how its p-value is to be had; low is worse.

    Attributes
    ----------
    suite
        One that carries information.
    tails
        Its exact tails, or None where the draws are to give them.
    student
        Its variances where it is studentised, else None.
    observed
        Its value for the sides as they are.
    """

    suite: SuiteStatistic
    tails: SuiteTails | None
    student: Studentised | None
    observed: float

    def of_draws(self, sums: NDArray[Any], variances: NDArray[np.float64]) -> NDArray[Any]:
        """Values of draws, from the sums over tasks of differences and of variances."""
        if self.student is None:
            return sums
        return studentised(self.suite, sums, variances, 0.0)


def studentised(
    suite: SuiteStatistic,
    sums: NDArray[Any] | int,
    variances: NDArray[np.float64] | float,
    margin: float,
) -> NDArray[np.float64]:
    """Differences over their standard errors.

    Parameters
    ----------
    suite
        Includes at least one task.
    sums
        Values of its statistic, in its own integers.
    variances
        Of the sums over tasks.
    margin
        Added to each difference.

    Returns
    -------
    ndarray
        Rounded to 9 decimals, so that values equal but for their last bits are ties.
    """
    moved = suite.lowest + margin * len(suite.included)
    differences = moved + np.asarray(sums, dtype=np.float64) * suite.unit
    return np.round(differences / np.sqrt(variances), _STUDENT_DECIMALS)


class Draws:
    """Draws of all families, to be continued at will.

    Parameters
    ----------
    groups, tasks
        From :mod:`.suite_null`.
    scores
        One for each suite.
    seed
        Any integer; equal seeds and equal counts give equal draws.

    Attributes
    ----------
    count
        Draws so far.
    """

    def __init__(
        self, groups: Sequence[Group], tasks: TaskTails, scores: Sequence[Score], seed: int
    ) -> None:
        self._scores, self._tasks, self._seed = scores, tasks, seed
        self._dtypes = [_dtype(score.suite.largest(groups)) for score in scores]
        self._bases = [s.student.at_constant(groups) if s.student else 0.0 for s in scores]
        self._dealers = [
            _dealer(index, group, scores, tasks)
            for index, group in enumerate(groups)
            if not group.constant
        ]
        self._chunks: list[_Chunk] = []
        self.count = 0

    def extend(self, count: int) -> None:
        """Draw until there are ``count`` draws.

        Parameters
        ----------
        count
            At least the draws so far.
        """
        while self.count < count:
            size = min(_CHUNK, count - self.count)
            self._chunks.append(self._chunk(Counter.at(self.count, size)))
            self.count += size

    def smallest(self) -> NDArray[np.float64]:
        """Smallest p-value of each draw over the families whose tails are exact."""
        return np.concatenate([chunk.smallest for chunk in self._chunks])

    def values(self, index: int) -> NDArray[Any]:
        """Values of score ``index``, whose tails are not exact, in each draw."""
        return np.concatenate([chunk.values[index] for chunk in self._chunks])

    def _chunk(self, counter: Counter) -> _Chunk:
        size = len(counter.steps)
        sums: list[NDArray[Any]] = [np.zeros(size, dtype=dtype) for dtype in self._dtypes]
        variances = [np.full(size, base) for base in self._bases]
        ranks = np.full(size, len(self._tasks.levels) - 1, dtype=np.int64)
        stream = 0
        for dealer in self._dealers:
            for _ in range(dealer.times):
                cells = dealer.table.cells(counter.words(stream_of(self._seed, stream)))
                stream += 1
                dealer.add(cells, [*sums, *variances], ranks)
        return self._kept(sums, variances, ranks)

    def _kept(
        self,
        sums: Sequence[NDArray[Any]],
        variances: Sequence[NDArray[np.float64]],
        ranks: NDArray[np.int64],
    ) -> _Chunk:
        """Reduce a chunk to what is needed: millions of draws are to fit into memory."""
        smallest = self._tasks.smallest.take(ranks)
        values = {}
        for index, score in enumerate(self._scores):
            if score.tails is None:
                values[index] = score.of_draws(sums[index], variances[index])
            else:
                np.minimum(smallest, score.tails.of_each(sums[index]), out=smallest)
        return _Chunk(smallest, values)


class SampledJoint(msgspec.Struct, frozen=True):
    """What a number of draws says of all families.

    Attributes
    ----------
    p_values
        Of each suite as observed; exact where its tails are.
    smallest
        The smallest family p-value of each draw, rising.
    """

    p_values: tuple[float, ...]
    smallest: NDArray[np.float64]

    @classmethod
    def of(cls, draws: Draws, scores: Sequence[Score]) -> SampledJoint:
        """Read every family off the draws.

        Parameters
        ----------
        draws
            At least one.
        scores
            Those that the draws were made with.

        Returns
        -------
        SampledJoint
        """
        smallest = draws.smallest()
        p_values = []
        for index, score in enumerate(scores):
            if score.tails is None:
                p_value, each = _ranked(draws.values(index), score.observed)
                np.minimum(smallest, each, out=smallest)
            else:
                p_value = score.tails.of(int(score.observed))
            p_values.append(p_value)
        smallest.sort()
        return cls(tuple(p_values), smallest)

    def chance_of(self, p_value: float) -> float:
        """P(the smallest family p-value <= ``p_value``), the observed one counted as a draw."""
        extreme = int(np.searchsorted(self.smallest, p_value, side="right"))
        return (1 + extreme) / (1 + len(self.smallest))


def standard_error(p_value: float, draws: int) -> float:
    """Standard error of a p-value estimated from draws; 0 without draws.

    Parameters
    ----------
    p_value
        In [0, 1].
    draws
        0 or more.

    Returns
    -------
    float
    """
    return sqrt(p_value * (1 - p_value) / draws) if draws else 0.0


class _Chunk(msgspec.Struct, frozen=True):
    smallest: NDArray[np.float64]
    values: dict[int, NDArray[Any]]


class _Dealer(msgspec.Struct, frozen=True):
    """Deals the passes of each task of a group, and adds what comes of it to every total."""

    table: AliasTable
    times: int
    columns: tuple[NDArray[Any] | None, ...]
    ranks: NDArray[np.int64]

    def add(
        self, cells: NDArray[np.intp], totals: Sequence[NDArray[Any]], ranks: NDArray[np.int64]
    ) -> None:
        """Add one task's outcomes to the totals, in place, and keep the smallest rank."""
        for column, total in zip(self.columns, totals, strict=True):
            if column is not None:
                total += column.take(cells)
        np.minimum(ranks, self.ranks.take(cells), out=ranks)


def _dealer(index: int, group: Group, scores: Sequence[Score], tasks: TaskTails) -> _Dealer:
    table = AliasTable.of_weights(group.null.weights)
    rises = [score.suite.rises[index] for score in scores]
    columns = [np.array(values, dtype=_dtype(values[-1])) for values in rises]
    columns += [s.student.variances[index] if s.student else np.zeros(1) for s in scores]
    return _Dealer(
        table=table,
        times=len(group.members),
        columns=tuple(c.take(table.outcomes) if c.any() else None for c in columns),
        ranks=tasks.ranks[index].take(table.outcomes),
    )


def _dtype(largest: int) -> type[Any]:
    """64-bit integers where every sum fits, Python's own where one might not."""
    return np.int64 if largest < _LARGEST_WORD else object


def _ranked(values: NDArray[Any], observed: float) -> tuple[float, NDArray[np.float64]]:
    """p-values of the observed and of every draw within the pool that they form together."""
    ordered = np.sort(values)
    pool = len(values) + 1
    extreme = np.searchsorted(ordered, values, side="right") + (values >= observed)
    own = int(np.searchsorted(ordered, observed, side="right")) + 1
    return own / pool, extreme / pool

"""The joint null distribution where its lattice is small enough to be added up in full.

Decides whether that is so, by a bound on the work, and answers tail probabilities. Knows groups and
integer statistics; claims and adjustment are in ``permutation``.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb, prod
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from ci_gate.stats.lattice import (
    SMALLEST_P,
    SQUARING_PAYS,
    Mass,
    Term,
    dense_sum,
    reach,
    sparse_sum,
)
from ci_gate.stats.suite_null import Group, SuiteStatistic, TaskTails

MOST_WORK = 1e8
"""Multiplications worth spending on one array, about 0.1 s; above it, draws are cheaper."""
MOST_CELLS = 1 << 20
"""Longest array."""
MOST_SUMS = 5_000
"""Most sums to be listed one by one where they are too far apart for an array."""
_LARGEST_CODE = 1 << 62


class SuiteTails(msgspec.Struct, frozen=True):
    """Exact lower tails of one suite statistic.

    Attributes
    ----------
    values
        What it can be, rising; what lies below has no chance worth telling from 0.
    tails
        P(statistic <= value) for each; the last is 1.
    """

    values: NDArray[np.int64]
    tails: NDArray[np.float64]

    @classmethod
    def of_suite(cls, suite: SuiteStatistic, groups: Sequence[Group]) -> SuiteTails | None:
        """Tabulate the tails, or return None where the lattice does not permit it."""
        lattice = _Lattice.of(groups, [suite])
        if lattice is None:
            return None
        mass = lattice.sum()
        tails = np.minimum(mass.lower_tails(), 1.0)
        tails[-1] = 1.0
        return cls(mass.values, tails)

    def of(self, value: int) -> float:
        """P(statistic <= value)."""
        position = int(np.searchsorted(self.values, value, side="right"))
        return float(self.tails[position - 1]) if position else SMALLEST_P

    def of_each(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """P(statistic <= value) for many values that occurred."""
        positions = np.searchsorted(self.values, values, side="right")
        return self.tails.take(positions - 1, mode="clip")

    def bound(self, p_value: float) -> int:
        """Lowest value whose tail is above ``p_value``: all values below it are extreme."""
        position = int(np.searchsorted(self.tails, p_value, side="right"))
        past_the_end = int(self.values[-1]) + 1
        return int(self.values[position]) if position < len(self.values) else past_the_end


class ExactJoint(msgspec.Struct, frozen=True):
    """Joint distribution of all families, exactly.

    Attributes
    ----------
    tasks
        P-values of single tasks.
    tails
        Those of each suite.
    """

    tasks: TaskTails
    tails: Sequence[SuiteTails]
    _lattice: _Lattice
    _known: dict[tuple[int, ...], float] = msgspec.field(default_factory=dict)

    @classmethod
    def of(
        cls, groups: Sequence[Group], suites: Sequence[SuiteStatistic], tasks: TaskTails
    ) -> ExactJoint | None:
        """Prepare the distribution, or return None where the lattice does not permit it."""
        lattice = _Lattice.of(groups, suites)
        tails = [SuiteTails.of_suite(suite, groups) for suite in suites if lattice]
        found = [tail for tail in tails if tail is not None]
        return cls(tasks, found, lattice) if lattice and len(found) == len(suites) else None

    def chance_of(self, p_value: float) -> float:
        """P(the smallest family p-value <= ``p_value``) under the null.

        Parameters
        ----------
        p_value
            In [0, 1]; ties are to be within the caller's tolerance already.

        Returns
        -------
        float
        """
        hit = int(np.searchsorted(self.tasks.smallest, p_value, side="right"))
        bounds = tuple(tails.bound(p_value) for tails in self.tails)
        if (hit, *bounds) not in self._known:
            self._known[hit, *bounds] = self._union(hit, bounds)
        return self._known[hit, *bounds]

    def _union(self, hit: int, bounds: Sequence[int]) -> float:
        """P(a task hits) + P(no task hits, but a suite statistic is extreme): no cancellation."""
        by_task = float(self.tasks.smallest[hit - 1]) if hit else 0.0
        if not bounds or by_task >= 1:
            return by_task
        clean = self._lattice.sum_without(self.tasks, hit)
        extreme = np.zeros(len(clean.values), dtype=bool)
        for digits, bound in zip(self._lattice.digits(clean.values), bounds, strict=True):
            extreme |= digits < bound
        by_suite = np.cumsum(clean.chances[extreme])
        return min(1.0, by_task + (float(by_suite[-1]) if by_suite.size else 0.0))


class _Lattice(msgspec.Struct, frozen=True):
    """Sums of several statistics at once, as sums of codes in mixed radix.

    The radix is wide enough that no statistic carries into the next. The widest one is the leading
    digit: its far tails can be cut off.
    """

    groups: Sequence[Group]
    suites: Sequence[SuiteStatistic]
    listed: bool = False

    @classmethod
    def of(cls, groups: Sequence[Group], suites: Sequence[SuiteStatistic]) -> _Lattice | None:
        """Choose how the sums are to be kept, or return None where there are too many."""
        lattice = cls(groups, suites)
        if prod(lattice.shape) >= _LARGEST_CODE or not MOST_WORK:
            return None
        cells = lattice._leading_width() * prod(lattice.shape[1:])
        if cells <= MOST_CELLS and cells * lattice._steps() <= MOST_WORK:
            return lattice
        return cls(groups, suites, listed=True) if lattice._sums() <= MOST_SUMS else None

    def sum(self) -> Mass:
        """Distribution of all statistics."""
        return self._sum_of(self._terms([0] * len(self.groups)))

    def sum_without(self, tasks: TaskTails, hit: int) -> Mass:
        """The same restricted to outcomes at which no task's p-value ranks below ``hit``."""
        return self._sum_of(
            self._terms([int(np.searchsorted(ranks, hit)) for ranks in tasks.ranks])
        )

    @property
    def order(self) -> list[int]:
        """Positions of the suites, the leading one first."""
        widths = [suite.largest(self.groups) for suite in self.suites]
        return sorted(range(len(widths)), key=lambda i: -widths[i])

    @property
    def shape(self) -> list[int]:
        """Number of values of each digit, the leading one first."""
        return [self.suites[i].largest(self.groups) + 1 for i in self.order]

    def digits(self, codes: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Values of each statistic, in the order of ``suites``."""
        unfolded = np.unravel_index(codes, self.shape)
        return [unfolded[self.order.index(i)] for i in range(len(self.suites))]

    def _sum_of(self, terms: Sequence[Term]) -> Mass:
        return sparse_sum(terms) if self.listed else dense_sum(terms, squaring=self._single)

    def _terms(self, first: Sequence[int]) -> list[Term]:
        """Codes and chances of each group's outcomes, from the first that is allowed on."""
        shape = self.shape
        strides = [prod(shape[axis + 1 :]) for axis in range(len(shape))]
        rises = [self.suites[i].rises for i in self.order]
        terms = []
        for index, (group, low) in enumerate(zip(self.groups, first, strict=True)):
            codes = [
                sum(r[index][x] * stride for r, stride in zip(rises, strides, strict=True))
                for x in range(low, len(group.outcomes))
            ]
            terms.append(_merged(codes, group.null.chances[low:], len(group.members)))
        return [term for term in terms if (term.shifts, term.chances) != ((0,), (1.0,))]

    @property
    def _single(self) -> bool:
        return len(self.suites) == 1

    def _sums(self) -> int:
        """Bound on the number of different sums."""
        return prod(
            comb(len(group.members) + len(group.outcomes) - 1, len(group.members))
            for group in self.groups
        )

    def _leading_width(self) -> float:
        """Values of the leading statistic that are left when far tails are cut off."""
        if not self.suites:
            return 1.0
        suite = self.suites[self.order[0]]
        largest = max((rises[-1] for rises in suite.rises), default=0)
        kept = 2 * reach(largest, suite.deviation(self.groups) ** 2) + largest
        return min(float(self.shape[0]), kept)

    def _steps(self) -> float:
        """Outcomes to be added, group by group."""
        steps = 0.0
        for index, group in enumerate(self.groups):
            times = len(group.members)
            if self._single and times >= SQUARING_PAYS:
                width = self.suites[0].rises[index][-1]
                steps += min(times * width + 1, 2 * reach(width, times * width * width / 4))
            elif not group.constant:
                steps += times * len(group.outcomes)
        return steps


def _merged(codes: Sequence[int], chances: Sequence[float], times: int) -> Term:
    """Add up outcomes that no statistic tells apart; codes never fall from one to the next."""
    merged: dict[int, float] = {}
    for code, chance in zip(codes, chances, strict=True):
        merged[code] = merged.get(code, 0.0) + chance
    return Term(tuple(merged), tuple(merged.values()), times)

"""Every claim adjusted over all claims: step-down min-p, after Westfall and Young.

Brings suites and single tasks on one scale, and bounds the chance that any claim not yet taken
looks as bad. Where the joint chance comes from, exactly or by draws, it does not know.

References
----------
Westfall and Young (1993), Resampling-based multiple testing, section 2.6.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from ci_gate.stats.suite_null import Group, TaskTails

_TIE = 1 + 1e-9
"""Relative width within which p-values of different families are equal: they come from different
sums, and differ in their last bits where the fractions behind them do not."""
_HOPELESS = 0.25
"""A task whose p-value is above this is adjusted by bounds: its exact joint chance costs a
convolution, and could not become small."""


class JointNull(Protocol):
    """The joint null distribution of all families."""

    def chance_of(self, p_value: float) -> float:
        """P(the smallest family p-value <= ``p_value``)."""
        ...


class Claims(msgspec.Struct, frozen=True):
    """Every claim's p-value on one scale: the chance that its family looks as bad.

    Attributes
    ----------
    groups, tails
        From :mod:`.suite_null`.
    suites
        P-value of each suite that carries information, by k.
    tasks
        For each group and each of its members the chance that *some* task has so small a p-value.
    """

    groups: Sequence[Group]
    tails: TaskTails
    suites: Mapping[int, float]
    tasks: tuple[NDArray[np.float64], ...]

    @classmethod
    def of(cls, groups: Sequence[Group], tails: TaskTails, suites: Mapping[int, float]) -> Claims:
        """Put the tasks' observed outcomes on the scale of the suites' p-values."""
        tasks = tuple(
            tails.smallest[ranks[np.array(group.observed) - group.first]]
            for group, ranks in zip(groups, tails.ranks, strict=True)
        )
        return cls(groups, tails, suites, tasks)

    @property
    def task_family_p(self) -> float:
        """Chance that some task has as small a p-value as the smallest observed."""
        return min((float(own.min()) for own in self.tasks), default=1.0)

    def gate_p(self, null: JointNull) -> float:
        """The joint min-p: what the most surprising claim is adjusted to."""
        return next(self._bounds(null), (1.0, 1.0))[1]

    def adjusted(self, null: JointNull) -> dict[float, float]:
        """Adjusted p-value for each p-value that a claim has.

        Parameters
        ----------
        null
            The joint distribution.

        Returns
        -------
        dict
            From p-value to adjusted p-value, both rising.

        Notes
        -----
        A claim is adjusted over the claims whose p-value is not smaller. The chance that one of
        them looks as bad is bounded by the joint chance over all claims, and by the sum of the
        chances of the suites and of the tasks left; the smaller bound is taken, and no claim gets
        less than the one before it.
        """
        bounds = list(self._bounds(null))
        running = accumulate((bound for _, bound in bounds), max)
        return dict(zip((step for step, _ in bounds), running, strict=True))

    def _bounds(self, null: JointNull) -> Iterator[tuple[float, float]]:
        for index, p_value in enumerate(self._steps()):
            reached = p_value if index == 0 else self._reached(p_value)
            suites = sum(p >= p_value for p in self.suites.values()) * p_value
            union = suites + self._chance_among_tasks(p_value)
            yield p_value, min(1.0, union, null.chance_of(reached * _TIE))

    def _steps(self) -> list[float]:
        tasks = (p for own in self.tasks for p in own.tolist())
        return sorted({*self.suites.values(), *tasks})

    def _reached(self, p_value: float) -> float:
        """Where the joint chance is read: for a hopeless task, at the next suite's p-value."""
        if p_value <= _HOPELESS:
            return p_value
        return min((p for p in self.suites.values() if p >= p_value), default=1.0)

    def _chance_among_tasks(self, p_value: float) -> float:
        """Chance that some task not yet taken looks as bad as ``p_value``."""
        if p_value > _HOPELESS:
            return p_value
        hit = int(np.searchsorted(self.tails.smallest, p_value * _TIE, side="right"))
        left = [int((own >= p_value).sum()) for own in self.tasks]
        return self.tails.any_of(float(self.tails.levels[hit - 1]), self.groups, left) if hit else 0

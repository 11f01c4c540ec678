"""What the rest of a plan may bring, as a distribution, given the rounds that were run.

A task's chance to pass is known through the baseline and the suite it stands in; what the change
did to it is told by the candidate's trials so far, all tasks together. Where seeds matter, every
seed has a chance of its own about its task's. Nothing here depends on the order of tasks or seeds.
It knows no test and no threshold, and draws nothing.

References
----------
Spiegelhalter, Freedman and Blackburn (1986), Monitoring clinical trials: conditional or predictive
power? Control. Clin. Trials 7.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import comb
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from ci_gate.stats.chances import GRID, Chances, fit_chances
from ci_gate.stats.changes import Change, of_other_tasks

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

TINY = 1e-300
_MOST_REDRAWN = 0.5
# Of a float's 1,023: a whole number of more bits is scaled first.
_FLOAT_BITS = 1000


class Cells(msgspec.Struct, frozen=True, kw_only=True):
    """The tasks of a look, sorted and counted: equal tasks are one class.

    Attributes
    ----------
    known
        Distinct strata, shape (cells, 5): baseline trials and passes, candidate trials and passes,
        and trials to come.
    classes
        Distinct tasks, shape (classes, positions), as places in ``known``.
    of_task
        Class of each task, in the caller's order.
    """

    known: Ints
    classes: Ints
    of_task: Ints

    @classmethod
    def of(cls, cells: Ints) -> Cells:
        """Sort counts.

        Parameters
        ----------
        cells
            Shape (tasks, positions, 5), at least one task.

        Returns
        -------
        Cells
        """
        tasks, positions, width = cells.shape
        known, places = np.unique(cells.reshape(-1, width), axis=0, return_inverse=True)
        rows = np.sort(places.reshape(tasks, positions), axis=1)
        classes, of_task = np.unique(rows, axis=0, return_inverse=True)
        return cls(known=known, classes=classes, of_task=of_task.reshape(-1))

    @property
    def sorted_tasks(self) -> Ints:
        """Class of each task, in an order that the caller's does not decide."""
        return np.sort(self.of_task)

    @property
    def sizes(self) -> Ints:
        """How many tasks each class has."""
        return np.bincount(self.of_task, minlength=len(self.classes))


class Predictive(msgspec.Struct, frozen=True, kw_only=True):
    """Chances of all that is still unknown.

    Attributes
    ----------
    cells
        What is known.
    changes
        Chance of each change, given all trials so far.
    states
        Chance of a task's states together with its trials so far, shape (changes, classes, blocks,
        grid). The two blocks are a task that was redrawn and one that was not; the grid is its
        chance to pass before the change.
    trials
        Chances of 0, 1, ... passes to come on a stratum, shape (changes, rows, blocks, grid,
        most + 1).
    rows
        Row of each stratum in ``trials``: strata about which the same is known share one.
    """

    cells: Cells
    changes: Floats
    states: Floats
    trials: Floats
    rows: Ints

    @classmethod
    def of(
        cls, cells: Cells, prior: Sequence[Change], *, by_seed: bool, sceptical: bool
    ) -> Predictive:
        """Condition the prior on everything known.

        Parameters
        ----------
        cells
            What is known.
        prior
            Changes, the first of them "unchanged".
        by_seed
            Whether a task's seeds differ in their chances.
        sceptical
            Which of the prior's weights count.

        Returns
        -------
        Predictive
        """
        chances, places = _chances(cells, by_seed)
        trials, rows = _trials(cells.known, prior, chances)
        seen = trials.sum(axis=-1)
        states = _states(prior, chances, chances.tasks[places])
        for position in cells.classes.T:
            states = states * seen[:, rows[position]]
        evidence = np.log(states.sum(axis=(2, 3)).clip(TINY)) @ cells.sizes
        before = np.array([c.sceptical if sceptical else c.weight for c in prior])
        changes = before * np.exp(evidence - evidence.max())
        return cls(
            cells=cells,
            changes=changes / changes.sum(),
            states=states,
            trials=trials / seen.clip(TINY)[..., None],
            rows=rows,
        )

    def of_class(self, number: int) -> Floats:
        """Chances of all ways in which a task may go on.

        Parameters
        ----------
        number
            Of its class.

        Returns
        -------
        ndarray, shape (changes, ways)
            The passes to come on its last position change fastest.
        """
        ways = self.states[:, number, :, :, None]
        for cell in self.cells.classes[number].tolist():
            row = self.trials[:, self.rows[cell], :, :, None, : self.left(cell) + 1]
            longer = ways[..., None] * row
            ways = longer.reshape(*ways.shape[:3], -1)
        total = ways.sum(axis=(1, 2))
        return np.asarray(total / total.sum(axis=1, keepdims=True).clip(TINY))

    def left(self, cell: int) -> int:
        """Trials to come on a stratum."""
        return int(self.cells.known[cell, 4])


def _chances(cells: Cells, by_seed: bool) -> tuple[Chances, Ints]:
    """What the baseline says of every task, and where each class stands in it."""
    rows = [tuple(sorted(map(tuple, row))) for row in cells.known[cells.classes, :2].tolist()]
    tasks = sorted(
        row for row, size in zip(rows, cells.sizes.tolist(), strict=True) for _ in range(size)
    )
    place = {row: index for index, row in reversed(list(enumerate(tasks)))}
    return _fitted(tuple(tasks), by_seed), np.array([place[row] for row in rows])


@lru_cache(maxsize=16)
def _fitted(tasks: tuple[tuple[tuple[int, ...], ...], ...], by_seed: bool) -> Chances:
    """The fit of a baseline, from trials and passes by position; the same at every look."""
    judged, passed = ([[cell[side] for cell in task] for task in tasks] for side in (0, 1))
    return fit_chances(judged, passed, by_seed=by_seed)


def _states(prior: Sequence[Change], chances: Chances, own: Floats) -> Floats:
    """Chance of every state before the candidate ran, in the shape of :class:`Predictive`'s.

    ``own`` has the baseline's row of each class.
    """
    tasks = len(chances.tasks)
    rate = [min(_MOST_REDRAWN, change.redrawn / tasks) for change in prior]
    redrawn = np.array(rate)[:, None, None]
    anew = np.broadcast_to(of_other_tasks(chances.tasks.mean(axis=0), GRID), own.shape)
    touched = np.broadcast_to(own, (len(prior), *own.shape))
    return np.stack([redrawn * anew, (1 - redrawn) * touched], axis=2)


def _trials(known: Ints, prior: Sequence[Change], chances: Chances) -> tuple[Floats, Ints]:
    """P(a stratum's trials so far, and passes to come | the task's state), and each stratum's row.

    A redrawn task's seeds are unknown, whatever their baseline was.
    """
    after = np.array([change.after(GRID) for change in prior])
    told = known if chances.within is not None else known[:, 2:]
    distinct, rows = np.unique(told, axis=0, return_inverse=True)
    most = int(known[:, 4].max())
    trials = np.zeros((len(prior), len(distinct), 2, len(GRID), most + 1))
    for row, (*baseline, done, passed, left) in enumerate(distinct.tolist()):
        kept = _binomials(after, done, passed, left)
        anew = kept[:1]
        if chances.within is not None:
            anew, kept = chances.within @ anew, chances.given(*baseline) @ kept
        for block, rates in enumerate((anew, kept)):
            trials[:, row, block, :, : left + 1] = rates
    return trials, rows.reshape(-1)


def _binomials(chances: Floats, done: int, passed: int, left: int) -> Floats:
    """P(trials done as they were, then so many of the left pass): shape (*chances, left + 1)."""
    passes, fails = (_powers(c, done + left) for c in (chances, 1 - chances))
    failed = done - passed
    return np.stack(
        [
            _product(_ways(left, e), passes[passed + e], fails[failed + left - e])
            for e in range(left + 1)
        ],
        axis=-1,
    )


class _Scaled(NamedTuple):
    """Numbers as ``mantissa * 2**exponent``: from 1,030 trials on a factor is beyond every float.

    Scaling is exact, so that products are rounded as those of floats are.
    """

    mantissa: Floats
    exponent: Ints


def _product(*factors: _Scaled) -> Floats:
    mantissa, exponent = factors[0]
    for factor in factors[1:]:
        mantissa = mantissa * factor.mantissa
        exponent = exponent + factor.exponent
    return np.asarray(np.ldexp(mantissa, exponent))


def _ways(of: int, chosen: int) -> _Scaled:
    ways = comb(of, chosen)
    shift = max(0, ways.bit_length() - _FLOAT_BITS)
    return _Scaled(np.asarray(float(ways >> shift)), np.asarray(shift))


def _powers(chances: Floats, most: int) -> list[_Scaled]:
    powers = [_Scaled(np.ones_like(chances), np.zeros(chances.shape, dtype=np.int64))]
    for _ in range(most):
        mantissa, exponent = np.frexp(powers[-1].mantissa * chances)
        powers.append(_Scaled(mantissa, powers[-1].exponent + exponent))
    return powers

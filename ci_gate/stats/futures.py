"""Futures of a check: ways in which the rest of its plan may go on, drawn or listed with chances.

Draws come from the project's generator, a place in the sorted suite each, so that neither the order
of tasks nor that of seeds decides any. Knows the predictive distribution; no test.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import msgspec
import numpy as np
from numpy.typing import NDArray

from ci_gate.stats.draws import Counter, stream_of
from ci_gate.stats.predictive import TINY, Predictive

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_GOLDEN = 0x9E3779B97F4A7C15
_STATES, _TRIALS = 0, 1


def listed(known: Predictive, most: int) -> tuple[Ints, Floats] | None:
    """List all futures with their chances, if there are no more than ``most``.

    Parameters
    ----------
    known
        The predictive distribution.
    most
        At least 1.

    Returns
    -------
    tuple or None
        Passes to come, shape (futures, tasks, positions), and the futures' chances.
    """
    tasks = known.cells.sorted_tasks.tolist()
    left = [[known.left(cell) for cell in known.cells.classes[task].tolist()] for task in tasks]
    sizes = [prod(1 + n for n in row) for row in left]
    if prod(sizes) > most:
        return None
    chances = known.changes[:, None]
    for task in tasks:
        longer = chances[:, :, None] * known.of_class(task)[:, None, :]
        chances = longer.reshape(len(chances), -1)
    ways = _ways([1 + n for row in left for n in row])
    return ways.reshape(len(ways), len(tasks), -1), chances.sum(axis=0)


def _ways(lengths: Sequence[int]) -> Ints:
    """All combinations of so many values each, the last changing fastest: (ways, lengths)."""
    number = np.arange(prod(lengths), dtype=np.int64)
    columns = []
    for length in reversed(lengths):
        columns.append(number % length)
        number = number // length
    return np.stack(columns[::-1], axis=1)


class Dealer(msgspec.Struct, frozen=True, kw_only=True):
    """The predictive distribution, laid out for draws.

    Attributes
    ----------
    tasks
        Class of each task, sorted.
    classes
        Rows of the positions of each class in ``trials``, shape (classes, positions).
    changes
        Chance of each change.
    states
        Cumulated chances of a task's states, shape (changes, classes, states - 1); None for a
        single position, where a state need not be drawn.
    trials
        Cumulated chances of passes to come: shape (changes, classes, most) for a single position,
        else (changes, states, rows, most).
    """

    tasks: Ints
    classes: Ints
    changes: Floats
    states: Floats | None
    trials: Floats

    @classmethod
    def of(cls, known: Predictive) -> Dealer:
        """Lay the distribution out."""
        single = known.cells.classes.shape[1] == 1
        return cls(
            tasks=known.cells.sorted_tasks,
            classes=known.rows[known.cells.classes],
            changes=known.changes,
            states=None if single else _cumulated_states(known),
            trials=_single_trials(known) if single else _trials_by_state(known),
        )

    def draw(self, first: int, count: int, seed: int) -> Ints:
        """Draw passes to come.

        Parameters
        ----------
        first, count
            Which futures, so that draws can be continued.
        seed
            Of the draws.

        Returns
        -------
        ndarray, shape (count, tasks, positions)
        """
        changes = self._changes(first, count)[:, None]
        shape = (count, len(self.tasks))
        if self.states is None:
            tails = self.trials[changes, self.tasks]
            return _passes(_uniform(first, shape, seed, _TRIALS), tails)[..., None]
        flat = self.states.reshape(-1, self.states.shape[2])
        places = changes * self.states.shape[1] + self.tasks
        states = _search_rows(flat, places, _uniform(first, shape, seed, _STATES))
        passes = [
            _passes(
                _uniform(first, shape, seed, _TRIALS + position),
                self.trials[changes, states, rows[self.tasks]],
            )
            for position, rows in enumerate(self.classes.T)
        ]
        return np.stack(passes, axis=2)

    def _changes(self, first: int, count: int) -> Ints:
        """Change of each future: evenly spread, so that chance adds nothing to their shares."""
        places = np.arange(first + 1, first + count + 1, dtype=np.uint64) * np.uint64(_GOLDEN)
        tails = np.cumsum(self.changes)[:-1]
        return np.searchsorted(tails, _fraction(places), side="right").astype(np.int64)


def _cumulated_states(known: Predictive) -> Floats:
    changes, classes = known.states.shape[:2]
    return _cumulated(known.states.reshape(changes, classes, -1))


def _single_trials(known: Predictive) -> Floats:
    """Over all states of the only position of each class."""
    changes, classes = known.states.shape[:2]
    rows = known.rows[known.cells.classes[:, 0]]
    states = known.states.reshape(changes, classes, -1)
    trials = known.trials.reshape(changes, len(known.trials[0]), states.shape[2], -1)
    chances = np.empty((changes, classes, trials.shape[3]))
    for row in range(trials.shape[1]):
        chances[:, rows == row] = states[:, rows == row] @ trials[:, row]
    return _cumulated(chances)


def _trials_by_state(known: Predictive) -> Floats:
    by_state = np.moveaxis(known.trials, 1, 3)
    changes, blocks, grid, rows, most = by_state.shape
    return _cumulated(by_state.reshape(changes, blocks * grid, rows, most))


def _cumulated(chances: Floats) -> Floats:
    """Cumulated along the last axis up to 1, which is left out."""
    tails = np.cumsum(chances, axis=-1)
    return np.asarray((tails / tails[..., -1:].clip(TINY))[..., :-1])


def _passes(chance: Floats, tails: Floats) -> Ints:
    """Inverse of the cumulated chances in the last axis of ``tails``."""
    passed = np.zeros(chance.shape, dtype=np.int64)
    for tail in np.moveaxis(tails, -1, 0):
        passed += chance >= tail
    return passed


def _search_rows(tails: Floats, rows: Ints, chance: Floats) -> Ints:
    """Place of each chance in a row of its own: row ``r`` is laid out in [r, r + 1)."""
    starts = np.arange(len(tails), dtype=np.float64)[:, None]
    laid = (tails.clip(0, 1 - 1e-9) + starts).reshape(-1)
    found = np.searchsorted(laid, rows + chance, side="right") - rows * tails.shape[1]
    return np.asarray(found.clip(0, tails.shape[1]), dtype=np.int64)


def _uniform(first: int, shape: tuple[int, int], seed: int, purpose: int) -> Floats:
    """In [0, 1): futures x tasks, from the future ``first`` on."""
    words = Counter.at(first * shape[1], shape[0] * shape[1]).words(stream_of(seed, purpose))
    return _fraction(words).reshape(shape)


def _fraction(words: NDArray[np.uint64]) -> Floats:
    """In [0, 1), from the upper 53 bits."""
    return np.asarray((words >> np.uint64(11)).astype(np.float64) * 2.0**-53)

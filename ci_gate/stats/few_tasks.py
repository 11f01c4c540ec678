"""Which claims would be red in a suite of a few tasks? Every future against its own null.

Among few tasks sums are far apart and families nearly one, so that no expansion holds. Here all
deals of a future's passes are listed where they are few, and drawn otherwise. Knows kinds of tasks;
where few tasks end is decided by the caller.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import msgspec
import numpy as np
from numpy.typing import NDArray

from ci_gate.stats.future_kinds import DIGITS, Kinds, differences

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

MOST_LISTED = 1 << 20
"""Deals that are listed, of all futures together; beyond it, they are drawn."""
DRAWN = 1024
"""Deals of each future otherwise."""
_TIE = 10.0**-DIGITS


class OwnNull(msgspec.Struct, frozen=True):
    """Deals of the passes of each future.

    Attributes
    ----------
    kinds
        Of distinct futures.
    outcomes
        Shape (futures, deals, tasks).
    weights
        Chance of each deal, shape (futures, deals).
    exact
        Whether all deals are listed.
    """

    kinds: Kinds
    outcomes: Ints
    weights: Floats
    exact: bool

    @classmethod
    def of(cls, kinds: Kinds, seed: int) -> OwnNull:
        """List or draw the deals.

        Parameters
        ----------
        kinds
            Of the futures.
        seed
            Of the deals that are drawn.

        Returns
        -------
        OwnNull
        """
        futures, tasks = kinds.of.shape
        possible = kinds.chances > 0
        first = possible.argmax(axis=1)[kinds.of]
        most = int(possible.sum(axis=1)[kinds.of].max())
        if futures * most**tasks > MOST_LISTED:
            drawn = kinds.deal(seed, 0, DRAWN)
            return cls(kinds, drawn, np.full(drawn.shape[:2], 1 / DRAWN), exact=False)
        offsets = np.indices((most,) * tasks).reshape(tasks, -1).T
        listed = first[:, None, :] + offsets
        beyond = listed >= kinds.outcomes
        listed[beyond] = 0
        chances = np.where(beyond, 0.0, kinds.chances[kinds.of[:, None, :], listed])
        return cls(kinds, listed, chances.prod(axis=2), exact=True)

    def red(self, ks: Sequence[int], level: float, phi: float | None) -> tuple[Bools, Bools]:
        """Say which claims lie at or below the critical value of the joint min-p.

        Parameters
        ----------
        ks
            The suite metrics, pass^k.
        level
            In (0, 1).
        phi
            By which observed suite statistics are shrunk.

        Returns
        -------
        suites, tasks
            Shapes (futures, ks) and (futures, tasks).
        """
        tails = self.kinds.tails
        single = tails[self.kinds.of, self.kinds.passed[self.kinds.of]]
        family = _Ranked.of(self._values(tails).min(axis=2), self.weights)
        suites, observed = [], []
        for k in ks:
            values = differences(self.kinds, k)[0]
            suites.append(_Ranked.of(self._values(values).sum(axis=2), self.weights))
            observed.append(self._observed(values, phi))
        least = np.min([family.p_values, *(suite.p_values for suite in suites)], axis=0)
        critical = _Ranked.of(least, self.weights).largest_below(level)
        found = [
            suite.of_value(seen) <= critical for suite, seen in zip(suites, observed, strict=True)
        ]
        tasks = np.stack([family.of_value(own) <= critical for own in single.T], axis=1)
        return np.array(found, dtype=bool).reshape(len(ks), len(tasks)).T, tasks

    def _values(self, table: Floats) -> Floats:
        """A table's entries for all deals: shape (futures, deals, tasks)."""
        return np.asarray(table[self.kinds.of[:, None, :], self.outcomes])

    def _observed(self, values: Floats, phi: float | None) -> Floats:
        """A suite's sum in each future, drawn towards its null mean by phi."""
        of, passed = self.kinds.of, self.kinds.passed
        seen = np.asarray(values[of, passed[of]].sum(axis=1))
        if phi is None or phi <= 1:
            return seen
        mean = (values * self.kinds.chances).sum(axis=1)[of].sum(axis=1)
        return np.asarray(mean + (seen - mean) / sqrt(phi))


class _Ranked(msgspec.Struct, frozen=True):
    """A statistic over the deals of each future, low values being extreme.

    ``values`` are sorted in each row, ``tails`` the chance of each or a lower one; ``p_values`` are
    the same in the order of the deals.
    """

    values: Floats
    tails: Floats
    p_values: Floats

    @classmethod
    def of(cls, values: Floats, weights: Floats) -> _Ranked:
        values = np.round(values, DIGITS)
        order = np.argsort(values, axis=1, kind="stable")
        ordered = np.take_along_axis(values, order, axis=1)
        tails = np.cumsum(np.take_along_axis(weights, order, axis=1), axis=1)
        # Equal values have one tail, that of the last of them.
        last = np.ones(values.shape, dtype=bool)
        last[:, :-1] = ordered[:, 1:] > ordered[:, :-1]
        tails = np.where(last, tails, np.inf)
        tails = np.minimum.accumulate(tails[:, ::-1], axis=1)[:, ::-1]
        tails = np.round(tails, DIGITS)
        p_values = np.empty_like(tails)
        np.put_along_axis(p_values, order, tails, axis=1)
        return cls(ordered, tails, p_values)

    def of_value(self, value: Floats) -> Floats:
        """P(value or less), one value for each future."""
        below = (self.values <= value[:, None] + _TIE).sum(axis=1)
        tails = self.tails[np.arange(len(below)), np.maximum(below - 1, 0)]
        return np.asarray(np.where(below > 0, tails, 0.0))

    def largest_below(self, level: float) -> Floats:
        """Largest value of each row whose tail is no more than ``level``; -1 if there is none."""
        below = (self.tails <= level + _TIE).sum(axis=1)
        values = self.values[np.arange(len(below)), np.maximum(below - 1, 0)]
        return np.asarray(np.where(below > 0, values, -1.0))

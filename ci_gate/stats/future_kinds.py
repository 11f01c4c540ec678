"""All ways in which a task of simulated futures may have come out, each tabulated once.

Thousands of futures of one check share a few hundred of them. Their null distributions, differences
of pass^k and deals are here; p-values and claims are not.
"""

from __future__ import annotations

from math import comb, lcm

import msgspec
import numpy as np
from numpy.typing import NDArray

from ci_gate.stats.draws import Counter, mixed, stream_of
from ci_gate.stats.hypergeometric import candidate_null

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

DIGITS = 10
"""Decimals that sums of chances and of differences are told apart by."""
_LARGEST_SCALE = 1 << 50


class Kinds(msgspec.Struct, frozen=True):
    """Distinct ways in which a task of the futures may have come out.

    ``of`` has shape (futures, tasks). The others are by kind, outcomes counted from no pass on:
    ``chances`` of the candidate's passes under the null, shape (kinds, outcomes); baseline trials,
    candidate trials, passes of both; and the candidate's ``passed``.
    """

    of: Ints
    chances: Floats
    baseline_n: Ints
    candidate_n: Ints
    total: Ints
    passed: Ints

    @classmethod
    def among(cls, fixed: Ints, passed: Ints) -> Kinds:
        """Find them.

        Parameters
        ----------
        fixed
            Baseline trials, baseline passes and candidate trials, shape (tasks, positions, 3).
        passed
            Candidate's passes, shape (futures, tasks, positions).
        """
        marks = _marks(fixed, passed)
        _, first, of = np.unique(marks, return_index=True, return_inverse=True)
        at, task = np.unravel_index(first, marks.shape)
        cells = np.concatenate([fixed[task], passed[at, task][..., None]], axis=2)
        n, before, trials, after = np.moveaxis(cells, 2, 0)
        return cls(
            of=of.reshape(marks.shape),
            chances=_null_chances(n, trials, before + after),
            baseline_n=n.sum(axis=1),
            candidate_n=trials.sum(axis=1),
            total=(before + after).sum(axis=1),
            passed=after.sum(axis=1),
        )

    @property
    def outcomes(self) -> int:
        """Outcomes that are tabulated."""
        return int(self.chances.shape[1])

    @property
    def tails(self) -> Floats:
        """P(so many passes or fewer): each outcome's p-value, shape (kinds, outcomes)."""
        return np.asarray(np.round(np.cumsum(self.chances, axis=1), DIGITS))

    @property
    def informative(self) -> Bools:
        """Which tasks can come out in more than one way, shape (futures, tasks)."""
        return np.asarray(((self.chances > 0).sum(axis=1) > 1)[self.of])

    def some(self, futures: Bools | Ints) -> Kinds:
        """The same for some of the futures only."""
        return msgspec.structs.replace(self, of=self.of[futures])

    def sums(self, values: Floats) -> Floats:
        """Sum of a row of values over the tasks of each future: (kinds, n) to (futures, n).

        Added up task by task, in the same order on every machine.
        """
        total = np.zeros((len(self.of), values.shape[1]))
        for kinds in self.of.T:
            total += values[kinds]
        return total

    def deal(self, seed: int, number: int, deals: int = 1) -> Ints:
        """Deal the passes of every task of every future afresh: shape (futures, deals, tasks)."""
        futures, tasks = self.of.shape
        words = Counter.at(0, self.of.size * deals).words(stream_of(seed, number))
        chance = (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
        chance = chance.reshape(futures, deals, tasks)
        dealt = np.zeros(chance.shape, dtype=np.int64)
        for tail in np.cumsum(self.chances, axis=1).T[:-1]:
            dealt += chance >= tail[self.of][:, None, :]
        # What rounding left above the last tail is the last outcome that is possible.
        last = self.outcomes - 1 - (self.chances[:, ::-1] > 0).argmax(axis=1)
        return np.asarray(np.minimum(dealt, last[self.of][:, None, :]))


def differences(kinds: Kinds, k: int) -> tuple[Floats, float]:
    """Candidate's less baseline's pass^k for each outcome, and the step of all such sums.

    Tasks with fewer than ``k`` trials on a side do not enter. The step is 0 where it is too fine.
    """
    outcomes = np.arange(kinds.outcomes)
    rest = (kinds.total[:, None] - outcomes).clip(0)
    enters = (np.minimum(kinds.baseline_n, kinds.candidate_n) >= k)[:, None]
    most = max(int(rest.max()), int(kinds.baseline_n.max()), kinds.outcomes - 1)
    ways = np.array([comb(v, k) for v in range(1 + most)], dtype=float)
    before, after = (ways[n].clip(1)[:, None] for n in (kinds.baseline_n, kinds.candidate_n))
    differences = ways[outcomes] / after - ways[rest] / before
    differences = np.where(enters & (kinds.chances > 0), differences, 0.0)
    return differences, _step(differences, kinds, enters[:, 0], k)


def _step(differences: Floats, kinds: Kinds, enters: Bools, k: int) -> float:
    sizes = {*kinds.baseline_n[enters].tolist(), *kinds.candidate_n[enters].tolist()}
    scale = lcm(*(comb(n, k) for n in sizes))
    if scale > _LARGEST_SCALE:
        return 0.0
    possible = kinds.chances > 0
    scaled = np.rint(differences * scale).astype(np.int64)
    first = scaled[np.arange(len(scaled)), possible.argmax(axis=1)]
    rises = np.where(possible & enters[:, None], scaled - first[:, None], 0)
    return float(np.gcd.reduce(rises, axis=None)) / scale


def _marks(fixed: Ints, passed: Ints) -> NDArray[np.uint64]:
    """A number for each task of each future, equal where all counts are, whatever the seeds' order.

    A sum of scrambled numbers stands for the set of a task's positions; its 64 bits do not collide.
    """
    most = 1 + int(fixed.max())
    cells = (fixed[..., 0] * most + fixed[..., 1]) * most + fixed[..., 2]
    codes = cells[..., None] * most + np.arange(1 + int(fixed[..., 2].max()))
    table = mixed(mixed(codes.astype(np.uint64)))
    tasks, positions = np.indices(fixed.shape[:2])
    return np.asarray(table[tasks, positions, passed].sum(axis=2, dtype=np.uint64))


def _null_chances(baseline_n: Ints, candidate_n: Ints, total: Ints) -> Floats:
    """Chances of the candidate's passes, all positions together: shape (kinds, outcomes)."""
    cells = np.stack([baseline_n, candidate_n, total], axis=2)
    known, places = np.unique(cells.reshape(-1, 3), axis=0, return_inverse=True)
    single = np.zeros((len(known), 1 + int(candidate_n.max())))
    for row, (before, after, passed) in zip(single, known.tolist(), strict=True):
        null = candidate_null(((before, after, passed),))
        row[null.first : null.first + len(null.chances)] = null.chances
    places = places.reshape(cells.shape[:2])
    chances = np.zeros((len(cells), 1 + int(candidate_n.sum(axis=1).max())))
    chances[:, 0] = 1.0
    for position in places.T:
        chances = _convolved(chances, single[position])
    return chances


def _convolved(left: Floats, right: Floats) -> Floats:
    """Row by row, kept to the width of ``left``, beyond which nothing is possible."""
    total = left * right[:, :1]
    for shift in range(1, right.shape[1]):
        total[:, shift:] += left[:, : left.shape[1] - shift] * right[:, shift : shift + 1]
    return total

"""Would the full plan be red? The chance of it, given the rounds that were run.

Draws the trials that are still to come from their predictive distribution and asks of each future
what the gate's own test would say of it. Decides no stop: what chance is small enough is told by
policy. It knows no task ids, no rounds and no policy.

References
----------
Spiegelhalter, Freedman and Blackburn (1986), Monitoring clinical trials: conditional or predictive
power? Control. Clin. Trials 7. Jennison and Turnbull (2000), Group Sequential Methods, chapter 10.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import sqrt

import msgspec
import numpy as np
from numpy.typing import NDArray

from ci_gate.stats.changes import PRIOR
from ci_gate.stats.counts import Strata, TaskCounts
from ci_gate.stats.draws import stream_of
from ci_gate.stats.future_claims import Claims, judge
from ci_gate.stats.futures import Dealer, listed
from ci_gate.stats.permutation import joint_test
from ci_gate.stats.predictive import Cells, Predictive

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FUTURES = (128, 512, 1024, 2048, 4096)
"""Futures that are drawn, more of them as long as much hangs on the result."""
THRESHOLDS = (0.01, 0.05, 0.95, 0.99)
"""Chances that a stop may hang on: near them more futures are drawn."""
_LARGEST_BATCH = 100_000
_MOST_TRIALS = 1 << 20
_MOST_LISTED = 1024
_STANDARD_ERRORS = 3
_DIGITS = 9
_LEAST = 10.0**-_DIGITS


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """What is known after a round; every array has shape (tasks, positions).

    Attributes
    ----------
    baseline_n, baseline_passed
        The baseline's judged trials and passes. A position is a stratum: a seed where strata are
        (task, seed), else the single position 0 with all trials of the task.
    candidate_n, candidate_passed
        The candidate's so far.
    planned_n
        Its judged trials at the end of the full plan, at least ``candidate_n``; trials that were
        lost for good are left out.
    """

    baseline_n: Ints
    baseline_passed: Ints
    candidate_n: Ints
    candidate_passed: Ints
    planned_n: Ints


class Prediction(msgspec.Struct, frozen=True, kw_only=True):
    """Chances of what the full plan would say.

    Attributes
    ----------
    red
        Of its joint test.
    suites
        Of the claim that the suite's pass^k dropped, adjusted; by k.
    tasks
        Of the claim of each task, adjusted.
    """

    red: float
    suites: Mapping[int, float]
    tasks: tuple[float, ...]


def predict(
    look: Look,
    *,
    strata: Strata,
    ks: Sequence[int],
    level: float,
    seed: int,
    phi: float | None = None,
    sceptical: bool = False,
) -> Prediction:
    """Foresee what the full plan would say.

    Parameters
    ----------
    look
        What is known. Tasks that a side does not judge enter nothing and are never red. Neither
        the order of the tasks nor, within a task, that of the seeds decides anything.
    strata, ks, level, phi
        Those of the full plan's joint test, without a margin.
    seed
        Of the draws. Equal looks and seeds give equal predictions.
    sceptical
        Whether the prior is to put less trust in "nothing changed", for stops that are to agree
        with nearly every single verdict.

    Returns
    -------
    Prediction
        Exactly 0 or 1 only where it is certain: where no trial is left, where nothing can drop, or
        where all futures could be listed. Elsewhere half a future is added to either outcome.

    Raises
    ------
    ValueError
        If there is no task, or a count is outside its range.

    Notes
    -----
    The suite's change is drawn from :data:`.PRIOR`, weighed by its likelihood given all trials so
    far; futures come from the exact predictive given a change, and are judged as in
    :mod:`.future_claims`. While the chance lies within three standard errors of a threshold that a
    stop may hang on, more are drawn, up to 4,096 (fewer for more than 250 tasks): the standard
    error is then .0034 at .05 and .0016 at .01.
    """
    cells = _cells(look, strata)
    known = Cells.of(cells)
    if not cells[..., 1].any():
        return _certain(len(cells), ks)
    if not cells[..., 4].any():
        return _final(cells, strata, ks, level, seed, phi)
    predictive = Predictive.of(known, PRIOR, by_seed=strata == "task,seed", sceptical=sceptical)
    gate = _Gate(known, ks, level, seed, phi)
    return gate.listed(predictive) or gate.drawn(predictive)


def _certain(tasks: int, ks: Sequence[int]) -> Prediction:
    """Nothing ever passed: nothing can drop."""
    return Prediction(red=0.0, suites=dict.fromkeys(ks, 0.0), tasks=(0.0,) * tasks)


def _final(
    cells: Ints, strata: Strata, ks: Sequence[int], level: float, seed: int, phi: float | None
) -> Prediction:
    """No trial is left: the test itself."""
    tasks = [
        TaskCounts(
            baseline_n=tuple(n),
            baseline_passed=tuple(c),
            candidate_n=tuple(done),
            candidate_passed=tuple(passed),
        )
        for n, c, done, passed, _ in np.moveaxis(cells, 2, 1).tolist()
    ]
    test = joint_test(tasks, strata=strata, ks=ks, level=level, seed=seed, phi=phi)
    return Prediction(
        red=float(test.p_value <= level),
        suites={k: float(test.families[k].p_adjusted <= level) for k in ks},
        tasks=tuple(float(p <= level) for p in test.task_p_adjusted),
    )


class _Gate(msgspec.Struct, frozen=True):
    """The test that futures of one look are judged by."""

    known: Cells
    ks: Sequence[int]
    level: float
    seed: int
    phi: float | None

    def listed(self, predictive: Predictive) -> Prediction | None:
        """Judge all futures, if they and their nulls can be listed."""
        futures = listed(predictive, _MOST_LISTED)
        if futures is None:
            return None
        to_come, chances = futures
        claims = self._claims(to_come, 0)
        if not claims.exact:
            return None
        found = [_weighed(hits, chances) for hits in (claims.red[:, None], claims.suites)]
        return self._prediction(found[0][0], found[1], _weighed(claims.tasks, chances))

    def drawn(self, predictive: Predictive) -> Prediction:
        """Judge a sample of the futures, a larger one where much hangs on it."""
        dealer = Dealer.of(predictive)
        hits = np.zeros(1 + len(self.ks) + len(self.known.of_task))
        drawn = 0
        for first, count in self._batches():
            if first in FUTURES and not _close(hits[0], drawn):
                break
            claims = self._claims(dealer.draw(first, count, stream_of(self.seed, 0)), first)
            found = (claims.red[:, None], claims.suites, claims.tasks)
            hits += np.concatenate([own.sum(axis=0) for own in found])
            drawn += count
        red, suites, single = np.split((hits + 0.5) / (drawn + 1), [1, 1 + len(self.ks)])
        return self._prediction(red[0], suites, single)

    def _batches(self) -> Iterator[tuple[int, int]]:
        """First future and size of each batch, small enough for memory and patience."""
        tasks = len(self.known.of_task)
        largest = max(1, _LARGEST_BATCH // tasks)
        aims = [aim for aim in FUTURES if aim * tasks <= _MOST_TRIALS] or FUTURES[:1]
        first = 0
        for aim in aims:
            while first < aim:
                count = min(largest, aim - first)
                yield first, count
                first += count

    def _claims(self, to_come: Ints, first: int) -> Claims:
        fixed = self.known.known[self.known.classes[self.known.sorted_tasks]]
        planned = fixed[..., 2] + fixed[..., 4]
        return judge(
            np.stack([fixed[..., 0], fixed[..., 1], planned], axis=2),
            fixed[..., 3] + to_come,
            ks=self.ks,
            level=self.level,
            seed=stream_of(self.seed, 1 + first),
            phi=self.phi,
        )

    def _prediction(self, red: float, suites: Floats, tasks: Floats) -> Prediction:
        """Equal tasks have one chance, whatever their places drew."""
        classes = self.known.sorted_tasks
        by_class = np.bincount(classes, weights=tasks) / np.bincount(classes)
        return Prediction(
            red=round(float(red), _DIGITS),
            suites={k: round(p, _DIGITS) for k, p in zip(self.ks, suites.tolist(), strict=True)},
            tasks=tuple(round(p, _DIGITS) for p in by_class[self.known.of_task].tolist()),
        )


def _cells(look: Look, strata: Strata) -> Ints:
    """Counts of every stratum that the test will read; the others are all 0."""
    n, c, done, passed, planned = (
        np.asarray(counts, dtype=np.int64)
        for counts in (
            look.baseline_n,
            look.baseline_passed,
            look.candidate_n,
            look.candidate_passed,
            look.planned_n,
        )
    )
    cells = np.stack([n, c, done, passed, planned - done], axis=2)
    if not cells.size or (cells < 0).any() or (c > n).any() or (passed > done).any():
        raise ValueError(
            "a look has a task, and in each position 0 <= baseline_passed <= baseline_n and "
            "0 <= candidate_passed <= candidate_n <= planned_n"
        )
    if strata == "task":
        cells = cells.sum(axis=1, keepdims=True)
    judged = (cells[..., 0] > 0) & (cells[..., 2] + cells[..., 4] > 0)
    return np.asarray(cells * judged[..., None])


def _weighed(hits: NDArray[np.bool_], chances: Floats) -> Floats:
    """Chance of each column; exactly 0 or 1 where every possible future agrees."""
    possible = chances > 0
    shares = (hits * chances[:, None]).sum(axis=0) / chances.sum()
    never, always = ~hits[possible].any(axis=0), hits[possible].all(axis=0)
    return np.asarray(np.select([never, always], [0.0, 1.0], shares.clip(_LEAST, 1 - _LEAST)))


def _close(red: float, drawn: int) -> bool:
    """Whether a threshold lies within the error."""
    share = (red + 0.5) / (drawn + 1)
    error = sqrt(share * (1 - share) / drawn)
    return any(abs(share - t) < _STANDARD_ERRORS * error for t in THRESHOLDS)

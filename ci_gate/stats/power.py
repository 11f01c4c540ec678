"""What a plan would see of a change, before it costs anything: chance of detection by simulation.

Draws every task's chance from what the baseline says of it, changes the chances, deals the trials
of the plan and asks the gate's own test. The draws come from the project's generator, so that the
same counts give the same answer everywhere. It knows no money, no time and no task ids.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import sqrt
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ci_gate.stats.chances import GRID, Chances, fit_chances
from ci_gate.stats.counts import Strata
from ci_gate.stats.draws import Counter, stream_of
from ci_gate.stats.quick_verdict import SimulatedRuns, blocked

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Shape = Literal["none", "shift", "flaky", "broken"]

FLAKY_ABOVE, FLAKY_FACTOR = 0.9, 0.9
"""What ``flaky`` does: tasks above the one pass so much less often."""
BATCH = 1024
MOST_REPEATS = 8192
_LARGEST_BATCH = 1_000_000
_LARGEST_SHIFT = 60.0
_HALVINGS = 50


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """A change of the agent, as far as chances to pass go.

    Attributes
    ----------
    shape
        "none". "shift": every logit falls alike, so that the suite's pass^1 falls by ``drop``.
        "flaky": tasks that pass more than 90 % of the time lose a tenth of it. "broken": the best
        task always fails.
    drop
        Of a shift, in (0, 1); other shapes have a drop of their own.
    """

    shape: Shape
    drop: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """Trials of a check and runs of the baseline that it is held against.

    Attributes
    ----------
    trials
        Seeds of each task, in the order of the baseline's tasks; each at least 1.
    runs
        Runs over the seeds in the baseline, at least as many as it has.
    """

    trials: tuple[int, ...]
    runs: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Detection:
    """How often a change is blocked.

    Attributes
    ----------
    share
        Of the simulated checks.
    repeats
        Checks that were simulated.
    drop
        Of the suite's pass^1 that the change stands for.
    """

    share: float
    repeats: int
    drop: float

    @property
    def error(self) -> float:
        """Two standard errors; with one added to both outcomes, so that it is never 0."""
        share = (self.share * self.repeats + 1) / (self.repeats + 2)
        return 2 * sqrt(share * (1 - share) / self.repeats)


@dataclass(frozen=True, kw_only=True)
class Gate:
    """The test that a plan is judged by.

    Attributes
    ----------
    level
        In (0, 1).
    ks
        The suite metrics, pass^k.
    strata
        What the gate will exchange.
    seed
        Of all draws.
    phi
        By which suite statistics are shrunk, None where they are not.
    """

    level: float
    ks: tuple[int, ...]
    strata: Strata
    seed: int
    phi: float | None = None


@dataclass(frozen=True, kw_only=True)
class KnownSuite:
    """A baseline, as counts.

    Attributes
    ----------
    judged, passed
        Trials of each task on each seed, over the runs.
    runs
        Runs over the seeds.
    by_seed
        Whether a task's seeds differ in their chances.

    Raises
    ------
    ValueError
        If there is no task, or a task without a judged trial.
    """

    judged: tuple[tuple[int, ...], ...]
    passed: tuple[tuple[int, ...], ...]
    runs: int
    by_seed: bool
    order: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        if not self.judged or not all(map(any, self.judged)):
            raise ValueError("a suite has tasks, and every task a judged trial")
        tasks = list(zip(self.judged, self.passed, strict=True))
        # Draws belong to places in a sorted order: the order of the tasks decides nothing.
        order = tuple(sorted(range(len(tasks)), key=tasks.__getitem__))
        object.__setattr__(self, "order", order)

    @cached_property
    def chances(self) -> Chances:
        """What the trials say of the tasks' chances, in sorted order."""
        return fit_chances(
            [self.judged[t] for t in self.order],
            [self.passed[t] for t in self.order],
            by_seed=self.by_seed,
        )

    @property
    def best(self) -> int:
        """Place of the task with the highest chance, in sorted order."""
        return int(np.round(self.chances.tasks @ GRID, 12).argmax())

    @cached_property
    def weights(self) -> Floats:
        """Share of the suite's trials at each chance of a task, and of a seed where they differ."""
        if not self.by_seed:
            return np.asarray(self.chances.tasks.mean(axis=0))
        size = len(GRID)
        total = np.zeros((size, size))
        for tasks, t in zip(self.chances.tasks, self.order, strict=True):
            cells = list(zip(self.judged[t], self.passed[t], strict=True))
            seeds = [self.chances.given(n, c) for n, c in cells]
            total += tasks[:, None] * sum(seeds) / len(cells)
        return np.asarray(total / len(self.order))

    @property
    def own(self) -> Floats:
        """The chances that ``weights`` are of."""
        return np.broadcast_to(GRID, self.weights.shape)

    @property
    def pass_1(self) -> float:
        """The suite's pass^1 as fitted."""
        return float((self.weights * self.own).sum())

    @property
    def largest_shift(self) -> float:
        """Largest drop of pass^1 by a shift: chances beyond the grid stay where they are."""
        return _drop(self, _shifted(self, _LARGEST_SHIFT))


def changed_chances(suite: KnownSuite, change: Change) -> Floats | None:
    """Chances after a change, in the shape of ``suite.weights``; None if it cannot fall so far.

    Parameters
    ----------
    suite
        For what a drop means.
    change
        A broken task is left as it is here.

    Returns
    -------
    ndarray or None
    """
    if change.shape == "flaky":
        good = (GRID > FLAKY_ABOVE).reshape(-1, *[1] * (suite.weights.ndim - 1))
        return np.where(good, FLAKY_FACTOR * suite.own, suite.own)
    if change.shape != "shift":
        return np.array(suite.own)
    if suite.largest_shift < change.drop:
        return None
    low, high = 0.0, _LARGEST_SHIFT
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        enough = _drop(suite, _shifted(suite, middle)) >= change.drop
        low, high = (low, middle) if enough else (middle, high)
    return _shifted(suite, high)


def _shifted(suite: KnownSuite, shift: float) -> Floats:
    odds = suite.own * np.exp(-shift)
    return np.asarray(odds / (1 - suite.own + odds))


def _drop(suite: KnownSuite, changed: Floats) -> float:
    return float((suite.weights * (suite.own - changed)).sum())


def detection(
    suite: KnownSuite,
    plan: Plan,
    change: Change,
    gate: Gate,
    *,
    most_error: float = 0.02,
    most_repeats: int = MOST_REPEATS,
) -> Detection | None:
    """Simulate checks until the chance to be blocked is known well enough.

    Parameters
    ----------
    suite
        The baseline. Its own outcomes stay as they are; runs that the plan adds are drawn, and all
        of it is drawn afresh where the plan has more seeds than it.
    plan, change, gate
        What is simulated.
    most_error
        Wanted two standard errors, reached by doubling.
    most_repeats
        Bound on the repeats.

    Returns
    -------
    Detection or None
        None where the suite cannot fall by so much.

    Notes
    -----
    Different plans and changes meet the same draws, so that their differences are sharper than the
    figures themselves.
    """
    changed = changed_chances(suite, change)
    if changed is None:
        return None
    world = _World(suite, plan, gate.seed, by_seed=gate.strata == "task,seed")
    broken = suite.best if change.shape == "broken" else None
    drop = _drop(suite, changed) + _broken_drop(suite, broken)
    red = repeats = 0
    while True:
        aim = min(most_repeats, 2 * repeats or BATCH)
        while repeats < aim:
            size = min(world.batch, aim - repeats)
            runs = world.runs(repeats, size, changed, broken)
            red += int(_verdicts(runs, gate, repeats).sum())
            repeats += size
        found = Detection(share=red / repeats, repeats=repeats, drop=drop)
        if found.error <= most_error or repeats >= most_repeats:
            return found


def _broken_drop(suite: KnownSuite, broken: int | None) -> float:
    if broken is None:
        return 0.0
    return float(suite.chances.tasks[broken] @ GRID) / len(suite.order)


def _verdicts(runs: SimulatedRuns, gate: Gate, first: int) -> NDArray[np.bool_]:
    seed = stream_of(gate.seed, -2 - first)
    return blocked(runs, strata=gate.strata, ks=gate.ks, level=gate.level, seed=seed, phi=gate.phi)


def detectable(
    chance: Callable[[float], float | None], power: float, largest: float, *, steps: int = 7
) -> float | None:
    """Smallest drop whose chance of detection reaches a power.

    Parameters
    ----------
    chance
        Chance of detection of a drop; None where the suite cannot fall by so much.
    power
        In (0, 1).
    largest
        Largest drop to be tried.
    steps
        Halvings of that range.

    Returns
    -------
    float or None
        None where even the largest drop is not seen so often.
    """
    reached = chance(largest)
    if reached is None or reached < power:
        return None
    low, high, below, above = 0.0, largest, 0.0, reached
    for _ in range(steps):
        middle = (low + high) / 2
        found = chance(middle) or 0.0
        low, below, high, above = (
            (low, below, middle, found) if found >= power else (middle, found, high, above)
        )
    return low + (high - low) * (power - below) / (above - below) if above > below else high


class _World:
    """Draws of one plan for one suite, by repeat; each repeat has the same draws in any batch."""

    def __init__(self, suite: KnownSuite, plan: Plan, seed: int, *, by_seed: bool) -> None:
        self._suite, self._seed = suite, seed
        trials = [plan.trials[t] for t in suite.order]
        known = [(suite.judged[t], suite.passed[t]) for t in suite.order]
        self.renewed = any(n > len(judged) for n, (judged, _) in zip(trials, known, strict=True))
        if self.renewed:
            known = [((0,) * n, (0,) * n) for n in trials]
        extra = plan.runs - (0 if self.renewed else suite.runs)
        self._kept_n, self._kept_passed = (_rows([pair[i] for pair in known]) for i in (0, 1))
        self._extra_n = extra * _rows([(1,) * len(judged) for judged, _ in known])
        self._planned_n = _rows([(1,) * n for n in trials], self._kept_n.shape[1])
        if not (suite.by_seed or by_seed):
            self._pool()
        self.batch = max(1, min(BATCH, _LARGEST_BATCH // self._kept_n.size))

    def _pool(self) -> None:
        """Without seed effects all trials of a task are alike."""
        for name in ("_kept_n", "_kept_passed", "_extra_n", "_planned_n"):
            setattr(self, name, getattr(self, name).sum(axis=1, keepdims=True))

    def runs(self, first: int, count: int, changed: Floats, broken: int | None) -> SimulatedRuns:
        """Counts of ``count`` repeats from ``first`` on."""
        counter = Counter.at(first, count)
        tasks = self._task_points(counter)
        points = after = np.repeat(tasks[..., None], self._kept_n.shape[1], axis=2)
        if self._suite.by_seed:
            points = self._seed_points(counter, tasks)
            after = tasks[..., None] * len(GRID) + points
        extra = self._passes(counter, 2, self._extra_n, points, GRID)
        candidate = self._passes(counter, 3, self._planned_n, after, changed.reshape(-1))
        if broken is not None:
            candidate[:, broken] = 0
        return SimulatedRuns(
            baseline_n=self._kept_n + self._extra_n,
            baseline_passed=self._kept_passed + extra,
            candidate_n=self._planned_n,
            candidate_passed=candidate,
        )

    def _uniform(self, counter: Counter, purpose: int, task: int, seed: int) -> Floats:
        stream = stream_of(stream_of(stream_of(self._seed, purpose), task), seed)
        return (counter.words(stream) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def _task_points(self, counter: Counter) -> Ints:
        """Place on the grid of each task's chance: shape (repeats, tasks)."""
        tails = np.cumsum(self._suite.chances.tasks, axis=1)
        columns = [
            np.searchsorted(tail[:-1], self._uniform(counter, 0, task, 0), side="right")
            for task, tail in enumerate(tails)
        ]
        return np.stack(columns, axis=1)

    def _seed_points(self, counter: Counter, tasks: Ints) -> Ints:
        """The same of each seed, given its task's and its own trials."""
        points = np.empty((*tasks.shape, self._kept_n.shape[1]), dtype=np.int64)
        tails: dict[tuple[int, int], Floats] = {}
        for task, seed in np.ndindex(self._kept_n.shape):
            cell = (int(self._kept_n[task, seed]), int(self._kept_passed[task, seed]))
            if cell not in tails:
                # Row g lies in [g, g + 1): one search serves all rows.
                rows: Floats = np.cumsum(self._suite.chances.given(*cell), axis=1)[:, :-1]
                starts = np.arange(len(GRID), dtype=np.float64)[:, None]
                tails[cell] = np.asarray((rows.clip(0, 1 - 1e-12) + starts).reshape(-1))
            row = tasks[:, task]
            drawn = row + self._uniform(counter, 1, task, seed)
            found = np.searchsorted(tails[cell], drawn, side="right")
            points[:, task, seed] = found - row * (len(GRID) - 1)
        return points

    def _passes(
        self, counter: Counter, purpose: int, trials: Ints, points: Ints, chances: Floats
    ) -> Ints:
        """Passes of so many trials at each place, by the inverse of the binomial distribution."""
        passed = np.zeros(points.shape, dtype=np.int64)
        tails: dict[int, Floats] = {}
        for task, seed in np.ndindex(trials.shape):
            n = int(trials[task, seed])
            if n == 0:
                continue
            if n not in tails:
                tails[n] = _binomial_tails(n, chances)
            drawn = self._uniform(counter, purpose, task, seed)
            above = drawn[:, None] >= tails[n][points[:, task, seed]]
            passed[:, task, seed] = above.sum(axis=1)
        return passed


def _rows(rows: Sequence[Sequence[int]], width: int = 0) -> Ints:
    """Rows of different lengths as one array, filled up with zeros."""
    table = np.zeros((len(rows), max(width, *map(len, rows))), dtype=np.int64)
    for index, row in enumerate(rows):
        table[index, : len(row)] = row
    return table


def _binomial_tails(n: int, chances: Floats) -> Floats:
    """P(X <= x) of n trials for x below n, at each chance: shape (chances, n)."""
    mass = np.ones((len(chances), 1))
    for _ in range(n):
        longer = np.zeros((len(chances), mass.shape[1] + 1))
        longer[:, :-1] += mass * (1 - chances[:, None])
        longer[:, 1:] += mass * chances[:, None]
        mass = longer
    return np.asarray(np.cumsum(mass, axis=1)[:, :-1])

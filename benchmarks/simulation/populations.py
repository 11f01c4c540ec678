"""Simulated suites, changes, seeds and days: who runs, and what happened to them.

Decides the chances that a trial passes and draws outcomes. Knows no rule that judges them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Rates = NDArray[np.float64]
"""Chances to pass: of tasks, or of tasks x seeds."""
Outcomes = NDArray[np.int8]
"""Outcomes of one side, tasks x runs x seeds: 1 passed, 0 failed, -1 not judged."""
Chance = np.random.Generator


@dataclass(frozen=True)
class Pair:
    """What two sides did on the same tasks; column ``s`` is the same seed on both."""

    baseline: Outcomes
    candidate: Outcomes


# Suites: the chances of the tasks.


@dataclass(frozen=True)
class BetaSuite:
    """Tasks whose chances are drawn from Beta(1.2, .6): two thirds pass, many tasks are near 1."""

    tasks: int = 50

    def draw(self, chance: Chance) -> Rates:
        """Return the chances."""
        return chance.beta(1.2, 0.6, self.tasks)


@dataclass(frozen=True)
class SmallSuite:
    """Tasks of which half always pass; the others are drawn from Beta(4, 2)."""

    tasks: int = 20

    def draw(self, chance: Chance) -> Rates:
        """Return the chances."""
        return np.concatenate([np.ones(self.tasks // 2), chance.beta(4, 2, self.tasks // 2)])


# Changes: what happens to the chances when the agent changes. All get the chances of every task and
# seed, the tasks' own chances, and chance itself.

Change = Callable[[Rates, Rates, Chance], Rates]


def unchanged(rates: Rates, tasks: Rates, chance: Chance) -> Rates:
    """Leave everything as it is."""
    return rates


def shift(rates: Rates, tasks: Rates, chance: Chance) -> Rates:
    """Lower the logit of all tasks by a half."""
    return times_odds(rates, np.exp(-0.5))


def flaky(rates: Rates, tasks: Rates, chance: Chance) -> Rates:
    """Let the good tasks fail a tenth of the time."""
    return np.where(tasks[:, None] > 0.9, 0.9 * rates, rates)


def broken(rates: Rates, tasks: Rates, chance: Chance) -> Rates:
    """Make the best task fail always."""
    return _best_task_times(rates, tasks, 0.0)


def half(rates: Rates, tasks: Rates, chance: Chance) -> Rates:
    """Halve the best task's chance."""
    return _best_task_times(rates, tasks, 0.5)


def three(rates: Rates, tasks: Rates, chance: Chance) -> Rates:
    """Take a half from three tasks, whichever they are."""
    changed = rates.copy()
    hit = chance.choice(len(tasks), 3, replace=False)
    changed[hit] = np.maximum(rates[hit] - 0.5, 0)
    return changed


def good_85(rates: Rates, tasks: Rates, chance: Chance) -> Rates:
    """Let the tasks that always pass do so in 85 of 100."""
    return np.where(tasks[:, None] == 1, 0.85, rates)


@dataclass(frozen=True)
class Less:
    """Take so much from the chance of every task."""

    drop: float

    def __call__(self, rates: Rates, tasks: Rates, chance: Chance) -> Rates:
        """Return the lowered chances."""
        return np.maximum(rates - self.drop, 0)


def times_odds(rates: Rates, factor: NDArray[np.float64] | float) -> Rates:
    """Multiply the odds of passing."""
    odds = factor * rates / np.maximum(1 - rates, 1e-12)
    return np.asarray(odds / (1 + odds))


def _best_task_times(rates: Rates, tasks: Rates, factor: float) -> Rates:
    changed = rates.copy()
    changed[np.argmax(tasks)] *= factor
    return changed


# Seeds and days.

CONCENTRATION = {"weak": 9.0, "moderate": 2.0, "strong": 0.2}
"""How closely the chances of a task's seeds lie around the task's own."""
COMMON_SPREAD = {"common": 0.8, "common weak": 0.3}
"""Standard deviation, in logits, of seeds that are hard or easy for all tasks alike."""
SEED_EFFECTS = ("none", "weak", "moderate", "strong", "common", "common weak")


def with_seeds(tasks: Rates, effect: str, seeds: int, chance: Chance) -> Rates:
    """Give every seed of every task a chance of its own."""
    rates = np.repeat(tasks[:, None], seeds, axis=1)
    if effect in CONCENTRATION:
        inner = np.clip(rates, 1e-9, 1 - 1e-9)
        weight = CONCENTRATION[effect]
        return chance.beta(weight * inner, weight * (1 - inner))
    if effect in COMMON_SPREAD:
        return times_odds(rates, np.exp(chance.normal(0, COMMON_SPREAD[effect], seeds)))
    return rates


def run_side(rates: Rates, runs: int, chance: Chance, day_spread: float = 0.0) -> Outcomes:
    """Run every seed of every task so many times; each run's day shifts all its logits."""
    by_run = np.repeat(rates[:, None, :], runs, axis=1)
    if day_spread:
        by_run = times_odds(by_run, np.exp(chance.normal(0, day_spread, runs))[None, :, None])
    return (chance.random(by_run.shape) < by_run).astype(np.int8)


@dataclass(frozen=True, kw_only=True)
class Design:
    """A suite, a change, and how often each side runs.

    Attributes
    ----------
    baseline_seeds, candidate_seeds
        The candidate runs the first of the baseline's seeds.
    day_spread
        Standard deviation, in logits, of a whole run's shift.
    gaps
        Whether some trials of each task were not judged, so that tasks differ in their trials.
    """

    suite: BetaSuite | SmallSuite = BetaSuite()
    change: Change = unchanged
    effect: str = "none"
    baseline_runs: int = 1
    baseline_seeds: int = 8
    candidate_seeds: int = 8
    day_spread: float = 0.0
    gaps: bool = False

    def draw(self, repeat: int) -> Pair:
        """Draw a suite and both sides; equal numbers give equal pairs."""
        chance = np.random.default_rng([repeat, *f"{self}".encode()])
        return self.draw_sides(self.draw_rates(chance), chance)

    def draw_rates(self, chance: Chance) -> tuple[Rates, Rates]:
        """Draw the chances of both sides, tasks x seeds."""
        tasks = self.suite.draw(chance)
        rates = with_seeds(tasks, self.effect, self.baseline_seeds, chance)
        return rates, self.change(rates, tasks, chance)[:, : self.candidate_seeds]

    def draw_sides(self, rates: tuple[Rates, Rates], chance: Chance) -> Pair:
        """Draw outcomes with these chances."""
        baseline = run_side(rates[0], self.baseline_runs, chance, self.day_spread)
        candidate = run_side(rates[1], 1, chance, self.day_spread)
        pair = Pair(baseline, candidate)
        return _with_gaps(pair) if self.gaps else pair

    def changed(self, change: Change) -> Design:
        """The same with another change."""
        return replace(self, change=change)

    def __str__(self) -> str:
        """Name everything that the outcomes depend on, for their seed."""
        return " ".join(str(getattr(part, "__name__", part)) for part in vars(self).values())


def _with_gaps(pair: Pair) -> Pair:
    """Leave out up to 3 trials of a task on the candidate, and up to 7 of the baseline's first."""
    tasks, seeds = np.ogrid[: len(pair.baseline), : pair.candidate.shape[2]]
    baseline, candidate = pair.baseline.copy(), pair.candidate.copy()
    candidate[:, 0][(tasks + seeds) % 8 < tasks % 4] = -1
    if baseline.shape[1] > 1:
        baseline[:, 0, : pair.candidate.shape[2]][(3 * tasks + seeds) % 8 < tasks % 8] = -1
    return Pair(baseline, candidate)

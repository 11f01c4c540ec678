"""What a run gains by going on when it is near the border, and whether it still holds alpha.

Run ``python benchmarks/extension.py`` (two minutes); ``--repeats`` for sharper figures. A run looks
at 8, 16 and 32 trials a task, ends red where the gate's p-value is at most the level of every look,
and goes on where it lies between that and .3. Beside it: fixed plans, and a person who looks three
times at alpha. Shares are followed by two standard errors, then by the trials a task on average.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from ci_gate.stats.extension import FUTILITY, gate_level
from ci_gate.stats.quick_verdict import SimulatedRuns, blocked

ALPHA = 0.05
LOOKS = (8, 16, 32)
PART = 250

Rates = NDArray[np.float64]
"""Chances to pass, runs x tasks."""


# Changes.


def shifted(rates: Rates, logit: float) -> Rates:
    """Lower all logits."""
    odds = np.exp(-logit) * rates / np.maximum(1 - rates, 1e-12)
    return np.asarray(odds / (1 + odds))


def flaky(rates: Rates, factor: float) -> Rates:
    """Let the good tasks fail now and then."""
    return np.where(rates > 0.9, factor * rates, rates)


def half(rates: Rates, factor: float) -> Rates:
    """Halve the best task's chance."""
    changed = rates.copy()
    changed[np.arange(len(rates)), rates.argmax(axis=1)] *= factor
    return changed


@dataclass(frozen=True)
class Cell:
    """Tasks with p ~ Beta(1.2, 0.6), a change of them, and the baseline's trials."""

    tasks: int
    name: str
    change: Callable[[Rates, float], Rates]
    size: float
    baseline_n: int = 32

    def __str__(self) -> str:
        return f"T = {self.tasks}, {self.baseline_n} in the baseline: {self.name}"


CELLS = (
    Cell(50, "null", shifted, 0.0),
    Cell(50, "shift .25", shifted, 0.25),
    Cell(50, "flaky .95", flaky, 0.95),
    Cell(50, "flaky .9", flaky, 0.9),
    Cell(50, "half", half, 0.5),
    Cell(20, "null", shifted, 0.0),
    Cell(20, "shift .5", shifted, 0.5),
    Cell(20, "flaky .9", flaky, 0.9),
    Cell(50, "null", shifted, 0.0, baseline_n=8),
)


# Schemes.


@dataclass(frozen=True)
class Scheme:
    """Looks, the level of each, and below which p-value a run goes on."""

    looks: tuple[int, ...]
    level: float | None
    going_on: float

    def level_for(self, baseline_n: int) -> float:
        """The scheme's own level, or the gate's for this baseline."""
        return gate_level(self.looks, baseline_n, ALPHA) if self.level is None else self.level


SCHEMES = {
    "fixed 8": Scheme((8,), ALPHA, 0.0),
    "fixed 16": Scheme((16,), ALPHA, 0.0),
    "fixed 32": Scheme((32,), ALPHA, 0.0),
    "three looks at .05 each": Scheme(LOOKS, ALPHA, FUTILITY),
    "the gate's extension": Scheme(LOOKS, None, FUTILITY),
}


@dataclass(frozen=True)
class Found:
    """Runs that were blocked, and the trials a task that all of them took."""

    repeats: int
    red: int
    trials: int

    def __str__(self) -> str:
        share = self.red / self.repeats
        error = 2 * sqrt(share * (1 - share) / self.repeats)
        return f"{share:.3f} +-{error:.3f} / {self.trials / self.repeats:4.1f}"

    def __add__(self, other: Found) -> Found:
        return Found(self.repeats + other.repeats, self.red + other.red, self.trials + other.trials)


def outcomes(cell: Cell, part: int, runs: int) -> tuple[NDArray[np.int64], list[NDArray[np.int64]]]:
    """The baseline's passes, and the candidate's at each look: runs x tasks."""
    chance = np.random.default_rng([part, cell.baseline_n, cell.tasks, *map(ord, cell.name)])
    rates = chance.beta(1.2, 0.6, (runs, cell.tasks))
    changed = cell.change(rates, cell.size)
    baseline = chance.binomial(cell.baseline_n, rates)
    steps = [chance.binomial(n, changed) for n in np.diff(LOOKS, prepend=0)]
    return baseline, list(np.cumsum(steps, axis=0))


def judged(cell: Cell, part: int, runs: int) -> list[Found]:
    """Every scheme on the same runs."""
    baseline, candidates = outcomes(cell, part, runs)

    def below(look: int, level: float) -> NDArray[np.bool_]:
        """Whether each run's p-value at a look is at most the level."""
        size = baseline.shape[1]
        return blocked(
            SimulatedRuns(
                baseline_n=np.full((size, 1), cell.baseline_n),
                baseline_passed=baseline[..., None],
                candidate_n=np.full((size, 1), look),
                candidate_passed=candidates[LOOKS.index(look)][..., None],
            ),
            strata="task",
            ks=(1, 8),
            level=level,
            seed=part,
        )

    return [_followed(scheme, cell, below, runs) for scheme in SCHEMES.values()]


def _followed(
    scheme: Scheme, cell: Cell, below: Callable[[int, float], NDArray[np.bool_]], runs: int
) -> Found:
    level, going = scheme.level_for(cell.baseline_n), np.full(runs, fill_value=True)
    red = trials = before = 0
    for look in scheme.looks:
        trials += (look - before) * int(going.sum())
        alarm = going & below(look, level)
        red += int(alarm.sum())
        if look != scheme.looks[-1]:
            going = going & ~alarm & below(look, scheme.going_on)
        before = look
    return Found(runs, red, trials)


def _part(job: tuple[Cell, int, int]) -> list[Found]:
    return judged(*job)


def measured(pool: ProcessPoolExecutor, cell: Cell, repeats: int) -> list[Found]:
    """Every scheme's figures, shared out in parts."""
    sizes = [min(PART, repeats - first) for first in range(0, repeats, PART)]
    parts = pool.map(_part, [(cell, part, size) for part, size in enumerate(sizes)])
    return [sum(of_scheme, Found(0, 0, 0)) for of_scheme in zip(*parts, strict=True)]


def show(name: str, columns: Sequence[object]) -> None:
    """Print a row."""
    print(f"{name:<40}" + "".join(f"{column!s:>26}" for column in columns), flush=True)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    parser.add_argument("--repeats", type=int, default=1000, help="of each cell (default 1000)")
    parser.add_argument("--jobs", type=int, default=2, help="worker processes (default 2)")
    options = parser.parse_args()
    started = time.monotonic()
    print(f"Blocked / mean trials a task, {options.repeats} repeats; looks at 8, 16, 32")
    for baseline_n in (32, 8):
        level = gate_level(LOOKS, baseline_n, ALPHA)
        print(f"against {baseline_n} trials: level {level:.4f} at every look")
    with ProcessPoolExecutor(options.jobs) as pool:
        show("", list(SCHEMES))
        for cell in CELLS:
            show(str(cell), measured(pool, cell, options.repeats))
    print(f"required of the extension: null <= {ALPHA} and two standard errors")
    print(f"{time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()

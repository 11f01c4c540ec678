"""How often a guard is broken by an agent that did not change, for costs of different skewness."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from benchmarks.simulation.figures import Asked, Rate, Table
from benchmarks.simulation.laboratory import Laboratory
from ci_gate.stats.ratios import Change, Moments, Ratio, ratio_of, relative_change

SIGMAS = (0.4, 0.8, 1.0, 1.5)
"""Standard deviations of a trial's log cost; 1.5 means that a tenth of the trials are dearer than 7
times the median."""
TRIALS = {"8 v 8": (8, 8), "8 v 32": (32, 8), "1 v 8": (8, 1)}
TASKS = (20, 50)
COLUMNS = ("cost per success: up", "down", "mean cost: up", "mean: down")
_ALPHA = 0.05

Costs = NDArray[np.float64]


def guard_tables(lab: Laboratory) -> Iterator[Table]:
    """Both limits at 0, the hardest; any other limit is broken less often."""
    rows = {
        f"{tasks} tasks, {name}, sigma {sigma}": _rates(lab, tasks, *trials, sigma)
        for tasks in TASKS
        for name, trials in TRIALS.items()
        for sigma in SIGMAS
    }
    yield Table(
        name="guards",
        title=(
            "Guards broken though unchanged, max_increase = 0 (up) and max_decrease = 0 (down), "
            f"alpha .05, N = {lab.repeats} a cell (standard error)"
        ),
        notes=(
            "Costs lognormal in each task, the tasks' levels too (log sd 1), chances .1 to .95.",
            "A failed trial costs exp(.5) times as much.",
        ),
        columns=COLUMNS,
        rows=rows,
        asked={(row, column): Asked(high=_ALPHA) for row in rows for column in COLUMNS},
    )


_Job = tuple[int, int, int, float, range]


def _rates(
    lab: Laboratory, tasks: int, baseline_n: int, candidate_n: int, sigma: float
) -> list[Rate]:
    jobs: list[_Job] = [(tasks, baseline_n, candidate_n, sigma, part) for part in lab.parts()]
    hits = np.sum(lab.each(_broken, jobs), axis=0)
    return [Rate(int(count), lab.repeats) for count in hits]


def _broken(job: _Job) -> list[int]:
    tasks, baseline_n, candidate_n, sigma, repeats = job
    hits = np.zeros(len(COLUMNS), dtype=np.int64)
    for repeat in repeats:
        chance = np.random.default_rng([tasks, baseline_n, candidate_n, int(sigma * 10), repeat])
        levels = chance.normal(0, 1, tasks)
        sides = [_trials(chance, levels, n, sigma) for n in (baseline_n, candidate_n)]
        for at, per_success in enumerate((True, False)):
            change = _change(sides, candidate_n, per_success=per_success)
            if change is not None:
                hits[2 * at : 2 * at + 2] += (change.low > 0, change.high < 0)
    return hits.tolist()


_Side = tuple[Costs, Costs]
"""Costs of the trials and whether they passed, tasks x trials."""


def _trials(chance: np.random.Generator, levels: Costs, n: int, sigma: float) -> _Side:
    rates = np.linspace(0.1, 0.95, len(levels))[:, None]
    passed = (chance.random((len(levels), n)) < rates).astype(float)
    logs = chance.normal(0, sigma, passed.shape) + levels[:, None] + 0.5 * (1 - passed)
    return np.exp(logs), passed


def _change(sides: list[_Side], weight: int, *, per_success: bool) -> Change | None:
    ratios = [_ratio(costs, passed, weight, per_success=per_success) for costs, passed in sides]
    before, after = ratios
    if before is None or after is None:
        return None
    return relative_change(before, after, alpha=_ALPHA)


def _ratio(costs: Costs, passed: Costs, weight: int, *, per_success: bool) -> Ratio | None:
    below = passed if per_success else np.ones_like(passed)
    moments = [_moments(x, y) for x, y in zip(costs, below, strict=True)]
    return ratio_of(moments, [weight] * len(moments), yes_or_no=(False, per_success))


def _moments(x: Costs, y: Costs) -> Moments:
    dx, dy = x - x.mean(), y - y.mean()
    return Moments(
        n=len(x),
        x=float(x.mean()),
        y=float(y.mean()),
        xx=float(dx @ dx),
        yy=float(dy @ dy),
        xy=float(dx @ dy),
    )

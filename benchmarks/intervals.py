"""Coverage of the gate's 95 % intervals, on populations like real agents' and at the edges.

Run ``python benchmarks/intervals.py`` (four minutes); ``--repeats`` for sharper figures. A repeat
draws tasks, both sides' trials and the interval that a report would print, and asks whether the
true difference of these tasks lies in it. Of many cells the mean, the lowest and the highest are
printed. Populations are Beta distributions, fitted to published outcomes where those lie beside the
repository, else with the parameters of such a fit.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from math import sqrt
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import betaln

from ci_gate.stats.counts import TaskCounts
from ci_gate.stats.intervals import difference_interval
from ci_gate.stats.seed_effect import choose_strata

REAL_OUTCOMES = Path(__file__).resolve().parents[2] / "shared" / "data" / "multi_trial"
SIZES = (10, 20, 50, 200)
KS = (8, 1)

Rates = NDArray[np.float64]
"""Chances to pass, of tasks or of tasks x seeds."""
Shape = tuple[float, float]
"""Parameters of a Beta distribution."""

FITTED: dict[str, Shape] = {
    "METR": (0.20, 0.28),
    "Terminal-Bench": (0.19, 0.21),
    "tau2 retail": (1.7, 0.55),
    "tau2 airline": (0.54, 0.13),
}
EDGES = ("all .995", "half 1, half .8")
CONSTANT = ("all 1", "all 0")
LOWEST_MEAN, LOWEST, LOWEST_EDGE = 0.95, 0.935, 0.917
"""Required of a mean over cells from 20 tasks on, of each of them, and of the edges."""


# Populations.


def fitted() -> dict[str, Shape]:
    """Fit the populations, all agents of a source together, where the outcomes are here."""
    if not REAL_OUTCOMES.is_dir():
        print(f"populations as fitted before: there is no {REAL_OUTCOMES.name} here")
        return FITTED
    return {
        "METR": _fit(_strings("metr_n8.csv")),
        "Terminal-Bench": _fit(_strings("terminal_bench_n5.csv")),
        "tau2 retail": _fit(_histograms("retail")),
        "tau2 airline": _fit(_histograms("airline")),
    }


def _rows(file: str) -> Iterable[dict[str, str]]:
    with (REAL_OUTCOMES / file).open(encoding="utf-8", newline="") as lines:
        yield from csv.DictReader(lines)


def _strings(file: str) -> Counter[tuple[int, int]]:
    judged = (row["outcomes"].replace("!", "") for row in _rows(file))
    return Counter((len(outcomes), outcomes.count("+")) for outcomes in judged if outcomes)


def _histograms(domain: str) -> Counter[tuple[int, int]]:
    found: Counter[tuple[int, int]] = Counter()
    for row in _rows("tau2_histograms_n4.csv"):
        if row["domain"] == domain:
            found.update({(4, passed): int(row[f"m{passed}"]) for passed in range(5)})
    return found


def _fit(tasks: Counter[tuple[int, int]]) -> Shape:
    n, passed = np.array(list(tasks)).T
    weights = np.array(list(tasks.values()))

    def loss(logs: NDArray[np.float64]) -> float:
        a, b = np.exp(logs)
        return -float(weights @ (betaln(a + passed, b + n - passed) - betaln(a, b)))

    a, b = np.exp(minimize(loss, [0.0, 0.0], method="Nelder-Mead").x)
    return round(float(a), 2), round(float(b), 2)


def draw_tasks(population: str | Shape, size: int, chance: np.random.Generator) -> Rates:
    """Chances of so many tasks."""
    if not isinstance(population, str):
        return chance.beta(*population, size)
    if population == "half 1, half .8":
        return np.where(np.arange(size) < (size + 1) // 2, 1.0, 0.8)
    return np.full(size, float(population.removeprefix("all ")))


# Changes: all get the chances of tasks and seeds, and the tasks' own.


def null(rates: Rates, tasks: Rates) -> Rates:
    """Leave everything as it is."""
    return rates


def flaky(rates: Rates, tasks: Rates) -> Rates:
    """Let the good tasks fail a tenth of the time."""
    return np.where(tasks[:, None] > 0.9, 0.9 * rates, rates)


def shift(rates: Rates, tasks: Rates) -> Rates:
    """Lower the logit of all tasks by a half."""
    return _times_odds(rates, np.exp(-0.5))


def broken(rates: Rates, tasks: Rates) -> Rates:
    """Let the best tenth of the tasks fail always."""
    changed = rates.copy()
    changed[np.argsort(-tasks, kind="stable")[: max(1, len(tasks) // 10)]] = 0
    return changed


def _times_odds(rates: Rates, factor: NDArray[np.float64] | float) -> Rates:
    odds = factor * rates / np.maximum(1 - rates, 1e-12)
    return np.asarray(odds / (1 + odds))


CHANGES = (null, flaky, shift, broken)
CONCENTRATION = {"none": None, "weak": 9.0, "moderate": 2.0, "strong": 0.2}


def with_seeds(tasks: Rates, effect: str, seeds: int, chance: np.random.Generator) -> Rates:
    """Give every seed of every task a chance of its own."""
    rates = np.repeat(tasks[:, None], seeds, axis=1)
    weight = CONCENTRATION[effect]
    if weight is None:
        return rates
    inner = np.clip(rates, 1e-9, 1 - 1e-9)
    return chance.beta(weight * inner, weight * (1 - inner))


# Cells.


@dataclass(frozen=True)
class Cell:
    """A population, a change and a design: ``runs`` x ``seeds`` against 8."""

    population: str | Shape
    name: str
    change: Callable[[Rates, Rates], Rates]
    size: int
    runs: int = 1
    seeds: int = 8
    effect: str = "none"

    def __str__(self) -> str:
        return f"{self.name}, {self.change.__name__}"


@dataclass(frozen=True)
class Found:
    """Intervals of one cell: how many there were, how many covered, and their mean width."""

    cell: Cell
    repeats: int
    covered: int
    width: float

    @property
    def share(self) -> float:
        """Share that covered."""
        return self.covered / self.repeats


def measure(job: tuple[Cell, int]) -> dict[int, Found]:
    """Draw and judge one cell, for each k."""
    cell, repeats = job
    chance = np.random.default_rng([cell.size, cell.runs, *map(ord, f"{cell} {cell.effect}")])
    covered, widths = dict.fromkeys(KS, 0), dict.fromkeys(KS, 0.0)
    for _ in range(repeats):
        for k, (low, high, truth) in _one(cell, chance).items():
            covered[k] += low <= truth + 1e-12 and truth - 1e-12 <= high
            widths[k] += high - low
    return {k: Found(cell, repeats, covered[k], widths[k] / repeats) for k in KS}


def _one(cell: Cell, chance: np.random.Generator) -> dict[int, tuple[float, float, float]]:
    tasks = draw_tasks(cell.population, cell.size, chance)
    rates = with_seeds(tasks, cell.effect, cell.seeds, chance)
    changed = cell.change(rates, tasks)[:, :8]
    baseline = chance.random((cell.size, cell.runs, cell.seeds)) < rates[:, None]
    candidate = chance.random((cell.size, 1, 8)) < changed[:, None]
    if cell.effect == "none":
        counts = _pooled(baseline, candidate)
        return {k: (*_ends(counts, k), _truth(rates[:, :8], changed, k)) for k in KS}
    left, right = baseline.astype(int).tolist(), candidate.astype(int).tolist()
    counts = [TaskCounts.of_outcomes(b, c) for b, c in zip(left, right, strict=True)]
    by_seed = choose_strata(left, right).strata == "task,seed"
    return {k: (*_ends(counts, k, by_seed=by_seed), _truth(rates, changed, k)) for k in KS}


def _truth(before: Rates, after: Rates, k: int) -> float:
    """Difference of pass^k over these tasks and seeds: of one trial, or of one of every seed."""
    if k == 1:
        return float((after.mean(axis=1) - before.mean(axis=1)).mean())
    return float((after.prod(axis=1) - before.prod(axis=1)).mean())


def _pooled(baseline: NDArray[np.bool_], candidate: NDArray[np.bool_]) -> list[TaskCounts]:
    n = baseline.shape[1] * baseline.shape[2]
    pairs = zip(
        baseline.sum(axis=(1, 2)).tolist(), candidate.sum(axis=(1, 2)).tolist(), strict=True
    )
    return [_counts(n, b, c) for b, c in pairs]


@cache
def _counts(n: int, baseline: int, candidate: int) -> TaskCounts:
    return TaskCounts(
        baseline_n=(n,),
        baseline_passed=(baseline,),
        candidate_n=(8,),
        candidate_passed=(candidate,),
    )


def _ends(counts: Sequence[TaskCounts], k: int, *, by_seed: bool = False) -> tuple[float, float]:
    interval = difference_interval(counts, k, by_seed=by_seed)
    assert interval is not None
    return interval.low, interval.high


# Tables.


def summary(found: Sequence[Found]) -> str:
    """Mean, lowest and highest coverage, and the mean width."""
    shares = [one.share for one in found]
    width = sum(one.width for one in found) / len(found)
    mean = sum(shares) / len(shares)
    return f"{mean:.3f} ({min(shares):.3f}-{max(shares):.3f}) width {width:.3f}"


def verdict(found: Sequence[Found], required: float) -> str:
    """The lowest cell by name, where it is below what is required by more than two s.e."""
    lowest = min(found, key=lambda one: one.share)
    error = 2 * sqrt(required * (1 - required) / lowest.repeats)
    return f"BELOW: {lowest.cell}" if lowest.share < required - error else ""


def cells_of(populations: Mapping[str, str | Shape], size: int, **design: int | str) -> list[Cell]:
    """Every population under every change."""
    return [
        # The names in a design are those of fields whose types differ.
        Cell(population, name, change, size, **design)  # type: ignore[arg-type]
        for name, population in populations.items()
        for change in CHANGES
    ]


Measured = list[dict[int, Found]]


def exchangeable_table(
    pool: ProcessPoolExecutor, populations: Mapping[str, Shape], repeats: int
) -> None:
    """Trials that are alike: 8 against 8 and 32 against 8."""
    edges: dict[str, str | Shape] = {name: name for name in EDGES}
    constant: dict[str, str | Shape] = {name: name for name in CONSTANT}
    for runs in (1, 4):
        rows = {}
        for size in (1, *SIZES):
            groups = [cells_of(p, size, runs=runs) for p in (populations, edges, constant)]
            rows[size] = [_measured(pool, cells, repeats) for cells in groups]
        for k in KS:
            print(f"\npass^{k}, {8 * runs} v 8: mean (lowest-highest) over the cells")
            print(f"{'tasks':<7}{'fitted populations':<40}{'edges':<40}all 1, all 0")
            for size, groups in rows.items():
                _row(str(size), [[one[k] for one in group] for group in groups], size)


def _row(name: str, groups: Sequence[Sequence[Found]], size: int) -> None:
    print(f"{name:<7}" + "".join(f"{summary(group):<40}" for group in groups), end="")
    low = [verdict(groups[0], LOWEST)] if size >= 20 else []
    low += [verdict(groups[1], LOWEST_EDGE)] if size >= 10 else []
    print(*filter(None, low), flush=True)


def seed_table(pool: ProcessPoolExecutor, populations: Mapping[str, Shape], repeats: int) -> None:
    """Seeds that differ: coverage of the difference on these tasks and seeds."""
    for size in (20, 50):
        print(f"\nseed effects, {size} tasks: mean (lowest-highest) over the fitted populations")
        designs = {f"pass^{k}, {runs} x 8 v 8": (k, runs) for runs in (4, 1) for k in KS}
        print(f"{'':<10}" + "".join(f"{name:<40}" for name in designs))
        for effect in list(CONCENTRATION)[1:]:
            by_runs = {
                runs: _measured(
                    pool, cells_of(populations, size, runs=runs, effect=effect), repeats
                )
                for runs in (4, 1)
            }
            columns = [summary([one[k] for one in by_runs[runs]]) for k, runs in designs.values()]
            print(f"{effect:<10}" + "".join(f"{column:<40}" for column in columns), flush=True)


def _measured(pool: ProcessPoolExecutor, cells: Sequence[Cell], repeats: int) -> Measured:
    return list(pool.map(measure, [(cell, repeats) for cell in cells]))


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    parser.add_argument("--repeats", type=int, default=300, help="of each cell (default 300)")
    parser.add_argument("--jobs", type=int, default=2, help="worker processes (default 2)")
    options = parser.parse_args()
    started = time.monotonic()
    populations = fitted()
    error = sqrt(0.95 * 0.05 / options.repeats)
    print(f"coverage of 95 % intervals, {options.repeats} repeats a cell (s.e. {error:.3f})")
    print("; ".join(f"{name} Beta{shape}" for name, shape in populations.items()))
    print(f"changes: {', '.join(change.__name__ for change in CHANGES)}")
    with ProcessPoolExecutor(options.jobs) as pool:
        exchangeable_table(pool, populations, options.repeats)
        seed_table(pool, populations, options.repeats)
    print(
        f"\nrequired from 20 tasks on: mean >= {LOWEST_MEAN}, each cell >= {LOWEST}, edges >= "
        f"{LOWEST_EDGE}, two s.e. allowed"
    )
    print(f"{time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()

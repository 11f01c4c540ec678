"""The size of the joint test: how often it blocks an agent that did not change."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.simulation.figures import Asked, Rate, Table
from benchmarks.simulation.laboratory import Laboratory
from benchmarks.simulation.populations import BetaSuite, Design
from benchmarks.simulation.rules import GATE_SEED, Gate, simulated_runs
from ci_gate.stats.counts import Strata
from ci_gate.stats.quick_verdict import blocked

LEVELS = (0.01, 0.05, 0.2)
SIZES = (5, 20, 50, 200, 500)
MOST_TASKS_BY_TEST = 50
"""With more tasks the quick verdict judges: the test itself would take minutes a cell."""
DESIGNS = {
    "8 v 8": Design(),
    "8 v 8 x 4": Design(baseline_runs=4),
    "gaps": Design(baseline_runs=4, gaps=True),
}


def size_tables(lab: Laboratory) -> Iterator[Table]:
    """Both kinds of strata, equal and unequal trials, few and many tasks, three levels."""
    kinds: tuple[Strata, ...] = ("task", "task,seed")
    for strata in kinds:
        rows = {
            f"{tasks:>3} tasks, {name}": _sizes(lab, strata, tasks, design)
            for name, design in DESIGNS.items()
            for tasks in SIZES
        }
        columns = [f"level {level}" for level in LEVELS]
        yield Table(
            name=f"size, strata {strata}",
            title=(
                f"Blocked though unchanged: strata {strata}, p ~ Beta(1.2, .6), "
                f"N = {lab.repeats} a cell (standard error)"
            ),
            notes=(
                "gaps: tasks differ in their trials, 5 to 8 against 25 to 32, some without pass^8.",
                f"By joint_test up to {MOST_TASKS_BY_TEST} tasks, above by the quick verdict.",
            ),
            columns=columns,
            rows=rows,
            asked={
                (row, column): Asked(high=level)
                for row in rows
                for column, level in zip(columns, LEVELS, strict=True)
            },
        )


def _sizes(lab: Laboratory, strata: Strata, tasks: int, design: Design) -> list[Rate]:
    sized = Design(suite=BetaSuite(tasks), baseline_runs=design.baseline_runs, gaps=design.gaps)
    found = lab.each(_hits, [(sized, strata, part) for part in lab.parts()])
    return [Rate(int(hits), lab.repeats) for hits in np.sum(found, axis=0)]


def _hits(job: tuple[Design, Strata, range]) -> list[int]:
    """Blocked at each level."""
    design, strata, repeats = job
    pairs = [design.draw(repeat) for repeat in repeats]
    if design.suite.tasks <= MOST_TASKS_BY_TEST:
        found = [Gate().test(pair, strata).p_value for pair in pairs]
        return [sum(p <= level for p in found) for level in LEVELS]
    runs = simulated_runs(pairs)
    return [
        int(blocked(runs, strata=strata, ks=(1, 8), level=level, seed=GATE_SEED).sum())
        for level in LEVELS
    ]

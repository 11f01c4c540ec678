"""Coverage of the 95 % interval of what faults change, beside that of unpaired sides.

Run ``python benchmarks/paired.py`` (half a minute); ``--repeats`` for sharper figures. A repeat
draws tasks and their trials in calm; faults take each pass away with a chance of a fifth (of a
hundredth where every task always passes) and give none. Asked is whether the true mean
difference on these tasks lies in the interval that a report would print.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Mapping

from ci_gate.stats.counts import TaskCounts
from ci_gate.stats.intervals import Interval, difference_interval
from ci_gate.stats.paired import paired_interval

Draw = Callable[[random.Random], float]
"""Chance of a task to pass in calm."""
Trial = tuple[bool, bool]
"""Whether the trials of a seed passed, in calm and under faults."""

POPULATIONS: Mapping[str, Draw] = {
    "mostly high": lambda chance: chance.betavariate(8, 1),
    "wide": lambda chance: chance.betavariate(2, 1),
    ".02, .5 or .98": lambda chance: chance.choice([0.02, 0.5, 0.98]),
    "all 1": lambda chance: 1.0,
}
SIZES = ((5, 8), (20, 8), (50, 8), (20, 2))
"""Tasks and seeds."""


def draw_task(rate: float, loss: float, seeds: int, chance: random.Random) -> list[Trial]:
    """Return the trials of a task, both of a seed."""
    calm = [chance.random() < rate for _ in range(seeds)]
    return [(passed, passed and chance.random() >= loss) for passed in calm]


def paired(tasks: list[list[Trial]]) -> Interval | None:
    """Return the interval of the report."""
    return paired_interval([[float(b) - float(a) for a, b in task] for task in tasks])


def unpaired(tasks: list[list[Trial]]) -> Interval | None:
    """Return the interval of two sides that share nothing but their tasks."""
    counts = [
        TaskCounts(
            baseline_n=(len(task),),
            baseline_passed=(sum(calm for calm, _ in task),),
            candidate_n=(len(task),),
            candidate_passed=(sum(faulted for _, faulted in task),),
        )
        for task in tasks
    ]
    return difference_interval(counts, 1)


def main() -> None:
    """Print a line a cell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=2000)
    repeats = parser.parse_args().repeats
    print("population       tasks seeds   covered   width, of unpaired   unpaired covered")
    for name, draw in POPULATIONS.items():
        for size, seeds in SIZES:
            print_cell(name, draw, (size, seeds), repeats)


def print_cell(name: str, draw: Draw, design: tuple[int, int], repeats: int) -> None:
    """Draw, judge and print one cell."""
    size, seeds = design
    chance = random.Random(f"{name} {size} {seeds}")
    loss = 0.01 if name == "all 1" else 0.2
    covered, widths = [0, 0], [0.0, 0.0]
    for _ in range(repeats):
        rates = [draw(chance) for _ in range(size)]
        tasks = [draw_task(rate, loss, seeds, chance) for rate in rates]
        truth = -loss * sum(rates) / size
        for place, found in enumerate((paired(tasks), unpaired(tasks))):
            assert found is not None
            covered[place] += found.low <= truth <= found.high
            widths[place] += found.high - found.low
    print(
        f"{name:16} {size:5} {seeds:5}   {covered[0] / repeats:7.3f}   "
        f"{widths[0] / repeats:5.3f}, {widths[0] / widths[1]:11.2f}   {covered[1] / repeats:16.3f}"
    )


if __name__ == "__main__":
    main()

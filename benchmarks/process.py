"""An unchanged agent under a guard on a process measure, and the interval of its difference.

Run ``python benchmarks/process.py`` (half a minute); ``--repeats`` for sharper figures. A repeat
draws both sides of the same agent. Tasks have chances of .7 and .98; a measure of a trial is 0 or
1, or a share of three such draws; where ``known`` is below 1 only so many trials know it. Asked is
how often a guard at a limit of 0 is broken, which is to be 5 % at most, and how often the interval
of the difference holds 0.
"""

from __future__ import annotations

import argparse
import random
from itertools import product
from statistics import stdev

from ci_gate.decision.guards import guards_of
from ci_gate.decision.process import process_of_sides
from ci_gate.model.policy import Guard, Policy
from ci_gate.model.run import Measure, SideTask

MEASURE = "consistency"
DRAWS = {"0 or 1": 1, "thirds": 3}
SIZES, TRIALS, KNOWN = (3, 20), ((8, 8), (32, 8)), (1.0, 0.5)
POLICY = Policy(guards=(Guard(metric=MEASURE, max_decrease=0.0),))


def task(rate: float, trials: int, draws: int, known: float, chance: random.Random) -> SideTask:
    """Return a task of which so many trials know the measure, on average."""
    values = [
        sum(chance.random() < rate for _ in range(draws)) / draws
        for _ in range(trials)
        if chance.random() < known
    ]
    if not values:
        return SideTask(outcomes=("+" * trials,))
    deviation = stdev(values) if len(values) > 1 else None
    mean = sum(values) / len(values)
    measure = Measure(mean, deviation, mean, len(values) if len(values) < trials else None)
    return SideTask(outcomes=("+" * trials,), process={MEASURE: (measure,)})


def main() -> None:
    """Print a line a cell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=2000)
    repeats = parser.parse_args().repeats
    print("measure   tasks  trials   known   guard broken   interval holds 0")
    for cell in product(DRAWS, SIZES, TRIALS, KNOWN):
        print_cell(*cell, repeats=repeats)


def print_cell(
    name: str, size: int, trials: tuple[int, int], known: float, *, repeats: int
) -> None:
    """Draw, judge and print one cell."""
    chance = random.Random(f"{name} {size} {trials} {known}")
    rates = [0.98 if at % 2 else 0.7 for at in range(size)]
    broken = held = intervals = 0
    for _ in range(repeats):
        baseline, candidate = (
            {str(at): task(rate, n, DRAWS[name], known, chance) for at, rate in enumerate(rates)}
            for n in trials
        )
        (guard,) = guards_of(baseline, candidate, POLICY)
        broken += guard.passed is False
        for result in process_of_sides(baseline, candidate):
            if result.interval is not None:
                intervals += 1
                held += result.interval[0] <= 0 <= result.interval[1]
    before, after = trials
    print(
        f"{name:<8} {size:>6} {before:>4}/{after:<3} {known:>6.1f} {broken / repeats:>14.3f}"
        f" {held / intervals:>18.3f}"
    )


if __name__ == "__main__":
    main()

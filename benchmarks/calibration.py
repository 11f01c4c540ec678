"""Does the one-look gate hold its level, and what does it see? Prints the figures to hold.

Run ``python benchmarks/calibration.py`` (minutes); ``--repeats`` for sharper figures, ``--only``
for one table. Every figure is followed by two standard errors. Populations come from numpy's
generator with fixed seeds; the gate's own draws do not.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import permutations
from math import sqrt
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from ci_gate.stats.counts import TaskCounts
from ci_gate.stats.passk import pass_hat_k
from ci_gate.stats.permutation import JointTest, joint_test
from ci_gate.stats.seed_effect import choose_strata

LEVEL = 0.05
GATE_SEED = 20261030
REAL_OUTCOMES = Path(__file__).resolve().parents[2] / "shared" / "data" / "multi_trial"

Rates = NDArray[np.float64]
"""Chances to pass, of tasks or of tasks x seeds."""
Runs = NDArray[np.int64]
"""Outcomes of one side, tasks x runs x seeds."""
Chance = np.random.Generator


@dataclass(frozen=True)
class Rate:
    """Share of repeats in which something happened."""

    hits: int
    repeats: int

    def __str__(self) -> str:
        share = self.hits / self.repeats
        return f"{share:.3f} +-{2 * sqrt(share * (1 - share) / self.repeats):.3f}"


# Changes: what happens to the chances when the agent changes. All get the chances of every task and
# seed, the tasks' own chances, and chance itself.


def unchanged(rates: Rates, tasks: Rates, chance: Chance) -> Rates:
    """Leave everything as it is."""
    return rates


def shift(rates: Rates, tasks: Rates, chance: Chance) -> Rates:
    """Lower the logit of all tasks by a half."""
    return _times_odds(rates, np.exp(-0.5))


def all_08(rates: Rates, tasks: Rates, chance: Chance) -> Rates:
    """Take .08 from every task."""
    return np.maximum(rates - 0.08, 0)


def all_10(rates: Rates, tasks: Rates, chance: Chance) -> Rates:
    """Take .10 from every task."""
    return np.maximum(rates - 0.10, 0)


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
    return _less_half(rates, chance.choice(len(tasks), 3, replace=False))


def three_best(rates: Rates, tasks: Rates, chance: Chance) -> Rates:
    """Take a half from the three best tasks."""
    return _less_half(rates, np.argsort(-tasks, kind="stable")[:3])


def good_85(rates: Rates, tasks: Rates, chance: Chance) -> Rates:
    """Let the tasks that always pass do so in 85 of 100."""
    return np.where(tasks[:, None] == 1, 0.85, rates)


def _less_half(rates: Rates, hit: NDArray[np.int64]) -> Rates:
    changed = rates.copy()
    changed[hit] = np.maximum(rates[hit] - 0.5, 0)
    return changed


def _times_odds(rates: Rates, factor: NDArray[np.float64] | float) -> Rates:
    odds = factor * rates / np.maximum(1 - rates, 1e-12)
    return np.asarray(odds / (1 + odds))


def _best_task_times(rates: Rates, tasks: Rates, factor: float) -> Rates:
    changed = rates.copy()
    changed[np.argmax(tasks)] *= factor
    return changed


# Populations.


def beta_suite(chance: Chance) -> Rates:
    """Draw the chances of 50 tasks, many of them near 1."""
    return chance.beta(1.2, 0.6, 50)


def small_suite(chance: Chance) -> Rates:
    """Draw the chances of 20 tasks, half of which always pass."""
    return np.concatenate([np.ones(10), chance.beta(4, 2, 10)])


CONCENTRATION = {"weak": 9.0, "moderate": 2.0, "strong": 0.2}
COMMON_SPREAD = {"common": 0.8, "common weak": 0.3}
EFFECTS = ("none", "weak", "moderate", "strong", "common", "common weak")


def with_seeds(tasks: Rates, effect: str, seeds: int, chance: Chance) -> Rates:
    """Give every seed of every task a chance of its own."""
    rates = np.repeat(tasks[:, None], seeds, axis=1)
    if effect in CONCENTRATION:
        inner = np.clip(rates, 1e-9, 1 - 1e-9)
        weight = CONCENTRATION[effect]
        return chance.beta(weight * inner, weight * (1 - inner))
    if effect in COMMON_SPREAD:
        return _times_odds(rates, np.exp(chance.normal(0, COMMON_SPREAD[effect], seeds)))
    return rates


def run_side(rates: Rates, runs: int, chance: Chance) -> Runs:
    """Run every seed of every task so many times."""
    shape = (rates.shape[0], runs, rates.shape[1])
    return (chance.random(shape) < rates[:, None, :]).astype(np.int64)


# Rules: what turns red.


def gate(baseline: Runs, candidate: Runs, *, seeded: bool = True) -> bool:
    """The gate as it is, choosing its strata."""
    left, right = baseline.tolist(), candidate.tolist()
    choice = choose_strata(left, right, seeded=seeded)
    tasks = [TaskCounts.of_outcomes(b, c) for b, c in zip(left, right, strict=True)]
    test = joint_test(tasks, strata=choice.strata, level=LEVEL, seed=GATE_SEED)
    return test.p_value <= LEVEL


def point_drop(baseline: Runs, candidate: Runs, k: int) -> bool:
    """Block whenever the candidate's estimate is lower."""
    return suite_pass_hat_k(candidate, k) < suite_pass_hat_k(baseline, k)


def suite_pass_hat_k(side: Runs, k: int) -> float:
    """Mean pass^k of a side over its tasks."""
    trials = side.shape[1] * side.shape[2]
    return sum(pass_hat_k(c, trials, k) for c in side.sum(axis=(1, 2)).tolist()) / len(side)


def paired_t_test(baseline: Runs, candidate: Runs) -> bool:
    """Block on a drop that the two-sided paired t-test over tasks calls significant."""
    drops = candidate.mean(axis=(1, 2)) - baseline.mean(axis=(1, 2))
    error = drops.std(ddof=1) / sqrt(len(drops))
    return bool(error > 0 and stdtr(len(drops) - 1, drops.mean() / error) <= LEVEL / 2)


# Cells: one repeat each, named so that worker processes can call them.


@dataclass(frozen=True)
class Cell:
    """One population, change and design."""

    suite: Callable[[Chance], Rates]
    change: Callable[[Rates, Rates, Chance], Rates]
    baseline_runs: int = 1
    baseline_seeds: int = 8
    effect: str = "none"
    seeded: bool = True
    rule: str = "gate"

    def blocked(self, repeat: int) -> bool:
        """Draw a suite and both sides, and judge them."""
        chance = np.random.default_rng([repeat, *f"{self}".encode()])
        tasks = self.suite(chance)
        rates = with_seeds(tasks, self.effect, self.baseline_seeds, chance)
        changed = self.change(rates, tasks, chance)[:, :8]
        baseline = run_side(rates, self.baseline_runs, chance)
        return self.judge(baseline, run_side(changed, 1, chance))

    def __str__(self) -> str:
        return (
            f"{self.suite.__name__} {self.change.__name__} {self.effect} "
            f"{self.baseline_runs} x {self.baseline_seeds}"
        )

    def judge(self, baseline: Runs, candidate: Runs) -> bool:
        """Apply the cell's rule to both sides."""
        if self.rule == "gate":
            return gate(baseline, candidate, seeded=self.seeded)
        if self.rule == "t":
            return paired_t_test(baseline, candidate)
        return point_drop(baseline, candidate, int(self.rule))


@dataclass(frozen=True)
class World:
    """One draw of tasks and seeds; only the outcomes are drawn afresh."""

    effect: str
    number: int
    redraws: int

    def false_alarms(self) -> float:
        """Share of redraws in which an unchanged agent is blocked."""
        chance = np.random.default_rng([self.number, *map(ord, self.effect)])
        rates = with_seeds(beta_suite(chance), self.effect, 8, chance)
        blocked = (
            gate(run_side(rates, 4, chance), run_side(rates, 1, chance))
            for _ in range(self.redraws)
        )
        return sum(blocked) / self.redraws


def _blocked_in(job: tuple[Cell, range]) -> int:
    cell, repeats = job
    return sum(cell.blocked(repeat) for repeat in repeats)


def _false_alarms(world: World) -> float:
    return world.false_alarms()


def measure(pool: ProcessPoolExecutor, cells: Sequence[Cell], repeats: int) -> list[Rate]:
    """Blocked rate of every cell, shared out in parts of 50 repeats."""
    parts = [range(first, min(first + 50, repeats)) for first in range(0, repeats, 50)]
    hits = list(pool.map(_blocked_in, [(cell, part) for cell in cells for part in parts]))
    size = len(parts)
    return [Rate(sum(hits[i * size : (i + 1) * size]), repeats) for i in range(len(cells))]


def show(name: str, rates: Iterable[object]) -> None:
    """Print a row."""
    print(f"{name:<34}" + "".join(f"{rate!s:>16}" for rate in rates), flush=True)


# Tables.


def main_table(pool: ProcessPoolExecutor, repeats: int) -> None:
    """The large suite, one look, and the rule that compares point estimates."""
    print(f"\nBlocked: T = 50, p ~ Beta(1.2, 0.6), {repeats} repeats")
    changes = (unchanged, shift, flaky, broken)
    show("", ("null", "shift", "flaky", "broken"))
    template = Cell(beta_suite, unchanged)
    designs = {
        "8 against 8": template,
        "8 against 32 exchangeable": replace(template, baseline_seeds=32, seeded=False),
        "8 against 8 x 4": replace(template, baseline_runs=4),
        "point estimates, pass^1": replace(template, rule="1"),
        "point estimates, pass^8": replace(template, rule="8"),
    }
    for name, design in designs.items():
        show(name, measure(pool, [replace(design, change=c) for c in changes], repeats))
    show("required, 8 against 8", ("<= .05", ">= .74", ">= .42", ">= .99"))
    show("required, deep", ("<= .05", ">= .87", ">= .66", ">= .99"))
    show("stated, point (^1 / ^8)", (".52 / .37", ".99 / .80", ".83 / .95", ".88 / .69"))


def small_table(pool: ProcessPoolExecutor, repeats: int) -> None:
    """The small suite, with the paired t-test beside the gate."""
    print(f"\nSmall suite: T = 20, half always pass, others Beta(4, 2), 8 v 8, {repeats} repeats")
    changes = (broken, half, three, three_best, all_10, good_85, unchanged)
    names = ("one 1 -> 0", "one 1 -> .5", "three - .5", "best three - .5", "all - .10", "good .85")
    show("", (*names, "unchanged"))
    for name, rule in (("joint min-p", "gate"), ("paired t-test", "t")):
        show(name, measure(pool, [Cell(small_suite, c, rule=rule) for c in changes], repeats))
    show("required, joint min-p", ("1.00", ".29", ".76", "-", ".91", ".83", ".03"))
    show("stated, paired t-test", (".01-.03", ".06", ".17", "-", ".63", ".38", ".03"))


def seed_table(pool: ProcessPoolExecutor, repeats: int) -> None:
    """Seed effects: false alarms and power, drawn afresh and given the seeds."""
    print(f"\nSeed effects: T = 50, strata chosen by the gate, {repeats} repeats")
    _seed_false_alarms(pool, repeats)
    _seed_power(pool, repeats)
    _given_the_seeds(pool, max(4, repeats // 25), 50)


def _seed_false_alarms(pool: ProcessPoolExecutor, repeats: int) -> None:
    show("false alarms", ("8 v 8", "32 v 8", "8 x 4 v 8", "required 8 x 4"))
    for effect, required in zip(
        EFFECTS, (".050", ".053", ".045", ".043", ".048", ".043"), strict=True
    ):
        cells = [
            Cell(beta_suite, unchanged, effect=effect),
            Cell(beta_suite, unchanged, effect=effect, baseline_seeds=32),
            Cell(beta_suite, unchanged, effect=effect, baseline_runs=4),
        ]
        show(effect, [*measure(pool, cells, repeats), required])


def _seed_power(pool: ProcessPoolExecutor, repeats: int) -> None:
    changes = (all_08, flaky, half, three)
    for runs, stated in ((1, STATED_PAIR), (4, STATED_DEEP)):
        show(f"power, 8 x {runs} v 8", ("all - .08", "flaky", "half", "three", "stated"))
        for effect in EFFECTS[:5]:
            cells = [Cell(beta_suite, c, effect=effect, baseline_runs=runs) for c in changes]
            show(effect, [*measure(pool, cells, repeats), " " + stated[effect]])


STATED_PAIR = {
    "none": ".84 .44 .15 .33",
    "weak": ".84 .46 .15 .30",
    "moderate": ".92 .51 .19 .34",
    "strong": ".99 .77 .38 .52",
    "common": ".88 .43 .14 .29",
}
STATED_DEEP = {
    "none": ".96 .69 .66 .65",
    "weak": ".96 .75 .64 .72",
    "moderate": ".99 .78 .69 .74",
    "strong": "1.0 .96 .88 .91",
    "common": ".96 .67 .66 .66",
}


def _given_the_seeds(pool: ProcessPoolExecutor, worlds: int, redraws: int) -> None:
    print(f"false alarms given the seeds, 8 x 4 v 8: {worlds} worlds x {redraws} redraws")
    show("", ("mean", "90th percentile", "worst", "required mean"))
    for effect, required in zip(
        EFFECTS, (".049", "-", ".046", ".046", ".045", ".045"), strict=True
    ):
        jobs = [World(effect, number, redraws) for number in range(worlds)]
        found = np.array(list(pool.map(_false_alarms, jobs)))
        mean = Rate(round(found.sum() * redraws), worlds * redraws)
        show(effect, (mean, f"{np.quantile(found, 0.9):.2f}", f"{found.max():.2f}", required))


# Real outcomes.


@dataclass(frozen=True)
class Source:
    """A published set of outcomes by agent and task."""

    file: str
    deal: int
    agents: dict[str, dict[str, str]]

    @classmethod
    def read(cls, file: str, trials: int) -> Source:
        """Take tasks with at least ``trials`` trials, and the first of them."""
        agents: dict[str, dict[str, str]] = {}
        with (REAL_OUTCOMES / file).open(encoding="utf-8", newline="") as lines:
            for row in csv.DictReader(lines):
                if len(row["outcomes"]) >= trials:
                    agent = agents.setdefault(row["model"], {})
                    agent[row["task"]] = row["outcomes"][:trials]
        return cls(file, trials // 2, agents)


def real_table(pool: ProcessPoolExecutor, repeats: int) -> None:
    """Published outcomes: one agent against itself, and agents in each other's place."""
    if not REAL_OUTCOMES.is_dir():
        print(f"\nReal outcomes: skipped, there is no {REAL_OUTCOMES.name} beside the repository")
        return
    print(f"\nReal outcomes, {repeats} deals over all agents of a source")
    files = {"metr_n8.csv": 8, "terminal_bench_n5.csv": 5, "taubench_airline_gpt4o_n4.csv": 4}
    for file, trials in files.items():
        source = Source.read(file, trials)
        print(f"{file}: {len(source.agents)} agents, {trials} trials a task")
        print(
            f"  same agent, {trials - source.deal} v {source.deal}: {_dealt(pool, source, repeats)}"
        )
        _show_swaps(source, trials)


def _dealt(pool: ProcessPoolExecutor, source: Source, repeats: int) -> str:
    agents = sorted(source.agents)
    jobs = [(source, agents[i % len(agents)], i) for i in range(repeats)]
    return f"blocked {Rate(sum(pool.map(_deal_blocks, jobs, chunksize=20)), repeats)}"


def _deal_blocks(job: tuple[Source, str, int]) -> bool:
    source, agent, number = job
    chance = np.random.default_rng([number, 7])
    dealt = ["".join(chance.permutation(list(o))) for o in source.agents[agent].values()]
    tasks = [_counts(o[source.deal :], o[: source.deal]) for o in dealt]
    return _test(tasks, source.deal).p_value <= LEVEL


def _show_swaps(source: Source, k: int) -> None:
    """Put every agent in the place of every other on the tasks both have."""
    worse: list[tuple[float, JointTest]] = []
    better: list[tuple[float, JointTest]] = []
    for baseline, candidate in permutations(sorted(source.agents), 2):
        left, right = source.agents[baseline], source.agents[candidate]
        tasks = [_counts(left[task], right[task]) for task in sorted(left.keys() & right.keys())]
        if len(tasks) >= 10:
            test = _test(tasks, k)
            difference = test.families[1].difference or 0.0
            (worse if difference < 0 else better).append((difference, test))
    for low, high in ((-1.0, -0.2), (-0.2, -0.1), (-0.1, -0.05), (-0.05, 0.0)):
        found = [test for difference, test in worse if low <= difference < high]
        if found:
            red = [test for test in found if test.p_value <= LEVEL]
            named = sum(any(p <= LEVEL for p in test.task_p_adjusted) for test in red)
            print(
                f"  pass^1 {low:+.2f} to {high:+.2f}: {len(red)} of {len(found)} swaps blocked, "
                f"{named} with a task named"
            )
    red_better = sum(test.p_value <= LEVEL for _, test in better)
    if better:
        print(f"  not lower: {red_better} of {len(better)} blocked")


def _counts(baseline: str, candidate: str) -> TaskCounts:
    return TaskCounts(
        baseline_n=(len(baseline) - baseline.count("!"),),
        baseline_passed=(baseline.count("+"),),
        candidate_n=(len(candidate) - candidate.count("!"),),
        candidate_passed=(candidate.count("+"),),
    )


def _test(tasks: Sequence[TaskCounts], k: int) -> JointTest:
    return joint_test(tasks, strata="task", ks=(1, k), level=LEVEL, seed=GATE_SEED)


TABLES = {"main": main_table, "small": small_table, "seeds": seed_table, "real": real_table}


def main() -> None:
    """Print the tables asked for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    parser.add_argument("--repeats", type=int, default=300, help="of each cell (default 300)")
    parser.add_argument("--only", choices=sorted(TABLES), help="one table (default: all)")
    parser.add_argument("--jobs", type=int, default=2, help="worker processes (default 2)")
    options = parser.parse_args()
    started = time.monotonic()
    with ProcessPoolExecutor(options.jobs) as pool:
        for name, table in TABLES.items():
            if options.only in (None, name):
                table(pool, options.repeats)
    print(f"\n{time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()

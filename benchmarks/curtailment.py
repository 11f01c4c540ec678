"""What does a stop before the plan's end save, and what does it change? Prints the figures to hold.

Run ``python benchmarks/curtailment.py`` (about ten minutes on 2 cores); ``--repeats`` for
sharper figures, ``--only`` for other tables, ``--only all`` for all of them. Every check is
simulated to its end, so that a stop is compared with the verdict of the full plan on the same
trials. Populations come from numpy's generator with fixed seeds; the gate's own draws do not.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # Also as `python benchmarks/...`.

from benchmarks.simulation.populations import (
    BetaSuite,
    Chance,
    Design,
    Pair,
    Rates,
    SmallSuite,
    broken,
    flaky,
    half,
    shift,
    three,
    times_odds,
    unchanged,
)
from ci_gate.stats.counts import Strata
from ci_gate.stats.prediction import Look, predict
from ci_gate.stats.quick_verdict import SimulatedRuns, blocked
from ci_gate.stats.seed_effect import choose_strata

LEVEL = 0.05
PLANNED = 8
KS = (1, 8)
SEED = 20261030
PART = 50

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


# Changes beyond those of the populations.


def clear(rates: Rates, tasks: Rates, chance: Chance) -> Rates:
    """Lower the logit of all tasks by one and a half."""
    return times_odds(rates, np.exp(-1.5))


def half_shifted(rates: Rates, tasks: Rates, chance: Chance) -> Rates:
    """Lower the logit of half of the tasks by one."""
    hit = chance.random(len(tasks)) < 0.5
    return np.where(hit[:, None], times_odds(rates, np.exp(-1.0)), rates)


def few_shifted(rates: Rates, tasks: Rates, chance: Chance) -> Rates:
    """Lower the logit of a fifth of the tasks by two."""
    hit = chance.random(len(tasks)) < 0.2
    return np.where(hit[:, None], times_odds(rates, np.exp(-2.0)), rates)


def three_best(rates: Rates, tasks: Rates, chance: Chance) -> Rates:
    """Take a half from the three best tasks."""
    changed = rates.copy()
    changed[np.argsort(-tasks, kind="stable")[:3]] -= 0.5
    return np.maximum(changed, 0)


def flaky_8(rates: Rates, tasks: Rates, chance: Chance) -> Rates:
    """Let the good tasks fail a fifth of the time."""
    return np.where(tasks[:, None] > 0.9, 0.8 * rates, rates)


def less_good(rates: Rates, tasks: Rates, chance: Chance) -> Rates:
    """Let tasks above .7 fail a twelfth of the time."""
    return np.where(tasks[:, None] > 0.7, 11 / 12 * rates, rates)


def mixed(rates: Rates, tasks: Rates, chance: Chance) -> Rates:
    """Raise the logit of all tasks by a half, and break the best."""
    return broken(better(rates, tasks, chance), tasks, chance)


def better(rates: Rates, tasks: Rates, chance: Chance) -> Rates:
    """Raise the logit of all tasks by a half."""
    return times_odds(rates, np.exp(0.5))


# Checks: both sides, and the looks at them.


@dataclass(frozen=True, kw_only=True)
class Check:
    """Outcomes of both sides to the end of the plan, and the strata that they are judged in.

    ``baseline_n`` and ``baseline_passed`` have shape (tasks, positions), ``candidate`` shape
    (tasks, rounds).
    """

    baseline_n: Ints
    baseline_passed: Ints
    candidate: Ints
    strata: Strata

    @classmethod
    def of(cls, pair: Pair, *, seeded: bool) -> Check:
        """Count a baseline and a candidate's single run; without seeds all trials are alike."""
        baseline, candidate = (side.astype(np.int64) for side in (pair.baseline, pair.candidate))
        strata: Strata = "task"
        if seeded:
            strata = choose_strata(baseline.tolist(), candidate.tolist()).strata
        passed = baseline.sum(axis=1)
        judged = np.full(passed.shape, baseline.shape[1])
        if strata == "task":
            passed, judged = (x.sum(axis=1, keepdims=True) for x in (passed, judged))
        return cls(
            baseline_n=judged, baseline_passed=passed, candidate=candidate[:, 0], strata=strata
        )

    def counts(self, rounds: int, rest: int | None = None) -> tuple[Ints, Ints]:
        """Judged trials and passes of the candidate after some rounds, shape (tasks, positions).

        With ``rest``, the rounds that are left are taken to fail (0) or to pass (1).
        """
        outcomes, done = self.candidate.copy(), np.ones_like(self.candidate)
        if rest is None:
            done[:, rounds:] = 0
        else:
            outcomes[:, rounds:] = rest
        outcomes = outcomes * done
        if self.strata == "task,seed":
            return done, outcomes
        return done.sum(axis=1, keepdims=True), outcomes.sum(axis=1, keepdims=True)

    def look(self, rounds: int) -> Look:
        """What is known after some rounds."""
        judged, passed = self.counts(rounds)
        return Look(
            baseline_n=self.baseline_n,
            baseline_passed=self.baseline_passed,
            candidate_n=judged,
            candidate_passed=passed,
            planned_n=self.counts(PLANNED)[0],
        )


def full_verdicts(
    checks: Sequence[Check], rounds: Sequence[int] | None = None, rest: int = 0
) -> Bools:
    """Judge checks at the plan's end, what follows the given rounds taken to fail or to pass."""
    rounds = [PLANNED] * len(checks) if rounds is None else rounds
    red = np.zeros(len(checks), dtype=bool)
    for strata in ("task", "task,seed"):
        chosen = [i for i, check in enumerate(checks) if check.strata == strata]
        if chosen:
            first = checks[chosen[0]]
            runs = SimulatedRuns(
                baseline_n=first.baseline_n,
                baseline_passed=np.stack([checks[i].baseline_passed for i in chosen]),
                candidate_n=first.counts(PLANNED)[0],
                candidate_passed=np.stack([checks[i].counts(rounds[i], rest)[1] for i in chosen]),
            )
            red[chosen] = blocked(runs, strata=strata, ks=KS, level=LEVEL, seed=SEED)
    return red


# Rules.


@dataclass(frozen=True, kw_only=True)
class Rule:
    """When to stop."""

    eps: float
    sceptical: bool

    def __str__(self) -> str:
        return f"eps {self.eps}" + (", sceptical" if self.sceptical else "")

    def stop(self, check: Check) -> tuple[int, bool | None]:
        """Round after which it stops, and its verdict; None where the plan ran to its end."""
        for rounds in range(1, PLANNED):
            found = predict(
                check.look(rounds),
                strata=check.strata,
                ks=KS,
                level=LEVEL,
                seed=SEED,
                sceptical=self.sceptical,
            ).red
            if not self.eps <= found <= 1 - self.eps:
                return rounds, found > 0.5
        return PLANNED, None


RULES = (Rule(eps=0.05, sceptical=False), Rule(eps=0.01, sceptical=True))


def certain_rounds(checks: Sequence[Check]) -> Ints:
    """Round after which the verdict cannot change, whatever the rest brings."""
    low, high = np.zeros(len(checks), dtype=np.int64), np.full(len(checks), PLANNED)
    while (high - low > 1).any():
        middle = (low + high) // 2
        worst, best = (full_verdicts(checks, middle.tolist(), rest) for rest in (0, 1))
        low, high = np.where(worst == best, low, middle), np.where(worst == best, middle, high)
    return high


# Measurements.


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Verdicts and rounds of the checks of a design; ``rounds`` and ``red`` by rule."""

    full: Bools
    certain: Ints
    rounds: NDArray[np.int64]
    red: Bools
    seconds: float

    @classmethod
    def of(cls, design: Design, repeats: range) -> Measured:
        """Simulate some checks to their end."""
        seeded = design.baseline_runs > 1
        checks = [Check.of(design.draw(repeat), seeded=seeded) for repeat in repeats]
        full = full_verdicts(checks)
        started = time.process_time()
        stops = [[rule.stop(check) for rule in RULES] for check in checks]
        spent = time.process_time() - started
        red = [[f if r is None else r for _, r in own] for own, f in zip(stops, full, strict=True)]
        return cls(
            full=full,
            certain=certain_rounds(checks),
            rounds=np.array([[rounds for rounds, _ in own] for own in stops]),
            red=np.array(red, dtype=bool),
            seconds=spent,
        )

    @classmethod
    def joined(cls, parts: Sequence[Measured]) -> Measured:
        """Put the parts of a design together."""
        return cls(
            full=np.concatenate([part.full for part in parts]),
            certain=np.concatenate([part.certain for part in parts]),
            rounds=np.concatenate([part.rounds for part in parts]),
            red=np.concatenate([part.red for part in parts]),
            seconds=sum(part.seconds for part in parts),
        )

    def row(self, rule: int) -> str:
        """Blocked rate, its change, share of the trials and agreement under a rule."""
        red, rounds = self.red[:, rule], self.rounds[:, rule]
        changed = red.astype(float) - self.full
        error = changed.std() / len(red) ** 0.5
        return (
            f"{red.mean():>8.3f} {changed.mean():>+8.3f} +-{error:.3f}"
            f" {share(rounds):>6.1f} +-{share_error(rounds):<4.1f}{(red == self.full).mean():>7.3f}"
        )


def share(rounds: Ints) -> float:
    """Rounds used, in per cent of the planned."""
    return 100 * float(rounds.mean()) / PLANNED


def share_error(rounds: Ints) -> float:
    """Standard error of the same."""
    return 100 * float(rounds.std()) / PLANNED / len(rounds) ** 0.5


def _measured(job: tuple[Design, range]) -> Measured:
    return Measured.of(*job)


def measure(pool: ProcessPoolExecutor, designs: Sequence[Design], repeats: int) -> list[Measured]:
    """Simulate every design, shared out in parts."""
    parts = [range(first, min(first + PART, repeats)) for first in range(0, repeats, PART)]
    found = list(pool.map(_measured, [(design, part) for design in designs for part in parts]))
    size = len(parts)
    return [Measured.joined(found[i * size : (i + 1) * size]) for i in range(len(designs))]


# Wald's bound.


def wald_share(
    design: Design, alpha: float, power: float, repeats: int = 200
) -> tuple[float, float]:
    """Trials that a sequential test needs that knows every chance, in per cent of the plan.

    Wald's approximation to the expected sample of a test of the chances against those with a logit
    lower by a half, at the same alpha and power: under no change, and under the change.
    """
    null, alternative = np.zeros(2)
    for repeat in range(repeats):
        before = design.suite.draw(np.random.default_rng([repeat, SEED]))
        after = times_odds(before, np.exp(-0.5))
        null += _divergence(before, after).sum() / repeats
        alternative += _divergence(after, before).sum() / repeats
    upper, lower = np.log(power / alpha), np.log((1 - power) / (1 - alpha))
    kept = -(alpha * upper + (1 - alpha) * lower) / null
    seen = (power * upper + (1 - power) * lower) / alternative
    return 100 * kept / PLANNED, 100 * seen / PLANNED


def _divergence(truth: Rates, other: Rates) -> Rates:
    """Mean log likelihood ratio of one trial."""
    truth, other = (np.clip(rates, 1e-12, 1 - 1e-12) for rates in (truth, other))
    return np.asarray(
        truth * np.log(truth / other) + (1 - truth) * np.log((1 - truth) / (1 - other))
    )


# Tables.

DEEP = Design(baseline_seeds=32)
EQUAL = Design()
REPEATED = Design(baseline_runs=4)
SUITES: Mapping[str, BetaSuite | SmallSuite] = {
    "T = 50, p ~ Beta(1.2, .6)": BetaSuite(),
    "T = 20, half always pass, others Beta(4, 2)": SmallSuite(),
}
SIZES: Mapping[str, BetaSuite | SmallSuite] = {
    f"T = {tasks}, p ~ Beta(1.2, .6)": BetaSuite(tasks=tasks) for tasks in (20, 200)
}
MAIN = (unchanged, shift, clear, flaky, broken)
OTHER = (half, three, three_best, half_shifted, few_shifted, flaky_8, less_good, mixed, better)
HEAD = f"{'blocked':>8} {'change':>15} {'% of trials':>13} {'agree':>6}"


def table(
    pool: ProcessPoolExecutor, title: str, designs: Sequence[Design], repeats: int
) -> dict[str, Measured]:
    """Measure and print designs; returns them by change."""
    started = time.perf_counter()
    found = measure(pool, designs, repeats)
    print(f"\n{title}: {repeats} checks a row (+- 1 s.e.)")
    print(f"{'':<13}{'full':>7} {'certain':>8}" + "".join(f" |{rule!s:^46}" for rule in RULES))
    print(f"{'':<13}{'plan':>7} {'%':>8}" + f" |{HEAD:<46}" * len(RULES))
    names = [getattr(design.change, "__name__", "") for design in designs]
    for name, own in zip(names, found, strict=True):
        rows = "".join(f" |{own.row(rule):<46}" for rule in range(len(RULES)))
        print(f"{name:<13}{own.full.mean():>7.3f} {share(own.certain):>8.1f}{rows}")
    seconds = sum(own.seconds for own in found)
    looks = sum(int(own.rounds.clip(max=PLANNED - 1).sum()) for own in found)
    print(f"  {1000 * seconds / looks:.0f} ms of processor a look", end="; ")
    print(f"{time.perf_counter() - started:.0f} s", flush=True)
    return dict(zip(names, found, strict=True))


def show_wald(design: Design, found: Mapping[str, Measured]) -> None:
    """Print how near the bound the rules come."""
    null, changed = found["unchanged"], found["shift"]
    alpha, power = float(null.full.mean()), float(changed.full.mean())
    if not 0 < alpha < power < 1:
        print("  Wald's bound: not to be had, an error rate of the full plan is 0 in this sample")
        return
    kept, seen = wald_share(design, alpha, power)
    print(f"  Wald, every chance known, same alpha and power: {kept:.0f} / {seen:.0f} %", end="")
    for rule in range(len(RULES)):
        pairs = ((null, kept), (changed, seen))
        ratios = (share(own.rounds[:, rule]) / bound for own, bound in pairs)
        print(f"; {RULES[rule]}: " + " / ".join(f"{ratio:.1f}" for ratio in ratios), end="")
    print(" times that (unchanged / shift)", flush=True)


def main_tables(pool: ProcessPoolExecutor, repeats: int) -> None:
    """Exchangeable trials, the changes that the figures are stated for."""
    _stated(pool, repeats, SUITES)


def size_tables(pool: ProcessPoolExecutor, repeats: int) -> None:
    """Twenty tasks and two hundred."""
    _stated(pool, repeats, SIZES)


def _stated(
    pool: ProcessPoolExecutor, repeats: int, suites: Mapping[str, BetaSuite | SmallSuite]
) -> None:
    for name, suite in suites.items():
        for baseline, design in (("32 v 8", DEEP), ("8 v 8", EQUAL)):
            designs = [replace(design, suite=suite, change=change) for change in MAIN]
            show_wald(designs[0], table(pool, f"{name}, {baseline}", designs, repeats))


def other_tables(pool: ProcessPoolExecutor, repeats: int) -> None:
    """Changes whose shape the prior does not have."""
    for name, suite in SUITES.items():
        designs = [replace(DEEP, suite=suite, change=change) for change in OTHER]
        table(pool, f"Other changes, {name}, 32 v 8", designs, repeats)


def seed_tables(pool: ProcessPoolExecutor, repeats: int) -> None:
    """Seed effects: strata chosen from the baseline, futures drawn a seed at a time."""
    for effect in ("moderate", "common"):
        designs = [replace(REPEATED, change=change, effect=effect) for change in MAIN]
        table(pool, f"T = 50, 8 x 4 v 8, seed effect {effect}", designs, repeats)


TABLES: dict[str, tuple[Callable[[ProcessPoolExecutor, int], None], float]] = {
    "main": (main_tables, 1.0),
    "other": (other_tables, 0.5),
    "seeds": (seed_tables, 0.5),
    "sizes": (size_tables, 0.4),
}
"""Each table, and its part of the repeats."""


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=300)
    parser.add_argument("--only", choices=[*TABLES, "all"], default="main")
    options = parser.parse_args()
    # Workers start afresh and read it: two that each spread over two cores are in each other's way.
    os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"
    print(REQUIRED)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        for name, (run, part) in TABLES.items():
            if options.only in ("all", name):
                run(pool, max(1, round(options.repeats * part)))


REQUIRED = """\
required of eps 0.05: blocked changes by no more than .01 on an unchanged agent, and falls by no
more than .025 elsewhere; an unchanged agent is cleared with 60 % of the trials (32 v 8) and 50 %
(8 v 8), "clear" is called with 36 %. Of eps 0.01, sceptical: 98 % agreement, at 61 to 78 % of the
trials of an unchanged agent. "certain": stopping only where the verdict cannot change."""

if __name__ == "__main__":
    main()

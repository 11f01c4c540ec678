"""Seeds that are hard or easy, and days that shift a whole run: false alarms and power."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.simulation.figures import Asked, Mean, Rate, Table, about
from benchmarks.simulation.laboratory import Laboratory
from benchmarks.simulation.populations import (
    SEED_EFFECTS,
    BetaSuite,
    Change,
    Design,
    Less,
    flaky,
    half,
    shift,
    three,
)
from benchmarks.simulation.rules import TODAY, Gate, Rule
from ci_gate.stats.run_effect import run_effect

OURS = Gate(days=False)
UNPAIRED = Gate(days=False, pairing="none")
PAIRED = Gate(days=False, pairing="seed")
DEEP = Design(baseline_runs=4)
MANY = Design(baseline_seeds=32)


def seed_tables(lab: Laboratory) -> Iterator[Table]:
    """Seed effects: false alarms drawn afresh and given the seeds, and power."""
    yield _seed_false_alarms(lab)
    yield _given_the_seeds(lab)
    yield from (_seed_power(lab, design, name) for name, design in _POWER_DESIGNS.items())


_FALSE_ALARMS: dict[str, tuple[Design, Rule]] = {
    "8x4: gate": (DEEP, OURS),
    "8x4: unpaired": (DEEP, UNPAIRED),
    "8x4: paired": (DEEP, PAIRED),
    "8v8: gate": (Design(), OURS),
    "8v8: unpaired": (Design(), UNPAIRED),
    "8v8: paired": (Design(), PAIRED),
    "32 seeds: gate": (MANY, OURS),
    "32 seeds: unpaired": (MANY, UNPAIRED),
    "8v8: t-test": (Design(), TODAY["paired t-test"]),
    "32 seeds: t-test": (MANY, TODAY["paired t-test"]),
    "32 seeds: Fisher": (MANY, TODAY["Fisher, pooled"]),
}
GATES = ("8x4: gate", "8v8: gate", "32 seeds: gate")


def _seed_false_alarms(lab: Laboratory) -> Table:
    rows: dict[str, list[Rate]] = {effect: [] for effect in SEED_EFFECTS}
    found: dict[tuple[str, str], Rate] = {}
    for design in (DEEP, Design(), MANY):
        rules = {name: rule for name, (own, rule) in _FALSE_ALARMS.items() if own == design}
        designs = {effect: replace(design, effect=effect) for effect in SEED_EFFECTS}
        found |= lab.blocked(designs, rules)
    rows = {effect: [found[effect, name] for name in _FALSE_ALARMS] for effect in SEED_EFFECTS}
    return Table(
        name="seeds, false alarms",
        title=(
            "Blocked though unchanged, seeds drawn afresh each time: 50 tasks, "
            f"N = {lab.repeats} a cell (standard error)"
        ),
        notes=(
            "8x4: baseline of 8 seeds run 4 times. 32 seeds: each once, 8 by the candidate.",
            "The correction for bad days is off; its table follows.",
        ),
        columns=list(_FALSE_ALARMS),
        rows=rows,
        asked={(effect, gate): Asked(high=0.053) for effect in SEED_EFFECTS for gate in GATES},
    )


_POWER_DESIGNS = {"8 against 8 x 4": DEEP, "8 against 8": Design()}
_POWER_CHANGES: dict[str, Change] = {
    "all - .08": Less(0.08),
    "flaky": flaky,
    "half": half,
    "three": three,
}
_MEASURED_DEEP = {
    "none": (0.96, 0.69, 0.66, 0.65),
    "weak": (0.96, 0.75, 0.64, 0.72),
    "moderate": (0.99, 0.78, 0.69, 0.74),
    "strong": (1.0, 0.96, 0.88, 0.91),
    "common": (0.96, 0.67, 0.66, 0.66),
}
_MEASURED_PAIR = {
    "none": (0.84, 0.44, 0.15, 0.33),
    "weak": (0.84, 0.46, 0.15, 0.30),
    "moderate": (0.92, 0.51, 0.19, 0.34),
    "strong": (0.99, 0.77, 0.38, 0.52),
    "common": (0.88, 0.43, 0.14, 0.29),
}


def _seed_power(lab: Laboratory, design: Design, name: str) -> Table:
    rules = {"gate": OURS, "unpaired": UNPAIRED, "paired": PAIRED}
    designs = {
        f"{effect}/{change}": replace(design, effect=effect, change=own)
        for effect in _MEASURED_DEEP
        for change, own in _POWER_CHANGES.items()
    }
    rates = lab.blocked(designs, rules)
    measured = _MEASURED_DEEP if design == DEEP else _MEASURED_PAIR
    return Table(
        name=f"seeds, power {name}",
        title=(
            f"Blocked when changed, {name}: 50 tasks, N = {lab.repeats} a cell (standard error)"
        ),
        columns=[f"{change}: {rule}" for change in _POWER_CHANGES for rule in rules],
        rows={
            effect: [
                rates[f"{effect}/{change}", rule] for change in _POWER_CHANGES for rule in rules
            ]
            for effect in measured
        },
        asked={
            (effect, f"{change}: gate"): about(figure, 0.015)
            for effect, figures in measured.items()
            for change, figure in zip(_POWER_CHANGES, figures, strict=True)
        },
    )


@dataclass(frozen=True)
class World:
    """One draw of tasks and seeds; only the outcomes are drawn afresh."""

    design: Design
    rule: Gate
    number: int
    redraws: int

    def false_alarms(self) -> int:
        """Count the redraws in which an unchanged agent is blocked."""
        chance = np.random.default_rng([self.number, *f"{self.design}".encode()])
        rates = self.design.draw_rates(chance)
        pairs = [self.design.draw_sides(rates, chance) for _ in range(self.redraws)]
        return int(self.rule.blocks(pairs).sum())


_WORLD_RULES = {
    "8x4: gate": (DEEP, OURS),
    "32 seeds: gate": (MANY, OURS),
    "32 seeds: unpaired": (MANY, UNPAIRED),
}


def _given_the_seeds(lab: Laboratory) -> Table:
    worlds, redraws = max(6, lab.repeats // 25), max(50, min(200, lab.repeats // 6))
    rows = {}
    for effect in SEED_EFFECTS:
        cells: list[Rate | str] = []
        for design, rule in _WORLD_RULES.values():
            own = replace(design, effect=effect)
            jobs = [World(own, rule, number, redraws) for number in range(worlds)]
            hits = np.array(lab.each(World.false_alarms, jobs))
            shares = hits / redraws
            cells += [Rate(int(hits.sum()), worlds * redraws)]
            cells += [f"{np.quantile(shares, 0.9):.2f} / {shares.max():.2f}"]
        rows[effect] = cells
    columns = [part for name in _WORLD_RULES for part in (name, f"{name}, 90 % / worst")]
    return Table(
        name="seeds, given them",
        title=(
            "Blocked though unchanged, given the seeds: 50 tasks, "
            f"{worlds} worlds x {redraws} redraws, N = {worlds * redraws} a cell (standard error)"
        ),
        notes=("Standard errors are those of redraws, not of worlds. 90 %: of the worlds.",),
        columns=columns,
        rows=rows,
        asked={(effect, "8x4: gate"): Asked(high=0.05) for effect in SEED_EFFECTS},
    )


# Days.

SPREADS = (0.0, 0.1, 0.2, 0.3)
RUNS = (2, 4, 8)
DAYS_ASKED = {4: 0.09, 8: 0.075}
"""False alarms at most, with the correction, by the baseline's runs."""


def day_tables(lab: Laboratory) -> Iterator[Table]:
    """Run effects: false alarms and power without and with the gate's correction."""
    rules = {"uncorrected": OURS, "gate": Gate()}
    designs = {
        _day_name(tasks, runs, spread): Design(
            suite=BetaSuite(tasks), baseline_runs=runs, day_spread=spread
        )
        for tasks, runs in ((50, 2), (50, 4), (50, 8), (200, 4))
        for spread in SPREADS
    }
    alarms = lab.blocked(designs, rules)
    powers = lab.blocked(
        {name: own.changed(shift) for name, own in designs.items() if own.suite.tasks == 50}, rules
    )
    measured = lab.each(_mean_phi, [(design, lab.repeats) for design in designs.values()])
    phi = dict(zip(designs, measured, strict=True))
    yield Table(
        name="days",
        title=(
            "Bad days: every run's logits shifted by a normal of so much; "
            f"p ~ Beta(1.2, .6), N = {lab.repeats} a cell (standard error)"
        ),
        notes=(
            "With 2 runs nothing is corrected; with 4 and more where phi is large (p < .1).",
            "power: the change is a shift of all logits by - .5.",
        ),
        columns=("mean phi", "uncorrected", "gate", "power: uncorrected", "power: gate"),
        rows={
            name: [
                phi[name],
                *(alarms[name, rule] for rule in rules),
                *(powers.get((name, rule), "-") for rule in rules),
            ]
            for name in designs
        },
        asked={
            (_day_name(50, runs, spread), "gate"): Asked(high=high)
            for runs, high in DAYS_ASKED.items()
            for spread in SPREADS
        },
    )


def _day_name(tasks: int, runs: int, spread: float) -> str:
    return f"{tasks} tasks, {runs} runs, {spread:.1f}"


def _mean_phi(job: tuple[Design, int]) -> Mean:
    design, repeats = job
    found = []
    for repeat in range(repeats):
        effect = run_effect(design.draw(repeat).baseline.tolist(), strata="task")
        found.append(1.0 if effect.phi is None else effect.phi)
    return Mean(float(np.mean(found)), float(np.std(found, ddof=1) / np.sqrt(len(found))))

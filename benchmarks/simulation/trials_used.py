"""How many trials of a plan are run when it stops early, beside what no rule could save more than.

The stops are those of ``benchmarks/curtailment.py``, which has more suites, changes and rules.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.curtailment import (
    DEEP,
    EQUAL,
    PLANNED,
    RULES,
    Check,
    certain_rounds,
    clear,
    full_verdicts,
    wald_share,
)
from benchmarks.simulation.figures import Asked, Cell, Mean, Rate, Table
from benchmarks.simulation.laboratory import Laboratory
from benchmarks.simulation.populations import Design, shift, unchanged

RULE = RULES[0]
DESIGNS = {"8 against 32": DEEP, "8 against 8": EQUAL}
CHANGES = {"unchanged": unchanged, "shift": shift, "clear": clear}
COLUMNS = ("full plan: blocked", "with stops: blocked", "trials used", "certain only", "Wald")
_MOST_TRIALS = {
    "unchanged, 8 against 32": 0.60,
    "unchanged, 8 against 8": 0.50,
    "clear, 8 against 32": 0.36,
    "clear, 8 against 8": 0.36,
}


def trials_tables(lab: Laboratory) -> Iterator[Table]:
    """Stops at a predictive probability of .05 against the full plan."""
    stopped = {name: _stops(lab, design) for name, design in DESIGNS.items()}
    rows = {
        f"{change}, {name}": stopped[name][change].cells(bound)
        for name, design in DESIGNS.items()
        for change, bound in _bounds(design, stopped[name]).items()
    }
    yield Table(
        name="trials",
        title=(
            f"Trials used with curtailment, {RULE}: 50 tasks, p ~ Beta(1.2, .6), 8 rounds, "
            f"N = {lab.repeats} a row (standard error)"
        ),
        notes=(
            "shift: logit - .5, clear: logit - 1.5 on all tasks.",
            "certain only: stops where the verdict cannot change. Wald: a sequential test that is",
            "told every task's chance before and after, at the same alpha and power.",
        ),
        columns=COLUMNS,
        rows=rows,
        asked={(row, "trials used"): Asked(high=most) for row, most in _MOST_TRIALS.items()},
    )


@dataclass(frozen=True)
class Stops:
    """Of every repeat: the full plan's verdict, the stopped one, and the rounds of both rules."""

    full: np.ndarray
    red: np.ndarray
    rounds: np.ndarray
    certain: np.ndarray

    def cells(self, bound: float | None) -> list[Cell]:
        """Return a row of the table."""
        size = len(self.full)
        return [
            Rate(int(self.full.sum()), size),
            Rate(int(self.red.sum()), size),
            _share(self.rounds),
            _share(self.certain),
            "-" if bound is None else f"{bound:.2f}",
        ]


def _share(rounds: np.ndarray) -> Mean:
    return Mean(
        float(rounds.mean()) / PLANNED, float(rounds.std(ddof=1)) / PLANNED / len(rounds) ** 0.5
    )


def _stops(lab: Laboratory, design: Design) -> dict[str, Stops]:
    parts = lab.parts(part=25)
    jobs = [(replace(design, change=own), part) for own in CHANGES.values() for part in parts]
    found = lab.each(_simulate, jobs)
    size = len(parts)
    return {
        change: Stops(*np.concatenate(found[at * size : (at + 1) * size], axis=1))
        for at, change in enumerate(CHANGES)
    }


def _simulate(job: tuple[Design, range]) -> np.ndarray:
    design, repeats = job
    checks = [Check.of(design.draw(repeat), seeded=False) for repeat in repeats]
    full = full_verdicts(checks)
    stops = [RULE.stop(check) for check in checks]
    red = [last if red is None else red for (_, red), last in zip(stops, full, strict=True)]
    rounds = [rounds for rounds, _ in stops]
    return np.array([full, red, rounds, certain_rounds(checks)], dtype=np.int64)


def _bounds(design: Design, stops: dict[str, Stops]) -> dict[str, float | None]:
    """Wald's bound where one error rate is known for each side of it: unchanged, and the shift."""
    alpha, power = (float(stops[change].full.mean()) for change in ("unchanged", "shift"))
    bounds: dict[str, float | None] = dict.fromkeys(CHANGES)
    if 0 < alpha < power < 1:
        kept, seen = wald_share(design, alpha, power)
        bounds |= {"unchanged": kept / 100, "shift": seen / 100}
    return bounds

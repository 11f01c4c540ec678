"""How often a change is blocked: by the gate, and by the rules of today on the same outcomes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.simulation.figures import Asked, Rate, Table, about
from benchmarks.simulation.laboratory import Laboratory
from benchmarks.simulation.populations import (
    Change,
    Design,
    Less,
    Pair,
    SmallSuite,
    broken,
    flaky,
    good_85,
    half,
    shift,
    three,
    unchanged,
)
from benchmarks.simulation.rules import TODAY, Flags, Gate, Rule

MAIN_CHANGES: Mapping[str, Change] = {
    "null": unchanged,
    "shift": shift,
    "flaky": flaky,
    "broken": broken,
}
PLAIN = Gate(judge="test", days=False)

_SHALLOW = (Asked(high=0.05), Asked(low=0.74), Asked(low=0.42), Asked(low=0.99))
_DEEP = (Asked(high=0.05), Asked(low=0.87), Asked(low=0.66), Asked(low=0.99))


_Rows = Mapping[str, tuple[Design, Rule]]


def main_tables(lab: Laboratory) -> Iterator[Table]:
    """The large suite, one look, and the rules of today on its outcomes of 8 against 8."""
    shallow, deep = Design(), Design(baseline_runs=4)
    rows: _Rows = {
        "gate, 8 against 8": (shallow, PLAIN),
        "gate, 8 against 32 seeds, unpaired": (
            Design(baseline_seeds=32),
            Gate(judge="test", days=False, seeded=False),
        ),
        "gate, 8 against 8 x 4": (deep, PLAIN),
        "the same, bad days corrected for": (deep, Gate(judge="test")),
        **{f"{name}, 8 against 8": (shallow, rule) for name, rule in TODAY.items()},
    }
    asked = dict.fromkeys(list(rows)[:1], _SHALLOW) | dict.fromkeys(list(rows)[1:3], _DEEP)
    yield Table(
        name="main",
        title=f"Blocked: 50 tasks, p ~ Beta(1.2, .6), N = {lab.repeats} a cell (standard error)",
        notes=(
            "null: unchanged; shift: logit - .5 on all; flaky: p > .9 becomes .9 p;",
            "broken: the best task becomes 0.",
            "Judged by joint_test itself; rules of today on the outcomes of 8 against 8.",
        ),
        columns=list(MAIN_CHANGES),
        rows=_judged(lab, rows, MAIN_CHANGES),
        asked={
            (row, column): one
            for row, bounds in asked.items()
            for column, one in zip(MAIN_CHANGES, bounds, strict=True)
        },
    )


def _judged(lab: Laboratory, rows: _Rows, changes: Mapping[str, Change]) -> dict[str, list[Rate]]:
    """Judge every row's design under every change; rules that share a design share its pairs."""
    found: dict[str, list[Rate]] = {}
    for design in dict.fromkeys(design for design, _ in rows.values()):
        rules = {name: rule for name, (own, rule) in rows.items() if own == design}
        designs = {name: design.changed(change) for name, change in changes.items()}
        rates = lab.blocked(designs, rules)
        found |= {rule: [rates[change, rule] for change in changes] for rule in rules}
    return {name: found[name] for name in rows}


SMALL_CHANGES: Mapping[str, Change] = {
    "one 1 -> 0": broken,
    "one 1 -> .5": half,
    "three - .5": three,
    "all - .10": Less(0.10),
    "always -> .85": good_85,
    "unchanged": unchanged,
}


def small_tables(lab: Laboratory) -> Iterator[Table]:
    """The small suite, where one broken task is a twentieth of the mean."""
    suite = Design(suite=SmallSuite())
    rows: _Rows = {"gate": (suite, PLAIN), **{name: (suite, own) for name, own in TODAY.items()}}
    gate = (Asked(low=1.0), about(0.29), about(0.76), about(0.91), about(0.83), Asked(high=0.05))
    yield Table(
        name="small",
        title=(
            "Blocked: 20 tasks, half always pass, the others Beta(4, 2), 8 against 8, "
            f"N = {lab.repeats} a cell (standard error)"
        ),
        columns=list(SMALL_CHANGES),
        rows=_judged(lab, rows, SMALL_CHANGES),
        asked={("gate", column): one for column, one in zip(SMALL_CHANGES, gate, strict=True)},
    )


DROPS = (0.0, 0.02, 0.04, 0.06, 0.08, 0.10, 0.12)
DROP_RULES = ("pass^1 lower", "pass^8 lower", "fixed .60 / .25", "paired t-test", "Wilson apart")


def drop_tables(lab: Laboratory) -> Iterator[Table]:
    """Chance to be blocked against the drop of every task."""
    shallow, deep = Design(), Design(baseline_runs=4)
    quick = Gate(days=False)
    rows: _Rows = {
        "gate, 8 against 8 x 4": (deep, quick),
        "gate, 8 against 8": (shallow, quick),
        **{name: (shallow, TODAY[name]) for name in DROP_RULES},
    }
    changes = {f"- {drop:.2f}": Less(drop) for drop in DROPS}
    yield Table(
        name="drop",
        title=(
            "Blocked when every task drops by so much: 50 tasks, p ~ Beta(1.2, .6), "
            f"N = {lab.repeats} a cell (standard error)"
        ),
        columns=list(changes),
        rows=_judged(lab, rows, changes),
    )


@dataclass(frozen=True)
class Disagreement:
    """Where the quick verdict is not that of the test itself."""

    def blocks(self, pairs: Sequence[Pair]) -> Flags:
        """Judge by both."""
        quick, test = Gate(days=False), Gate(judge="test", days=False)
        return np.asarray(quick.blocks(pairs) != test.blocks(pairs))


def agreement_tables(lab: Laboratory) -> Iterator[Table]:
    """How far the quick verdict, which judges the larger tables, can be trusted."""
    repeats = min(lab.repeats, 400)
    rules: dict[str, Rule] = {
        "joint_test": Gate(judge="test", days=False),
        "quick verdict": Gate(days=False),
        "differ": Disagreement(),
    }
    designs = {
        "8 against 8": Design(change=shift),
        "8 against 8 x 4": Design(change=flaky, baseline_runs=4),
        "8 against 8 x 4, strong seeds": Design(change=half, effect="strong", baseline_runs=4),
        "8 against 8, 20 tasks": Design(suite=SmallSuite(), change=three),
    }
    rates = lab.blocked(designs, rules, repeats)
    yield Table(
        name="agreement",
        title=f"Blocked by joint_test and by quick_verdict.blocked, N = {repeats} (standard error)",
        columns=list(rules),
        rows={name: [rates[name, rule] for rule in rules] for name in designs},
        asked={(name, "differ"): Asked(high=0.03) for name in designs},
    )

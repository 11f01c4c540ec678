"""Published outcomes of real agents: one agent against itself, and agents in each other's place.

Trials of one agent dealt to two sides check the code, not the agent's days; whole runs against
whole runs check those a little, on few runs. Read where the files lie; none of them is kept here.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from pathlib import Path

import numpy as np

from benchmarks.simulation.figures import Asked, Rate, Table
from benchmarks.simulation.laboratory import Laboratory
from benchmarks.simulation.populations import Pair
from benchmarks.simulation.rules import TODAY, Gate, Rule

PLACE = Path(__file__).resolve().parents[3] / "shared" / "data" / "multi_trial"
FILES = {
    "METR": ("metr_n8.csv", 8),
    "Terminal-Bench": ("terminal_bench_n5.csv", 5),
    "tau-bench": ("taubench_airline_gpt4o_n4.csv", 4),
}
HISTOGRAMS = "tau2_histograms_n4.csv"
FEWEST_TASKS = 10


@dataclass(frozen=True)
class Source:
    """A published set: outcomes by agent and task, ``trials`` characters each."""

    name: str
    trials: int
    agents: dict[str, dict[str, str]]

    @classmethod
    def read(cls, name: str) -> Source:
        """Take tasks with enough trials, and the first of them."""
        file, trials = FILES[name]
        agents: dict[str, dict[str, str]] = {}
        with (PLACE / file).open(encoding="utf-8", newline="") as lines:
            for row in csv.DictReader(lines):
                if len(row["outcomes"]) >= trials:
                    agent = agents.setdefault(row["model"], {})
                    agent[row["task"]] = row["outcomes"][:trials]
        return cls(name, trials, agents)

    @classmethod
    def read_histograms(cls) -> Source:
        """Make tasks of how many passed 0 to 4 of 4 trials; their order is not known."""
        agents: dict[str, dict[str, str]] = {}
        with (PLACE / HISTOGRAMS).open(encoding="utf-8", newline="") as lines:
            for row in csv.DictReader(lines):
                counts = [int(row[f"m{passed}"]) for passed in range(5)]
                outcomes = [
                    "+" * passed + "-" * (4 - passed)
                    for passed, count in enumerate(counts)
                    for _ in range(count)
                ]
                name = f"{row['submission']} {row['domain']}"
                agents[name] = {f"{at:03}": own for at, own in enumerate(outcomes)}
        return cls("tau2-bench", 4, agents)

    @property
    def deal(self) -> int:
        """Trials of the smaller side."""
        return self.trials // 2

    def outcomes(self, agent: str, tasks: Sequence[str] | None = None) -> np.ndarray:
        """Return an agent's outcomes, tasks x trials."""
        own = self.agents[agent]
        marks = [own[task] for task in (sorted(own) if tasks is None else tasks)]
        return np.array([["-+".find(mark) for mark in line] for line in marks], dtype=np.int8)


def real_tables(lab: Laboratory) -> Iterator[Table | str]:
    """All tables on published outcomes, or why there are none."""
    if not PLACE.is_dir():
        yield f"Real outcomes: skipped, there is no {PLACE} with them."
        return
    sources = [Source.read(name) for name in FILES]
    yield _dealt_table(lab, [*sources, Source.read_histograms()])
    yield _whole_runs_table(lab, sources)
    for source in sources[:2]:
        yield from _swap_tables(lab, source)


# One agent against itself.


def _rules(k: int) -> dict[str, Rule]:
    return {"gate": Gate(judge="test", seeded=False, days=False, ks=(1, k)), **TODAY}


def _dealt_table(lab: Laboratory, sources: Sequence[Source]) -> Table:
    rows = {}
    for source in sources:
        jobs = [(source, part) for part in lab.parts()]
        hits = np.sum(lab.each(_dealt_hits, jobs), axis=0)
        small = source.deal
        name = f"{source.name}, {len(source.agents)} agents, {source.trials - small} v {small}"
        rows[name] = [Rate(int(count), lab.repeats) for count in hits]
    return Table(
        name="real, same agent",
        title=(
            "Real outcomes, trials of one agent dealt to two sides: blocked, "
            f"N = {lab.repeats} deals over all agents of a source (standard error)"
        ),
        notes=("pass^1 and pass^k, k the smaller side; pass^8 of today's rules likewise.",),
        columns=list(_rules(1)),
        rows=rows,
        asked={(row, "gate"): Asked(high=0.05) for row in rows},
    )


def _dealt_hits(job: tuple[Source, range]) -> list[int]:
    source, numbers = job
    agents = sorted(source.agents)
    pairs = [_dealt(source, agents[number % len(agents)], number) for number in numbers]
    return _blocked(pairs, source.deal)


def _dealt(source: Source, agent: str, number: int) -> Pair:
    chance = np.random.default_rng([number, len(source.name)])
    mixed = chance.permuted(source.outcomes(agent), axis=1)
    return Pair(mixed[:, None, source.deal :], mixed[:, None, : source.deal])


def _blocked(pairs: Sequence[Pair], k: int) -> list[int]:
    return [int(rule.blocks(pairs).sum()) for rule in _rules(k).values()]


def _whole_runs_table(lab: Laboratory, sources: Sequence[Source]) -> Table:
    rows = {}
    for source in sources:
        if source.name == "METR":
            continue  # Its trials were not made in runs over all tasks.
        jobs = [(source, agent) for agent in sorted(source.agents)]
        hits = lab.each(_whole_run_hits, jobs)
        splits = len(list(combinations(range(source.trials), source.deal)))
        name = f"{source.name}, {len(jobs)} agents x {splits} splits"
        rows[name] = [f"{count} of {len(jobs) * splits}" for count in np.sum(hits, axis=0).tolist()]
    return Table(
        name="real, whole runs",
        title="Real outcomes, whole runs of one agent against its other runs: blocked",
        notes=(
            "Every way to choose the candidate's runs. The splits of an agent share runs, so there",
            "is no simple standard error.",
        ),
        columns=list(_rules(1)),
        rows=rows,
    )


def _whole_run_hits(job: tuple[Source, str]) -> list[int]:
    source, agent = job
    outcomes = source.outcomes(agent)
    pairs = []
    for chosen in combinations(range(source.trials), source.deal):
        others = [trial for trial in range(source.trials) if trial not in chosen]
        pairs.append(Pair(outcomes[:, None, others], outcomes[:, None, list(chosen)]))
    return _blocked(pairs, source.deal)


# Agents in each other's place.


@dataclass(frozen=True)
class Swap:
    """One agent in the place of another, on the tasks that both have."""

    source: str
    baseline: str
    candidate: str
    tasks: int
    difference: float
    p_value: float
    named: int
    blocked: tuple[bool, ...]


def _swap_tables(lab: Laboratory, source: Source) -> Iterator[Table]:
    pairs = list(permutations(sorted(source.agents), 2))
    found = lab.each(_swap, [(source, *pair) for pair in pairs], chunk=8)
    swaps = [swap for swap in found if swap is not None]
    yield _summary(source, swaps)
    worse = sorted((s for s in swaps if s.difference < 0), key=lambda swap: -swap.difference)
    yield Table(
        name=f"real, swaps {source.name}, named",
        title=(
            f"{source.name}: the {min(len(worse), 24)} smallest drops between two agents, "
            f"{source.trials} trials a task on each side"
        ),
        columns=("tasks", "pass^1", "p-value", "tasks named", "gate", *TODAY),
        rows={f"{s.baseline} -> {s.candidate}": _named_row(s) for s in worse[:24]},
    )


def _named_row(swap: Swap) -> list[str]:
    head = [str(swap.tasks), f"{swap.difference:+.3f}", f"{swap.p_value:.4f}", str(swap.named)]
    return head + ["blocked" if red else "-" for red in swap.blocked]


def _swap(job: tuple[Source, str, str]) -> Swap | None:
    source, baseline, candidate = job
    tasks = sorted(source.agents[baseline].keys() & source.agents[candidate].keys())
    if len(tasks) < FEWEST_TASKS:
        return None
    left, right = source.outcomes(baseline, tasks), source.outcomes(candidate, tasks)
    pair = Pair(left[:, None, :], right[:, None, :])
    gate = Gate(judge="test", seeded=False, ks=(1, source.trials))
    test = gate.test(pair, "task")
    return Swap(
        source.name,
        baseline,
        candidate,
        len(tasks),
        test.families[1].difference or 0.0,
        test.p_value,
        sum(p <= gate.level for p in test.task_p_adjusted),
        (test.p_value <= gate.level, *(bool(r.blocks([pair])[0]) for r in TODAY.values())),
    )


BUCKETS = {
    "drop over .20": (-1.0, -0.2),
    "drop .10 to .20": (-0.2, -0.1),
    "drop .05 to .10": (-0.1, -0.05),
    "drop up to .05": (-0.05, 0.0),
    "not lower": (0.0, 1.0),
}


def _summary(source: Source, swaps: Sequence[Swap]) -> Table:
    rows = {}
    for name, (low, high) in BUCKETS.items():
        own = [swap for swap in swaps if low <= swap.difference < high]
        if own:
            blocked = np.sum([swap.blocked for swap in own], axis=0).tolist()
            named = sum(swap.named > 0 for swap in own)
            rows[f"{name}: {len(own)}"] = list(map(str, [*blocked, named]))
    return Table(
        name=f"real, swaps {source.name}",
        title=(
            f"{source.name}: one agent in the place of another, {source.trials} trials a task; "
            "how many of the swaps are blocked"
        ),
        notes=("Where the suite is not lower, single tasks may still have dropped.",),
        columns=("gate", *TODAY, "gate names a task"),
        rows=rows,
    )

"""Everything that is promised to be the same bytes everywhere, of a fixed corpus, into a folder.

``python -m tests.same_bytes FOLDER [--shuffled]``: verdicts, decisions after rounds, foresight,
self-checks and baselines of suites that the project's own generator draws, and the reports of the
golden samples. ``.ci/same-bytes`` holds the folders of several environments against each other.

The corpus is made to go through every kind of computation: exact and sampled tests, strata with and
without seeds, margins, corrections for run effects, guards on ratios, anchors, rounds and looks.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from ci_gate.codec import encode
from ci_gate.config import policy_digest
from ci_gate.decision.circumstances import Circumstances
from ci_gate.decision.compare import compare
from ci_gate.decision.curtailment import decide_round
from ci_gate.decision.decide import decide
from ci_gate.decision.power import Question, foresee
from ci_gate.decision.selfcheck import self_check, whole_runs
from ci_gate.model.policy import Guard, Policy
from ci_gate.model.run import AgentRef, Plan, RunHeader, Side, Stop, StopReason
from ci_gate.model.trial import Status, TrialRecord
from ci_gate.prng import Xorshift64Star, derive_seed, format_seed, task_seed
from ci_gate.store import baselines, runs
from ci_gate.store.journal import Journal
from ci_gate.store.pooling import from_run

ROOT_SEED = 0x20261030
TRIALS = 8
_PER_MILLE = 1000


@dataclass(frozen=True, kw_only=True)
class Case:
    """A suite, its baseline, its candidate, and how that is judged."""

    name: str
    tasks: int
    repeats: int
    drop: int = 0
    """Of every task's rate, in per mille; of the first task alone where it is negative."""
    by_seed: int = 0
    """By how much a seed moves the rates of its trials, in per mille."""
    by_run: int = 0
    foreseen: bool = False
    """Whether it is asked what checks would see, which takes seconds."""
    policy: Mapping[str, Any] = field(default_factory=dict)


CASES = (
    Case(name="one-task", tasks=1, repeats=4, drop=500),
    Case(name="small", tasks=7, repeats=4, drop=60),
    Case(name="one-broken", tasks=40, repeats=4, drop=-900),
    Case(name="seeds-matter", tasks=24, repeats=4, drop=50, by_seed=350),
    Case(name="runs-scatter", tasks=30, repeats=4, drop=40, by_run=150, foreseen=True),
    Case(name="shallow", tasks=20, repeats=1, drop=80),
    Case(
        name="margin",
        tasks=25,
        repeats=4,
        drop=30,
        policy={"margin": 0.05, "require": "non-inferiority", "metrics": ("pass^1", "pass^3")},
    ),
    Case(
        name="guards",
        tasks=15,
        repeats=4,
        policy={
            "floors": {"pass^1": 0.7, "pass^8": 0.2},
            "guards": (
                Guard(metric="cost_per_success_usd", max_increase=0.1),
                Guard(metric="turns", max_increase=0.05),
                Guard(metric="latency", max_increase=0.2),
            ),
        },
    ),
)


class _Drawn:
    """Draws the runs of a case; the same whatever else is drawn."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._ids = [f"{case.name}-{number:03}" for number in range(case.tasks)]

    def records(self, side: str, repeats: int) -> Iterator[TrialRecord]:
        """Yield the trials of a side, task by task."""
        for number, task in enumerate(self._ids):
            draws = Xorshift64Star(task_seed(ROOT_SEED, f"{side} {task}"))
            base = 300 + draws_of(task).below(700)
            for repeat in range(repeats):
                for trial in range(TRIALS):
                    rate = base + self._moved(side, number, repeat, trial)
                    yield _record(task, trial, repeat, rate, draws)

    def _moved(self, side: str, number: int, repeat: int, trial: int) -> int:
        case = self._case
        drop = case.drop if case.drop >= 0 else -case.drop * (number == 0)
        seeds = draws_of(f"{case.name} seed {trial}").below(2 * case.by_seed + 1) - case.by_seed
        run = draws_of(f"{case.name} {side} {repeat}").below(2 * case.by_run + 1) - case.by_run
        return seeds + run - drop * (side == "candidate")


def draws_of(name: str) -> Xorshift64Star:
    """Return a generator of its own for a name."""
    found = Xorshift64Star(task_seed(ROOT_SEED, name))
    # Neighbouring seeds begin alike.
    for _ in range(8):
        found.next()
    return found


def _record(task: str, trial: int, repeat: int, rate: int, draws: Xorshift64Star) -> TrialRecord:
    passed = draws.below(_PER_MILLE) < rate
    errored = draws.below(_PER_MILLE) < 10
    turns = 3 + draws.below(9)
    status = Status.ERRORED if errored else Status.PASSED if passed else Status.FAILED
    return TrialRecord(
        task=task,
        task_digest=f"sha256:{task}",
        trial=trial,
        repeat=repeat,
        seed=format_seed(derive_seed(task_seed(ROOT_SEED, task), trial)),
        status=status,
        reason=None if status is Status.PASSED else "as drawn",
        turns=turns,
        tokens=turns * (90 + draws.below(40)),
        cost_usd=turns * (1 + draws.below(1000)) / 262_144,
        duration_s=draws.below(10**6) / 7e5,
        faults=draws.below(3),
        recovered=1 if passed else 0,
        looped=draws.below(20) == 0,
        measures={"latency": draws.below(10**6) / 3e5},
    )


class Writer:
    """Writes run files, their lines in the order of the tasks or in another one."""

    def __init__(self, folder: Path, *, shuffled: bool) -> None:
        self._folder = folder
        self._shuffled = shuffled

    def run(self, name: str, records: Sequence[TrialRecord], **header: Any) -> runs.RunFile:
        """Write a run file through the journal and read it back."""
        repeats = max(record.repeat for record in records) + 1
        head = RunHeader(
            suite=name,
            suite_digest=f"sha256:{name}",
            root_seed=format_seed(ROOT_SEED),
            plan=Plan(trials=TRIALS, repeats=repeats, max_repeats=max(4, repeats)),
            agent=AgentRef(name="drawn", digest="sha256:drawn"),
            created="2026-11-30T12:00:00Z",
        )
        path = self._folder / f"{name}.run.jsonl"
        with Journal.open(path, msgspec.structs.replace(head, **header), fresh=True) as journal:
            for record in self._ordered(records):
                journal.append(record)
            journal.finish(Stop(round=TRIALS * repeats, reason=StopReason.COMPLETE))
        return runs.load_run(path, name=name)

    def _ordered(self, records: Sequence[TrialRecord]) -> Sequence[TrialRecord]:
        if not self._shuffled:
            return records
        return sorted(records, key=lambda record: draws_of(f"order {record.key}").next())

    def side(self, side: Side) -> Side:
        """Return a side as another reader might hold it."""
        if not self._shuffled:
            return side
        names = sorted(side.tasks, key=lambda name: draws_of(f"order {name}").next())
        return msgspec.structs.replace(
            side,
            tasks={name: side.tasks[name] for name in names},
            planned={name: side.planned[name] for name in reversed(names)},
        )


def documents(case: Case, writer: Writer) -> Iterator[tuple[str, bytes]]:
    """Yield the name and bytes of everything that is said of a case."""
    drawn, policy = _Drawn(case), Policy(**{"max_errored_rate": 0.5, **case.policy})
    deep = writer.run(case.name, list(drawn.records("baseline", case.repeats)))
    baseline = from_run(deep)
    before = writer.side(baselines.to_side(baseline))
    found = writer.run(case.name, list(drawn.records("candidate", 1)))
    after = writer.side(runs.to_side(found))
    anchor = writer.run(case.name, list(drawn.records("anchor", 2)))
    around = Circumstances(policy_digest=policy_digest(policy))
    facts = compare(before, after, policy, around, anchor=writer.side(runs.to_side(anchor)))
    yield "verdict.json", decide(facts, policy, around).to_json().encode()
    yield "baseline.json", baselines.dump_baseline(baseline)
    yield "rounds.json", encode([_round(before, found, policy, writer, at) for at in (2, 5)])
    if case.repeats > 1:
        every = whole_runs(writer.side(runs.to_side(deep)), "x", list(deep.repeat_digests.values()))
        yield "selfcheck.json", encode(self_check(every, policy, suite="x", policy_origin="x"))
    if case.foreseen:
        question = Question(drops=(0.1,), trials=(TRIALS,))
        yield "power.json", encode(foresee(before, policy, question))


def _round(
    before: Side, found: runs.RunFile, policy: Policy, writer: Writer, at: int
) -> tuple[float | None, str | None]:
    """Return what is decided after so many rounds."""
    plan = Plan(trials=TRIALS, curtail=True)
    header = msgspec.structs.replace(found.header, plan=plan)
    records = [record for record in found.records if record.trial < at]
    side = writer.side(runs.side_so_far(header, records))
    decision = decide_round(before, side, policy)
    return decision.predictive, decision.reason


def reports() -> Iterator[tuple[str, bytes]]:
    """Yield the golden reports."""
    from tests.render.regenerate import SAMPLES, written

    for name, verdicts in SAMPLES.items():
        for ending, text in written(verdicts).items():
            yield f"report-{name}.{ending}", text.encode()


def write(target: Path, *, shuffled: bool) -> int:
    """Write every document below a folder; return how many there are."""
    target.mkdir(parents=True, exist_ok=True)
    written = 0
    with tempfile.TemporaryDirectory() as folder:
        writer = Writer(Path(folder), shuffled=shuffled)
        every = [(f"{case.name}.{name}", content) for case in CASES
                 for name, content in documents(case, writer)]  # fmt: skip
    for name, content in (*every, *reports()):
        (target / name).write_bytes(content)
        written += 1
    return written


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--shuffled", action="store_true")
    given = parser.parse_args()
    write(given.folder, shuffled=given.shuffled)

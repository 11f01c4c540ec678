"""What the store may cost: calls, counted, and memory, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from ci_gate.codec import digest_bytes, encode
from ci_gate.model.run import Plan, RunHeader
from ci_gate.model.trial import Grade, Status, TrialRecord
from ci_gate.prng import format_seed
from ci_gate.store.journal import Journal

LOAD = """
import pathlib, resource, sys, time
from ci_gate.store.runs import load_run

start = time.process_time()
run = load_run(pathlib.Path(sys.argv[1]))
seconds = time.process_time() - start
print(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, len(run.records))
"""


def measured(script: str, path: Path) -> list[float]:
    done = subprocess.run(
        [sys.executable, "-c", script, path], check=True, capture_output=True, text=True
    )
    return [float(word) for word in done.stdout.split()]


def test_a_trial_costs_the_journal_as_much_as_those_before_it(tmp_path: Path) -> None:
    """Writing and signing a trial takes some tens of calls, however many trials there are."""
    records = [record(0, trial) for trial in range(400)]

    with Journal.open(
        tmp_path / "x.run.jsonl", RunHeader(suite="x", plan=Plan(trials=400))
    ) as journal:
        calls = [calls_of(partial(journal.append, each)) for each in records]

    assert sum(calls) < 400 * 40
    assert sum(calls[300:]) < 1.2 * sum(calls[:100])


def calls_of(act: Callable[[], None]) -> int:
    """Return how many functions of Python and of C are called."""
    seen: list[str] = []
    sys.setprofile(lambda _frame, event, _argument: seen.append(event))
    try:
        act()
    finally:
        sys.setprofile(None)
    return sum(event.endswith("call") for event in seen)


@pytest.mark.slow
def test_a_million_lines_load(tmp_path: Path) -> None:
    """A run of 1,000,000 trials is verified in 1.5 GB; how long it takes, a benchmark says."""
    path = tmp_path / "big.run.jsonl"
    with path.open("wb") as stream:
        stream.write(encode(RunHeader(suite="big", plan=Plan(trials=1000))) + b"\n")
        # Round by round, as trials finish: far from the order in which they are sorted.
        for trial in range(1000):
            stream.writelines(encode(record(task, trial)) + b"\n" for task in range(1000))

    _, kibibytes, records = measured(LOAD, path)

    assert records == 1_000_000
    assert kibibytes < 1.5e6


def record(task: int, trial: int) -> TrialRecord:
    """Return a record with everything that a real one has."""
    passed = trial % 7 != 0
    return TrialRecord(
        task=f"refund-{task}",
        task_digest=digest_bytes(b"%d" % task),
        trial=trial,
        seed=format_seed(task * 1000 + trial),
        status=Status.PASSED if passed else Status.FAILED,
        reason=None if passed else "expected 3 refunds, found 4",
        turns=5,
        tool_calls=4,
        tokens=1000 + trial,
        cost_usd=0.0021 + trial * 1e-5,
        duration_s=1.9,
        faults=1,
        recovered=1,
        looped=False,
        grades=(Grade(grader="state", passed=passed),),
        trace=f"traces/refund-{task}/{trial}.jsonl",
        trace_digest=digest_bytes(b"%d %d" % (task, trial)),
    )

"""What recording, replaying, verifying and fault injection cost a call, against a bare floor.

Run with ``python benchmarks/traces.py``; add ``--rounds N`` for steadier figures. Times are those
of the processor, the best of all rounds; each case runs in every round, so that ratios to the floor
hold on a busy machine. The floor of a call is what cannot be left out: its JSON and one SHA-256.
"""

from __future__ import annotations

import argparse
import hashlib
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ci_gate.agents.worker import plain, tagged
from ci_gate.gate.traces import verify
from ci_gate.model.trace import TraceHeader, TraceRecord
from ci_gate.redaction import Redactor
from ci_gate.sandbox.answering import StrictSource
from ci_gate.sandbox.chaos import ChaosInjector
from ci_gate.sandbox.ignoring import Ignored
from ci_gate.sandbox.recording import Recorder
from ci_gate.sandbox.world import World
from ci_gate.store.traces import open_trace, read_trace

NOW = "2026-01-01T09:00:00Z"
SECRETS = ["zebra-4711-secret", "quagga-0815-secret", "okapi-2342-secret"]
ROW = {"id": 1000, "name": "An order of something", "status": "shipped", "price": 19.99}
ROWS = {"rows": [dict(ROW, id=number, notes="left at the door, " * 3) for number in range(7)]}
ASKED = {"order": 4812, "query": "find the order of the customer"}
HEADER = TraceHeader(task="t", trial=0, repeat=0, seed="0x2a")


class Case(NamedTuple):
    """A case of ``calls`` calls; ``limit_us`` is what is required of one, None for the floor."""

    name: str
    run: Callable[[], float]
    calls: int
    limit_us: float | None


def seconds(act: Callable[[], Any]) -> float:
    """Return the processor time that something takes."""
    started_s = time.process_time()
    act()
    return time.process_time() - started_s


def floor(calls: int) -> float:
    """Encode and hash."""

    def act() -> None:
        for number in range(calls):
            content = msgspec.json.encode(dict(ASKED, n=number)) + msgspec.json.encode(ROWS)
            hashlib.sha256(content).hexdigest()

    return seconds(act)


def observing(calls: int, recorder: Recorder | None) -> float:
    """Let calls pass a world."""
    world = World(folder=None, workdir=None, now=NOW, injector=None, recorder=recorder)

    def act() -> None:
        for number in range(calls):
            asked = dict(ASKED, n=number)
            world.observe("tool", "look_up", asked, ROWS, is_error=False, turn=None)
        world.finish(())

    return seconds(act)


def recorder_in(folder: Path) -> Recorder:
    """Return a recorder that knows three secrets and writes below a folder."""
    return Recorder(
        lambda: open_trace(folder, HEADER), redactor=Redactor(SECRETS), ignored=Ignored()
    )


def recording(calls: int, folder: Path) -> float:
    """Return what recording adds: in the gate, and for exact values in the worker."""
    with_it = observing(calls, recorder_in(folder))
    exact = seconds(lambda: [tagged(ROWS) for _ in range(calls)])
    return (
        with_it
        - observing(calls, None)
        + exact
        - seconds(lambda: [plain(ROWS) for _ in range(calls)])
    )


def replaying(records: Sequence[TraceRecord], asked: Callable[[int], Any]) -> float:
    """Answer every call with all checks."""
    source = StrictSource(records, ignored=Ignored(), redactor=Redactor(SECRETS))

    def act() -> None:
        for number in range(len(records)):
            source.answer("main", "tool", "look_up", asked(number))

    taken = seconds(act)
    assert source.reconciled().is_consistent
    return taken


def recorded(folder: Path, calls: int, asked: Callable[[int], Any]) -> Path:
    """Write a trace and return where it is."""
    recorder = recorder_in(folder)
    world = World(folder=None, workdir=None, now=NOW, injector=None, recorder=recorder)
    for number in range(calls):
        world.observe("tool", "look_up", asked(number), ROWS, is_error=False, turn=None)
    world.finish(())
    return folder / "t" / "0.jsonl"


def injecting(calls: int) -> float:
    """Let observations pass the injector with the published schedule."""
    injector = ChaosInjector(7, keep_audit=False)
    text = msgspec.json.encode(ROWS).decode()

    def act() -> None:
        for _ in range(calls):
            injector.intercept("look_up", text)

    return seconds(act)


def small(number: int) -> Any:
    """Return short arguments, each its own."""
    return dict(ASKED, n=number)


def large(number: int) -> Any:
    """Return arguments of 1 KB, each its own."""
    return dict(ROWS, n=number)


def cases(folder: Path) -> list[Case]:
    """Return what is measured."""
    long = read_trace(recorded(folder / "long", 10_000, small)).records
    heavy = read_trace(recorded(folder / "heavy", 1_000, large)).records
    return [
        Case("floor: JSON and SHA-256 of a call of 1 KB", lambda: floor(2_000), 2_000, None),
        Case("injector, a step", lambda: injecting(20_000), 20_000, 1.5),
        Case("recording adds", lambda: recording(2_000, folder / "new"), 2_000, 100),
        Case("replay, answers of 1 KB, 200 entries", lambda: replaying(long[:200], small), 200, 25),
        Case("replay, answers of 1 KB, 10,000 entries", lambda: replaying(long, small), 10_000, 25),
        Case("replay, arguments of 1 KB too", lambda: replaying(heavy, large), 1_000, 25),
    ]


def verifying(folder: Path, calls: int) -> tuple[float, float]:
    """Return how long a trace takes to verify in seconds, and the peak memory in MB."""
    path = recorded(folder / "huge", calls, small)
    taken_s = min(seconds(lambda: verify([path])) for _ in range(3))
    tracemalloc.start()
    verify([recorded(folder / "less", calls // 10, small)])
    tracemalloc.reset_peak()
    verify([path])
    peak_mb = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    return taken_s, peak_mb


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as name:
        measured = cases(Path(name))
        best = {case.name: float("inf") for case in measured}
        for _ in range(rounds):
            for case in measured:
                best[case.name] = min(best[case.name], case.run() / case.calls * 1e6)
        bare = best[measured[0].name]
        print(f"{'a call':<42} {'us':>8} {'floors':>7} {'required':>9}")
        for case in measured:
            limit = "" if case.limit_us is None else f"{case.limit_us:g}"
            taken = best[case.name]
            print(f"{case.name:<42} {taken:>8.2f} {taken / bare:>7.2f} {limit:>9}")
        taken_s, peak_mb = verifying(Path(name), 100_000)
        print(f"verify 100,000 calls of 1 KB: {taken_s:.2f} s (required 5), peak {peak_mb:.1f} MB")


if __name__ == "__main__":
    main()

"""Runs that are killed, interrupted, doubled or short of disk lose no finished trial."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from ci_gate.store.runs import load_run
from tests.speeds import slow

SEED = 20261030
SOURCE = Path(__file__).resolve().parents[2]
PATIENCE_S = 60.0

CONFIG = """
[[suite]]
name = "small"
tasks = ["tasks.jsonl"]
trials = 8

[agent]
python = "noting:run"
root = "agent"

[run]
jobs = 2
"""

# Notes each start outside of its own folder, so that the agent's digest stays the same.
AGENT = """
import os, time

def run(task, env):
    line = "%s %d\\n" % (hex(env.seed), os.getpid())
    log = os.open(os.environ["STARTS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(log, line.encode())
    os.close(log)
    time.sleep(float(os.environ["PAUSE_S"]))
    return "right" if env.rng.random() < 0.7 else "wrong"
"""


@dataclass(frozen=True)
class Noted:
    """Starts of trials that the agent noted."""

    seeds: list[int]
    pids: set[int]


@dataclass(frozen=True)
class Bench:
    """A small suite outside any repository, with an agent that notes what it starts."""

    path: Path
    limit: list[str] = field(default_factory=list)

    @property
    def journal(self) -> Path:
        """Return the run file."""
        return self.path / ".ci-gate" / "small.run.jsonl"

    @property
    def starts(self) -> Path:
        """Return the file of what the agent notes."""
        return self.path / "starts"

    def start(self, *arguments: str, pause_s: float = 0.003) -> subprocess.Popen[str]:
        """Begin ``ci-gate run`` in a process of its own."""
        return self.begin("run", "--quiet", *arguments, pause_s=pause_s)

    def begin(self, *arguments: str, pause_s: float = 0.003) -> subprocess.Popen[str]:
        """Begin any command in a process of its own."""
        return subprocess.Popen(
            [sys.executable, *self.limit, "-m", "ci_gate", *arguments],
            cwd=self.path,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self.path),
                "TMPDIR": str(self.path / "tmp"),
                "PYTHONPATH": str(SOURCE),
                "STARTS": str(self.starts),
                "PAUSE_S": str(pause_s),
            },
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str) -> tuple[int, str]:
        """Run it to its end; return its status and what it said."""
        process = self.start(*arguments)
        _, said = process.communicate(timeout=PATIENCE_S)
        return process.returncode, said

    def lines(self) -> int:
        """Return how many whole lines the journal has."""
        return self.journal.read_bytes().count(b"\n") if self.journal.exists() else 0

    def noted(self, skip: int = 0) -> Noted:
        """Return what the agent noted from a place in its file on."""
        pairs = [line.split() for line in self.noted_bytes()[skip:].decode().splitlines()]
        return Noted([int(seed, 16) for seed, _ in pairs], {int(pid) for _, pid in pairs})

    def noted_bytes(self) -> bytes:
        """Return the agent's notes as they are."""
        return self.starts.read_bytes() if self.starts.exists() else b""


def bench_at(path: Path, tasks: int) -> Bench:
    """Set a suite up."""
    (path / "agent").mkdir(parents=True)
    (path / "tmp").mkdir()
    (path / "ci-gate.toml").write_text(CONFIG)
    (path / "agent" / "noting.py").write_text(AGENT)
    grader = {"type": "answer", "equals": "right"}
    lines = [
        json.dumps({"id": f"task-{number}", "instruction": "try", "graders": [grader]})
        for number in range(tasks)
    ]
    (path / "tasks.jsonl").write_text("\n".join(lines) + "\n")
    return Bench(path)


def outcomes(path: Path) -> dict[tuple[str, int, int], tuple[str, str | None]]:
    """Return what came of each trial of a run file."""
    return {r.key: (r.status.value, r.reason) for r in load_run(path).records}


def until(condition: Callable[[], bool], pause_s: float = 0.0005) -> None:
    """Wait for something that must happen soon."""
    end_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end_s, "waited too long"
        time.sleep(pause_s)


def is_running(pid: int) -> bool:
    """Return whether a process exists and has not ended."""
    shown = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, check=False)
    return bool(shown.stdout.strip()) and not shown.stdout.strip().startswith(b"Z")


def all_gone(pids: set[int]) -> bool:
    return not any(is_running(pid) for pid in pids)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """Return a suite of 40 trials."""
    return bench_at(tmp_path / "bench", tasks=5)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """Return such a suite with its finished, uninterrupted run; not to be changed."""
    whole = bench_at(tmp_path_factory.mktemp("finished") / "bench", tasks=5)
    assert whole.run() == (0, "")
    return whole


@pytest.fixture
def unfinished(tmp_path: Path, finished: Bench) -> Bench:
    """Return a copy whose run has its header and the first ten trials."""
    copy = Bench(tmp_path / "copy")
    shutil.copytree(finished.path, copy.path)
    lines = copy.journal.read_bytes().splitlines(keepends=True)
    copy.journal.write_bytes(b"".join(lines[:11]))
    return copy


@dataclass(frozen=True)
class Killer:
    """Kills a run at moments drawn from a seed, and looks at what each kill leaves."""

    bench: Bench
    chance: random.Random
    pause_s: float

    def kill_once(self) -> bool:
        """Resume and kill; return False where the run had ended before its moment came."""
        before = self.bench.journal.read_bytes() if self.bench.journal.exists() else b""
        skip = len(self.bench.noted_bytes())
        process = self.bench.start("--resume", pause_s=self.pause_s)
        self._wait_for_moment(process)
        process.kill()
        _, said = process.communicate(timeout=PATIENCE_S)
        assert process.returncode in (0, -signal.SIGKILL), said
        until(lambda: all_gone(self.bench.noted(skip).pids), pause_s=0.01)
        self._check(before, self.bench.noted(skip).seeds)
        return process.returncode != 0

    def _wait_for_moment(self, process: subprocess.Popen[str]) -> None:
        """Wait for a number of further lines and a moment more; none: while it starts."""
        more = self.chance.randint(0, 4)
        goal = self.bench.lines() + more
        if more:
            until(lambda: self.bench.lines() >= goal or process.poll() is not None)
        time.sleep(self.chance.uniform(0, 0.006 if more else 0.4))

    def _check(self, before: bytes, started: list[int]) -> None:
        """Everything judged is still there, readable, and was not started again."""
        whole = before[: before.rfind(b"\n") + 1]
        if whole:
            assert self.bench.journal.read_bytes().startswith(whole)
            lines = [json.loads(line) for line in whole.splitlines()]
            judged = [line for line in lines if line.get("status") in ("passed", "failed")]
            done = {int(line["seed"], 16) for line in judged}
            assert done.isdisjoint(started)
        if self.bench.lines():
            load_run(self.bench.journal)


def killed_until_it_ends(bench: Bench, chance: random.Random, kills: int, pause_s: float) -> int:
    """Kill a run so often, or until it has ended; then let it end. Return the number of kills."""
    killer = Killer(bench, chance, pause_s)
    done = 0
    while done < kills and killer.kill_once():
        done += 1
    assert bench.run("--resume") == (0, "")
    return done


@pytest.mark.slow
def test_a_run_killed_five_times_ends_as_if_uninterrupted(bench: Bench, finished: Bench) -> None:
    """After kill -9 nothing is lost, run twice or left running, and the outcomes are the same."""
    kills = killed_until_it_ends(bench, random.Random(SEED), kills=5, pause_s=0.02)

    assert kills >= 3  # a slow machine may see the end of the run before the last moments come
    assert outcomes(bench.journal) == outcomes(finished.journal)
    assert set(bench.noted().seeds) == set(finished.noted().seeds)


@pytest.mark.slow
def test_a_hundred_kills_change_no_outcome(tmp_path: Path, finished: Bench) -> None:
    """The same for a hundred kills over as many runs as it takes."""
    chance, kills, count = random.Random(SEED + 1), 0, 0
    while kills < 100:
        bench = bench_at(tmp_path / f"run-{count}", tasks=5)
        kills += killed_until_it_ends(bench, chance, kills=100 - kills, pause_s=0.003)
        assert outcomes(bench.journal) == outcomes(finished.journal)
        count += 1


def interrupted(bench: Bench, number: signal.Signals) -> tuple[int, str]:
    """Interrupt a run once some trials have finished; return its status and what it said."""
    process = bench.start(pause_s=0.1)
    until(lambda: bench.lines() > 3)
    process.send_signal(number)
    _, said = process.communicate(timeout=PATIENCE_S)
    return process.returncode, said.strip()


@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]
)
def test_an_interrupted_run_exits_130_and_is_resumed(
    bench: Bench, finished: Bench, number: signal.Signals
) -> None:
    """^C and a runner's SIGTERM end agent and gate, keep what finished, and say so."""
    status, said = interrupted(bench, number)
    until(lambda: all_gone(bench.noted().pids), pause_s=0.01)
    kept = len(load_run(bench.journal).records)
    worlds = list((bench.path / "tmp").iterdir())

    resumed = bench.run("--resume")

    assert status == 130
    assert said.startswith("ci-gate: interrupted; --resume")
    assert 3 <= kept < 40
    assert worlds == []
    assert resumed == (0, "")
    assert outcomes(bench.journal) == outcomes(finished.journal)


def test_a_second_run_on_the_same_journal_is_refused(bench: Bench) -> None:
    """One journal has one writer; the second run says who is in its way and changes nothing."""
    first = bench.start(pause_s=0.1)
    until(lambda: bench.lines() > 1)
    second, said = bench.run("--resume")
    still_running = first.poll() is None
    first.send_signal(signal.SIGKILL)
    first.communicate(timeout=PATIENCE_S)

    assert still_running
    assert second == 2
    assert "is in use: another ci-gate is writing it" in said
    assert load_run(bench.journal).records


LIMITED = """
import os, resource, sys
limit = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
sys.argv[1:] = sys.argv[4:]
import ci_gate.cli
ci_gate.cli.main()
"""


@pytest.mark.slow
def test_a_journal_that_may_not_grow_ends_the_run_and_is_resumed(
    bench: Bench, finished: Bench
) -> None:
    """At the limit the run stops with a message; what finished is whole and is continued."""
    limited = Bench(bench.path, limit=["-c", LIMITED, "5000"])

    status, said = limited.run()
    kept = load_run(bench.journal).records
    resumed = bench.run("--resume")

    assert status == 4, said
    assert "small.run.jsonl: cannot be written: File too large" in said
    assert "internal error" not in said
    assert kept
    assert bench.noted().seeds.count(int(kept[0].seed or "", 16)) == 1
    assert resumed == (0, "")
    assert outcomes(bench.journal) == outcomes(finished.journal)


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """Return a file system of 16 KiB."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small file system needs root on Linux")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.mark.slow
def test_a_full_disk_ends_the_run_and_is_resumed(
    bench: Bench, finished: Bench, tiny_disk: Path
) -> None:
    """A full disk is a message with the file and what to do; with room the run goes on."""
    output = ("--output", str(tiny_disk))
    journal = tiny_disk / "small.run.jsonl"

    status, said = bench.run(*output)
    kept = load_run(journal).records
    subprocess.run(["mount", "-o", "remount,size=1m", str(tiny_disk)], check=True)
    resumed = bench.run(*output, "--resume")

    assert status == 4, said
    assert "small.run.jsonl: cannot be written: No space left on device" in said
    assert "Make room" in said
    assert kept
    assert resumed == (0, "")
    assert outcomes(journal) == outcomes(finished.journal)


@pytest.mark.parametrize(
    ("name", "before", "after", "what"),
    [
        ("tasks.jsonl", '"try"', '"try harder"', "suite digest"),
        *slow(
            ("ci-gate.toml", "trials = 8", 'trials = 8\nseed = "0x1"', "root seed"),
            ("agent/noting.py", "0.7", "0.6", "agent digest"),
        ),
    ],
)
def test_the_journal_of_another_run_is_not_continued(
    unfinished: Bench, name: str, before: str, after: str, what: str
) -> None:
    """Another suite, seed or agent is named, with both values, and the journal stays."""
    kept = unfinished.journal.read_bytes()
    text = (unfinished.path / name).read_text()
    (unfinished.path / name).write_text(text.replace(before, after))

    status, said = unfinished.run("--resume")

    assert before in text
    assert status == 2
    assert f"is the journal of another run: {what} was" in said
    assert "--fresh" in said
    assert unfinished.journal.read_bytes() == kept

"""What the engine and the agents cost, as ratios to a bare floor in one interleaved run.

Run with ``python benchmarks/engine.py``; add ``--rounds N`` for steadier figures. Everything but
the journal and the report is on: worlds, seeds, judging, records. Floors use the standard library
alone and do nothing but the work itself.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ci_gate.agents.command import CommandAgent
from ci_gate.agents.python_agent import PythonAgent
from ci_gate.engine.executors import run_locally
from ci_gate.engine.real_clock import RealClock
from ci_gate.engine.runner import run_trials
from ci_gate.engine.settings import EngineSettings
from ci_gate.model.agent import AgentSpec
from ci_gate.model.suite import PlannedTrial, Task
from ci_gate.model.trial import Grade, Trajectory, TrialRecord
from ci_gate.ports import Agent, TrialSandbox
from ci_gate.sandbox.world_factory import WorldFactory

TRIALS = 1600
SPAWNS = 150
JOBS = 2

AGENT = """
import asyncio, time

def noop(task, env):
    return "ok"

async def anoop(task, env):
    return "ok"

async def wait_10ms(task, env):
    await asyncio.sleep(0.01)
    return "ok"

async def wait_100ms(task, env):
    await asyncio.sleep(0.1)
    return "ok"
"""

ECHO = """
import json, sys
for line in sys.stdin:
    order = json.loads(line)
    print(json.dumps({"id": order["id"], "result": {"answer": "ok"}}), flush=True)
"""

SHELL = '#!/bin/sh\nread -r order\necho \'{"answer": "ok"}\'\n'
PYTHON = '#!{python}\nimport sys\nsys.stdin.read()\nprint(\'{{"answer": "ok"}}\')\n'


class Passing:
    """A grader that looks at the answer."""

    def grade(self, trial: PlannedTrial, trajectory: Trajectory, sandbox: TrialSandbox) -> Grade:
        """Return whether the answer is ``ok``."""
        return Grade(grader="answer", passed=trajectory.answer == "ok", reason=trajectory.reason)


class Quiet:
    """Keeps nothing and shows nothing."""

    def append(self, record: TrialRecord) -> None:
        """Do nothing."""

    def planned(self, total: int, done: int) -> None:
        """Do nothing."""

    def finished(self, record: TrialRecord) -> None:
        """Do nothing."""


def trials(count: int, tasks: int = 200) -> list[PlannedTrial]:
    """Return a plan of no-op trials."""
    known = [
        Task(id=f"task-{i}", instruction="say ok", input={"n": i}, base_seed=i, digest="sha256:0")
        for i in range(tasks)
    ]
    return [
        PlannedTrial(task=known[i % tasks], trial=i // tasks, repeat=0, attempt=1, seed=i)
        for i in range(count)
    ]


def seconds_of(agent: Agent, plan: list[PlannedTrial], jobs: int, folder: Path) -> float:
    """Return how long a plan takes with everything on, without start and end of the agent."""

    async def main() -> float:
        with WorldFactory(folder, None) as worlds:
            try:
                await agent.start()
                return await measured_run(agent, plan, jobs, worlds)
            finally:
                await agent.close()

    return run_locally(main)


async def measured_run(
    agent: Agent, plan: list[PlannedTrial], jobs: int, worlds: WorldFactory
) -> float:
    """Return how long a plan takes; every trial must pass."""
    quiet = Quiet()
    graders = {trial.task.id: (Passing(),) for trial in plan}
    started_s = time.perf_counter()
    result = await run_trials(
        plan,
        agent=agent,
        sandboxes=worlds,
        graders=graders,
        sink=quiet,
        progress=quiet,
        clock=RealClock(),
        settings=EngineSettings(jobs=jobs),
    )
    took_s = time.perf_counter() - started_s
    assert result.passed == len(plan), result
    return took_s


def python_run(
    folder: Path, function: str, count: int, jobs: int, isolation: str
) -> Callable[[], float]:
    """Return what measures a run of a Python agent, in seconds."""

    def measure() -> float:
        spec = AgentSpec(
            python=f"bench_agent:{function}",
            protocol="python",
            root=str(folder),
            interpreter=sys.executable,
            isolation="inline" if isolation == "inline" else "process",
        )
        return seconds_of(PythonAgent(spec, jobs=jobs), trials(count), jobs, folder)

    return measure


def command_run(folder: Path, program: str) -> Callable[[], float]:
    """Return what measures a run of a command agent, in seconds."""

    def measure() -> float:
        spec = AgentSpec(command=(program,), protocol="command", root=str(folder))
        return seconds_of(CommandAgent(spec), trials(SPAWNS), JOBS, folder)

    return measure


def echo_floor(count: int) -> Callable[[], float]:
    """Return what measures bare round trips to a process, JSON both ways, one at a time."""

    def measure() -> float:
        with subprocess.Popen(
            [sys.executable, "-c", ECHO], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as worker:
            assert worker.stdin is not None
            assert worker.stdout is not None
            _round_trip(worker, 0)
            start = time.perf_counter()
            for number in range(count):
                _round_trip(worker, number)
            took_s = time.perf_counter() - start
            worker.stdin.close()
        return took_s

    return measure


def _round_trip(worker: subprocess.Popen[str], number: int) -> None:
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write(json.dumps({"id": number, "task": {"id": "t", "input": number}}) + "\n")
    worker.stdin.flush()
    json.loads(worker.stdout.readline())


def pool_floor(count: int, jobs: int, wait_s: float) -> Callable[[], float]:
    """Return what measures bare pullers of one event loop that wait and do nothing else."""

    async def pull(numbers: Iterator[int]) -> None:
        for _ in numbers:
            await asyncio.sleep(wait_s)

    async def pool() -> None:
        numbers = iter(range(count))
        await asyncio.gather(*(pull(numbers) for _ in range(jobs)))

    def measure() -> float:
        start = time.perf_counter()
        asyncio.run(pool())
        return time.perf_counter() - start

    return measure


def spawn_floor(program: Path) -> Callable[[], float]:
    """Return what measures bare executions of a program from as many threads."""

    def once(_: int) -> None:
        subprocess.run([str(program)], input=b'{"trial": 0}\n', capture_output=True, check=True)

    def measure() -> float:
        start = time.perf_counter()
        with ThreadPoolExecutor(JOBS) as pool:
            list(pool.map(once, range(SPAWNS)))
        return time.perf_counter() - start

    return measure


def executable(path: Path, text: str) -> Path:
    """Write a script that can be executed."""
    path.write_text(text)
    path.chmod(0o755)
    return path


def measured(cases: dict[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Measure every case once a round, so that a slow moment meets them all."""
    found: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(rounds):
        for name, measure in cases.items():
            found[name].append(measure())
    return found


def report(found: dict[str, list[float]]) -> None:
    """Print the table."""
    best = {name: min(times) for name, times in found.items()}
    middle = {name: statistics.median(times) for name, times in found.items()}

    def per_trial(name: str, limit: str) -> None:
        ms, median = 1000 * best[name] / TRIALS, 1000 * middle[name] / TRIALS
        floor = best[name] / best["floor: round trips"]
        print(
            f"{name:<42} {ms:8.4f} ms a trial (median {median:.4f}), {floor:5.2f} x floor  {limit}"
        )

    print(
        f"{'floor: round trips':<42} {1000 * best['floor: round trips'] / TRIALS:8.4f} ms a trial"
    )
    per_trial("inline, no-op", "<= 0.1")
    per_trial("worker, no-op, 1 job", "<= 0.25")
    per_trial(f"worker, no-op, {JOBS} jobs", "<= 0.25")
    for kind in ("shell", "python"):
        rates = sorted(
            floor / ours
            for floor, ours in zip(found[f"floor: {kind}"], found[f"command: {kind}"], strict=True)
        )
        bare = 1000 * middle[f"floor: {kind}"] / SPAWNS
        print(
            f"command agent, {kind:<27} {statistics.median(rates):8.3f} of the bare spawn rate "
            f"({bare:.2f} ms each)  >= 0.85"
        )
    for name, ideal_s, limit in (
        ("64 at a time x 100 ms", 0.1 * 640 / 64, ">= 0.97"),
        ("1000 at a time x 10 ms, inline", 0.01 * 10000 / 1000, ">= 0.75"),
        ("floor: 1000 bare pullers x 10 ms", 0.01 * 10000 / 1000, ""),
    ):
        print(f"{name:<42} {ideal_s / best[name]:8.3f} of the ideal makespan  {limit}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "bench_agent.py").write_text(AGENT)
        shell = executable(folder / "shell_agent", SHELL)
        python = executable(folder / "python_agent", PYTHON.format(python=sys.executable))
        found = measured(
            {
                "floor: round trips": echo_floor(TRIALS),
                "inline, no-op": python_run(folder, "anoop", TRIALS, 64, "inline"),
                "worker, no-op, 1 job": python_run(folder, "noop", TRIALS, 1, "process"),
                f"worker, no-op, {JOBS} jobs": python_run(folder, "noop", TRIALS, JOBS, "process"),
                "floor: shell": spawn_floor(shell),
                "command: shell": command_run(folder, str(shell)),
                "floor: python": spawn_floor(python),
                "command: python": command_run(folder, str(python)),
                "64 at a time x 100 ms": python_run(folder, "wait_100ms", 640, 64, "inline"),
                "floor: 1000 bare pullers x 10 ms": pool_floor(10000, 1000, 0.01),
                "1000 at a time x 10 ms, inline": python_run(
                    folder, "wait_10ms", 10000, 1000, "inline"
                ),
            },
            rounds,
        )
    report(found)


if __name__ == "__main__":
    main()

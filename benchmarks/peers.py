"""What a gate costs as whole processes: against other tools, and against its own budgets.

Run with ``python benchmarks/peers.py``. It installs this project, pytest, Inspect AI (pip) and
promptfoo (npm) into fresh environments, which takes minutes; ``--environments DIR`` keeps them for
the next time. A tool that cannot be installed is left out with the reason. Everything is measured
in rounds, each case once a round, so that a slow moment of the machine meets them all; the ratio of
two cases is the median of their ratios in each round.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
INSPECT = "inspect-ai==0.3.285"
PROMPTFOO = "promptfoo@0.121.20"
TASKS, TRIALS = 200, 8
MANY_TRIALS = 40
SEED = 20261030

AGENT = """
def run(task, env):
    return "ok"

async def wait(task, env):
    return "ok"
"""

GATE = """
[[suite]]
name = "noop"
tasks = ["tasks.jsonl"]
trials = {trials}

[agent]
python = "noop:{function}"
root = "agent"
isolation = "{isolation}"

[baseline]
repeats = 1

# All trials, as the others run all of theirs.
[gate]
curtail = false
"""

# The same work by the standard library alone: seeds, a call, a check, a line each, one fsync.
FLOOR = """
import json, os

def agent(task, seed):
    return "ok"

with open("floor.jsonl", "w") as journal:
    for trial in range({trials}):
        for task in range({tasks}):
            seed = task ^ ((trial + 1) * 0x9E3779B9)
            passed = agent(task, seed) == "ok"
            record = dict(task=task, trial=trial, seed=hex(seed), passed=passed)
            journal.write(json.dumps(record) + chr(10))
    journal.flush()
    os.fsync(journal.fileno())
"""

PYTEST = """
import pytest

@pytest.mark.parametrize("trial", range({trials}))
@pytest.mark.parametrize("task", range({tasks}))
def test_noop(task, trial):
    assert "ok" == "ok"
"""

INSPECT_TASK = """
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import includes
from inspect_ai.solver import generate

def answer(*asked):
    # With its tokens counted: else they are, by a tokenizer that has to be fetched first.
    output = ModelOutput.from_content(model="mockllm", content="ok")
    output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    return output

@task
def noop():
    samples = [Sample(input="say ok", target="ok") for _ in range({tasks})]
    model = get_model("mockllm/model", custom_outputs=answer)
    return Task(
        dataset=samples, solver=generate(), scorer=includes(), epochs={trials}, model=model
    )
"""

PROMPTFOO_CONFIG = {
    "prompts": ["ok {{n}}"],
    "providers": ["echo"],
    "tests": [
        {"vars": {"n": n}, "assert": [{"type": "equals", "value": f"ok {n}"}]} for n in range(TASKS)
    ],
}


class Unavailable(Exception):
    """A tool cannot be installed here."""


@dataclass(frozen=True)
class Case:
    """A command to measure, run in a folder.

    Its status must be 0 and its output must say that all was done: several tools exit 0 when
    nothing could be run.
    """

    command: Sequence[str]
    folder: Path
    variables: Mapping[str, str] = field(default_factory=dict)
    says: str = ""


@dataclass(frozen=True)
class Cost:
    """What a process cost: wall time, processor time with its children's, peak memory."""

    wall_s: float
    cpu_s: float
    peak_mb: float


Costs = dict[str, list[Cost]]


def spent(case: Case) -> Cost:
    """Run a command and return what it cost.

    Notes
    -----
    The peak is the larger of the command's own and of any child's that it waited for, never their
    sum. This process stays small, because a child's peak begins with that of its parent.
    """
    with tempfile.TemporaryFile() as said:
        start_s = time.perf_counter()
        process = subprocess.Popen(
            case.command,
            cwd=case.folder,
            env=environment(case),
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - start_s
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        text = said.read().decode(errors="replace")
    if process.returncode or case.says not in text:
        raise SystemExit(f"{case.command} ended with {process.returncode}:\n{text[-2000:]}")
    unit = 1 if sys.platform == "darwin" else 1024
    return Cost(wall_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * unit / 2**20)


def environment(case: Case) -> dict[str, str]:
    """Return the variables of a developer's shell in which the tool's environment is active."""
    odd = ("PYTHON", "CI", "GITHUB_", "PYTEST_", "INSPECT_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(odd)}
    path = f"{Path(case.command[0]).parent}{os.pathsep}{kept.get('PATH', '')}"
    plain = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "COLUMNS": "160"}
    return {**kept, **plain, "PATH": path, **case.variables}


def measured(cases: Mapping[str, Case], rounds: int) -> Costs:
    """Measure every case once a round, after one round that is not counted."""
    found: Costs = {name: [] for name in cases}
    for number in range(rounds + 1):
        for name, case in cases.items():
            cost = spent(case)
            if number:
                found[name].append(cost)
    return found


def ratio(costs: Costs, name: str, to: str) -> float:
    """Return the median of the ratios of two cases' wall times in each round."""
    pairs = zip(costs[name], costs[to], strict=True)
    return statistics.median(one.wall_s / other.wall_s for one, other in pairs)


def median_s(costs: Costs, name: str) -> float:
    """Return the median wall time of a case."""
    return statistics.median(cost.wall_s for cost in costs[name])


@dataclass(frozen=True)
class Environments:
    """Where the tools are installed."""

    folder: Path

    def gate(self) -> Path:
        """Return the folder of programs of an environment with this project and pytest."""
        programs = self._environment("gate")
        # Always anew: the project may have changed.
        self._pip(programs, "install", str(PROJECT), "pytest")
        self._pip(programs, "install", "--force-reinstall", "--no-deps", str(PROJECT))
        return programs

    def inspect(self) -> Path:
        """Return the program of Inspect AI."""
        programs = self._environment("inspect")
        self._pip(programs, "install", INSPECT)
        return programs / "inspect"

    def promptfoo(self) -> Path:
        """Return the program of promptfoo."""
        folder = self.folder / "promptfoo"
        folder.mkdir(parents=True, exist_ok=True)
        program = folder / "node_modules" / ".bin" / "promptfoo"
        if not program.exists():
            _succeed(["npm", "install", "--no-audit", "--no-fund", PROMPTFOO], folder)
        return program

    def _environment(self, name: str) -> Path:
        folder = self.folder / name
        if not folder.exists():
            _succeed([sys.executable, "-m", "venv", str(folder)], PROJECT)
        return folder / "bin"

    def _pip(self, programs: Path, *arguments: str) -> None:
        pip = [str(programs / "python"), "-m", "pip", "--disable-pip-version-check", "--quiet"]
        _succeed([*pip, *arguments], PROJECT)


def _succeed(command: Sequence[str], folder: Path) -> None:
    try:
        subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    except FileNotFoundError as error:
        raise Unavailable(f"{command[0]} is not installed") from error
    except subprocess.CalledProcessError as error:
        last = (error.stderr.strip().splitlines() or ["no message"])[-1]
        raise Unavailable(f"{' '.join(command[:6])} ...: {last}") from error


# What is measured.


def gate_case(programs: Path, folder: Path, trials: int, function: str, isolation: str) -> Case:
    """Set up a repository whose no-op suite has its baseline committed; return its check."""
    (folder / "agent").mkdir(parents=True)
    (folder / "agent" / "noop.py").write_text(AGENT)
    config = GATE.format(trials=trials, function=function, isolation=isolation)
    (folder / "ci-gate.toml").write_text(config)
    (folder / "tasks.jsonl").write_text("".join(f"{line}\n" for line in map(json.dumps, _tasks())))
    done = f"{TASKS * trials:,}"
    case = Case([str(programs / "ci-gate"), "check"], folder, says=f"{done}/{done} (100 %)")
    git = ["git", "-c", "user.name=bench", "-c", "user.email=bench@example.org"]
    for command in (
        [*git, "init", "--quiet", "--initial-branch=main"],
        [case.command[0], "baseline", "update", "--quiet"],
        [*git, "add", "--all"],
        [*git, "commit", "--quiet", "--message=bench"],
    ):
        subprocess.run(command, cwd=folder, env=environment(case), check=True)
    return case


def _tasks() -> list[dict[str, object]]:
    grader = {"type": "answer", "equals": "ok"}
    return [
        {"id": f"task-{n}", "instruction": "say ok", "input": {"n": n}, "graders": [grader]}
        for n in range(TASKS)
    ]


def inspect_case(environments: Environments, folder: Path) -> Case:
    """Return an evaluation of as many samples by Inspect AI with its mock model."""
    program = environments.inspect()
    folder.mkdir()
    (folder / "noop.py").write_text(INSPECT_TASK.format(tasks=TASKS, trials=TRIALS))
    command = [str(program), "eval", "noop.py", "--display", "plain", "--log-dir", "logs"]
    return Case(command, folder, says=f"Samples: {TASKS * TRIALS}/{TASKS * TRIALS}")


def promptfoo_case(environments: Environments, folder: Path) -> Case:
    """Return an evaluation of as many cases by promptfoo with its echo provider."""
    program = environments.promptfoo()
    folder.mkdir()
    (folder / "promptfooconfig.json").write_text(json.dumps(PROMPTFOO_CONFIG))
    quiet = ["--no-write", "--no-cache", "--no-table", "--no-progress-bar", "--no-share"]
    command = [str(program), "eval", "-c", "promptfooconfig.json", "--repeat", str(TRIALS), *quiet]
    return Case(
        command,
        folder,
        says=f"{TASKS * TRIALS:,} passed",
        variables={
            "PROMPTFOO_CONFIG_DIR": str(folder / "settings"),
            "PROMPTFOO_DISABLE_TELEMETRY": "1",
            "PROMPTFOO_DISABLE_UPDATE": "1",
        },
    )


def pytest_case(programs: Path, folder: Path) -> Case:
    """Return as many parametrised tests that do nothing."""
    folder.mkdir()
    (folder / "test_noop.py").write_text(PYTEST.format(tasks=TASKS, trials=TRIALS))
    command = [str(programs / "python"), "-m", "pytest", "--quiet"]
    return Case(command, folder, says=f"{TASKS * TRIALS} passed")


def floor_case(programs: Path, folder: Path) -> Case:
    """Return the same work by the standard library."""
    folder.mkdir()
    (folder / "floor.py").write_text(FLOOR.format(tasks=TASKS, trials=TRIALS))
    return Case([str(programs / "python"), "floor.py"], folder)


def write_run(path: Path, tasks: int, trials: int, seed: int) -> None:
    """Write a run as the gate does, of tasks whose chances to pass differ."""
    chance = random.Random(SEED)
    outcome = random.Random(seed)
    rates = [chance.betavariate(1.5, 0.6) for _ in range(tasks)]
    with path.open("w") as file:
        file.write('{"schema":"ci-gate/run@1","suite":"many"}\n')
        for trial in range(trials):
            for task, rate in enumerate(rates):
                status = "passed" if outcome.random() < rate else "failed"
                file.write(_line(task, trial, status))


def _line(task: int, trial: int, status: str) -> str:
    digest = f"sha256:{task:064x}"
    return (
        f'{{"task":"task-{task}","task_digest":"{digest}","trial":{trial},"repeat":0,"attempt":1,'
        f'"seed":"0x{task << 32 | trial:016x}","status":"{status}","reason":null,"turns":5,'
        '"tool_calls":4,"tokens":1234,"cost_usd":0.0021,"duration_s":1.9,"faults":0,'
        '"recovered":0,"looped":false}\n'
    )


# The tables.


def row(what: str, found: str, required: str = "", *, met: bool | None = None) -> None:
    """Print a line of a table; without a requirement nothing is met or missed."""
    answer = {True: "yes", False: "NO", None: ""}[met]
    print(f"| {what} | {found} | {required} | {answer} |", flush=True)


def heading(title: str) -> None:
    """Print the head of a table."""
    print(f"\n{title}\n\n| | found | required | met |\n|---|---|---|---|", flush=True)


def trial_table(programs: Path, environments: Environments, folder: Path, rounds: int) -> None:
    """Measure no-op trials by this gate and by others."""
    cases = {
        "inline": gate_case(programs, folder / "inline", TRIALS, "wait", "inline"),
        "process": gate_case(programs, folder / "process", TRIALS, "run", "process"),
        "floor": floor_case(programs, folder / "floor"),
        "pytest": pytest_case(programs, folder / "pytest"),
    }
    others: dict[str, Callable[[Environments, Path], Case]] = {
        "promptfoo": promptfoo_case,
        "Inspect AI": inspect_case,
    }
    for name, prepare in others.items():
        try:
            cases[name] = prepare(environments, folder / name.replace(" ", "-"))
        except Unavailable as error:
            print(f"{name} is left out: {error}", flush=True)
    costs = measured(cases, rounds)
    heading(f"{TASKS * TRIALS} no-op trials, whole processes, medians of {rounds} rounds")
    for name, required in {"pytest": 3, "promptfoo": 10, "Inspect AI": 40}.items():
        for isolation in ("inline", "process") if name in costs else ():
            found = ratio(costs, name, isolation)
            met = found >= required
            row(f"times faster than {name}, {isolation}", f"{found:.1f}", f">= {required}", met=met)
    for name, values in costs.items():
        cpu_s = statistics.median(cost.cpu_s for cost in values)
        peak_mb = statistics.median(cost.peak_mb for cost in values)
        figures = f"{median_s(costs, name):.3f} s, processor {cpu_s:.3f} s, {peak_mb:.0f} MB"
        row(name, figures)


def memory_table(programs: Path, folder: Path) -> None:
    """Measure the peak memory of the gate's own process."""
    heading(f"{TASKS * MANY_TRIALS} no-op trials, peak memory of the gate's own process")
    for function, isolation in (("wait", "inline"), ("run", "process")):
        place = folder / f"many-{isolation}"
        peak_mb = spent(gate_case(programs, place, MANY_TRIALS, function, isolation)).peak_mb
        row(isolation, f"{peak_mb:.0f} MB", "<= 80 MB", met=peak_mb <= 80)


def start_table(programs: Path, folder: Path, rounds: int) -> None:
    """Measure the commands that do nothing."""
    gate, python = str(programs / "ci-gate"), str(programs / "python")
    costs = measured(
        {
            "click": Case([python, "-c", "import click"], folder),
            "--version": Case([gate, "--version"], folder),
            "--help": Case([gate, "--help"], folder),
        },
        4 * rounds,
    )
    heading(f"start-up against python -c 'import click' ({1000 * median_s(costs, 'click'):.0f} ms)")
    for name, limit in {"--version": 1.2, "--help": 1.5}.items():
        found = ratio(costs, name, "click")
        row(f"ci-gate {name}", f"{found:.2f} x", f"<= {limit} x", met=found <= limit)


def compare_table(programs: Path, folder: Path, rounds: int) -> None:
    """Measure a comparison of many tasks, start-up included."""
    write_run(folder / "baseline.run.jsonl", 1000, 32, seed=1)
    write_run(folder / "candidate.run.jsonl", 1000, 32, seed=2)
    files = ["baseline.run.jsonl", "candidate.run.jsonl"]
    case = Case([str(programs / "ci-gate"), "compare", *files], folder)
    costs = measured({"compare": case}, rounds)
    heading("ci-gate compare, 1,000 tasks, 32 against 32 trials")
    found_s = median_s(costs, "compare")
    row("two run files", f"{found_s:.2f} s", "<= 1.5 s", met=found_s <= 1.5)


def loading_table(programs: Path, folder: Path) -> None:
    """Measure the loading of a very large run."""
    write_run(folder / "million.run.jsonl", 1000, 1000, seed=3)
    code = "import ci_gate; ci_gate.load('million.run.jsonl')"
    cost = spent(Case([str(programs / "python"), "-c", code], folder))
    heading("loading a run of 1,000,000 trial lines")
    row("time", f"{cost.wall_s:.1f} s", "< 15 s", met=cost.wall_s < 15)
    row("peak memory", f"{cost.peak_mb:.0f} MB", "< 1,500 MB", met=cost.peak_mb < 1500)


TABLES = ("trials", "memory", "start", "compare", "loading")


def main() -> None:
    """Install, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=TABLES, action="append", help="may be repeated")
    parser.add_argument("--environments", type=Path, help="keep what is installed in this folder")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environments = Environments((arguments.environments or folder / "tools").resolve())
        programs = environments.gate()
        tables: dict[str, Callable[[], None]] = {
            "trials": lambda: trial_table(programs, environments, folder, arguments.rounds),
            "memory": lambda: memory_table(programs, folder),
            "start": lambda: start_table(programs, folder, arguments.rounds),
            "compare": lambda: compare_table(programs, folder, arguments.rounds),
            "loading": lambda: loading_table(programs, folder),
        }
        for table in arguments.only or TABLES:
            tables[table]()


if __name__ == "__main__":
    main()

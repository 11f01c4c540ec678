"""``check --calm-and-chaos``: the same trials without faults, shown beside those under faults."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from ci_gate.store.runs import load_run
from tests.places import Ended, Place, environment

CONFIG = """
[[suite]]
name = "desk"
tasks = ["tasks.toml"]
trials = 4

[agent]
python = "desk:run"
root = "agent"
isolation = "inline"

[run]
mode = "live"
jobs = 2

[gate]
metrics = ["pass^1"]

[baseline]
repeats = 4

[faults]
rate_permille = 0
steps = [1]
kinds = ["rate_limit"]
"""
TASK = """
[[task]]
id = "{name}"
instruction = "Say yes."
graders = [{{ type = "answer", equals = "yes" }}]
"""
TASKS = ("gives-up", "insists", "other-way", "stubborn")
# The first call of every trial meets a fault. Starts are noted outside of the agent's folder.
AGENT = """
import os, time

def run(task, env):
    with open(os.environ["STARTS"], "a") as starts:
        starts.write(task.id + "\\n")
    if os.path.exists(os.environ["STARTS"] + ".slow"):
        time.sleep(0.05)
    env.tools.register("look", lambda place: "yes")
    env.tools.register("guess", lambda: "yes")
    for ask in ROUTES[task.id]:
        env.turn()
        try:
            return ask(env)
        except env.ToolError:
            continue
    return "no"

def look(env):
    return env.tools.call("look", place="here")

def guess(env):
    return env.tools.call("guess")

def insist(env):
    look(env)
    look(env)
    return look(env)

ROUTES = {
    "gives-up": [look],
    "insists": [look, look],
    "other-way": [look, guess],
    "stubborn": [look, insist],
}
"""


class Desk:
    """A suite outside of any repository, under faults."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.starts = place.path / "starts"
        (place.path / "agent").mkdir()
        (place.path / "agent/desk.py").write_text(AGENT)
        (place.path / "ci-gate.toml").write_text(CONFIG)
        (place.path / "tasks.toml").write_text("".join(TASK.format(name=name) for name in TASKS))

    def gate(self, *arguments: str) -> Ended:
        """Run ci-gate."""
        return self.place.gate(*arguments, STARTS=str(self.starts))

    def check(self, *arguments: str) -> Ended:
        """Check with a calm run, quietly."""
        return self.gate("check", "--calm-and-chaos", "--quiet", *arguments)

    def run_file(self, name: str) -> Path:
        """Return a run file of the output."""
        return self.place.path / ".ci-gate" / f"desk.{name}"

    @property
    def calm(self) -> Path:
        """Return the file of the calm run."""
        return self.run_file("calm.run.jsonl")

    @property
    def verdict(self) -> dict[str, Any]:
        """Return the verdict that the last check kept."""
        kept = json.loads(self.run_file("verdict.json").read_text())
        assert isinstance(kept, dict)
        return kept

    def started(self) -> int:
        """Return how many trials were started since this was asked last."""
        count = len(self.starts.read_text().splitlines()) if self.starts.exists() else 0
        self.starts.unlink(missing_ok=True)
        return count


@pytest.fixture
def desk(place: Place) -> Desk:
    """Return a suite whose agent meets a fault in every trial."""
    return Desk(place)


def test_without_faults_there_is_nothing_to_compare(desk: Desk) -> None:
    """Refused before any trial, with what to do."""
    desk.place.replace("ci-gate.toml", CONFIG[CONFIG.index("[faults]") :], "")

    ended = desk.check()

    assert ended.status == 2
    assert "--calm-and-chaos: runs the suite with and without faults, and no faults are" in (
        " ".join(ended.err.split())
    )
    assert desk.started() == 0
    assert not desk.run_file("run.jsonl").exists()


class Measured:
    """A suite that was checked without the option and then with it."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        assert desk.gate("check", "--quiet").status == 0
        self.alone, self.alone_verdict = load_run(desk.run_file("run.jsonl")), desk.verdict
        desk.started()
        self.ended = desk.gate("check", "--calm-and-chaos")
        self.started, self.verdict = desk.started(), desk.verdict
        assert self.ended.status == 0, self.ended.err


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    """Return such a suite, which tests only read."""
    return Measured(Desk(Place(tmp_path_factory.mktemp("calm"))))


def test_what_faults_change_is_shown_beside_the_run(measured: Measured) -> None:
    """Rates, healing, blind retries and steps have their right values, in file and report."""
    found = measured.verdict["resilience"]

    assert measured.started == 32
    assert found["under_faults"]
    assert (found["calm"]["pass_rate"], found["candidate"]["pass_rate"]) == (1.0, 0.75)
    assert found["calm"]["faulted"] == 0
    assert found["between"]["difference"] == -0.25
    assert (found["between"]["tasks"], found["between"]["seeds"]) == (4, 16)
    # All 16 trials met a fault; two tasks ask the same tool again, one passes by another tool.
    assert (found["candidate"]["faulted"], found["candidate"]["recovered"]) == (16, 8)
    assert found["candidate"]["self_healing_rate"] == 0.5
    assert (found["candidate"]["looped"], found["candidate"]["dead_loop_rate"]) == (4, 0.25)
    assert found["steps_in"] == "turns"
    assert (found["calm"]["steps"], found["candidate"]["steps"]) == (1.0, 2.0)
    assert found["between"]["steps_ratio"] == 2.0
    healed = {task["task"]: task["candidate"]["self_healing_rate"] for task in found["tasks"]}
    assert healed == {"gives-up": 0.0, "insists": 1.0, "other-way": 0.0, "stubborn": 1.0}
    (shown,) = (line for line in measured.ended.err.splitlines() if "all tasks" in line)
    assert shown.split()[:8] == [
        *("-", "all", "tasks", "100", "%", "75.0", "%", "−25.0"),  # noqa: RUF001 - as shown
    ]


def test_the_run_under_faults_is_the_ordinary_one(measured: Measured) -> None:
    """With and without the option its file and the verdict are the same; calm is told apart."""
    desk = measured.desk
    calm, both = load_run(desk.calm), load_run(desk.run_file("run.jsonl"))

    assert both.digest == measured.alone.digest
    assert calm.header.faults_digest is None
    assert calm.header.baseline_digest is None
    assert {r.key: r.seed for r in calm.records} == {r.key: r.seed for r in both.records}
    # Durations, which economics holds, are never the same.
    apart = {"resilience", "provenance", "economics"}
    assert {k: v for k, v in measured.verdict.items() if k not in apart} == (
        {k: v for k, v in measured.alone_verdict.items() if k not in apart}
    )


def test_compare_shows_a_calm_run_that_is_named(measured: Measured) -> None:
    """Either stage can be done again from its files; a run under faults is none in calm."""
    desk = measured.desk
    run = str(desk.run_file("run.jsonl"))

    shown = desk.gate("compare", run, "--calm", str(desk.calm), "--quiet", "--json", "-")
    refused = desk.gate("compare", run, "--calm", run, "--quiet")

    assert json.loads(shown.out)["resilience"] == measured.verdict["resilience"]
    assert refused.status == 2
    assert "was run under faults" in refused.err


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('"suite":"desk"', '"suite":"shop"', "is of suite 'shop', and the candidate of 'desk'"),
        ('"digest":"sha256:', '"digest":"sha256:0', "was run with another agent"),
    ],
)
def test_a_calm_run_of_something_else_is_refused(
    measured: Measured, tmp_path: Path, before: str, after: str, said: str
) -> None:
    """Its figures would say nothing of the candidate."""
    head, rest = measured.desk.calm.read_text().split("\n", 1)
    agent = head.index('"agent"')
    first, last = (head[:agent], head[agent:]) if "digest" in before else ("", head)
    other = tmp_path / "other.run.jsonl"
    other.write_text(f"{first}{last.replace(before, after, 1)}\n{rest}")

    run = str(measured.desk.run_file("run.jsonl"))
    ended = measured.desk.gate("compare", run, "--calm", str(other), "--quiet")

    assert ended.status == 2
    assert said in " ".join(ended.err.split())


@pytest.mark.slow
def test_run_makes_both_files_and_compare_judges_them(desk: Desk) -> None:
    """What `check` does in one go can be done in steps."""
    ended = desk.gate("run", "--calm-and-chaos", "--task", "gives-up", "--trials", "2")
    shown = desk.gate(
        *("compare", str(desk.run_file("run.jsonl")), "--calm", str(desk.calm)),
        *("--quiet", "--json", "-"),
    )

    assert ended.status == 0, ended.err
    assert f"in calm: {desk.calm}" in ended.err
    assert json.loads(shown.out)["resilience"]["between"]["difference"] == -1.0


@pytest.mark.slow
def test_a_part_of_the_suite_runs_in_calm_as_well(desk: Desk) -> None:
    """`--task` restricts both runs, and so does the number of trials."""
    assert desk.check("--task", "insists", "--trials", "3").status == 0

    assert desk.started() == 6
    assert [task["task"] for task in desk.verdict["resilience"]["tasks"]] == ["insists"]
    assert desk.verdict["resilience"]["between"]["seeds"] == 3


@pytest.mark.slow
def test_calm_has_as_many_trials_as_the_run_that_stopped_early(desk: Desk) -> None:
    """A run that stops after some rounds is compared with those rounds in calm."""
    desk.place.replace("ci-gate.toml", "trials = 4", "trials = 8")
    assert desk.gate("baseline", "update", "--quiet").status == 0
    desk.place.replace("agent/desk.py", 'return "no"', "raise SystemExit")
    desk.place.replace("agent/desk.py", 'return env.tools.call("look"', 'env.tools.call("look"')
    desk.started()

    ended = desk.check()

    assert ended.status == 1, ended.err
    trials = desk.verdict["trials"]
    assert trials["stop"] == "curtailed-regressed"
    assert trials["judged"] < 32
    assert desk.started() == 2 * trials["judged"]
    assert desk.verdict["resilience"]["between"]["seeds"] == trials["judged"]
    assert load_run(desk.calm).complete


@pytest.mark.slow
def test_an_unfinished_calm_run_is_continued_and_never_lost_unasked(desk: Desk) -> None:
    """What finished is not run again, and the end is that of a run without a break."""
    assert desk.check().status == 0
    whole, verdict = load_run(desk.calm), desk.verdict
    lines = desk.calm.read_bytes().splitlines(keepends=True)
    desk.calm.write_bytes(b"".join(lines[:11]) + lines[11][:20])
    desk.started()

    refused = desk.check()
    assert refused.status == 2
    assert "holds an unfinished calm run" in refused.err
    assert desk.started() == 0

    assert desk.check("--resume").status == 0
    assert desk.started() == 16 - 10
    assert load_run(desk.calm).digest == whole.digest
    assert desk.verdict["resilience"] == verdict["resilience"]

    desk.calm.write_bytes(b"".join(lines[:11]))
    assert desk.check("--fresh").status == 0
    assert desk.started() == 32


def test_a_calm_run_that_cannot_be_made_costs_no_verdict(desk: Desk) -> None:
    """The verdict stands and says what is missing in it."""
    desk.calm.mkdir(parents=True)

    ended = desk.check("--fresh")

    assert ended.status == 0, ended.err
    assert desk.verdict["resilience"]["calm"] is None
    assert any(w.startswith("The suite could not be run in calm") for w in desk.verdict["warnings"])


@pytest.mark.slow
def test_a_budget_ends_the_calm_run_and_not_the_verdict(desk: Desk) -> None:
    """Both runs draw on one budget; the one that decides nothing gets what is left."""
    desk.place.replace("ci-gate.toml", "trials = 4", "trials = 4\nbudget_usd = 20")
    desk.place.replace("agent/desk.py", "            return ask(env)", _PRICED)

    ended = desk.check("--jobs", "1")

    assert ended.status == 0, ended.err
    assert desk.verdict["trials"]["judged"] == 16
    assert 20 <= desk.started() < 32
    assert any("The budget ended the calm run" in w for w in desk.verdict["warnings"])
    assert desk.verdict["resilience"]["calm"]["trials"] < 16


_PRICED = '            return {"answer": ask(env), "cost_usd": 1.0}'


@pytest.mark.slow
def test_a_calm_run_that_was_killed_goes_on(desk: Desk) -> None:
    """SIGKILL in its middle: the verdict under faults is there, and no finished trial is lost."""
    assert desk.check().status == 0
    whole = load_run(desk.calm).digest
    desk.place.path.joinpath("starts.slow").touch()
    desk.started()
    process = subprocess.Popen(
        [sys.executable, "-m", "ci_gate", "check", "--calm-and-chaos", "--quiet", "--fresh"],
        cwd=desk.place.path,
        env=environment({"STARTS": str(desk.starts)}),
        start_new_session=True,
    )
    until = time.monotonic() + 60
    while not _lines_of(desk.starts) >= 22:
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()

    assert desk.verdict["resilience"]["calm"] is None
    kept = desk.calm.read_bytes().count(b"\n") - 1
    assert 0 < kept < 16
    desk.started()
    assert desk.check("--resume").status == 0
    assert desk.started() <= 16 - kept
    assert load_run(desk.calm).digest == whole


def _lines_of(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0

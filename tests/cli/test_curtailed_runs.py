"""Runs that end when they are enough: resumed, killed, refused, the same for any ``--jobs``."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from ci_gate.store.runs import load_run
from tests.cli.test_kills import PATIENCE_S, Bench, killed_until_it_ends
from tests.places import Place

SEED = 20261031
CONFIG = """
[[suite]]
name = "small"
tasks = ["tasks.jsonl"]
trials = 8
max_errored_rate = 0.2

[agent]
python = "noting:run"
root = "agent"
environment_errors = ["Outage"]

[run]
jobs = {jobs}
retries = 1

[baseline]
repeats = 2
"""
# Whether a trial errors hangs on its seed, so that every run of it does.
AGENT = """
import os, time

class Outage(Exception):
    pass

def run(task, env):
    line = "%s %d\\n" % (hex(env.seed), os.getpid())
    log = os.open(os.environ["STARTS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(log, line.encode())
    os.close(log)
    time.sleep(float(os.environ["PAUSE_S"]))
    chance = env.rng.random()
    if chance > 0.97:
        raise Outage("down")
    return "right" if chance < 0.8 else "wrong"
"""


def bench_at(path: Path, *, tasks: int = 6, jobs: int = 2) -> Bench:
    """Set a suite up with a baseline of two runs."""
    (path / "agent").mkdir(parents=True)
    (path / "tmp").mkdir()
    (path / "ci-gate.toml").write_text(CONFIG.format(jobs=jobs))
    (path / "agent" / "noting.py").write_text(AGENT)
    grader = {"type": "answer", "equals": "right"}
    lines = [
        json.dumps({"id": f"task-{number}", "instruction": "try", "graders": [grader]})
        for number in range(tasks)
    ]
    (path / "tasks.jsonl").write_text("\n".join(lines) + "\n")
    return Bench(path)


def copied(bench: Bench, path: Path) -> Bench:
    """Return a copy of a bench; what was noted of starts is left out."""
    shutil.copytree(bench.path, path, ignore=shutil.ignore_patterns("starts"))
    return Bench(path)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """Return a suite with a baseline and its curtailed run; not to be changed."""
    bench = bench_at(tmp_path_factory.mktemp("curtailed") / "bench")
    made = bench.begin("baseline", "update", "--quiet")
    assert made.communicate(timeout=PATIENCE_S) == (None, "")
    assert bench.run() == (0, "")
    assert ended(bench)["reason"].startswith("curtailed")
    return bench


def ended(bench: Bench) -> dict[str, Any]:
    """Return the stop in the footer."""
    return json.loads(bench.journal.read_bytes().splitlines()[-1])["stop"]


def said(bench: Bench) -> tuple[str, dict[str, Any]]:
    """Return all that a run says but its timing, and where and why it stopped."""
    return load_run(bench.journal).digest, ended(bench)


def test_a_run_says_how_likely_red_is_and_why_it_stopped(gated: Place) -> None:
    """A log has a line a round, the end says how much was run, and a resume adds nothing."""
    ended = gated.gate("run")
    journal = gated.path / ".ci-gate" / "example.run.jsonl"
    before = journal.read_bytes()
    stop = json.loads(before.splitlines()[-1])["stop"]

    again = gated.gate("check", "--resume")

    assert (ended.status, again.status) == (0, 0), again.err
    assert stop["reason"] == "curtailed-pass"
    assert ended.err.count(" chance that the whole plan would be red") == stop["round"]
    assert f"example: curtailed-pass, {stop['round']} of 8 rounds, " in ended.err
    assert f"{3 * stop['round']} of 24 trials" in ended.err
    assert journal.read_bytes() == before


@pytest.mark.slow
def test_a_finished_curtailed_run_is_left_as_it_is(finished: Bench, tmp_path: Path) -> None:
    """Resumed, it is there already: no byte changes and no trial starts."""
    bench = copied(finished, tmp_path / "copy")
    before = bench.journal.read_bytes()

    assert bench.run("--resume") == (0, "")

    assert bench.journal.read_bytes() == before
    assert bench.noted_bytes() == b""


@pytest.mark.slow
@pytest.mark.parametrize("kept", [0, 1, 4, 9, -1])
def test_a_run_that_is_resumed_stops_where_it_would_have(
    finished: Bench, tmp_path: Path, kept: int
) -> None:
    """From any number of lines, a torn one after them; with all of them, no trial starts."""
    bench = copied(finished, tmp_path / "copy")
    header, *lines = bench.journal.read_bytes().splitlines(keepends=True)
    whole = lines[:kept]
    bench.journal.write_bytes(b"".join([header, *whole, b'{"task":"task-']))

    assert bench.run("--resume") == (0, "")

    assert said(bench) == said(finished)
    assert bench.noted_bytes().count(b"\n") == len(lines) - 1 - len(whole)


@pytest.mark.slow
def test_a_curtailed_run_is_not_continued_against_another_baseline(
    finished: Bench, tmp_path: Path
) -> None:
    """What its stops are decided against has changed: the difference is named."""
    bench = copied(finished, tmp_path / "copy")
    lines = bench.journal.read_bytes().splitlines(keepends=True)
    bench.journal.write_bytes(b"".join(lines[:5]))
    baseline = bench.path / "baselines" / "small.json"
    baseline.write_text(baseline.read_text().replace("+-", "-+", 1))

    status, text = bench.run("--resume")

    assert status == 2
    assert "is the journal of another run: baseline digest was sha256:" in text


@pytest.mark.slow
def test_a_plan_that_is_not_curtailed_is_run_to_its_end(finished: Bench, tmp_path: Path) -> None:
    """``curtail = false`` runs the plan, and no round waits for a decision."""
    bench = copied(finished, tmp_path / "copy")
    config = bench.path / "ci-gate.toml"
    config.write_text(config.read_text() + "\n[gate]\ncurtail = false\n")

    assert bench.run() == (0, "")

    run = load_run(bench.journal)
    assert ended(bench) == {"round": 8, "reason": "complete", "predictive": None}
    assert len(run.records) == 48
    assert run.header.plan is not None
    assert not run.header.plan.curtail


@pytest.mark.slow
@pytest.mark.parametrize("jobs", ["1", "5"])
def test_the_number_of_jobs_changes_nothing(finished: Bench, tmp_path: Path, jobs: str) -> None:
    """The lines, sorted, and the stop are the same."""
    bench = copied(finished, tmp_path / "copy")

    assert bench.run("--jobs", jobs) == (0, "")

    assert said(bench) == said(finished)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_kills_change_neither_a_trial_nor_the_stop(
    finished: Bench, tmp_path: Path, seed: int
) -> None:
    """Killed at random moments and resumed, it ends as if it had not been."""
    bench = copied(finished, tmp_path / "copy")
    bench.journal.unlink()

    killed_until_it_ends(bench, random.Random(SEED + seed), kills=25, pause_s=0.003)

    assert said(bench) == said(finished)

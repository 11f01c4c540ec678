"""Outcomes of real agents, turned into run files by a ten-line script, are judged as they should.

The data (see ``CI_GATE_REAL_DATA``) has a line an agent and task: ``model,task,outcomes`` with a
character a trial, ``+`` passed, ``-`` failed, ``!`` errored. It is not part of the repository.
"""

from __future__ import annotations

import csv
import json
import os
import random
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from ci_gate import Policy, compare, load

DATA = Path(
    os.environ.get("CI_GATE_REAL_DATA")
    or Path(__file__).parents[3] / "shared" / "data" / "multi_trial"
)
pytestmark = pytest.mark.skipif(
    not DATA.is_dir(), reason="real outcomes are not here; CI_GATE_REAL_DATA names their folder"
)
METR, TERMINAL_BENCH = "metr_n8.csv", "terminal_bench_n5.csv"
AIRLINE = "taubench_airline_gpt4o_n4.csv"
ALPHA = 0.05
DEALS = 20
SEED = 20261030

# Reads lines "task,outcomes" and writes a run file.
SCRIPT = """\
import csv, json, sys

STATUS = {"+": "passed", "-": "failed", "!": "errored"}
print(json.dumps({"schema": "ci-gate/run@1", "suite": sys.argv[1]}))
for task, outcomes in csv.reader(sys.stdin):
    for trial, outcome in enumerate(outcomes):
        print(json.dumps({"task": task, "trial": trial, "status": STATUS[outcome]}))
"""

Tasks = dict[str, str]


def agents_of(name: str) -> dict[str, Tasks]:
    """Return the outcomes of each agent by task."""
    found: dict[str, Tasks] = defaultdict(dict)
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            found[row["model"]][row["task"]] = row["outcomes"]
    return found


def rate(tasks: Tasks) -> float:
    """Return an agent's suite pass^1."""
    shares = [o.count("+") / max(1, o.count("+") + o.count("-")) for o in tasks.values()]
    return sum(shares) / len(shares)


def ranked(name: str, k: int) -> list[Tasks]:
    """Return the agents that ran as a gate's suite does, the weakest first.

    That is: most tasks, k trials of each on average, and few errored ones.
    """
    agents = agents_of(name).values()
    most = max(map(len, agents))
    whole = [
        tasks
        for tasks in agents
        if len(tasks) >= 0.8 * most
        and sum(map(len, tasks.values())) >= k * len(tasks)
        and sum(outcomes.count("!") for outcomes in tasks.values()) <= 0.1 * k * len(tasks)
    ]
    return sorted(whole, key=rate)


def on_common_tasks(one: Tasks, other: Tasks) -> tuple[Tasks, Tasks]:
    """Return two agents on the tasks that both have."""
    common = sorted(one.keys() & other.keys())
    return {task: one[task] for task in common}, {task: other[task] for task in common}


def dealt(tasks: Tasks, chance: random.Random) -> tuple[Tasks, Tasks]:
    """Deal each task's trials at random to two halves."""
    shuffled = {task: "".join(chance.sample(o, len(o))) for task, o in tasks.items()}
    return (
        {task: outcomes[: len(outcomes) // 2] for task, outcomes in shuffled.items()},
        {task: outcomes[len(outcomes) // 2 :] for task, outcomes in shuffled.items()},
    )


def converted(path: Path, tasks: Tasks) -> Path:
    """Write a run file with the script."""
    with path.open("w") as file:
        lines = "".join(f'"{task}",{outcomes}\n' for task, outcomes in tasks.items())
        command = [sys.executable, "-c", SCRIPT, "real"]
        subprocess.run(command, input=lines, stdout=file, text=True, check=True)
    return path


def policy(k: int) -> Policy:
    """Return the default policy but for k; how many trials errored is not the question here."""
    return Policy(metrics=("pass^1", f"pass^{k}"), max_errored_rate=1.0)


CONFIG = """\
[[suite]]
name = "real"
tasks = ["none/*.toml"]
max_errored_rate = 1.0

[agent]
command = ["true"]

[gate]
metrics = ["pass^1", "pass^{k}"]
"""


def judged(place, k: int, baseline: Tasks, candidate: Tasks) -> dict:
    """Compare two agents by the command line; its status is the verdict's."""
    (place.path / "ci-gate.toml").write_text(CONFIG.format(k=k))
    files = [
        converted(place.path / f"{side}.run.jsonl", tasks).name
        for side, tasks in (("baseline", baseline), ("candidate", candidate))
    ]
    ended = place.gate("compare", *files, "--json", "-", "--quiet")
    verdict = json.loads(ended.out)
    assert ended.status == verdict["exit_code"], ended.err
    return verdict


def test_the_script_and_the_published_pass_hat_k(place):
    """tau-bench publishes .420, .273, .220 and .200 for gpt-4o: the converted run has them."""
    (airline,) = agents_of(AIRLINE).values()

    verdict = judged(place, 4, airline, airline)

    metrics = {name: found["candidate"] for name, found in verdict["metrics"].items()}
    assert metrics == pytest.approx({"pass^1": 0.42, "pass^4": 0.2})
    assert verdict["verdict"] == "passed"


@pytest.mark.parametrize(("name", "k"), [(METR, 8), (TERMINAL_BENCH, 5)])
def test_a_weaker_agent_in_a_stronger_ones_place_is_red_with_its_tasks_named(place, name, k):
    """The suite is red; each task that is named fell, and the comment names it too."""
    weaker, *_, stronger = ranked(name, k)
    stronger, weaker = on_common_tasks(stronger, weaker)

    verdict = judged(place, k, stronger, weaker)

    named = [task["task"] for task in verdict["tasks"] if task["claim"] == "regressed"]
    files = ("baseline.run.jsonl", "candidate.run.jsonl")
    comment = place.gate("compare", *files, "--markdown", "-", "--quiet")
    assert verdict["verdict"] == "regressed"
    assert verdict["exit_code"] == comment.status == 1
    assert {reason["code"] for reason in verdict["reasons"]} >= {"suite-regressed"}
    assert all(rate({"": stronger[task]}) > rate({"": weaker[task]}) for task in named)
    assert named
    assert all(task in comment.out for task in named)


def test_a_stronger_agent_in_a_weaker_ones_place_passes(place):
    """The other way round nothing is red."""
    weaker, *_, stronger = ranked(METR, 8)

    verdict = judged(place, 8, *on_common_tasks(weaker, stronger))

    assert (verdict["verdict"], verdict["exit_code"]) == ("passed", 0)


def test_one_agent_dealt_to_two_sides_passes(place):
    """An agent held against itself is green, by the command line as a user meets it."""
    baseline, candidate = dealt(ranked(METR, 8)[-1], random.Random(SEED))

    verdict = judged(place, 4, baseline, candidate)

    assert (verdict["verdict"], verdict["exit_code"]) == ("passed", 0)


@pytest.mark.calibration
def test_the_same_agents_on_both_sides_are_red_at_the_stated_rate(tmp_path):
    """Over all agents and 20 deals each: red in at most 5 % and two standard errors."""
    chance = random.Random(SEED)
    reds = []
    for name, k in ((METR, 4), (TERMINAL_BENCH, 2)):
        for tasks in agents_of(name).values():
            for _ in range(DEALS):
                sides = [
                    load(converted_in_process(tmp_path / f"{side}.jsonl", half))
                    for side, half in zip("bc", dealt(tasks, chance), strict=True)
                ]
                reds.append(compare(*sides, policy(k)).decision == "regressed")

    share = sum(reds) / len(reds)
    assert len(reds) >= 400
    assert share <= ALPHA + 2 * (ALPHA * (1 - ALPHA) / len(reds)) ** 0.5


def converted_in_process(path: Path, tasks: Tasks) -> Path:
    """Write a run file as the script does, without a process for each of a thousand files."""
    lines = [{"schema": "ci-gate/run@1", "suite": "real"}]
    status = {"+": "passed", "-": "failed", "!": "errored"}
    lines += [
        {"task": task, "trial": trial, "status": status[outcome]}
        for task, outcomes in tasks.items()
        for trial, outcome in enumerate(outcomes)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path

"""Outcomes of real agents are judged as they should be, where they lie beside the repository."""

from __future__ import annotations

import csv
import os
import random
from collections import defaultdict
from pathlib import Path

import pytest

from ci_gate import Policy, Run, Verdict, compare

DATA = Path(
    os.environ.get("CI_GATE_REAL_DATA")
    or Path(__file__).parents[3] / "shared" / "data" / "multi_trial"
)
pytestmark = pytest.mark.skipif(
    not DATA.is_dir(), reason="real outcomes are not here; CI_GATE_REAL_DATA names their folder"
)
Agents = dict[str, dict[str, str]]


def agents_of(name: str) -> Agents:
    """Return the outcomes of each agent by task."""
    found: Agents = defaultdict(dict)
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            found[row["model"]][row["task"]] = row["outcomes"]
    return found


def judged(baseline: dict[str, str], candidate: dict[str, str], *ks: int) -> Verdict:
    """Compare two agents on the tasks that both have; which trials errored is not the question."""
    common = baseline.keys() & candidate.keys()
    sides = [
        Run.from_outcomes("real", {task: side[task] for task in common})
        for side in (baseline, candidate)
    ]
    metrics = tuple(f"pass^{k}" for k in ks)
    return compare(*sides, Policy(metrics=metrics, max_errored_rate=1.0))


def rate(tasks: dict[str, str]) -> float:
    """Return an agent's suite pass^1."""
    rates = [o.count("+") / max(1, o.count("+") + o.count("-")) for o in tasks.values()]
    return sum(rates) / len(rates)


def test_the_published_pass_hat_k_of_tau_bench_airline() -> None:
    """gpt-4o on 50 airline tasks x 4: pass^1 to pass^4 are .420, .273, .220 and .200."""
    (airline,) = agents_of("taubench_airline_gpt4o_n4.csv").values()

    metrics = judged(airline, airline, 1, 2, 3, 4).metrics

    estimates = [metrics[f"pass^{k}"].candidate for k in (1, 2, 3, 4)]
    assert estimates == pytest.approx([0.42, 0.273333, 0.22, 0.2])


def strongest_and_weakest(name: str, deep: int) -> list[dict[str, str]]:
    """Return two agents that ran most tasks often, by their rates."""
    ran = [a for a in agents_of(name).values() if sum(map(len, a.values())) >= deep * len(a)]
    ranked = sorted(ran, key=rate)
    return [ranked[-1], ranked[0]]


@pytest.mark.parametrize(("name", "k"), [("metr_n8.csv", 8), ("terminal_bench_n5.csv", 5)])
def test_a_weaker_agent_in_a_stronger_ones_place_is_red_with_its_tasks_named(
    name: str, k: int
) -> None:
    """The weakest for the strongest: the tasks named are ones that fell, and far."""
    stronger, weaker = strongest_and_weakest(name, deep=k)

    verdict = judged(stronger, weaker, 1, k)

    named = [task for task in verdict.tasks if task.claim == "regressed"]
    assert verdict.decision == "regressed"
    assert {str(reason.code) for reason in verdict.reasons} >= {"suite-regressed"}
    assert named or k < 8
    assert all(rate({"": stronger[t.task]}) > rate({"": weaker[t.task]}) + 0.25 for t in named)


def test_a_stronger_agent_in_a_weaker_ones_place_passes() -> None:
    """The other way round nothing is red, and improvements are claimed."""
    stronger, weaker = strongest_and_weakest("metr_n8.csv", deep=8)

    verdict = judged(weaker, stronger, 1, 8)

    assert verdict.decision == "passed"
    assert any(task.claim == "improved" for task in verdict.tasks)


@pytest.mark.calibration
@pytest.mark.parametrize(
    ("name", "deals", "k"), [("metr_n8.csv", 25, 4), ("terminal_bench_n5.csv", 20, 2)]
)
def test_the_same_agent_on_both_sides_is_rarely_red(name: str, deals: int, k: int) -> None:
    """Trials of one agent dealt to two sides: red in at most 5 % of deals and 2 standard errors."""
    chance = random.Random(20261030)
    red = total = 0
    for tasks in agents_of(name).values():
        for _ in range(deals):
            left, right = dealt(tasks, chance)
            red += judged(left, right, 1, k).decision == "regressed"
            total += 1

    assert red / total <= 0.05 + 2 * (0.05 * 0.95 / total) ** 0.5


def dealt(tasks: dict[str, str], chance: random.Random) -> tuple[dict[str, str], dict[str, str]]:
    """Deal each task's trials at random to two halves."""
    shuffled = {task: "".join(chance.sample(o, len(o))) for task, o in tasks.items()}
    return (
        {task: outcomes[: len(outcomes) // 2] for task, outcomes in shuffled.items()},
        {task: outcomes[len(outcomes) // 2 :] for task, outcomes in shuffled.items()},
    )

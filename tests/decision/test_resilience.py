"""How the agent met faults: sums, rates and what the same seeds did in calm."""

from __future__ import annotations

import datetime
from typing import Any

import msgspec
import pytest

from ci_gate.decision.circumstances import Circumstances
from ci_gate.decision.compare import compare
from ci_gate.decision.decide import decide
from ci_gate.model.policy import Policy, Quarantine
from ci_gate.model.resilience import Resilience
from ci_gate.model.run import Measure, Side
from tests.notation import side_of

FAULTS = "sha256:faults"


def converged(mean: float | None, *, known: int | None = None) -> tuple[Measure, ...]:
    """Return a measure of one run of which only the mean over passed trials matters."""
    return (Measure(mean=mean, sd=None, mean_passed=mean, known=known),)


def resilience(
    candidate: Side, calm: Side | None = None, baseline: Side | None = None, **policy: Any
) -> Resilience:
    """Return what a verdict on the candidate says of faults, its figures unrounded."""
    around = Circumstances(calm=calm)
    return compare(baseline, candidate, Policy(metrics=("pass^1",), **policy), around).resilience


def test_healing_counts_only_trials_that_met_a_fault() -> None:
    """Recovered over faulted, looped over the trials of the runs that know it."""
    side = side_of(
        "refund ++--/++++ cancel ++",
        refund={"faulted": (3, None), "recovered": (2, None), "looped": (1, None)},
        cancel={"faulted": (1,), "recovered": (1,), "looped": (0,)},
    )

    found = resilience(side).candidate

    assert found is not None
    assert (found.trials, found.passed) == (10, 8)
    assert (found.faulted, found.recovered, found.self_healing_rate) == (4, 3, 3 / 4)
    assert (found.looped, found.dead_loop_rate) == (1, 1 / 6)


def test_without_a_fault_there_is_no_healing_rate() -> None:
    """0 of 0 is no rate, and a count that no file holds is unknown."""
    found = resilience(side_of("refund ++", refund={"faulted": (0,), "recovered": (0,)})).candidate

    assert found is not None
    assert (found.faulted, found.self_healing_rate, found.looped) == (0, None, None)


def test_a_task_that_both_failed_and_passed_is_not_healed_by_that() -> None:
    """Half the trials passed, all met faults, none recovered: the rate is 0."""
    side = side_of("refund ++--", refund={"faulted": (4,), "recovered": (0,)})

    (task,) = resilience(side).tasks

    assert (task.candidate.pass_rate, task.candidate.self_healing_rate) == (0.5, 0.0)


def test_the_difference_is_taken_seed_by_seed() -> None:
    """Only seeds that were judged both ways count, a mean over the tasks of the mean over seeds."""
    calm = side_of("a ++++ b ++!- c ++")
    faulted = side_of("a +-+- b -+++ new ++", faults_digest=FAULTS)

    found = resilience(faulted, calm)

    assert found.under_faults
    assert found.between is not None
    assert found.calm is not None
    # a: 0 -1 0 -1; b: -1 0 (errored in calm) +1; c did not meet faults and new had no calm.
    assert (found.between.tasks, found.between.seeds) == (2, 7)
    assert found.between.difference == pytest.approx((-0.5 + 0.0) / 2)
    assert found.between.interval is not None
    assert found.between.interval[0] < -0.25 < found.between.interval[1]
    assert found.calm.pass_rate == pytest.approx((1 + 2 / 3) / 2)
    assert {task.task: task.calm is not None for task in found.tasks} == {"a": True, "b": True}


def test_repeats_of_a_seed_are_one_difference() -> None:
    """Two runs over four seeds are four differences, each of two means."""
    calm, faulted = side_of("a ++++/+++-"), side_of("a +-++/-+++")

    found = resilience(faulted, calm).between

    assert found is not None
    assert found.seeds == 4
    assert found.difference == pytest.approx((-0.5 - 0.5 + 0 + 0.5) / 4)


def test_without_common_seeds_nothing_is_paired() -> None:
    """Rates of both conditions stand, their difference does not."""
    calm, faulted = side_of("a ++++", root_seed="0x1"), side_of("a +-+-", root_seed="0x2")

    found = resilience(faulted, calm)

    assert found.calm is not None
    assert found.calm.pass_rate == 1
    assert found.between is not None
    assert (found.between.seeds, found.between.difference, found.between.interval) == (
        *(0, None),
        None,
    )


def test_steps_to_converge_are_of_passed_trials_task_by_task() -> None:
    """Means over tasks; the ratio is over tasks that converged both ways."""
    calm = side_of(
        "a ++ b ++ c --",
        a={"measures": {"turns": converged(4.0)}},
        b={"measures": {"turns": converged(2.0)}},
    )
    faulted = side_of(
        "a +- b ++ c +-",
        a={"measures": {"turns": converged(6.0)}},
        b={"measures": {"turns": converged(3.0)}},
        c={"measures": {"turns": converged(9.0)}},
    )

    found = resilience(faulted, calm)

    assert found.steps_in == "turns"
    assert found.calm is not None
    assert found.candidate is not None
    assert found.between is not None
    assert (found.calm.steps, found.candidate.steps) == (3.0, 6.0)
    assert found.between.steps_ratio == 9 / 6


def test_where_turns_are_not_said_calls_of_tools_are_counted() -> None:
    """One unit for all: tasks that say turns are counted in calls where another says none."""
    calls = {"tool_calls": converged(5.0)}
    mixed = side_of("a ++ b ++", a={"measures": {"turns": converged(2.0)}, **calls}, b=calls)
    unknown = side_of("a ++", a={"measures": {"turns": converged(2.0, known=1)}})

    assert (found := resilience(mixed)).steps_in == "tool_calls"
    assert found.candidate is not None
    assert found.candidate.steps == 5.0
    assert resilience(unknown).steps_in is None


def test_the_figures_are_of_the_tasks_that_are_compared() -> None:
    """A quarantined task is in none of them."""
    bar = side_of("a ++++++++ b ++++++++", kind="baseline", b={"faulted": (8,)})
    faulted = side_of("a ++++++++ b --------", a={"faulted": (1,)}, b={"faulted": (8,)})
    apart = Quarantine(task="b", owner="me", until=datetime.date(2999, 1, 1))

    found = resilience(faulted, side_of("a ++++++++ b ++++++++"), bar, quarantine=(apart,))

    assert found.candidate is not None
    assert found.candidate.faulted == 1
    assert [task.task for task in found.tasks] == ["a"]


def test_calm_decides_nothing() -> None:
    """Whatever the agent does without faults, every other byte of the verdict is the same."""
    bar, faulted = side_of("a ++++++++ b ++++++++"), side_of("a +++++++- b ++++++++")
    policy = Policy(metrics=("pass^1",))
    verdicts = []
    for calm in (None, side_of("a -------- b --------")):
        around = Circumstances(calm=calm)
        verdict = decide(compare(bar, faulted, policy, around), policy, around)
        verdicts.append(msgspec.structs.replace(verdict, resilience=Resilience()).to_json())

    assert verdicts[0] == verdicts[1]


def test_the_order_of_tasks_changes_no_byte() -> None:
    """Files hold tasks in any order."""
    rows = {"a": "+-+-", "b": "++-+", "c": "----"}
    sides = [
        (side_of(" ".join(f"{t} {rows[t]}" for t in order)), side_of(f"{order[0]} ++++ b +-++"))
        for order in ("abc", "acb")
    ]

    found = [msgspec.json.encode(resilience(*pair)) for pair in sides]

    assert found[0] == found[1]

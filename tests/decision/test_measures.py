"""What trials cost and how they met faults."""

from __future__ import annotations

import pytest

from ci_gate.decision.measures import economics_of, resilience_of
from ci_gate.model.run import Measure, SideTask


def spent(mean: float | None) -> Measure:
    """Return a measure of which only the mean is known."""
    return Measure(mean=mean, sd=None, mean_passed=None)


def test_cost_per_success_is_a_ratio_of_sums() -> None:
    """All money over all successes: failed trials are paid for too."""
    tasks = {
        "refund": SideTask(
            outcomes=("++--", "+!.-"),
            measures={"cost_usd": (spent(0.5), spent(1.0)), "tokens": (spent(100), spent(200))},
        ),
        "cancel": SideTask(outcomes=("+",), measures={"cost_usd": (spent(2.0),)}),
    }

    found = economics_of(tasks)

    assert found["trials"] == 7
    assert found["successes"] == 4
    assert found["cost_usd"] == 4 * 0.5 + 2 * 1.0 + 2.0
    assert found["cost_per_success_usd"] == 6.0 / 4
    assert found["tokens_per_success"] == (400 + 400) / 3


def test_runs_of_unknown_cost_are_left_out_on_both_sides_of_the_ratio() -> None:
    """A success whose cost is unknown must not make the others look cheap."""
    tasks = {
        "refund": SideTask(
            outcomes=("++", "++", "++"),
            measures={"cost_usd": (spent(1.0), None, spent(None))},
        )
    }

    found = economics_of(tasks)

    assert found["cost_per_success_usd"] == 1.0
    assert found["successes"] == 6


def test_without_a_success_the_cost_per_success_is_infinite_and_null() -> None:
    """Nothing crashes: the total stands, and 0 successes say why there is no ratio."""
    tasks = {"refund": SideTask(outcomes=("--",), measures={"cost_usd": (spent(1.0),)})}

    found = economics_of(tasks)

    assert (found["cost_usd"], found["successes"]) == (2.0, 0)
    assert found["cost_per_success_usd"] is None


def test_turns_and_duration_are_means_over_trials() -> None:
    """A run with more trials weighs more."""
    tasks = {
        "refund": SideTask(
            outcomes=("+++-", "+"),
            measures={"turns": (spent(2.0), spent(7.0)), "duration_s": (spent(1.0), None)},
        )
    }

    found = economics_of(tasks)

    assert found["turns"] == pytest.approx(15 / 5)
    assert found["duration_s"] == 1.0


def test_what_nobody_measured_is_unknown_and_not_zero() -> None:
    """A file without costs has no cost."""
    found = economics_of({"refund": SideTask(outcomes=("+-",))})

    assert found["cost_usd"] is None
    assert found["turns"] is None


def test_self_healing_counts_only_trials_that_met_a_fault() -> None:
    """Recovered over faulted, looped over the trials of the runs that know it."""
    tasks = {
        "refund": SideTask(
            outcomes=("++--", "++++"), faulted=(3, None), recovered=(2, None), looped=(1, None)
        ),
        "cancel": SideTask(outcomes=("++",), faulted=(1,), recovered=(1,), looped=(0,)),
    }

    found = resilience_of(tasks)

    assert found["self_healing_rate"] == 3 / 4
    assert found["dead_loop_rate"] == 1 / 6
    assert found["trials"] == 10


def test_without_a_fault_there_is_no_self_healing_rate() -> None:
    """0 of 0 is no rate."""
    tasks = {"refund": SideTask(outcomes=("++",), faulted=(0,), recovered=(0,))}

    found = resilience_of(tasks)

    assert (found["faulted"], found["self_healing_rate"]) == (0, None)
    assert found["looped"] is None

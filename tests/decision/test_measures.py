"""What trials cost."""

from __future__ import annotations

import pytest

from ci_gate.decision.measures import economics_of
from ci_gate.model.run import Measure, SideTask


def spent(mean: float | None, *, known: int | None = None) -> Measure:
    """Return a measure of which only the mean is known, by all trials unless told."""
    return Measure(mean=mean, sd=None, mean_passed=None, known=known)


def test_cost_per_success_is_a_ratio_of_sums() -> None:
    """All money over all successes: failed trials are paid for too."""
    tasks = {
        "refund": SideTask(
            outcomes=("++--", "+!.-"),
            measures={"cost_usd": (spent(0.5), spent(1.0)), "tokens": (spent(100), spent(200))},
        ),
        "cancel": SideTask(
            outcomes=("+",), measures={"cost_usd": (spent(2.0),), "tokens": (spent(50),)}
        ),
    }

    found = economics_of(tasks)

    assert found["trials"] == 7
    assert found["successes"] == 4
    assert found["cost_usd"] == 4 * 0.5 + 2 * 1.0 + 2.0
    assert found["cost_per_success_usd"] == 6.0 / 4
    assert found["tokens_per_success"] == (400 + 400 + 50) / 4
    assert found["cost_known_trials"] == 7


@pytest.mark.parametrize(
    ("cost", "known"),
    [
        ((spent(1.0), None, spent(None)), 2),
        ((spent(1.0, known=1), spent(1.0), spent(1.0)), 5),
        ((spent(1.0, known=9), spent(1.0), None), 4),
    ],
)
def test_a_cost_that_some_trials_do_not_know_is_not_scaled_up(
    cost: tuple[Measure | None, ...], known: int
) -> None:
    """The total is that of the trials that know it, and per success there is nothing to say."""
    task = SideTask(outcomes=("++", "++", "++"), measures={"tokens": cost})

    found = economics_of({"refund": task})

    assert (found["tokens"], found["tokens_known_trials"], found["trials"]) == (known, known, 6)
    assert found["tokens_per_success"] is None
    assert (found["cost_usd"], found["cost_known_trials"]) == (None, 0)


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

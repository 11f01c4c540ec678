"""A baseline that makes the gate cry wolf: who is warned, of what, and what would mend it."""

from __future__ import annotations

import datetime

import pytest

from ci_gate.decision.conditional_rate import (
    FalseAlarms,
    baseline_warnings,
    false_alarms_given,
    on_false_alarms,
)
from ci_gate.decision.power import Question, foresee
from ci_gate.model.policy import Policy, Quarantine
from tests.notation import side_of

LUCKY = "t0 ++++++++ t1 ++++++++ " + " ".join(f"t{i} ++++----" for i in range(2, 10))
CALM = " ".join(f"t{i} {'+' * (8 - i)}{'-' * i}" for i in range(3))


def alarms(rate: float, *, runs: int = 1, mended_by: int | None = None) -> FalseAlarms:
    """What was found, at alpha .05."""
    return FalseAlarms(rate=rate, error=0.01, alpha=0.05, runs=runs, mended_by=mended_by)


def test_a_rate_above_twice_alpha_is_said_with_its_remedy() -> None:
    """The warning names the rate, alpha, the runs that mend it and the command."""
    (warning,) = on_false_alarms(alarms(0.19, runs=2, mended_by=4))

    assert warning == (
        "Against this baseline 19% of the checks of an unchanged agent would be red (alpha = "
        "0.05): some of it passed more often than the suite as a whole makes likely. With 2 more "
        "runs over its seeds (4 in all) it would be at most twice alpha: `ci-gate baseline "
        "update` adds them."
    )


def test_what_runs_do_not_mend_is_said_too() -> None:
    """Where not even 16 runs would do, no run is recommended."""
    (warning,) = on_false_alarms(alarms(0.3))

    assert warning.endswith("No number of runs over its seeds up to 16 would mend that.")


@pytest.mark.parametrize("found", [None, alarms(0.0), alarms(0.1)])
def test_up_to_twice_alpha_nothing_is_said(found: FalseAlarms | None) -> None:
    """Twice alpha itself is still without a warning."""
    assert list(on_false_alarms(found)) == []


@pytest.mark.slow
def test_a_lucky_baseline_is_warned_of() -> None:
    """Two tasks that always pass, among eight that pass half of their trials, owe it to luck."""
    found = false_alarms_given(side_of(LUCKY), Policy())

    assert found is not None
    assert (found.too_many, found.runs, found.mended_by) == (True, 1, 2)


@pytest.mark.slow
def test_power_warns_of_luck_too() -> None:
    """Who asks what checks would see is told what they would see of nothing."""
    question = Question(drops=(0.3,), trials=(8,), most_repeats=64)

    remarks = foresee(side_of(LUCKY), Policy(), question).remarks

    assert any("checks of an unchanged agent would be red" in remark for remark in remarks)


def test_a_normal_baseline_is_not() -> None:
    """Tasks of all kinds leave no doubt about each other."""
    assert baseline_warnings(side_of(CALM), Policy()) == ()


def test_the_order_of_the_tasks_changes_nothing() -> None:
    """The same outcomes under other names give the same rate."""
    turned = " ".join(f"t{2 - i} {'+' * (8 - i)}{'-' * i}" for i in range(3))

    assert false_alarms_given(side_of(turned), Policy()) == false_alarms_given(
        side_of(CALM), Policy()
    )


def test_what_does_not_judge_does_not_count() -> None:
    """Tasks in quarantine or without a judged trial leave the rate as it is without them."""
    held = Quarantine(task="held", owner="desk", until=datetime.date(2100, 1, 1))
    more = side_of(f"{CALM} held ++++++++ lost !!!!!!!!")

    assert false_alarms_given(more, Policy(quarantine=(held,))) == false_alarms_given(
        side_of(CALM), Policy()
    )


@pytest.mark.parametrize(
    ("outcomes", "policy"),
    [
        (CALM, Policy(deterministic=True)),
        (CALM, Policy(margin=0.1)),
        ("t0 -------- t1 --------", Policy()),
        ("t0 !!!!!!!!", Policy()),
    ],
    ids=["deterministic", "margin", "dead", "unjudged"],
)
def test_where_chance_is_not_the_question_there_is_no_rate(outcomes: str, policy: Policy) -> None:
    """Suites that are not judged by this test, and baselines nothing can drop from."""
    assert false_alarms_given(side_of(outcomes), policy) is None

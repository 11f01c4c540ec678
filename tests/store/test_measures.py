from __future__ import annotations

import statistics
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_gate.model.run import Measure
from ci_gate.model.trial import Status, TrialRecord
from ci_gate.store.measures import counted, measured, rounded


def line(status: str = "passed", **fields: Any) -> TrialRecord:
    return TrialRecord(task="refund", trial=0, status=Status(status), **fields)


def test_a_measure_is_taken_over_judged_trials() -> None:
    """Mean and deviation are over passed and failed trials, the third number over passed ones."""
    repeat = [line(turns=4), line(turns=6), line("failed", turns=11), line("errored", turns=99)]

    (measure,) = measured([repeat])["turns"]

    assert measure.mean == 7
    assert measure.sd == pytest.approx(statistics.stdev([4, 6, 11]))
    assert measure.mean_passed == 5


def test_what_is_unknown_is_left_out() -> None:
    """A trial that does not know its cost neither counts nor lowers the mean."""
    found = measured([[line(cost_usd=0.2), line()], [line()]])

    assert found == {"cost_usd": (Measure(mean=0.2, sd=None, mean_passed=0.2, known=1), None)}


def test_a_measure_says_how_many_trials_know_it_unless_all_do() -> None:
    """Judged trials alone are counted: an errored one owes no measure."""
    all_know = [line(tokens=3), line("failed", tokens=5), line("errored")]
    some_know = [line(tokens=3), line("failed"), line("errored", tokens=9)]

    (whole, part) = measured([all_know, some_know])["tokens"]

    assert (whole, part) == (Measure(4.0, pytest.approx(2**0.5), 3.0), Measure(3.0, None, 3.0, 1))
    assert rounded(part) == part


def test_no_pass_no_mean_over_passes() -> None:
    """Without a passing trial the mean over passed trials does not exist."""
    assert measured([[line("failed", tokens=3)]])["tokens"] == (Measure(3.0, None, None),)


def test_errored_trials_alone_measure_nothing() -> None:
    """A repeat in which every trial errored has no measures, and no zeros in their place."""
    assert measured([[line("errored", tokens=3)]])["tokens"] == (None,)


def test_an_agent_cannot_overwrite_what_the_harness_measured() -> None:
    """An own measure by the name of a standard one is not that one."""
    found = measured([[line(turns=5, measures={"turns": 1.0, "cost_usd": 0.0, "plan": 2.0})]])

    assert {name: runs[0].mean for name, runs in found.items() if runs[0]} == {
        "turns": 5.0,
        "plan": 2.0,
    }


def test_own_measures_are_measured_alike() -> None:
    """Process measures stand beside the standard ones, null where a trial has none."""
    found = measured([[line(measures={"plan": 1.0}), line(measures={"plan": None, "tool": 0.5})]])

    assert list(found) == ["plan", "tool"]
    assert found["plan"][0].mean == 1.0


def test_faults_are_counted_by_trial() -> None:
    """Faulted trials met a fault; recovered ones passed and overcame all; looped ones circled."""
    repeat = [
        line(faults=2, recovered=2, looped=False),
        line(faults=2, recovered=1, looped=False),
        line("failed", faults=1, recovered=0, looped=True),
        line(faults=0, recovered=0, looped=False),
        line("errored", faults=5, recovered=0, looped=True),
    ]

    counts = counted([repeat, []])

    assert (counts.faulted, counts.recovered, counts.looped) == ((3, None), (1, None), (1, None))


def test_counts_that_nobody_knows_are_none() -> None:
    """Without a single trial that says, there is no count, not even 0."""
    counts = counted([[line()], [line()]])

    assert (counts.faulted, counts.recovered, counts.looped) == (None, None, None)


@pytest.mark.parametrize(
    ("value", "kept"),
    [(1214.6, 1210.0), (0.0021449, 0.00214), (0.0, 0.0), (-5.555, -5.55), (5, 5.0), (None, None)],
)
def test_a_baseline_keeps_three_digits(value: float | None, kept: float | None) -> None:
    """Measures are rounded to 3 significant digits."""
    assert rounded(Measure(value, value, value)) == Measure(kept, kept, kept)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_rounding_twice_is_rounding_once(value: float) -> None:
    """What was rounded stays as it is."""
    once = rounded(Measure(value, None, None))

    assert rounded(once) == once


@given(st.lists(st.floats(0, 1e308), min_size=1, max_size=5))
def test_measures_are_finite_or_unknown(costs: list[float]) -> None:
    """Even absurd costs never make an infinite or undefined measure."""
    (measure,) = measured([[line(cost_usd=cost) for cost in costs]])["cost_usd"]

    assert all(value is None or value < float("inf") for value in measure)

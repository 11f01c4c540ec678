"""Process measures of two sides: over which trials and tasks, and how sure the means are."""

from __future__ import annotations

from typing import Any

import pytest

from ci_gate.decision.process import process_of_sides
from ci_gate.model.process import ProcessResult
from ci_gate.model.run import Measure, SideTask
from ci_gate.process.measures import MEASURES


def task(mean: float, sd: float | None = 0.0, *, n: int = 8, **fields: Any) -> SideTask:
    measure = Measure(mean=mean, sd=sd, mean_passed=mean, known=fields.pop("known", None))
    name = fields.pop("name", "tool_selection")
    return SideTask(outcomes=("+" * n,), process={name: (measure,)})


def only(results: tuple[ProcessResult, ...]) -> ProcessResult:
    (result,) = results
    return result


def test_both_sides_are_shown_over_the_tasks_that_both_know() -> None:
    """In the candidate's mix of tasks, so that a task more or less makes no difference."""
    before = {"a": task(1.0, n=2), "b": task(0.5, n=8), "gone": task(0.0)}
    after = {"a": task(1.0, n=8), "b": task(0.5, n=8), "new": task(0.0)}

    result = only(process_of_sides(before, after))

    assert result.baseline is not None
    assert result.candidate is not None
    assert (result.baseline.mean, result.candidate.mean, result.difference) == (0.75, 0.75, 0.0)
    assert (result.baseline.trials, result.candidate.trials) == (10, 16)
    assert result.candidate.tasks == 2


def test_a_side_alone_is_shown_over_all_its_tasks() -> None:
    """Without a baseline there is no difference, and the trials that know the measure count."""
    result = only(process_of_sides({}, {"a": task(1.0, n=8, known=2), "b": task(0.5, n=6)}))

    assert result.baseline is None
    assert result.difference is None
    assert result.candidate is not None
    assert result.candidate.mean == (2 * 1.0 + 6 * 0.5) / 8
    assert result.candidate.trials == 8


def test_an_interval_is_that_of_students_t() -> None:
    """Of one task: mean +- t s / sqrt(n), by scipy's quantile; a count has no pseudo-task."""
    stats = pytest.importorskip("scipy.stats")
    made = {"a": task(3.0, 0.5, n=16, name="useless_retries")}

    result = only(process_of_sides({}, made))

    assert result.candidate is not None
    reach = stats.t.ppf(0.975, 15) * 0.5 / 16**0.5
    assert result.candidate.interval == pytest.approx((3 - reach, 3 + reach), rel=1e-3)


def test_a_share_that_never_varied_is_not_certain() -> None:
    """Its interval has a width and ends at 1; of a single trial there is none."""
    certain = only(process_of_sides({}, {"a": task(1.0)}))
    single = only(process_of_sides({}, {"a": task(1.0, None, n=1)}))

    assert certain.candidate is not None
    assert certain.candidate.interval is not None
    low, high = certain.candidate.interval
    assert 0.5 < low < 1.0 == high
    assert single.candidate is not None
    assert single.candidate.interval is None


def test_what_nobody_knows_is_left_out() -> None:
    """And what is there comes in the order of the report, whatever the order of the tasks."""
    sides = {"b": task(1.0, name="refusal"), "a": task(1.0)}
    found = [result.measure for result in process_of_sides({}, sides)]
    assert found == [name for name in MEASURES if name in ("refusal", "tool_selection")]
    assert process_of_sides({}, {"a": SideTask(outcomes=("++",))}) == ()


def test_a_baseline_of_three_digits_shows_no_difference() -> None:
    """An unchanged agent is unchanged, although its baseline is rounded."""
    result = only(process_of_sides({"a": task(0.667)}, {"a": task(2 / 3)}))
    assert result.difference == 0.0

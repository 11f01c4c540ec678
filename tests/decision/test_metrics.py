"""The suite metrics as printed, and floors."""

from __future__ import annotations

from typing import Any

import pytest

from ci_gate.decision.compare import compare
from ci_gate.decision.comparison import Comparison
from ci_gate.model.policy import Policy
from ci_gate.model.run import Side
from ci_gate.model.verdict import FloorResult, MetricResult
from tests.notation import side_of


def compared(baseline: Side | str | None, candidate: Side | str, **policy: Any) -> Comparison:
    """Compare two sides or their notations."""
    before = side_of(baseline) if isinstance(baseline, str) else baseline
    after = side_of(candidate) if isinstance(candidate, str) else candidate
    return compare(before, after, Policy(**policy))


def test_a_metric_is_the_mean_of_its_tasks_on_both_sides() -> None:
    """pass^1, pass^4, the plug-in and pass@4 of 6/8 and 8/8, by hand."""
    found = compared("a ++++++-- b ++++++++", "a ++++++-- b ++++++++", metrics=("pass^1", "pass^4"))

    metric = found.metrics["pass^4"]
    assert found.metrics["pass^1"].baseline == (0.75 + 1) / 2
    assert metric.candidate == pytest.approx((15 / 70 + 1) / 2)
    assert metric.candidate_plug_in == pytest.approx((0.75**4 + 1) / 2)
    assert metric.candidate_pass_at_k == 1.0
    assert (metric.difference, metric.n_tasks, metric.excluded) == (0.0, 2, ())


def test_the_difference_is_the_candidates_less_the_baselines_and_in_its_interval() -> None:
    """D is what is printed, and the interval is about it."""
    metric = compared("a ++++++++ b ++++----", "a ++++---- b ++++----").metrics["pass^1"]

    assert metric.difference == pytest.approx(-0.25)
    assert metric.baseline is not None
    assert metric.candidate == metric.baseline - 0.25
    assert metric.interval is not None
    assert metric.interval[0] < -0.25 < metric.interval[1]


def test_tasks_too_shallow_for_a_metric_leave_it_by_name() -> None:
    """A task with fewer than 8 judged trials stays in pass^1 and is named by pass^8."""
    found = compared("a ++++++++ b ++++++++", "a ++++++++ b +++++++!", max_errored_rate=0.5)

    assert found.metrics["pass^8"].excluded == ("b",)
    assert found.metrics["pass^8"].n_tasks == 1
    assert found.metrics["pass^1"].n_tasks == 2
    assert any("pass^8 leaves out 1 task" in text and ": b." in text for text in found.remarks)


def test_a_metric_without_a_task_does_not_exist() -> None:
    """Never min(k, n): null, and the verdict rests on the others."""
    metric = compared("a ++++", "a ++++").metrics["pass^8"]

    assert metric == MetricResult(
        baseline=None,
        candidate=None,
        difference=None,
        interval=None,
        p_value=None,
        p_adjusted=None,
        exact=None,
        detectable_drop=None,
        n_tasks=0,
        excluded=("a",),
    )


def test_repeated_seeds_that_matter_are_estimated_over_distinct_seeds() -> None:
    """Seeds 0-3 always pass and 4-7 never: two trials of one seed are not two seeds."""
    deep = "/".join(["++++----"] * 4)

    found = compared(f"a {deep} b {deep}", "a ++++---- b ++++----", metrics=("pass^4",))

    assert found.method.strata == "task,seed"
    # e_4 of (1, 1, 1, 1, 0, 0, 0, 0) over C(8, 4), not C(16, 4) / C(32, 4).
    assert found.metrics["pass^4"].baseline == pytest.approx(1 / 70)
    assert found.metrics["pass^4"].candidate == pytest.approx(1 / 70)
    assert found.metrics["pass^4"].difference == 0.0


def test_repeated_seeds_that_do_not_matter_are_exchangeable_trials() -> None:
    """Without a seed effect all 16 trials estimate pass^8."""
    found = compared("a ++++++--/--++++++", "a ++++++--", metrics=("pass^8",))

    assert found.method.strata == "task"
    assert found.metrics["pass^8"].baseline == pytest.approx(495 / 12870)


def test_a_passing_run_says_what_it_could_have_seen() -> None:
    """The detectable drop stands beside each metric and shrinks with more tasks."""
    few = " ".join(f"t{i} ++++++--" for i in range(5))
    many = " ".join(f"t{i} ++++++--" for i in range(50))

    drops = [compared(tasks, tasks).metrics["pass^1"].detectable_drop for tasks in (few, many)]

    assert drops[0] is not None
    assert drops[1] is not None
    assert 0 < drops[1] < drops[0] < 1


def floors(candidate: str, **policy: Any) -> list[FloorResult]:
    """Return the floors of a candidate without a baseline."""
    return list(compared(None, candidate, **policy).floors)


def test_a_floor_is_broken_by_its_upper_bound_only() -> None:
    """5/8 lies below .7 and could be chance; 0/8 could not."""
    (kept,) = floors("a +++++---", floors={"pass^1": 0.7})
    (broken,) = floors("a -------- b --------", floors={"pass^1": 0.7})

    assert (kept.candidate, kept.passed) == (0.625, True)
    assert kept.bound is not None
    assert kept.bound > 0.7
    assert (broken.candidate, broken.passed) == (0.0, False)


def test_a_strict_floor_compares_the_estimate() -> None:
    """With `strict_floors` chance is no excuse, and being equal is enough."""
    (below,) = floors("a +++++---", floors={"pass^1": 0.7}, strict_floors=True)
    (equal,) = floors("a +++++---", floors={"pass^1": 0.625}, strict_floors=True)

    assert (below.bound, below.passed) == (0.625, False)
    assert equal.passed


@pytest.mark.parametrize(
    ("candidate", "metric", "floor", "kept"),
    [
        ("a +++++++--- b +++++++--- c +++++++---", "pass^1", 0.7, True),
        ("a +++++++--- b +++++++--- c +++++++---", "pass^1", 0.7000001, False),
        # (1/3 + 2/3 + 0/2) / 3 is a third, which 0.3333333333333333 does not reach.
        ("a +-- b ++- c --", "pass^1", 0.3333333333333333, True),
        ("a +-- b ++- c --", "pass^1", 0.33333333333333337, False),
        ("a ++++- b +++--", "pass^2", 0.45, True),
    ],
)
def test_a_strict_floor_is_held_against_the_exact_estimate(
    candidate: str, metric: str, floor: float, *, kept: bool
) -> None:
    """Counts are compared with the floor as it was written, not with the binary number beside."""
    (found,) = floors(candidate, floors={metric: floor}, strict_floors=True)

    assert found.passed is kept


def test_a_floor_of_one_is_kept_by_a_bound_of_one() -> None:
    """A bound is at most 1, and being equal keeps a floor: nothing can be asked beyond 1."""
    (found,) = floors("a ++++++++ b +++++++-", floors={"pass^1": 1.0})

    assert (found.bound, found.passed) == (1.0, True)


def test_a_metric_says_itself_whether_it_regressed() -> None:
    """The test's answer stands in the verdict, so that nobody decides again by a rounded number."""
    found = compared("a ++++++++ b ++++++++", "a -------- b ++++++++").metrics

    assert {name: metric.regressed for name, metric in found.items()} == {
        name: metric.p_adjusted <= 0.05 for name, metric in found.items() if metric.p_adjusted
    }
    assert any(metric.regressed for metric in found.values())
    assert not any(m.regressed for m in compared("a ++++", "a ++++").metrics.values())


def test_a_floor_covers_new_tasks_and_any_k() -> None:
    """It holds for the candidate's suite as it is, not for what is compared."""
    found = compared("a ++++++++", "a ++++++++ fresh --------", floors={"pass^2": 0.9})

    assert found.floors[0].candidate == 0.5


def test_a_floor_without_deep_tasks_has_not_passed() -> None:
    """What cannot be computed is neither kept nor broken."""
    (floor,) = floors("a ++++", floors={"pass^8": 0.1})

    assert (floor.candidate, floor.bound, floor.passed) == (None, None, False)


@pytest.mark.parametrize(
    ("settings", "bound"),
    [
        ({}, 0.05),
        ({"floors": {"pass^1": 0.1, "pass^8": 0.1}}, 0.15),
        ({"alpha": 0.4, "floors": {"pass^1": 0.1, "pass^8": 0.1}}, 1.0),
        ({"floors": {"pass^1": 0.1}, "strict_floors": True}, None),
    ],
)
def test_the_total_false_alarm_bound_is_said(settings: dict[str, Any], bound: float | None) -> None:
    """Each floor adds an alpha of its own; a strict one has no level at all."""
    found = compared("a ++++++++", "a ++++++++", **settings).method.false_alarm_bound

    assert found == (None if bound is None else pytest.approx(bound))

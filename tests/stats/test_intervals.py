"""Widths: their terms by hand, edge cases, and agreement with the test."""

from __future__ import annotations

from math import comb, sqrt

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from ci_gate.stats.counts import TaskCounts
from ci_gate.stats.intervals import difference_interval, side_upper_bound
from ci_gate.stats.passk import pass_hat_k_by_seed
from ci_gate.stats.suite_null import group_tasks, suite_statistic
from ci_gate.stats.variance import (
    permutation_variance,
    pseudo_variance,
    side_pseudo_variance,
    task_variance,
)


def counts_of(*sides: tuple[int, int, int, int]) -> list[TaskCounts]:
    """Tasks without seeds, from (baseline n, passed, candidate n, passed)."""
    return [
        TaskCounts(
            baseline_n=(nb,), baseline_passed=(cb,), candidate_n=(nc,), candidate_passed=(cc,)
        )
        for nb, cb, nc, cc in sides
    ]


@given(st.integers(1, 12), st.data())
def test_permutation_variance_is_the_hypergeometrics(n: int, data: st.DataObject) -> None:
    """It is the second moment of the difference when the passes are dealt to two equal sides."""
    k, passed = data.draw(st.integers(1, n)), data.draw(st.integers(0, 2 * n))
    expected = sum(
        scipy.stats.hypergeom.pmf(x, 2 * n, passed, n)
        * ((comb(x, k) - comb(passed - x, k)) / comb(n, k)) ** 2
        for x in range(max(0, passed - n), min(n, passed) + 1)
    )
    assert permutation_variance(n, passed, k) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("n", "k"), [(1, 1), (2, 1), (2, 2), (8, 1), (8, 8), (9, 2), (9, 8), (33, 1), (33, 2), (33, 8)]
)
def test_pseudo_task_is_a_share_of_the_largest_variance(n: int, k: int) -> None:
    """The search for the largest variance finds what trying every total finds."""
    largest = max(permutation_variance(n, t, k) for t in range(2 * n + 1))
    if k > 1 or n == 1:
        share = 0.5 if k == 1 else 0.125
        assert pseudo_variance(n, n, k) == pytest.approx(share * largest)
        assert side_pseudo_variance(n, k) == pytest.approx(share * largest / 2)
    else:
        assert pseudo_variance(n, n, k) == 0.5 * (0.25 / (n - 1) + 0.25 / (n - 1))


def test_pass_1_interval_by_hand() -> None:
    """Pass^1 sums the binomial variances and half the largest that one more task could have."""
    found = difference_interval(counts_of((8, 6, 8, 4), (8, 8, 8, 8)), 1)
    assert found is not None
    scatter = 0.75 * 0.25 / 7 + 0.5 * 0.5 / 7
    variance = (scatter + 0.5 * (0.25 / 7 + 0.25 / 7)) / 4
    assert found.difference == -0.125
    assert found.variance == pytest.approx(variance)
    assert found.high == pytest.approx(-0.125 + 1.959964 * sqrt(variance))


def test_single_trials_use_the_permutation_form() -> None:
    """With one trial on a side no rate has a variance, so the test's own is taken."""
    found = difference_interval(counts_of((1, 1, 1, 0), (1, 1, 1, 1)), 1)
    assert found is not None
    # A task that differs scatters by 1 under the null, one that does not by 0; the pseudo-task .5.
    assert found.variance == pytest.approx((1 + 0 + 0.5) / 4)


def test_interval_is_wide_where_one_side_has_a_single_trial() -> None:
    """Deep baseline, one candidate trial: totals between whole numbers are interpolated."""
    third = task_variance(3, 9, 1, 1, 1)
    own = permutation_variance(1, 1, 1) * (1 - 1 / 3) + permutation_variance(1, 2, 1) / 3
    assert third == pytest.approx(0.5 * own + 0.5 * permutation_variance(9, 12, 1))


@given(
    st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), min_size=1, max_size=8),
    st.sampled_from([2, 8]),
)
def test_pass_k_variance_is_the_tests_own(outcomes: list[tuple[int, int]], k: int) -> None:
    """With equal trials, the interval's variance is the null variance of the gate's statistic."""
    tasks = counts_of(*((8, b, 8, c) for b, c in outcomes))
    found = difference_interval(tasks, k)
    groups = group_tasks(tasks, "task")
    suite = suite_statistic(groups, k)
    null = (suite.deviation(groups) * suite.unit) ** 2
    assert found is not None
    assert found.variance * len(tasks) ** 2 == pytest.approx(null + pseudo_variance(8, 8, k))


@pytest.mark.parametrize("k", [1, 8])
@pytest.mark.parametrize("outcome", [(8, 8), (0, 0), (8, 0), (0, 8)])
def test_constant_suites_have_a_width_within_bounds(outcome: tuple[int, int], k: int) -> None:
    """Where nothing scatters the interval has a width, holds the estimate, stays in [-1, 1]."""
    found = difference_interval(counts_of(*[(8, outcome[0], 8, outcome[1])] * 3), k)
    assert found is not None
    assert found.low < found.high
    assert -1 <= found.low <= found.difference <= found.high <= 1


def test_tasks_below_k_do_not_enter() -> None:
    """The estimate and the width are those of the tasks with k trials on both sides."""
    tasks = counts_of((8, 8, 8, 6), (8, 8, 7, 0))
    assert difference_interval(tasks, 8) == difference_interval(tasks[:1], 8)
    assert difference_interval(tasks[1:], 8) is None
    assert difference_interval([], 1) is None


def test_by_seed_takes_the_printed_estimate() -> None:
    """Where seeds matter the interval is round the estimate over distinct seeds."""
    task = TaskCounts(
        baseline_n=(4, 4, 4),
        baseline_passed=(4, 3, 4),
        candidate_n=(1, 1, 1),
        candidate_passed=(1, 0, 1),
    )
    found = difference_interval([task], 2, by_seed=True)
    assert found is not None
    expected = 1 / 3 - pass_hat_k_by_seed((4, 3, 4), (4, 4, 4), 2)
    assert found.difference == pytest.approx(expected)
    assert difference_interval([task], 4, by_seed=True) is None


def test_large_numbers_of_trials_are_no_trouble() -> None:
    """Ten thousand trials a side give the binomial width to a thousandth, by either form."""
    found = difference_interval(counts_of(*[(10_000, 9_000, 10_000, 9_000)] * 50), 2)
    assert found is not None
    by_delta = 2 * (2 * 0.9) ** 2 * 0.9 * 0.1 / 10_000 / 50
    assert found.variance == pytest.approx(by_delta, rel=0.02)


def test_upper_bound_by_hand() -> None:
    """One side: its estimate plus z of its own binomial variances and pseudo-task."""
    bound = side_upper_bound([6, 4], [8, 8], 1, 0.05)
    reach = 1.6448536 * sqrt((0.75 * 0.25 + 0.25 + 0.5 * 0.25) / 7) / 2
    assert bound == pytest.approx(0.625 + reach)


def test_upper_bound_of_pass_k_by_hand() -> None:
    """For pass^k a side's term is half the permutation variance, the other side taken like it."""
    bound = side_upper_bound([6, 7], [8, 8], 2, 0.1)
    scatter = 0.5 * permutation_variance(8, 12, 2) + 0.5 * permutation_variance(8, 14, 2)
    reach = 1.2815516 * sqrt(scatter + side_pseudo_variance(8, 2)) / 2
    assert bound == pytest.approx((15 / 28 + 21 / 28) / 2 + reach)


def test_upper_bound_edges() -> None:
    """It is at most 1, above the estimate even of a dead side, and None without a task."""
    assert side_upper_bound([8], [8], 8, 0.05) == 1.0
    dead = side_upper_bound([0] * 10, [8] * 10, 8, 0.05)
    assert dead is not None
    assert 0 < dead < 0.2
    assert side_upper_bound([4], [4], 8, 0.05) is None


@pytest.mark.parametrize("level", [0.0, 1.0, 1.5])
def test_impossible_levels_are_refused(level: float) -> None:
    """A level is between 0 and 1."""
    with pytest.raises(ValueError, match="between 0 and 1"):
        difference_interval([], 1, level=level)
    with pytest.raises(ValueError, match="between 0 and 1"):
        side_upper_bound([], [], 1, level)


@pytest.mark.calibration
@pytest.mark.parametrize("k", [1, 8])
@pytest.mark.parametrize("baseline_n", [8, 32])
def test_interval_covers(k: int, baseline_n: int) -> None:
    """The true difference, given the tasks, is covered in 93 to 99 of 100 suites."""
    chance = np.random.default_rng([k, baseline_n])
    covered = 0
    for _ in range(1000):
        rates = chance.beta(1.2, 0.6, 20)
        after = np.where(rates > 0.9, 0.9 * rates, rates)
        outcomes = zip(chance.binomial(baseline_n, rates), chance.binomial(8, after), strict=True)
        found = difference_interval(counts_of(*((baseline_n, b, 8, c) for b, c in outcomes)), k)
        assert found is not None
        truth = float(np.mean(after**k - rates**k))
        covered += found.low <= truth <= found.high
    assert 0.93 <= covered / 1000 <= 0.995

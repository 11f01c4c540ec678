"""Changes of ratios: against their definitions, against drawn data, and where nothing is normal."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Sequence

import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from ci_gate.stats.ratios import Change, Moments, Ratio, absolute_change, ratio_of, relative_change

Pairs = Sequence[tuple[float, float]]
AMOUNTS = (False, False)


def moments(pairs: Pairs) -> Moments:
    """Return the moments of trials that are given one by one."""
    return Moments.merged([Moments(n=1, x=x, y=y) for x, y in pairs])


def ratio(tasks: Sequence[Pairs], yes_or_no: tuple[bool, bool] = AMOUNTS) -> Ratio:
    """Return the ratio of tasks that are given trial by trial."""
    found = ratio_of([moments(t) for t in tasks], [len(t) for t in tasks], yes_or_no=yes_or_no)
    assert found is not None
    return found


def means(*tasks: Sequence[float]) -> Ratio:
    """Return the mean over trials as a ratio whose denominator counts them."""
    return ratio([[(x, 1.0) for x in task] for task in tasks])


@given(st.lists(st.tuples(st.integers(-50, 50), st.integers(-9, 9)), min_size=2, max_size=12))
def test_moments_merge_into_those_of_all_trials(pairs: list[tuple[int, int]]) -> None:
    """However trials are grouped into runs, their variance is the textbook's."""
    whole = moments(pairs)
    halves = Moments.merged([moments(pairs[: len(pairs) // 2]), moments(pairs[len(pairs) // 2 :])])

    residuals = [x - 2 * y for x, y in pairs]
    assert halves.spread(2.0) == pytest.approx(statistics.variance(residuals), abs=1e-9)
    assert whole.spread(2.0) == pytest.approx(halves.spread(2.0), abs=1e-9)


def test_a_ratio_of_sums_is_that() -> None:
    """All amounts over all successes, whatever task they were made in."""
    tasks = [[(1.0, 1.0), (3.0, 0.0)], [(5.0, 1.0), (7.0, 1.0)]]

    assert ratio(tasks, (False, True)).value == 16.0 / 3.0


def test_the_variance_is_that_of_the_residuals_within_tasks() -> None:
    """What tasks differ by does not count: they are the same on both sides."""
    found = means([1.0, 3.0], [101.0, 105.0])

    assert found.variance == pytest.approx((2 * 2.0 + 2 * 8.0) / 4**2)


def test_a_single_trial_takes_the_variance_over_all_trials() -> None:
    """One trial a task says nothing of its scatter, and is not taken for certain."""
    found = means([1.0], [3.0], [5.0])

    assert found.variance == pytest.approx(3 * statistics.variance([1, 3, 5]) / 9)
    assert ratio_of([moments([(1.0, 1.0)])], [1], yes_or_no=AMOUNTS) is None


def test_constant_counts_are_not_certain() -> None:
    """Eight of eight loops against none is a strong hint, not a proof without error."""
    assert ratio([[(1.0, 1.0)] * 8], (True, False)).variance == pytest.approx(1 / 8 / 7)
    assert means([2.0] * 8).variance == 0.0


def test_the_degrees_of_freedom_are_satterthwaites() -> None:
    """Equal tasks add theirs up; one task that varies has its own alone."""
    assert means([1.0, 3.0, 5.0], [2.0, 4.0, 6.0]).freedom == pytest.approx(4)
    assert means([1.0, 3.0, 5.0], [2.0, 2.0, 2.0]).freedom == pytest.approx(2)
    assert means([2.0, 2.0]).freedom == math.inf


@pytest.mark.parametrize(("size", "digits"), [(3, 0.02), (6, 1e-3), (40, 1e-4)])
def test_bounds_have_the_quantiles_of_student(size: int, digits: float) -> None:
    """Two samples of equal scatter: the bound of the textbook."""
    sample = [float(i) for i in range(size)]
    before, after = means(sample), means([x + 1 for x in sample])

    change = _known(absolute_change(before, after, alpha=0.05))

    error = math.sqrt(2 * statistics.variance(sample) / size)
    assert (change.high - 1) / error == pytest.approx(
        scipy.stats.t.isf(0.05, 2 * size - 2), rel=digits
    )


def test_rounded_moments_do_not_make_a_negative_variance() -> None:
    """Three digits of a baseline may contradict each other by a little."""
    task = Moments(n=8, x=1.0, y=0.5, xx=1.99, yy=2.0, xy=2.0)

    assert task.spread(1.0) == 0.0


BASELINE = means([4.0, 4.0], [4.0, 4.0])


@pytest.mark.parametrize(
    ("baseline", "candidate", "expected"),
    [
        (BASELINE, means([5.0, 5.0]), (0.25, 0.25, 0.25)),
        (BASELINE, means([0.0, 0.0]), (-1.0, -1.0, -1.0)),
        (means([0.0, 0.0]), means([0.0, 0.0]), (0.0, 0.0, 0.0)),
        (means([0.0, 0.0]), BASELINE, None),
        (ratio([[(1.0, 0.0)] * 2]), BASELINE, None),
        (ratio([[(1.0, 0.0)] * 2]), ratio([[(1.0, 0.0)] * 2]), None),
    ],
)
def test_a_relative_change_needs_something_to_be_relative_to(
    baseline: Ratio, candidate: Ratio, expected: tuple[float, float, float] | None
) -> None:
    """Zero against zero is no change; anything against nothing or the infinite is unknown."""
    change = relative_change(baseline, candidate, alpha=0.05)

    wanted = None if expected is None else pytest.approx(expected)
    assert (None if change is None else (change.value, change.low, change.high)) == wanted


def test_both_sides_scatter_as_much_as_the_one_that_scatters_more() -> None:
    """Eight trials that missed the dear ones do not look cheaper and surer of it at once."""
    dear = means([1.0, 1.0, 1.0, 5.0] * 4)
    cheap = means([1.0] * 4)

    change = _known(relative_change(dear, cheap, alpha=0.05))

    relative = statistics.variance([1.0, 1.0, 1.0, 5.0] * 4) / 2**2
    reach = scipy.stats.t.isf(0.05, dear.freedom * 25 / 17) * math.sqrt(
        relative / 16 + relative / 4
    )
    assert change.value == -0.5
    assert math.log((change.high + 1) / 0.5) == pytest.approx(reach, rel=1e-3)


def test_the_absolute_change_of_an_infinite_ratio_is_unknown() -> None:
    """Infinity less something is no number to hold against a limit."""
    assert absolute_change(BASELINE, ratio([[(1.0, 0.0)] * 2]), alpha=0.05) is None


def test_without_a_success_the_cost_has_a_lower_bound() -> None:
    """No success in 8 says little of a cheap agent, and none in 800 says a lot."""
    baseline = ratio([[(1.0, 1.0), (1.0, 0.0)] * 400], (False, True))
    few = ratio([[(1.0, 0.0)] * 8], (False, True))
    many = ratio([[(1.0, 0.0)] * 800], (False, True))

    low_few = _known(relative_change(baseline, few, alpha=0.05))
    low_many = _known(relative_change(baseline, many, alpha=0.05))

    assert low_few.value == low_many.value == math.inf
    # 8 failures: a rate below 1 - .025^(1/8) = .369 against one half.
    assert low_few.low == pytest.approx(0.5 / 0.369 - 1, abs=0.15)
    assert low_many.low > 90


def _known(change: Change | None) -> Change:
    assert change is not None
    return change


def test_an_enormous_scatter_leaves_the_floats_without_an_error() -> None:
    """A mean of which nothing is known has no upper bound."""
    candidate = Ratio(value=1.0, variance=1e300, freedom=1.0, numerator=1.0, trials=2, dilution=0.5)

    change = _known(relative_change(BASELINE, candidate, alpha=0.05))

    assert (change.low, change.high) == (-1.0, math.inf)


Draw = Callable[[random.Random], list[Pairs]]


def _costs(chance: random.Random) -> list[Pairs]:
    """Twenty tasks of rising difficulty, eight trials each; failing is dearer."""

    def trial(rate: float) -> tuple[float, float]:
        passed = chance.random() < rate
        return chance.lognormvariate(0.0 if passed else 0.5, 0.8), float(passed)

    return [[trial(0.1 + 0.045 * task) for _ in range(8)] for task in range(20)]


def _rare(chance: random.Random) -> list[Pairs]:
    """Twenty tasks in which a trial in fifty goes in circles."""
    return [[(float(chance.random() < 0.02), 1.0) for _ in range(8)] for _ in range(20)]


def _healing(chance: random.Random) -> list[Pairs]:
    """Half of the trials meet a fault, and most of those recover."""

    def trial() -> tuple[float, float]:
        faulted = chance.random() < 0.5
        return float(faulted and chance.random() < 0.85), float(faulted)

    return [[trial() for _ in range(8)] for _ in range(20)]


@pytest.mark.calibration
@pytest.mark.parametrize(
    ("draw", "kinds", "change"),
    [
        (_costs, (False, True), relative_change),
        (_rare, (True, False), absolute_change),
        (_healing, (True, True), absolute_change),
    ],
)
def test_an_unchanged_agent_breaks_a_guard_at_most_as_often_as_alpha(
    draw: Draw, kinds: tuple[bool, bool], change: Callable[..., Change | None]
) -> None:
    """With a limit of 0, the hardest, either bound lies beyond it in at most 5 % of the cases."""
    chance, n = random.Random(20261030), 2000
    found = [
        _known(change(ratio(draw(chance), kinds), ratio(draw(chance), kinds), alpha=0.05))
        for _ in range(n)
    ]

    error = 2 * math.sqrt(0.05 * 0.95 / n)
    assert sum(one.low > 0 for one in found) / n <= 0.05 + error
    assert sum(one.high < 0 for one in found) / n <= 0.05 + error
    assert sum(one.low > 0 for one in found) / n >= 0.01


@pytest.mark.calibration
def test_few_trials_of_skewed_costs_do_not_look_like_a_saving() -> None:
    """Lognormal costs, sigma 1.5, 32 trials against 8: before both sides shared a scatter, .09."""
    chance, n = random.Random(20261030), 500

    def costs(trials: int) -> Ratio:
        return means(*([chance.lognormvariate(0.0, 1.5) for _ in range(trials)] for _ in range(20)))

    found = [_known(relative_change(costs(32), costs(8), alpha=0.05)) for _ in range(n)]

    error = 2 * math.sqrt(0.05 * 0.95 / n)
    assert 0.01 <= sum(one.high < 0 for one in found) / n <= 0.05 + error
    assert sum(one.low > 0 for one in found) / n <= 0.05 + error

"""Differences by seed between two conditions: their interval by hand, and its coverage."""

from __future__ import annotations

import random
from math import sqrt

import pytest

from ci_gate.stats.counts import TaskCounts
from ci_gate.stats.intervals import difference_interval, side_upper_bound
from ci_gate.stats.paired import paired_interval, pass_rate_interval

Z = 1.959963984540054


def test_the_interval_is_that_of_the_paired_differences() -> None:
    """Terms by hand: s^2/n of each task, and the pseudo-task of the unpaired interval."""
    found = paired_interval([[-1.0, 0.0, 0.0, 0.0], [0.0, 0.0]])

    assert found is not None
    # Squares around -1/4 are 3/4, so s^2/n = (3/4)/3/4; pseudo-tasks of 4 and of 2 trials.
    pseudo = (0.25 / 3 + 0.25 / 1) / 2
    assert found.difference == pytest.approx(-0.125)
    assert found.variance == pytest.approx((1 / 16 + pseudo) / 4)
    assert found.low == pytest.approx(-0.125 - Z * sqrt(found.variance))
    assert found.high == pytest.approx(-0.125 + Z * sqrt(found.variance))


def test_a_task_with_one_seed_takes_the_scatter_of_the_others() -> None:
    """Its own cannot be told; without any second seed nothing can."""
    alone = paired_interval([[-1.0], [0.0, -1.0]])

    assert alone is not None
    # s^2 of the other's two seeds is 1/2; half the largest variance of one trial each is 1/2 too.
    assert alone.variance == pytest.approx((0.5 + 0.5 / 2 + (0.5 + 0.25) / 2) / 4)
    assert alone.difference == pytest.approx(-0.75)
    assert paired_interval([[-1.0], [0.0]]) is None
    assert paired_interval([[], []]) is None


def test_equal_conditions_are_not_certain() -> None:
    """Where nothing ever differs the width stays positive, and within what a rate can be."""
    found = paired_interval([[0.0] * 8] * 3)
    total = paired_interval([[-1.0, -1.0]])

    assert found is not None
    assert total is not None
    assert found.low < 0 < found.high
    assert (total.difference, total.low) == (-1.0, -1.0)


def test_a_level_lies_between_0_and_1() -> None:
    """Anything else is a mistake of the caller."""
    with pytest.raises(ValueError, match="between 0 and 1"):
        paired_interval([[0.0, 0.0]], level=1.0)


def test_a_rate_has_a_bound_of_each_side() -> None:
    """The upper bound is the floor's; the lower one is that of the failures."""
    found = pass_rate_interval([7, 8], [8, 8])

    assert found is not None
    assert found[1] == side_upper_bound([7, 8], [8, 8], 1, 0.025)
    assert found[0] == pytest.approx(1 - side_upper_bound([1, 0], [8, 8], 1, 0.025))
    assert found[0] < 15 / 16 < found[1]
    assert pass_rate_interval([0], [0]) is None


@pytest.mark.slow
def test_pairing_covers_and_is_narrower() -> None:
    """Faults that only take passes away: 95 % hold, at two thirds of the unpaired width."""
    draw = random.Random(20261030).random
    held, width, unpaired = 0, 0.0, 0.0
    for _ in range(600):
        rates = [max(draw(), draw()) for _ in range(20)]
        calm = [[draw() < rate for _ in range(8)] for rate in rates]
        faulted = [[passed and draw() < 0.8 for passed in row] for row in calm]
        truth = -0.2 * sum(rates) / len(rates)
        found = paired_interval(
            [
                [float(b) - float(a) for a, b in zip(*rows, strict=True)]
                for rows in zip(calm, faulted, strict=True)
            ]
        )
        assert found is not None
        held += found.low <= truth <= found.high
        width += found.high - found.low
        other = difference_interval(
            [
                TaskCounts(
                    baseline_n=(8,),
                    baseline_passed=(sum(a),),
                    candidate_n=(8,),
                    candidate_passed=(sum(b),),
                )
                for a, b in zip(calm, faulted, strict=True)
            ],
            1,
        )
        assert other is not None
        unpaired += other.high - other.low
    assert 0.93 <= held / 600 <= 0.975
    assert width < 0.7 * unpaired

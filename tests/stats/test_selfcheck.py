"""A rate from few tries, and a task's part of the noise."""

from __future__ import annotations

from itertools import product

import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from ci_gate.stats.selfcheck import exact_interval, run_noise, tries_to_show


@pytest.mark.parametrize(
    ("hits", "tries"), [(0, 1), (1, 1), (0, 4), (1, 4), (3, 4), (4, 4), (7, 30), (50, 1000)]
)
@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_interval_is_clopper_and_pearsons(hits: int, tries: int, level: float) -> None:
    """The bounds are those of scipy's exact interval."""
    expected = scipy.stats.binomtest(hits, tries).proportion_ci(level, method="exact")

    assert exact_interval(hits, tries, level=level) == pytest.approx(tuple(expected), abs=1e-9)


def test_interval_of_a_textbook() -> None:
    """No hit in 10 tries: the upper 95 % bound is 1 - 0.025^(1/10) = 30.85 %."""
    assert exact_interval(0, 10) == pytest.approx((0.0, 0.3085), abs=5e-5)


@given(st.integers(1, 60), st.data())
def test_interval_holds_the_rate_and_mirrors(tries: int, data: st.DataObject) -> None:
    """The rate lies inside, and misses in place of hits give the mirrored interval."""
    hits = data.draw(st.integers(0, tries))

    low, high = exact_interval(hits, tries)

    assert 0 <= low <= hits / tries <= high <= 1
    assert exact_interval(tries - hits, tries) == pytest.approx((1 - high, 1 - low), abs=1e-9)


@pytest.mark.parametrize(("hits", "tries", "level"), [(0, 0, 0.9), (3, 2, 0.9), (-1, 2, 0.9)])
def test_impossible_counts_are_refused(hits: int, tries: int, level: float) -> None:
    """More hits than tries, or no try at all, have no interval."""
    with pytest.raises(ValueError, match="hits of"):
        exact_interval(hits, tries, level=level)


def test_impossible_levels_are_refused() -> None:
    """A level or rate of 0 or 1 is none."""
    with pytest.raises(ValueError, match="between 0 and 1"):
        exact_interval(1, 2, level=1.0)
    with pytest.raises(ValueError, match="between 0 and 1"):
        tries_to_show(0.0)


@pytest.mark.parametrize("rate", [0.01, 0.05, 0.2, 0.975, 0.99])
def test_tries_to_show_are_the_fewest(rate: float) -> None:
    """So many tries without a hit end the interval at the rate, and one fewer does not."""
    tries = tries_to_show(rate)

    assert exact_interval(0, tries)[1] <= rate
    assert tries == 1 or exact_interval(0, tries - 1)[1] > rate


def test_five_per_cent_takes_72_tries() -> None:
    """log(0.025) / log(0.95) is 71.9."""
    assert tries_to_show(0.05) == 72


@pytest.mark.parametrize("strata", ["task", "task,seed"])
def test_noise_is_unbiased(strata) -> None:
    """Over all outcomes of 3 runs x 2 seeds its mean is p (1 - p) / 2, the variance of a run."""
    p, mean = 0.3, 0.0
    for flat in product((0, 1), repeat=6):
        chance = p ** sum(flat) * (1 - p) ** (6 - sum(flat))
        mean += chance * run_noise([flat[:2], flat[2:4], flat[4:]], strata=strata)

    assert mean == pytest.approx(p * (1 - p) / 2)


def test_seeds_that_decide_make_no_noise_within_seeds() -> None:
    """A task that is a function of its seed has noise by task alone."""
    fixed = [[1, 0, 1], [1, 0, 1]]

    assert run_noise(fixed, strata="task,seed") == 0.0
    assert run_noise(fixed, strata="task") > 0.0


@pytest.mark.parametrize("task", [[], [[]], [[None, None]], [[1, None], [None, 1]], [[0], [0]]])
@pytest.mark.parametrize("strata", ["task", "task,seed"])
def test_nothing_that_moves_is_no_noise(task, strata) -> None:
    """Without outcomes, or with constant ones, the noise is 0."""
    assert run_noise(task, strata=strata) == 0.0

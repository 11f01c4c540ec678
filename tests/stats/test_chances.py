"""Chances of tasks from their trials: proper, in order, never certain, and blind to the order."""

from __future__ import annotations

import numpy as np
import pytest

from ci_gate.stats.chances import GRID, fit_chances


def means_of(judged: list[tuple[int, ...]], passed: list[tuple[int, ...]], **options) -> np.ndarray:
    """Expected chance of each task."""
    return fit_chances(judged, passed, **options).tasks @ GRID


@pytest.mark.parametrize("by_seed", [False, True])
def test_every_task_has_a_distribution(by_seed: bool) -> None:
    """Chances of a task, and of a seed given its task and its trials, sum to 1."""
    found = fit_chances([(4,) * 8] * 3, [(4,) * 8, (0,) * 8, (4, 0) * 4], by_seed=by_seed)

    assert found.tasks.sum(axis=1) == pytest.approx(1)
    assert (found.tasks >= 0).all()
    assert (found.within is not None) is by_seed
    if by_seed:
        assert found.given(4, 3)[1:-1].sum(axis=1) == pytest.approx(1)
        assert not found.given(4, 3)[[0, -1]].any()


def test_eight_of_eight_is_not_certainty() -> None:
    """A suite of nothing but passes is expected to fail now and then."""
    (mean, *_) = means_of([(8,)] * 12, [(8,)] * 12, by_seed=False)

    assert 0.98 < mean < 0.9999


def test_more_passes_mean_a_higher_chance_drawn_towards_the_suite() -> None:
    """Chances rise with the passes, and lie between the task's rate and the suite's."""
    passed = [(c,) for c in range(9)]

    means = means_of([(8,)] * 9, passed, by_seed=False)

    assert (np.diff(means) > 0).all()
    assert 0 < means[0] < 0.2
    assert 0.8 < means[8] < 1


def test_known_shape_is_found() -> None:
    """Of many deep tasks the mean of the fit is that of the Beta distribution they came from."""
    chance = np.random.default_rng(1)
    passed = chance.binomial(32, chance.beta(1.2, 0.6, 400))

    means = means_of([(32,)] * 400, [(c,) for c in passed.tolist()], by_seed=False)

    assert means.mean() == pytest.approx(passed.mean() / 32, abs=0.01)


def test_seeds_that_decide_are_told_from_seeds_that_do_not() -> None:
    """After 4 of 4 a seed of a middling task passes again if seeds decide, else half the time."""
    deciding = fit_chances([(4,) * 8] * 20, [(4, 0) * 4] * 20, by_seed=True)
    idle = fit_chances([(4,) * 8] * 20, [(2,) * 8] * 20, by_seed=True)
    half = int(np.abs(GRID - 0.5).argmin())

    assert (deciding.given(4, 4) @ GRID)[half] > 0.95
    assert (idle.given(4, 4) @ GRID)[half] < 0.6


def test_the_order_of_tasks_decides_nothing() -> None:
    """Tasks in another order have the same chances, but for the last bits of sums."""
    passed = [(8,), (3,), (7,), (0,)]

    there = means_of([(8,)] * 4, passed, by_seed=False)
    back = means_of([(8,)] * 4, passed[::-1], by_seed=False)

    assert there == pytest.approx(back[::-1], abs=1e-12)

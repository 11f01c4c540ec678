"""The simulated agents are drawn as they are described, and the same each time."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.simulation.populations import (
    SEED_EFFECTS,
    BetaSuite,
    Design,
    Less,
    SmallSuite,
    broken,
    flaky,
    good_85,
    half,
    shift,
    three,
    unchanged,
    with_seeds,
)

CHANCE = np.random.default_rng


def test_equal_numbers_give_equal_pairs() -> None:
    """Whatever is drawn in between, and on whatever process."""
    design = Design(effect="moderate", baseline_runs=4, day_spread=0.2, gaps=True)
    first = design.draw(3)
    design.draw(4)

    again = design.draw(3)

    assert (again.baseline == first.baseline).all()
    assert (again.candidate == first.candidate).all()
    assert (design.draw(4).baseline != first.baseline).any()


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (unchanged, [1.0, 0.95, 0.5]),
        (Less(0.1), [0.9, 0.85, 0.4]),
        (flaky, [0.9, 0.855, 0.5]),
        (broken, [0.0, 0.95, 0.5]),
        (half, [0.5, 0.95, 0.5]),
        (three, [0.5, 0.45, 0.0]),
        (good_85, [0.85, 0.95, 0.5]),
    ],
)
def test_a_change_does_what_it_says(change: object, expected: list[float]) -> None:
    """Three tasks of two seeds, the best first."""
    tasks = np.array([1.0, 0.95, 0.5])
    rates = np.repeat(tasks[:, None], 2, axis=1)

    changed = change(rates, tasks, CHANCE(1))  # type: ignore[operator]

    assert changed == pytest.approx(np.repeat(np.array(expected)[:, None], 2, axis=1))


def test_a_shift_halves_no_certainty() -> None:
    """Half a logit less: .5 becomes .378, and 1 stays nearly 1."""
    rates = np.array([[0.5], [1.0]])

    assert shift(rates, rates[:, 0], CHANCE(1))[:, 0] == pytest.approx([0.3775, 1.0], abs=1e-3)


@pytest.mark.parametrize("effect", SEED_EFFECTS)
def test_seeds_keep_the_mean_and_differ_by_their_effect(effect: str) -> None:
    """Chances of seeds scatter about the task's own; without an effect not at all."""
    found = with_seeds(np.full(400, 0.5), effect, 50, CHANCE(2))

    spread = {"none": 0.0, "weak": 0.16, "moderate": 0.29, "strong": 0.46, "common": 0.18}
    assert found.mean() == pytest.approx(0.5, abs=0.06)
    assert found.std() == pytest.approx(spread.get(effect, 0.07), abs=0.03)


def test_suites_have_their_shapes() -> None:
    """Half of the small suite always passes; two thirds of the large one's trials do."""
    assert (SmallSuite().draw(CHANCE(3))[:10] == 1).all()
    assert BetaSuite(tasks=4000).draw(CHANCE(3)).mean() == pytest.approx(2 / 3, abs=0.02)


def test_gaps_leave_tasks_with_different_trials() -> None:
    """Five to eight trials against 25 to 32, whatever the outcomes."""
    pair = Design(baseline_runs=4, gaps=True).draw(1)

    assert set((pair.candidate >= 0).sum(axis=(1, 2)).tolist()) == {5, 6, 7, 8}
    assert set((pair.baseline >= 0).sum(axis=(1, 2)).tolist()) == set(range(25, 33))

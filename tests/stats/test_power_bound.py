"""What could have been seen: monotone, honest in simulation, and known beforehand."""

from __future__ import annotations

import numpy as np
import pytest

from ci_gate.stats.counts import TaskCounts
from ci_gate.stats.permutation import joint_test
from ci_gate.stats.power_bound import can_detect_total_failure, detectable_drop


def suite_of(n: int, passed: list[int], candidate_n: int = 8) -> list[TaskCounts]:
    """Tasks without seeds whose candidate is like the baseline."""
    return [
        TaskCounts(
            baseline_n=(n,),
            baseline_passed=(c,),
            candidate_n=(candidate_n,),
            candidate_passed=(c * candidate_n // n,),
        )
        for c in passed
    ]


def test_more_tasks_see_smaller_drops() -> None:
    """Four times the tasks halve the drop, the pseudo-task aside."""
    small = detectable_drop(suite_of(8, [6, 7] * 10), 1, level=0.05)
    large = detectable_drop(suite_of(8, [6, 7] * 40), 1, level=0.05)
    assert small is not None
    assert large is not None
    assert large == pytest.approx(small / 2, rel=0.05)


def test_power_and_level_cost_size() -> None:
    """More power or a stricter level needs a larger drop."""
    tasks = suite_of(8, [6, 7] * 10)
    usual = detectable_drop(tasks, 1, level=0.05)
    assert usual is not None
    assert detectable_drop(tasks, 1, level=0.05, power=0.9) > usual
    assert detectable_drop(tasks, 1, level=0.01) > usual


def test_what_cannot_fall_far_enough_has_no_detectable_drop() -> None:
    """No drop is named without a task, or where the baseline's whole rate would not be seen."""
    assert detectable_drop([], 1, level=0.05) is None
    assert detectable_drop(suite_of(8, [8, 8], candidate_n=4), 8, level=0.05) is None
    assert detectable_drop(suite_of(2, [1], candidate_n=2), 1, level=0.05) is None
    assert detectable_drop(suite_of(8, [0] * 20), 1, level=0.05) is None


def test_pairing_sees_more_where_seeds_decide() -> None:
    """Outcomes that the seed decides scatter less within strata by seed."""
    side = {"baseline_n": (1,) * 8, "candidate_n": (1,) * 8}
    passed = (1, 1, 1, 1, 1, 0, 0, 0)
    tasks = [TaskCounts(baseline_passed=passed, candidate_passed=passed, **side)] * 20
    by_task = detectable_drop(tasks, 1, level=0.05)
    by_seed = detectable_drop(tasks, 1, level=0.05, strata="task,seed")
    assert by_task is not None
    assert by_seed is not None
    assert by_seed < by_task / 2


@pytest.mark.parametrize(("level", "power"), [(0.0, 0.8), (0.05, 1.0)])
def test_impossible_levels_are_refused(level: float, power: float) -> None:
    """Level and power are between 0 and 1."""
    with pytest.raises(ValueError, match="between 0 and 1"):
        detectable_drop([], 1, level=level, power=power)


@pytest.mark.parametrize(
    ("baseline", "planned", "expected"),
    [
        ([(3, 3)], 3, True),
        ([(2, 2)], 2, False),
        ([(8, 0)] * 50, 8, False),
        ([(8, 8)] * 50, 8, True),
        ([(1, 1)] * 4, 1, False),
        ([(1, 1)] * 5, 1, True),
        ([(8, 8)], 0, False),
        ([], 8, False),
    ],
)
@pytest.mark.parametrize("strata", ["task", "task,seed"])
def test_total_failure_known(
    strata, baseline: list[tuple[int, int]], planned: int, expected: bool
) -> None:
    """Three of three lost is 1/20 and seen; two of two is 1/6; the dead cannot fall."""
    found = can_detect_total_failure(
        [(n,) for n, _ in baseline],
        [(c,) for _, c in baseline],
        [(planned,)] * len(baseline),
        strata=strata,
        ks=(1,),
        level=0.05,
        seed=1,
    )
    assert found is expected


@pytest.mark.parametrize("margin", [0.0, 0.2])
@pytest.mark.parametrize("ks", [(1, 8), (1,), ()])
@pytest.mark.parametrize("tasks", [1, 2, 3, 10])
@pytest.mark.parametrize("passed", [1, 4, 8])
def test_total_failure_is_what_the_gate_would_say(
    margin: float, ks: tuple[int, ...], tasks: int, passed: int
) -> None:
    """The shortcut never disagrees with running the test on a candidate that always fails."""
    failing = [
        TaskCounts(
            baseline_n=(32,), baseline_passed=(passed,), candidate_n=(8,), candidate_passed=(0,)
        )
    ] * tasks
    options = {"strata": "task", "ks": ks, "margin": margin, "level": 0.05, "seed": 1}
    found = can_detect_total_failure(
        [(32,)] * tasks, [(passed,)] * tasks, [(8,)] * tasks, **options
    )
    assert found is (joint_test(failing, **options).p_value <= 0.05)


@pytest.mark.calibration
@pytest.mark.parametrize(("baseline_n", "tasks"), [(8, 50), (32, 50), (8, 20)])
def test_detectable_drop_is_seen_with_its_power(baseline_n: int, tasks: int) -> None:
    """A shift of all tasks by the detectable drop is blocked in about 80 of 100 runs."""
    chance = np.random.default_rng([baseline_n, tasks])
    blocked = 0
    for _ in range(200):
        rates = chance.beta(1.2, 0.6, tasks)
        unchanged = _counts(chance, rates, rates, baseline_n)
        drop = detectable_drop(unchanged, 1, level=0.05)
        assert drop is not None
        after = _shifted_by(rates, drop)
        changed = _counts(chance, rates, after, baseline_n)
        blocked += joint_test(changed, strata="task", level=0.05, seed=1).p_value <= 0.05
    assert 0.7 <= blocked / 200 <= 0.92


def _counts(
    chance: np.random.Generator, before: np.ndarray, after: np.ndarray, baseline_n: int
) -> list[TaskCounts]:
    outcomes = zip(
        chance.binomial(baseline_n, before).tolist(),
        chance.binomial(8, after).tolist(),
        strict=True,
    )
    return [
        TaskCounts(
            baseline_n=(baseline_n,),
            baseline_passed=(b,),
            candidate_n=(8,),
            candidate_passed=(c,),
        )
        for b, c in outcomes
    ]


def _shifted_by(rates: np.ndarray, drop: float) -> np.ndarray:
    """Shift all logits alike until the mean has fallen by ``drop``."""
    odds = rates / np.maximum(1 - rates, 1e-12)
    low, high = 0.0, 30.0
    for _ in range(60):
        middle = (low + high) / 2
        moved = odds * np.exp(-middle) / (1 + odds * np.exp(-middle))
        low, high = (middle, high) if rates.mean() - moved.mean() < drop else (low, middle)
    return moved

"""What could have been seen: honest in simulation, monotone, and known beforehand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from ci_gate.stats.counts import Strata, TaskCounts
from ci_gate.stats.permutation import joint_test
from ci_gate.stats.power_bound import can_detect_total_failure, detectable_drop
from tests.speeds import slow


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
    """Four times the tasks halve the drop, or a little more: the step between outcomes shrinks."""
    small = detectable_drop(suite_of(8, [6, 7] * 40), 1, level=0.05)
    large = detectable_drop(suite_of(8, [6, 7] * 160), 1, level=0.05)
    assert small is not None
    assert large is not None
    assert small / 2.3 < large < small / 2


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


@pytest.mark.parametrize("strata", ["task", "task,seed"])
def test_metrics_name_one_and_the_same_change(strata: Strata) -> None:
    """Where all trials pass, pass^8 falls by what is left of eight trials that each fail alike."""
    tasks = [
        TaskCounts(
            baseline_n=(4,) * 8,
            baseline_passed=(4,) * 8,
            candidate_n=(1,) * 8,
            candidate_passed=(1,) * 8,
        )
    ] * 30
    first = detectable_drop(tasks, 1, level=0.05, strata=strata)
    eighth = detectable_drop(tasks, 8, level=0.05, strata=strata)
    assert first is not None
    assert eighth == pytest.approx(1 - (1 - first) ** 8)


def test_metrics_that_the_gate_watches_and_margins_count() -> None:
    """What pass^8 alone sees is larger for pass^1; an accepted drop comes on top."""
    tasks = suite_of(8, [6, 7] * 20)
    usual = detectable_drop(tasks, 1, level=0.05)
    blunt = detectable_drop(tasks, 1, level=0.05, ks=(8,))
    accepting = detectable_drop(tasks, 1, level=0.05, margin=0.1)
    assert usual is not None
    assert blunt is not None
    assert accepting is not None
    assert blunt > usual
    assert accepting > usual + 0.1


def test_the_order_of_tasks_and_seeds_says_nothing() -> None:
    """Equal counts in another order name the same drop, to the last bit."""
    chance = np.random.default_rng(8)
    tasks = seeded(chance, 2.0).pair(chance)
    turned = [
        TaskCounts(
            baseline_n=task.baseline_n[::-1],
            baseline_passed=task.baseline_passed[::-1],
            candidate_n=task.candidate_n[::-1],
            candidate_passed=task.candidate_passed[::-1],
        )
        for task in reversed(tasks)
    ]
    drops = {detectable_drop(each, 8, level=0.05, strata="task,seed") for each in (tasks, turned)}
    assert len(drops) == 1
    assert None not in drops


@dataclass(frozen=True)
class World:
    """Rates of pass, tasks x seeds (one column without seeds), and the trials on each."""

    rates: np.ndarray
    baseline_n: int
    candidate_n: int

    @property
    def strata(self) -> Strata:
        """Seeds are strata where there are any."""
        return "task" if self.rates.shape[1] == 1 else "task,seed"

    def rate(self, k: int) -> float:
        """True pass^k of the suite, for 1 and for the candidate's 8 trials."""
        rates = self.rates if k == 1 else np.prod(self.rates**self.candidate_n, axis=1)
        return float(rates.mean())

    def pair(self, chance: np.random.Generator, *, fails: float = 0.0) -> list[TaskCounts]:
        """Both sides; each of the candidate's passes fails with the chance ``fails``."""
        before = chance.binomial(self.baseline_n, self.rates).tolist()
        after = chance.binomial(self.candidate_n, self.rates * (1 - fails)).tolist()
        seeds = self.rates.shape[1]
        return [
            TaskCounts(
                baseline_n=(self.baseline_n,) * seeds,
                baseline_passed=b,
                candidate_n=(self.candidate_n,) * seeds,
                candidate_passed=c,
            )
            for b, c in zip(before, after, strict=True)
        ]


def exchangeable(rates: np.ndarray, baseline_n: int) -> World:
    """Trials whose seed does not matter, the candidate's eight to a task."""
    return World(rates[:, None], baseline_n, 8)


def deterministic(chance: np.random.Generator, tasks: int) -> World:
    """An agent that is a function of its seed, run once on each side."""
    passes = chance.random((tasks, 8)) < chance.beta(4, 1, (tasks, 1))
    return World(passes.astype(float), 1, 1)


def seeded(chance: np.random.Generator, weight: float) -> World:
    """Eight seeds to a task, 4 repeats against 1; seeds differ more the lighter they weigh."""
    rates = chance.beta(1.2, 0.6, (50, 1)).clip(1e-6, 1 - 1e-6)
    return World(chance.beta(weight * rates, weight * (1 - rates), (50, 8)), 4, 1)


def half_perfect(chance: np.random.Generator) -> World:
    """20 tasks, half of which always pass."""
    return exchangeable(np.concatenate([np.ones(10), chance.beta(4, 2, 10)]), 8)


WORLDS: dict[str, Callable[[np.random.Generator], World]] = {
    "deterministic, 24 tasks": lambda chance: deterministic(chance, 24),
    "deterministic, 50 tasks": lambda chance: deterministic(chance, 50),
    "8 against 8": lambda chance: exchangeable(chance.beta(1.2, 0.6, 50), 8),
    "8 against 32": lambda chance: exchangeable(chance.beta(1.2, 0.6, 50), 32),
    "moderate seeds": lambda chance: seeded(chance, 2.0),
    "strong seeds": lambda chance: seeded(chance, 0.2),
    "20 tasks": lambda chance: exchangeable(chance.beta(1.2, 0.6, 20), 8),
    "20 tasks, half perfect": half_perfect,
    "all pass": lambda _: exchangeable(np.ones(50), 8),
    "all pass, 20 tasks": lambda _: exchangeable(np.ones(20), 8),
    "all pass, 8 against 32": lambda _: exchangeable(np.ones(50), 32),
    "all pass, by seed": lambda _: World(np.ones((50, 8)), 4, 1),
}


def measured_power(name: str, k: int, *, ks: tuple[int, ...] = (1, 8), repeats: int) -> float:
    """How often the gate blocks the drop that was named for an unchanged pair of the same world."""
    chance = np.random.default_rng([*name.encode(), k])
    blocked = 0
    for _ in range(repeats):
        world = WORLDS[name](chance)
        drop = detectable_drop(world.pair(chance), k, level=0.05, strata=world.strata, ks=ks)
        assert drop is not None
        fails = 1 - max(0.0, 1 - drop / world.rate(k)) ** (1 / k)
        changed = world.pair(chance, fails=fails)
        test = joint_test(
            changed, strata=world.strata, ks=ks, level=0.05, seed=1, max_draws=1 << 14
        )
        blocked += test.p_value <= 0.05
    return blocked / repeats


@pytest.mark.parametrize("name", [*slow("deterministic, 24 tasks"), "all pass, 20 tasks"])
def test_the_drop_that_is_named_is_seen(name: str) -> None:
    """About 80 of 100, three standard errors of 80 runs allowed."""
    assert 0.66 <= measured_power(name, 1, repeats=80) <= 0.94


@pytest.mark.calibration
@pytest.mark.parametrize("k", [1, 8])
@pytest.mark.parametrize("name", WORLDS)
def test_detectable_drop_is_seen_with_its_power(name: str, k: int) -> None:
    """The drop of either metric is blocked in 75 to 92 of 100 runs, whatever seeds decide."""
    assert 0.75 <= measured_power(name, k, repeats=400) <= 0.92


@pytest.mark.calibration
@pytest.mark.parametrize("ks", [(1,), (1, 2), (1, 4, 8)])
@pytest.mark.parametrize("name", ["deterministic, 24 tasks", "8 against 8", "strong seeds"])
def test_other_metrics_are_seen_with_their_power(name: str, ks: tuple[int, ...]) -> None:
    """So is the drop of pass^1 where the gate looks at fewer or more metrics."""
    assert 0.73 <= measured_power(name, 1, ks=ks, repeats=400) <= 0.92

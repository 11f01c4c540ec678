"""What a plan would see: right in simulation, monotone, the same again, honest about its error."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from ci_gate.stats.chances import GRID
from ci_gate.stats.counts import Strata, TaskCounts
from ci_gate.stats.permutation import joint_test
from ci_gate.stats.power import (
    Change,
    Detection,
    Gate,
    KnownSuite,
    Plan,
    changed_chances,
    detectable,
    detection,
)
from ci_gate.stats.seed_effect import choose_strata

# Simulations of many checks: seconds.
pytestmark = pytest.mark.slow


def suite_of(
    tasks: int, repeats: int, *, by_seed: bool = False, number: int = 1, seeds: int = 8
) -> KnownSuite:
    """A baseline drawn from Beta(1.2, 0.6); with ``by_seed`` every seed has its own chance."""
    chance = np.random.default_rng([tasks, repeats, number])
    rates = chance.beta(1.2, 0.6, (tasks, 1)).clip(0.001, 0.999).repeat(seeds, axis=1)
    if by_seed:
        rates = chance.beta(rates, 1 - rates)
    passed = chance.binomial(repeats, rates)
    return KnownSuite(
        judged=((repeats,) * seeds,) * tasks,
        passed=tuple(map(tuple, passed.tolist())),
        runs=repeats,
        by_seed=by_seed,
    )


def gate_of(strata: Strata = "task", **fields: object) -> Gate:
    """The default gate."""
    return Gate(**({"level": 0.05, "ks": (1, 8), "strata": strata, "seed": 7} | fields))


def seen(suite: KnownSuite, change: Change, *, trials: int = 8, runs: int = 0, **more) -> Detection:
    """Detection by a plan of so many trials of every task."""
    plan = Plan(trials=(trials,) * len(suite.judged), runs=runs or suite.runs)
    strata: Strata = "task,seed" if suite.by_seed else "task"
    found = detection(suite, plan, change, gate_of(strata), most_repeats=1024, **more)
    assert found is not None
    return found


@pytest.mark.parametrize("by_seed", [False, True])
def test_a_shift_drops_the_suite_as_far_as_it_says(by_seed: bool) -> None:
    """The mean of all chances falls by the drop, and no chance rises."""
    suite = suite_of(20, 4, by_seed=by_seed)

    changed = changed_chances(suite, Change(shape="shift", drop=0.05))

    assert changed is not None
    assert (suite.weights * (suite.own - changed)).sum() == pytest.approx(0.05)
    assert (changed <= suite.own).all()


def test_a_suite_cannot_fall_below_nothing() -> None:
    """A drop beyond the suite's pass^1 has no chance of detection."""
    suite = suite_of(10, 1)
    plan = Plan(trials=(8,) * 10, runs=1)

    assert detection(suite, plan, Change(shape="shift", drop=0.99), gate_of()) is None
    assert 0 < suite.largest_shift <= suite.pass_1
    assert changed_chances(suite, Change(shape="shift", drop=suite.largest_shift)) is not None


def test_larger_drops_and_larger_plans_see_more() -> None:
    """Detection rises with the drop, with the trials and with the baseline's depth."""
    suite = suite_of(20, 1)
    by_drop = [seen(suite, Change(shape="shift", drop=d)).share for d in (0.03, 0.08, 0.15)]
    change = Change(shape="shift", drop=0.08)
    by_plan = [
        seen(suite, change, trials=n, runs=r).share for n, r in ((8, 1), (8, 4), (16, 4), (32, 4))
    ]

    for shares in (by_drop, by_plan):
        assert all(less < more for less, more in pairwise(shares))


def test_an_unchanged_agent_is_blocked_as_rarely_as_alpha_says() -> None:
    """Without a change the share is at most the level and its error."""
    found = seen(suite_of(30, 4), Change(shape="none"))

    assert found.drop == 0
    assert found.share <= 0.05 + 1.5 * found.error


def test_a_broken_task_is_seen() -> None:
    """The best task falling from nearly 1 to 0 is blocked all but always, and costs 1/T."""
    found = seen(suite_of(20, 4), Change(shape="broken"))

    assert found.share > 0.99
    assert found.drop == pytest.approx(1 / 20, rel=0.05)


def test_flaky_touches_good_tasks_alone() -> None:
    """Chances of 0.9 and less stay, the others lose a tenth."""
    suite = suite_of(5, 1)

    changed = changed_chances(suite, Change(shape="flaky"))

    assert changed is not None
    good = suite.own > 0.9
    assert changed[good] == pytest.approx(0.9 * suite.own[good])
    assert (changed[~good] == suite.own[~good]).all()


def test_the_same_question_has_the_same_answer_in_any_order_of_tasks() -> None:
    """Draws belong to the content of the tasks."""
    suite = suite_of(12, 4)
    back = KnownSuite(judged=suite.judged[::-1], passed=suite.passed[::-1], runs=4, by_seed=False)
    change = Change(shape="shift", drop=0.1)

    assert seen(suite, change) == seen(suite, change) == seen(back, change)


def test_repeats_double_until_the_error_is_small() -> None:
    """The stated error is two standard errors, is never 0, and is what ends the simulation."""
    suite, plan = suite_of(20, 1), Plan(trials=(8,) * 20, runs=1)
    change = Change(shape="shift", drop=0.1)

    rough = detection(suite, plan, change, gate_of(), most_error=0.05)
    sharp = detection(suite, plan, change, gate_of(), most_error=0.02)

    assert rough is not None
    assert sharp is not None
    assert (rough.repeats, rough.error <= 0.05) == (1024, True)
    assert sharp.repeats > 1024
    assert sharp.error <= 0.02
    assert Detection(share=1.0, repeats=1024, drop=0.1).error > 0


def test_the_smallest_drop_is_where_detection_reaches_the_power() -> None:
    """Between what is seen too rarely and often enough it is interpolated; too large is None."""
    assert detectable(lambda drop: min(1, 2 * drop), 0.8, 1.0) == pytest.approx(0.4, abs=0.01)
    assert detectable(lambda drop: drop / 2, 0.8, 1.0) is None
    assert detectable(lambda drop: None, 0.8, 1.0) is None


def test_a_suite_without_trials_is_refused() -> None:
    """There is nothing to draw chances from."""
    for judged, passed in (((), ()), (((0,),), ((0,),))):
        with pytest.raises(ValueError, match="judged trial"):
            KnownSuite(judged=judged, passed=passed, runs=1, by_seed=False)


def brute(suite: KnownSuite, shift: float, repeats: int) -> float:
    """Detection by the gate's whole decision, with numpy's chance.

    All that it shares with the simulation are the chances of the tasks.
    """
    chance = np.random.default_rng(11)
    c = np.array([suite.passed[t] for t in suite.order])
    blocked = 0
    for _ in range(repeats):
        rates = np.array([chance.choice(GRID, p=weights) for weights in suite.chances.tasks])
        after = chance.binomial(1, _shifted(rates, shift)[:, None].repeat(8, axis=1))
        runs = [chance.permuted(_runs_of(task, suite.runs), axis=0) for task in c]
        choice = choose_strata(
            [run.tolist() for run in runs], [[run] for run in after.tolist()], seeded=True
        )
        tasks = [
            TaskCounts.of_outcomes(b.tolist(), [a])
            for b, a in zip(runs, after.tolist(), strict=True)
        ]
        test = joint_test(tasks, strata=choice.strata, level=0.05, seed=1, max_draws=1 << 16)
        blocked += test.p_value <= 0.05
    return blocked / repeats


def _runs_of(passed: np.ndarray, runs: int) -> np.ndarray:
    """Outcomes by run and seed that add up to the passes of each seed."""
    return (np.arange(runs)[:, None] < passed[None, :]).astype(int)


@pytest.mark.calibration
@pytest.mark.parametrize(("tasks", "repeats", "drop"), [(20, 1, 0.1), (50, 4, 0.05)])
def test_detection_is_that_of_the_real_decision(tasks: int, repeats: int, drop: float) -> None:
    """Brute simulation with the real test agrees within 2 points and its own noise."""
    suite = suite_of(tasks, repeats)
    found = detection(
        suite,
        Plan(trials=(8,) * tasks, runs=repeats),
        Change(shape="shift", drop=drop),
        gate_of(),
        most_error=0.015,
    )
    assert found is not None
    shift = _shift_of(suite, drop)

    share = brute(suite, shift, 2000)

    noise = 2 * np.sqrt(share * (1 - share) / 2000)
    assert abs(found.share - share) <= 0.02 + noise


def _shifted(rates: np.ndarray, shift: float) -> np.ndarray:
    return rates * np.exp(-shift) / (1 - rates + rates * np.exp(-shift))


def _shift_of(suite: KnownSuite, drop: float) -> float:
    """The logit shift with that drop, by bisection."""
    weights = suite.chances.tasks.mean(axis=0)
    low, high = 0.0, 20.0
    for _ in range(40):
        middle = (low + high) / 2
        enough = weights @ (GRID - _shifted(GRID, middle)) >= drop
        low, high = (low, middle) if enough else (middle, high)
    return high

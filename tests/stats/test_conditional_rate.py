"""False alarms of one baseline: as often as the test itself gives them, more where it was lucky."""

from __future__ import annotations

from functools import cache
from math import sqrt

import numpy as np
import pytest

from ci_gate.stats.chances import GRID, fit_chances
from ci_gate.stats.conditional_rate import conditional_rate, mending_runs
from ci_gate.stats.counts import Strata, TaskCounts
from ci_gate.stats.permutation import joint_test
from ci_gate.stats.power import Gate, KnownSuite

LUCKY = (8, 8, *[4] * 8)
"""Passes of ten tasks: two passed all of their 8 trials, where the others pass half."""
CALM = (8, 7, 7, 6, 6, 5, 5, 4, 3, 2)
LIMIT = 0.1


def gate(strata: Strata = "task", ks: tuple[int, ...] = (1, 8)) -> Gate:
    """The gate's test at .05."""
    return Gate(level=0.05, ks=ks, strata=strata, seed=1)


def suite_of(passed: tuple[int, ...]) -> KnownSuite:
    """Tasks with so many passes on 8 seeds, run once."""
    return KnownSuite(
        judged=((1,) * 8,) * len(passed),
        passed=tuple(tuple(int(i < c) for i in range(8)) for c in passed),
        runs=1,
        by_seed=False,
    )


def brute_force(passed: tuple[int, ...], repeats: int) -> float:
    """Draw chances and candidates outright, and put each to the test itself."""
    chance = np.random.default_rng(11)
    chances = fit_chances([(8,)] * len(passed), [(c,) for c in passed], by_seed=False).tasks
    rates = np.stack([chance.choice(GRID, repeats, p=row) for row in chances], axis=1)
    pairs = (sorted(zip(passed, row, strict=True)) for row in chance.binomial(8, rates).tolist())
    return sum(is_red(tuple(pair)) for pair in pairs) / repeats


@cache
def is_red(pairs: tuple[tuple[int, int], ...]) -> bool:
    """Judge tasks with so many passes of 8 on each side."""
    tasks = [
        TaskCounts(baseline_n=(8,), baseline_passed=(b,), candidate_n=(8,), candidate_passed=(c,))
        for b, c in pairs
    ]
    test = joint_test(tasks, strata="task", level=0.05, seed=1, max_draws=1 << 14)
    return test.p_value <= 0.05


@pytest.mark.calibration
@pytest.mark.parametrize("passed", [LUCKY, CALM], ids=["lucky", "calm"])
def test_the_rate_is_that_of_the_test_itself(passed: tuple[int, ...]) -> None:
    """Candidates drawn and tested outright are red as often, within two standard errors."""
    repeats = 2000

    found = conditional_rate(suite_of(passed), (8,) * 10, gate(), limit=LIMIT)
    expected = brute_force(passed, repeats)

    error = 2 * sqrt(expected * (1 - expected) / repeats)
    assert found.share == pytest.approx(expected, abs=sqrt(error**2 + found.error**2))


@pytest.mark.slow
def test_luck_is_held_against_the_next_runs_and_one_more_run_mends_it() -> None:
    """Tasks that stand out by luck block an unchanged agent; their second run shows it."""
    lucky = suite_of(LUCKY)

    found = conditional_rate(lucky, (8,) * 10, gate(), limit=LIMIT)

    assert 0.15 < found.share < 0.25
    assert mending_runs(lucky, (8,) * 10, gate(), limit=LIMIT) == 2


def test_a_baseline_without_luck_holds_the_level() -> None:
    """Where outcomes are what the suite as a whole makes likely, the rate is at most alpha."""
    found = conditional_rate(suite_of(CALM), (8,) * 10, gate(ks=(1,)), limit=LIMIT)

    assert found.share < 0.05


@pytest.mark.slow
def test_hard_seeds_in_front_are_seen_and_strata_by_seed_are_safe_from_them() -> None:
    """A check that runs the first 8 of 32 seeds, the hard ones, is no sample of the baseline's."""
    chance = np.random.default_rng(3)
    rates = np.repeat([0.6, 0.85], [8, 24])
    suite = KnownSuite(
        judged=((4,) * 32,) * 20,
        passed=tuple(map(tuple, chance.binomial(4, rates, (20, 32)).tolist())),
        runs=4,
        by_seed=True,
    )

    pooled = conditional_rate(suite, (8,) * 20, gate(ks=(1,)), limit=LIMIT)
    paired = conditional_rate(suite, (8,) * 20, gate("task,seed", ks=(1,)), limit=LIMIT)

    assert pooled.share > 0.1
    assert paired.share < 0.05
    assert mending_runs(suite, (8,) * 20, gate(ks=(1,)), limit=LIMIT) is None

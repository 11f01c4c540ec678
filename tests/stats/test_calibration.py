"""The gate's level and power by simulation, with fixed seeds. Full tables: benchmarks."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest

from ci_gate.stats.counts import Strata, TaskCounts
from ci_gate.stats.permutation import joint_test
from ci_gate.stats.run_effect import run_effect
from ci_gate.stats.seed_effect import choose_strata

pytestmark = pytest.mark.calibration

REPEATS = 400


def judged_p(tasks: list[TaskCounts], strata: Strata) -> float:
    """The gate's p-value from the first draws alone, which is precise enough here."""
    return joint_test(tasks, strata=strata, level=0.05, seed=1, max_draws=1 << 14).p_value


def blocked_share(
    strata: Strata, *, seed_weight: float, drop: float = 0.0, repeats: int = REPEATS
) -> float:
    """How often 20 tasks, 8 x 4 against 8, are red; seeds differ more the lighter they weigh."""
    chance = np.random.default_rng([len(strata), round(10 * seed_weight)])
    blocked = 0
    for _ in range(repeats):
        rates = chance.beta(2, 1, (20, 1)).clip(1e-6, 1 - 1e-6)
        by_seed = chance.beta(seed_weight * rates, seed_weight * (1 - rates), (20, 8))
        after = np.maximum(by_seed - drop, 0)
        tasks = [
            TaskCounts(
                baseline_n=(4,) * 8, baseline_passed=b, candidate_n=(1,) * 8, candidate_passed=c
            )
            for b, c in zip(
                chance.binomial(4, by_seed).tolist(),
                chance.binomial(1, after).tolist(),
                strict=True,
            )
        ]
        blocked += judged_p(tasks, strata) <= 0.05
    return blocked / repeats


@pytest.mark.parametrize(
    ("strata", "seed_weight"), [("task", 1e6), ("task,seed", 1e6), ("task,seed", 0.5)]
)
def test_level_holds_over_all_claims(strata: Strata, seed_weight: float) -> None:
    """An unchanged agent is blocked in at most 5 of 100, three standard errors allowed."""
    assert blocked_share(strata, seed_weight=seed_weight) <= 0.05 + 3 * sqrt(0.05 * 0.95 / REPEATS)


def test_pairing_sees_what_seeds_hide() -> None:
    """Where seeds decide, strata by seed find a drop of .1 that strata by task mostly miss."""
    paired = blocked_share("task,seed", seed_weight=0.5, drop=0.1, repeats=200)
    unpaired = blocked_share("task", seed_weight=0.5, drop=0.1, repeats=200)
    assert paired > unpaired + 0.1


@pytest.mark.parametrize("true_drop", [0.0, 0.1])
def test_margin_holds_its_level_at_the_margin(true_drop: float) -> None:
    """A suite that drops by no more than the margin is blocked in at most 5 of 100."""
    chance = np.random.default_rng([3, round(100 * true_drop)])
    blocked = 0
    for _ in range(REPEATS):
        rates = chance.uniform(0.3, 0.9, 30)
        tasks = [
            TaskCounts(
                baseline_n=(8,), baseline_passed=(b,), candidate_n=(8,), candidate_passed=(c,)
            )
            for b, c in zip(
                chance.binomial(8, rates).tolist(),
                chance.binomial(8, rates - true_drop).tolist(),
                strict=True,
            )
        ]
        test = joint_test(
            tasks, strata="task", ks=(1,), margin=0.1, level=0.05, seed=1, max_draws=1 << 14
        )
        blocked += test.families[1].p_value <= 0.05
    assert blocked / REPEATS <= 0.05 + 3 * sqrt(0.05 * 0.95 / REPEATS)


def test_bad_days_are_shrunk_away() -> None:
    """Runs that shift by .3 logit block an unchanged agent, and far less once phi is applied."""
    chance = np.random.default_rng(4)
    plain = shrunk = 0
    for _ in range(200):
        odds = 1 / (1 / chance.beta(1.2, 0.6, 50) - 1 + 1e-9)
        days = np.exp(chance.normal(0, 0.3, 9))
        rates = (odds * days[:, None] / (1 + odds * days[:, None]))[:, :, None]
        runs = (chance.random((9, 50, 8)) < rates).astype(int)
        baseline, candidate = runs[:8].transpose(1, 0, 2).tolist(), runs[8][:, None, :].tolist()
        strata = choose_strata(baseline, candidate).strata
        tasks = [TaskCounts.of_outcomes(b, c) for b, c in zip(baseline, candidate, strict=True)]
        phi = run_effect(baseline, strata=strata).correction
        options = {"strata": strata, "level": 0.05, "seed": 1, "max_draws": 1 << 14}
        plain += joint_test(tasks, **options).p_value <= 0.05
        shrunk += joint_test(tasks, phi=phi, **options).p_value <= 0.05
    assert plain / 200 > 0.12
    assert shrunk / 200 < 0.12

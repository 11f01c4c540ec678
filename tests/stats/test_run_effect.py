"""Scatter between whole runs: by hand, its mean, and when it is acted upon."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
import scipy

from ci_gate.stats.run_effect import RunEffect, run_effect

TWO_RUNS = [[[1, 1, 1, 1], [0, 1, 0, 0]], [[1, 0, 1, 1], [0, 0, 1, 0]]]


def test_phi_by_hand() -> None:
    """Complete runs give sum (S_r - S)^2 / (R V0), with V0 of the pooled counts."""
    found = run_effect(TWO_RUNS, strata="task")
    means = [7 / 8, 2 / 8]
    v0 = sum(c / 8 * (1 - c / 8) * (8 - 4) / (7 * 4) for c in (5, 4)) / 2**2
    mean = sum(means) / 2
    phi = sum((s - mean) ** 2 for s in means) / (2 * v0)
    assert found.phi == pytest.approx(phi)
    assert found.p_value == pytest.approx(scipy.stats.chi2.sf(phi, 1))


def test_phi_by_seed_by_hand() -> None:
    """Strata by seed give V0 = sum (c/R)(1 - c/R) / (n T)^2 over the seeds."""
    found = run_effect(TWO_RUNS, strata="task,seed")
    # Of the 8 seeds of both tasks, all but two were passed once in two runs.
    passed = [a + b for first, second in TWO_RUNS for a, b in zip(first, second, strict=True)]
    v0 = sum(c / 2 * (1 - c / 2) for c in passed) / (4 * 2) ** 2
    mean = (7 / 8 + 2 / 8) / 2
    phi = ((7 / 8 - mean) ** 2 + (2 / 8 - mean) ** 2) / (2 * v0)
    assert found.phi == pytest.approx(phi)


@pytest.mark.parametrize("strata", ["task", "task,seed"])
def test_phi_has_mean_one_with_gaps(strata) -> None:
    """Exchangeable runs have mean phi 1, errored trials or not, within 4 standard errors."""
    chance = np.random.default_rng(8)
    rates = chance.beta(1.2, 0.6, (20, 1, 1))
    found = []
    for _ in range(120):
        suite = np.where(
            chance.random((20, 4, 8)) < 0.95, chance.random((20, 4, 8)) < rates, -1
        ).tolist()
        outcomes = [[[None if x < 0 else x for x in run] for run in task] for task in suite]
        found.append(run_effect(outcomes, strata=strata).phi)
    assert np.mean(found) == pytest.approx(1, abs=4 * sqrt(2 / 3 / 120))


@pytest.mark.parametrize("tasks", [[], [[[1, 0]]], [[[1, 1], [1, 1]]], [[[1, 0], [None, None]]]])
def test_nothing_to_compare(tasks) -> None:
    """No tasks, one judged run, or constant tasks: phi does not exist, and nothing is corrected."""
    found = run_effect(tasks, strata="task")
    assert (found.phi, found.p_value, found.correction) == (None, 1.0, None)
    assert found.implied_alpha(0.05) == 0.05


@pytest.mark.parametrize(
    ("runs", "phi", "p_value", "correction"),
    [
        (4, 3.0, 0.03, 3.0),
        (3, 3.0, 0.03, None),
        (4, 1.4, 0.24, None),
        (40, 0.9, 0.05, None),
    ],
)
def test_correction_needs_runs_and_evidence(
    runs: int, phi: float, p_value: float, correction: float | None
) -> None:
    """The correction is made from 4 runs on, below p = .1, and never to sharpen the test."""
    assert RunEffect(runs=runs, phi=phi, p_value=p_value).correction == correction


def test_implied_alpha() -> None:
    """Scatter of twice the variance turns a one-sided .05 into P(N < -1.645 / sqrt 2)."""
    effect = RunEffect(runs=4, phi=2.0, p_value=0.1)
    assert effect.implied_alpha(0.05) == pytest.approx(scipy.stats.norm.cdf(-1.6448536 / sqrt(2)))
    assert RunEffect(runs=4, phi=0.5, p_value=0.7).implied_alpha(0.05) == 0.05

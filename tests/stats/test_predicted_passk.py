"""pass^8 foretold from fewer trials: the Beta fit, its interval, and how right both turn out."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable
from math import comb
from pathlib import Path

import numpy as np
import pytest
import scipy

from ci_gate.stats.predicted_passk import PredictedPassK, predict_pass_hat_k

DATA = Path(
    os.environ.get("CI_GATE_REAL_DATA")
    or Path(__file__).parents[3] / "shared" / "data" / "multi_trial"
)
MIXED = [4, 4, 4, 4, 3, 3, 4, 2, 0, 4, 1, 4, 4, 3, 4, 0, 4, 4, 2, 4]
SHAPES = np.geomspace(0.02, 20, 31)


def posterior(passed: list[int], judged: list[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Both parameters on the grid and the weight of each pair, by scipy's beta function."""
    a, b = (side.reshape(-1) for side in np.meshgrid(SHAPES, SHAPES, indexing="ij"))
    logs = sum(
        scipy.special.betaln(a + c, b + n - c) - scipy.special.betaln(a, b)
        for c, n in zip(passed, judged, strict=True)
    )
    weights = np.exp(logs - logs.max())
    return a, b, weights / weights.sum()


def test_the_estimate_is_that_of_the_likeliest_beta() -> None:
    """Each task is expected at B(a+c+8, b+n-c) / B(a+c, b+n-c), with a, b of largest likelihood."""
    passed, judged = [*MIXED[:19], 3], [4] * 19 + [3]
    a, b, weights = posterior(passed, judged)
    best = int(weights.argmax())
    expected = [
        np.exp(
            scipy.special.betaln(a[best] + c + 8, b[best] + n - c)
            - scipy.special.betaln(a[best] + c, b[best] + n - c)
        )
        for c, n in zip(passed, judged, strict=True)
    ]

    found = predict_pass_hat_k(passed, judged, 8)

    assert found.estimate == pytest.approx(np.mean(expected), abs=1e-9)


@pytest.mark.parametrize(
    ("passed", "n"), [(MIXED, 4), (MIXED[:5], 4), ([4] * 10, 4), ([3, 0, 2], 3)]
)
def test_the_interval_is_that_of_the_posterior(passed: list[int], n: int) -> None:
    """Its ends leave 2.5 % of drawn posterior suites on each side, by no more than a point."""
    chance = np.random.default_rng(5)
    a, b, weights = posterior(passed, [n] * len(passed))
    shape = chance.choice(len(a), 20_000, p=weights)
    drawn = np.mean([chance.beta(a[shape] + c, b[shape] + n - c) ** 8 for c in passed], axis=0)

    found = predict_pass_hat_k(passed, [n] * len(passed), 8)

    step = 0.001  # Chances next to 0 and 1 are told apart no finer.
    assert (drawn < found.lower - step).mean() < 0.035
    assert (drawn < found.lower + step).mean() > 0.015
    assert (drawn > found.upper + step).mean() < 0.035
    assert (drawn > found.upper - step).mean() > 0.015


def test_the_order_of_the_tasks_changes_nothing() -> None:
    """The same counts in another order give the same bits."""
    judged = [4] * 10 + [5] * 10

    found = predict_pass_hat_k(MIXED, judged, 8)

    assert predict_pass_hat_k(MIXED[::-1], judged[::-1], 8) == found


@pytest.mark.parametrize(
    ("passed", "judged", "is_right"),
    [
        ([4] * 50, [4] * 50, lambda p: 0.9 < p.lower < 0.98 < p.estimate < p.upper < 1),
        ([0] * 50, [4] * 50, lambda p: 0 <= p.lower <= p.estimate < p.upper < 0.01),
        ([1], [1], lambda p: p.lower < 0.1 and p.upper > 0.9),
        ([0], [4], lambda p: p.upper < 0.1),
        ([8, 0], [8, 0], lambda p: p.lower < 0.5 and p.upper > 0.9),
    ],
    ids=["all pass", "none passes", "one trial", "one task that fails", "a task without a trial"],
)
def test_the_edges_are_uncertain_but_possible(
    passed: list[int], judged: list[int], is_right: Callable[[PredictedPassK], bool]
) -> None:
    """Constant and tiny suites get an estimate inside a proper interval."""
    found = predict_pass_hat_k(passed, judged, 8)

    assert 0 <= found.lower <= found.estimate <= found.upper <= 1
    assert is_right(found)


@pytest.mark.parametrize(
    ("passed", "judged", "k", "says"),
    [
        ([], [], 8, "no task has a judged trial"),
        ([0], [0], 8, "no task has a judged trial"),
        ([1, 1], [2], 8, "2 passed counts for 1 tasks"),
        ([3], [2], 8, "3 passed of 2 trials"),
        ([1], [2], 0, "k is at least 1"),
    ],
)
def test_impossible_counts_are_refused(
    passed: list[int], judged: list[int], k: int, says: str
) -> None:
    """What cannot be predicted from raises and says what was found."""
    with pytest.raises(ValueError, match=says):
        predict_pass_hat_k(passed, judged, k)


def real_agents() -> list[np.ndarray]:
    """The first eight outcomes of every task with so many, of agents with 60 such tasks."""
    found: dict[str, list[str]] = {}
    with (DATA / "metr_n8.csv").open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            if len(judged := row["outcomes"].replace("!", "")) >= 8:
                found.setdefault(row["model"], []).append(judged[:8])
    return [
        np.array([[mark == "+" for mark in outcomes] for outcomes in tasks])
        for tasks in found.values()
        if len(tasks) >= 60
    ]


@pytest.mark.calibration
@pytest.mark.skipif(
    not DATA.is_dir(), reason="real outcomes are not here; CI_GATE_REAL_DATA names their folder"
)
@pytest.mark.parametrize(("rounds", "largest_error"), [(3, 0.039), (4, 0.031)])
def test_real_agents_are_foretold(rounds: int, largest_error: float) -> None:
    """From 3 (4) of 8 trials, the root mean square error of pass^8 is .037 (.028), unbiased."""
    chance = np.random.default_rng(6)
    errors, covered = [], []
    for outcomes in real_agents():
        truth = np.mean([comb(int(c), 8) for c in outcomes.sum(axis=1)])
        for _ in range(15):
            seen = chance.permuted(outcomes, axis=1)[:, :rounds].sum(axis=1)
            found = predict_pass_hat_k(seen.tolist(), [rounds] * len(seen), 8)
            errors.append(found.estimate - truth)
            covered.append(found.lower <= truth <= found.upper)

    assert np.sqrt(np.mean(np.square(errors))) < largest_error
    assert abs(np.mean(errors)) < 0.01
    assert np.mean(covered) > 0.92


@pytest.mark.calibration
@pytest.mark.parametrize("shape", [(0.20, 0.28), (0.19, 0.21), (1.7, 0.55), (0.54, 0.13)], ids=str)
def test_the_interval_covers(shape: tuple[float, float]) -> None:
    """On populations like real agents', 95 % means at least 92 %, two standard errors allowed."""
    chance = np.random.default_rng(round(100 * shape[0]))
    size, repeats, covered = 20, 250, 0
    for _ in range(repeats):
        rates = chance.beta(*shape, size)
        found = predict_pass_hat_k(chance.binomial(4, rates).tolist(), [4] * size, 8)
        covered += found.lower <= (rates**8).mean() <= found.upper

    assert covered / repeats > 0.92 - 2 * np.sqrt(0.92 * 0.08 / repeats)

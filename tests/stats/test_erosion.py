"""Moments of a suite that loses passes, against an enumeration of everything that can happen."""

from __future__ import annotations

from itertools import combinations, product
from math import comb, fsum

import numpy as np
import pytest

from ci_gate.stats.counts import TaskCounts
from ci_gate.stats.erosion import Erosion
from ci_gate.stats.suite_null import group_tasks
from tests.speeds import slow

Trials = tuple[int, ...]


def task(baseline_n: int, baseline_passed: int, candidate_n: int, candidate_passed: int):
    """One task without seeds."""
    return TaskCounts(
        baseline_n=(baseline_n,),
        baseline_passed=(baseline_passed,),
        candidate_n=(candidate_n,),
        candidate_passed=(candidate_passed,),
    )


def difference(candidate: Trials, baseline: Trials, k: int) -> float:
    """Candidate's pass^k less the baseline's."""
    return comb(sum(candidate), k) / comb(len(candidate), k) - comb(sum(baseline), k) / comb(
        len(baseline), k
    )


def deals(trials: Trials, candidate_n: int) -> list[tuple[Trials, Trials]]:
    """Every choice of the candidate's trials among all."""
    return [
        (
            tuple(trials[i] for i in chosen),
            tuple(trial for i, trial in enumerate(trials) if i not in chosen),
        )
        for chosen in combinations(range(len(trials)), candidate_n)
    ]


def losses(candidate: Trials, kept: float) -> list[tuple[float, Trials]]:
    """Every way to lose passes, with its chance."""
    return [
        (
            float(np.prod([kept if keep else 1 - kept for keep in keeps])),
            tuple(trial * keep for trial, keep in zip(candidate, keeps, strict=True)),
        )
        for keeps in product((0, 1), repeat=len(candidate))
    ]


def null_variance(trials: Trials, candidate_n: int, k: int) -> float:
    """Variance of the difference over all deals."""
    return float(np.var([difference(c, b, k) for c, b in deals(trials, candidate_n)]))


def enumerated(trials: Trials, candidate_n: int, k: int, kept: float) -> tuple[float, float, float]:
    """Fall, variance and expected null variance of the difference."""
    everything = [
        (chance / comb(len(trials), candidate_n), eroded, baseline)
        for candidate, baseline in deals(trials, candidate_n)
        for chance, eroded in losses(candidate, kept)
    ]
    mean = fsum(p * difference(c, b, k) for p, c, b in everything)
    square = fsum(p * difference(c, b, k) ** 2 for p, c, b in everything)
    null = fsum(p * null_variance((*c, *b), candidate_n, k) for p, c, b in everything)
    return -mean, square - mean * mean, null


def at(coefficients: np.ndarray, kept: float) -> float:
    """Value of a polynomial."""
    return float(np.polynomial.polynomial.polyval(kept, coefficients))


@pytest.mark.parametrize("kept", [0.0, 0.3, *slow(0.9, 1.0)])
@pytest.mark.parametrize(
    ("baseline_n", "passed", "k"), [(3, 5, 1), (3, 5, 2), (4, 7, 3), (5, 3, 2)]
)
def test_moments_are_those_of_the_enumeration(
    baseline_n: int, passed: int, k: int, kept: float
) -> None:
    """Fall, both variances and the null's are exact where strata are tasks."""
    trials = (1,) * passed + (0,) * (baseline_n + 3 - passed)
    known = task(baseline_n, sum(trials[3:]), 3, sum(trials[:3]))
    fall, variance, null = enumerated(trials, 3, k, kept)

    found = Erosion.of(group_tasks([known, known], "task"), k)

    assert found is not None
    assert found.size == 2
    assert at(found.fall, kept) == pytest.approx(2 * fall, abs=1e-12)
    assert at(found.chance + found.loss, kept) == pytest.approx(2 * variance, abs=1e-12)
    assert at(found.null, kept) == pytest.approx(2 * null, abs=1e-12)


def test_tasks_of_different_depth_add_up() -> None:
    """Every polynomial of a mixed suite is the sum of its parts; shallow tasks stay out."""
    deep, wide, shallow = task(8, 7, 4, 3), task(4, 2, 4, 4), task(1, 1, 4, 4)

    whole = Erosion.of(group_tasks([deep, wide, shallow], "task"), 2)
    parts = [Erosion.of(group_tasks([each], "task"), 2) for each in (deep, wide)]

    assert whole is not None
    assert whole.size == 2
    for name in ("fall", "chance", "loss", "null"):
        total = sum(getattr(part, name) for part in parts)
        assert getattr(whole, name) == pytest.approx(total, abs=1e-15)


def test_without_a_task_deep_enough_there_is_nothing_to_erode() -> None:
    """None, and not a suite of size 0."""
    assert Erosion.of(group_tasks([task(2, 1, 2, 1)], "task"), 3) is None


def test_agents_that_are_functions_of_their_seed_scatter_by_what_they_lose() -> None:
    """Nothing scatters without a change; with one, the lost passes do, each by itself."""
    seeds = {"baseline_n": (1,) * 8, "candidate_n": (1,) * 8}
    passes = (1,) * 6 + (0,) * 2
    same = TaskCounts(baseline_passed=passes, candidate_passed=passes, **seeds)

    found = Erosion.of(group_tasks([same], "task,seed"), 1)

    assert found is not None
    assert at(found.null, 1.0) == pytest.approx(0, abs=1e-12)
    assert at(found.chance, 0.9) == pytest.approx(0, abs=1e-12)
    assert at(found.fall, 0.9) == pytest.approx(6 * 0.1 / 8)
    assert at(found.loss, 0.9) == pytest.approx(6 * 0.09 / 64)

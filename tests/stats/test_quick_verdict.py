"""The verdict on thousands of runs at once is the verdict of the test itself."""

from __future__ import annotations

import numpy as np
import pytest

from ci_gate.stats.counts import Strata, TaskCounts
from ci_gate.stats.permutation import joint_test
from ci_gate.stats.quick_verdict import SimulatedRuns, blocked

# Simulations of many checks: seconds.
pytestmark = pytest.mark.slow


def simulated(tasks: int, repeats: int, drop: float, *, runs: int, number: int) -> SimulatedRuns:
    """Runs of a suite whose chances all fell by ``drop``, against one baseline."""
    chance = np.random.default_rng([tasks, repeats, number])
    rates = chance.beta(1.2, 0.6, (tasks, 1)).repeat(8, axis=1)
    baseline = chance.binomial(repeats, rates)
    after = np.clip(rates - drop, 0.01, 1)
    return SimulatedRuns(
        baseline_n=np.full((tasks, 8), repeats),
        baseline_passed=baseline[None].repeat(runs, axis=0),
        candidate_n=np.ones((tasks, 8), dtype=np.int64),
        candidate_passed=chance.binomial(1, after, (runs, tasks, 8)),
    )


def judged_by_the_test(
    runs: SimulatedRuns, strata: Strata, ks: tuple[int, ...], level: float, phi: float | None = None
) -> np.ndarray:
    """What the test says of each run."""
    return np.array(
        [
            joint_test(
                [
                    TaskCounts(
                        baseline_n=tuple(runs.baseline_n[t].tolist()),
                        baseline_passed=tuple(before[t].tolist()),
                        candidate_n=tuple(runs.candidate_n[t].tolist()),
                        candidate_passed=tuple(after[t].tolist()),
                    )
                    for t in range(len(before))
                ],
                strata=strata,
                ks=ks,
                level=level,
                seed=1,
                phi=phi,
                max_draws=1 << 16,
            ).p_value
            <= level
            for before, after in zip(runs.baseline_passed, runs.candidate_passed, strict=True)
        ]
    )


@pytest.mark.parametrize("strata", ["task", "task,seed"])
@pytest.mark.parametrize(("tasks", "repeats", "drop"), [(3, 1, 0.35), (12, 4, 0.1), (30, 1, 0.08)])
def test_verdicts_agree_one_by_one(strata: Strata, tasks: int, repeats: int, drop: float) -> None:
    """Of 120 runs, some of them red, no more than 7 are judged otherwise than by the test."""
    runs = simulated(tasks, repeats, drop, runs=120, number=1)

    quick = blocked(runs, strata=strata, ks=(1, 8), level=0.05, seed=1)
    full = judged_by_the_test(runs, strata, (1, 8), 0.05)

    assert (quick != full).sum() <= 7
    assert 0.1 < full.mean() < 0.99


@pytest.mark.parametrize("tasks", [4, 25])
def test_a_correction_for_bad_days_is_made_alike(tasks: int) -> None:
    """With phi fewer runs are red, and they are those that the test calls red."""
    runs = simulated(tasks, 4, 0.4 / tasks**0.5, runs=120, number=4)

    plain = blocked(runs, strata="task", ks=(1, 8), level=0.05, seed=1)
    quick = blocked(runs, strata="task", ks=(1, 8), level=0.05, seed=1, phi=3.0)
    full = judged_by_the_test(runs, "task", (1, 8), 0.05, phi=3.0)

    assert quick.sum() < plain.sum()
    assert (quick != full).sum() <= 7


def test_the_answer_is_the_same_again() -> None:
    """Equal runs and seeds give equal verdicts, and the order of the tasks gives no other share."""
    runs = simulated(12, 4, 0.1, runs=300, number=2)
    turned = SimulatedRuns(
        baseline_n=runs.baseline_n[::-1],
        baseline_passed=runs.baseline_passed[:, ::-1],
        candidate_n=runs.candidate_n[::-1],
        candidate_passed=runs.candidate_passed[:, ::-1],
    )
    options = {"strata": "task", "ks": (1, 8), "level": 0.05, "seed": 3}

    first = blocked(runs, **options)

    assert (blocked(runs, **options) == first).all()
    assert abs(blocked(turned, **options).mean() - first.mean()) < 0.02


def test_what_can_never_be_red_is_not() -> None:
    """A task that never passed cannot drop, and one trial of one task shows nothing."""
    dead = SimulatedRuns(
        baseline_n=np.full((5, 1), 8),
        baseline_passed=np.zeros((2, 5, 1), dtype=np.int64),
        candidate_n=np.full((5, 1), 8),
        candidate_passed=np.zeros((2, 5, 1), dtype=np.int64),
    )
    single = SimulatedRuns(
        baseline_n=np.ones((1, 1), dtype=np.int64),
        baseline_passed=np.ones((1, 1, 1), dtype=np.int64),
        candidate_n=np.ones((1, 1), dtype=np.int64),
        candidate_passed=np.zeros((1, 1, 1), dtype=np.int64),
    )

    for runs in (dead, single):
        assert not blocked(runs, strata="task", ks=(1,), level=0.05, seed=1).any()


@pytest.mark.calibration
@pytest.mark.parametrize(
    ("tasks", "repeats", "drop", "strata"),
    [
        (3, 4, 0.3, "task"),
        (8, 4, 0.12, "task"),
        (12, 4, 0.1, "task,seed"),
        (50, 1, 0.06, "task"),
    ],
)
def test_the_share_of_red_runs_is_within_two_points(
    tasks: int, repeats: int, drop: float, strata: Strata
) -> None:
    """On the same 2,000 runs the quick and the full verdict differ by less than 2 points."""
    runs = simulated(tasks, repeats, drop, runs=2000, number=3)

    quick = blocked(runs, strata=strata, ks=(1, 8), level=0.05, seed=1)
    full = judged_by_the_test(runs, strata, (1, 8), 0.05)

    assert abs(quick.mean() - full.mean()) <= 0.02

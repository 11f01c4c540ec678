"""Claims on thousands of futures at once, held against the test itself."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from ci_gate.stats.counts import Strata, TaskCounts
from ci_gate.stats.future_claims import Claims, judge
from ci_gate.stats.permutation import JointTest, joint_test
from tests.speeds import slow

Ints = NDArray[np.int64]
Futures = tuple[Ints, Ints]


def exchangeable(tasks: int, trials: int, futures: int, number: int) -> Futures:
    """One baseline, and candidates that are between unchanged and much worse."""
    chance = np.random.default_rng(number)
    rates = chance.beta(1.2, 0.6, tasks)
    fixed = np.stack(
        [np.full(tasks, trials), chance.binomial(trials, rates), np.full(tasks, 8)], axis=1
    )
    drop = chance.choice([0.0, 0.3, 0.7], (futures, 1)) / tasks**0.5
    return fixed[:, None], chance.binomial(8, np.maximum(rates - drop, 0))[..., None]


def seeded(tasks: int, futures: int, number: int) -> Futures:
    """The same over eight seeds of very different chances, run four times."""
    chance = np.random.default_rng(number)
    rates = chance.beta(0.6, 0.3, (tasks, 8))
    full, one = np.full((tasks, 8), 4), np.ones((tasks, 8), dtype=np.int64)
    drop = chance.choice([0.0, 0.3, 0.6], (futures, 1, 1)) / tasks**0.5
    passed = chance.binomial(1, np.maximum(rates - drop, 0))
    return np.stack([full, chance.binomial(4, rates), one], axis=2), passed


def by_the_test(fixed: Ints, passed: Ints, strata: Strata, phi: float | None) -> list[JointTest]:
    """The joint test of each future."""
    return [
        joint_test(
            [
                TaskCounts(
                    baseline_n=tuple(n),
                    baseline_passed=tuple(c),
                    candidate_n=tuple(trials),
                    candidate_passed=tuple(own),
                )
                for (n, c, trials), own in zip(
                    np.moveaxis(fixed, 2, 1).tolist(), future.tolist(), strict=True
                )
            ],
            strata=strata,
            ks=(1, 8),
            level=0.05,
            seed=1,
            phi=phi,
            max_draws=1 << 12,
        )
        for future in passed
    ]


def judged(fixed: Ints, passed: Ints, phi: float | None = None) -> Claims:
    """The same futures, at once."""
    return judge(fixed, passed, ks=(1, 8), level=0.05, seed=1, phi=phi)


@pytest.mark.parametrize("trials", [8, 32])
def test_one_task_is_judged_as_by_the_test(trials: int) -> None:
    """All candidates of a single task agree with the test in every claim, exactly."""
    passed = np.arange(9)[:, None, None]
    for before in range(0, trials + 1, trials // 4):
        fixed = np.array([[[trials, before, 8]]])

        found = judged(fixed, passed)
        tests = by_the_test(fixed, passed, "task", None)

        assert found.exact
        assert found.red.tolist() == [test.p_value <= 0.05 for test in tests]
        assert found.tasks[:, 0].tolist() == [t.task_p_adjusted[0] <= 0.05 for t in tests]
        for at, k in enumerate((1, 8)):
            reds = [test.families[k].p_adjusted <= 0.05 for test in tests]
            assert found.suites[:, at].tolist() == reds


@pytest.mark.parametrize(
    ("futures", "strata", "allowed"),
    [
        (exchangeable(3, 8, 24, 1), "task", 0),
        (exchangeable(5, 32, 24, 2), "task", 1),
        *slow((exchangeable(25, 32, 24, 3), "task", 2), (exchangeable(25, 8, 24, 4), "task", 2)),
        (seeded(20, 24, 5), "task,seed", 2),
    ],
)
def test_verdicts_agree_one_by_one(futures: Futures, strata: Strata, allowed: int) -> None:
    """Of 24 futures, some of them red, hardly any is judged otherwise than by the test."""
    found = judged(*futures).red
    full = np.array([test.p_value <= 0.05 for test in by_the_test(*futures, strata, None)])

    assert 0.1 < full.mean() < 0.99
    assert (found != full).sum() <= allowed


@pytest.mark.parametrize("tasks", [4, 25])
def test_a_correction_for_bad_days_is_made_alike(tasks: int) -> None:
    """With phi fewer futures are red, and nearly those that the test calls red."""
    futures = exchangeable(tasks, 32, 24, 6)

    found = judged(*futures, phi=3.0).red
    full = np.array([test.p_value <= 0.05 for test in by_the_test(*futures, "task", 3.0)])

    assert found.sum() < judged(*futures).red.sum()
    assert (found != full).sum() <= 2


def test_few_tasks_that_can_tell_are_enough_to_be_exact() -> None:
    """Forty tasks that always passed but for one trial are judged by listing, not by expansion."""
    fixed = np.tile(np.array([[[32, 32, 8]]]), (40, 1, 1))
    passed = np.full((3, 40, 1), 8)
    passed[1, 0], passed[2, :3] = 7, 7

    found = judged(fixed, passed)

    # One failure of 40 trials is the candidate's with chance 1/5, three are with 1/125.
    assert found.exact
    assert found.red.tolist() == [False, False, True]
    assert found.suites.tolist() == [[False, False], [False, False], [True, True]]
    assert not found.tasks.any()


def test_red_is_some_claim() -> None:
    """A future is red if and only if one of its claims is, and a broken task is claimed as such."""
    fixed, passed = exchangeable(30, 32, 40, 7)
    best = int(fixed[:, 0, 1].argmax())
    passed[:20, best] = 0

    found = judged(fixed, passed)

    assert (found.red == (found.suites.any(axis=1) | found.tasks.any(axis=1))).all()
    assert found.tasks[:20, best].all()


def test_without_suite_metrics_tasks_alone_are_claimed() -> None:
    """No k, and a k out of reach, leave the task family."""
    fixed, passed = exchangeable(12, 32, 20, 8)
    passed[:, int(fixed[:, 0, 1].argmax())] = 0

    bare = judge(fixed, passed, ks=(), level=0.05, seed=1)
    beyond = judge(fixed, passed, ks=(9,), level=0.05, seed=1)

    assert bare.suites.shape == (20, 0)
    assert bare.red.all()
    assert not beyond.suites.any()
    assert (beyond.tasks == bare.tasks).all()

"""The level of several looks: against published figures, scipy's normal integrals, and drawing."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
import scipy

from ci_gate.stats.extension import (
    FUTILITY,
    extension_level,
    gate_level,
    information_fractions,
)
from ci_gate.stats.quick_verdict import SimulatedRuns, blocked
from tests.speeds import slow


def test_information_counts_the_baseline() -> None:
    """(1/n + 1/n_b)^-1 relative to the last look; a known baseline leaves n over the last n."""
    assert information_fractions((8, 16, 32), 32) == pytest.approx((0.4, 2 / 3, 1.0))
    assert information_fractions((8, 16, 32), inf) == (0.25, 0.5, 1.0)
    assert information_fractions((8,), 8) == (1.0,)


# Constant levels at alpha .05 from 10^6 draws of the normal process, without and with a stop at
# p >= .3; their standard error is about .0001.
DRAWN = [
    ((8, 16, 32), 32, 0.0241, 0.0260),
    ((8, 16), 32, 0.0318, 0.0326),
    ((8, 32), 32, 0.0291, 0.0317),
    ((8, 16, 24), 32, 0.0255, 0.0269),
    ((8, 16, 32), 8, 0.0282, 0.0287),
    ((8, 16, 32), 64, 0.0231, 0.0257),
]


@pytest.mark.parametrize(("looks", "baseline_n", "open_end", "binding"), DRAWN)
def test_levels_are_those_of_the_drawn_process(
    looks: tuple[int, ...], baseline_n: int, open_end: float, binding: float
) -> None:
    """Integration gives what drawing gave, for every plan, with a stop and without."""
    fractions = information_fractions(looks, baseline_n)

    assert extension_level(fractions, 0.05, futility=None) == pytest.approx(open_end, abs=2.5e-4)
    assert extension_level(fractions, 0.05, futility=0.3) == pytest.approx(binding, abs=2.5e-4)


@pytest.mark.parametrize("alpha", [*slow(0.01), 0.05, *slow(0.2)])
@pytest.mark.parametrize("looks", [(8, 16), (8, 16, 32), (8, 9, 10, 64)])
def test_all_looks_together_have_alpha(looks: tuple[int, ...], alpha: float) -> None:
    """Without a stop the chance of no alarm is a multivariate normal integral, known to scipy."""
    fractions = np.array(information_fractions(looks, 32))
    level = extension_level(fractions.tolist(), alpha, futility=None)
    correlation = np.sqrt(
        np.minimum.outer(fractions, fractions) / np.maximum.outer(fractions, fractions)
    )

    none = scipy.stats.multivariate_normal(cov=correlation).cdf(
        np.full(len(looks), scipy.stats.norm.isf(level))
    )

    assert 1 - none == pytest.approx(alpha, abs=1e-4)


def test_a_binding_stop_is_paid_back() -> None:
    """Drawn 400,000 times with the stop, the process alarms in alpha of all cases."""
    fractions = np.array(information_fractions((8, 16, 32), 32))
    level = extension_level(fractions.tolist(), 0.05, futility=0.3)
    steps = np.random.default_rng(1).normal(size=(400_000, 3)) * np.sqrt(
        np.diff(fractions, prepend=0)
    )
    p = scipy.stats.norm.sf(np.cumsum(steps, axis=1) / np.sqrt(fractions))

    going = np.cumprod((p > level) & (p < 0.3), axis=1)
    alarm = (p[:, 0] <= level) | ((going[:, :-1] * (p[:, 1:] <= level)).any(axis=1))

    assert alarm.mean() == pytest.approx(0.05, abs=3 * np.sqrt(0.05 * 0.95 / len(p)))


@pytest.mark.parametrize("futility", [None, 0.3])
def test_one_look_has_all_of_alpha(futility: float | None) -> None:
    """Nothing is looked at twice."""
    assert extension_level((1.0,), 0.05, futility=futility) == 0.05


def test_looks_at_nearly_the_same_trials_cost_nearly_nothing() -> None:
    """Of 10,000 trials the last ten tell nothing new."""
    fractions = information_fractions((10_000, 10_010), 32)

    assert 0.0495 < extension_level(fractions, 0.05, futility=None) < 0.05


def test_many_looks_are_dearer_than_few() -> None:
    """A look in between lowers the level, but never below an equal share."""
    few = extension_level(information_fractions((8, 32), 32), 0.05, futility=0.3)
    many = extension_level(information_fractions((8, 12, 16, 24, 32), 32), 0.05, futility=0.3)

    assert 0.05 / 5 < many < few < 0.05 / 1


def test_an_alpha_beyond_the_stop_leaves_one_look() -> None:
    """Where every run that is not red ends as hopeless, the first look has all of alpha."""
    assert extension_level((0.5, 1.0), 0.4, futility=0.3) == pytest.approx(0.4)


def test_the_gate_uses_the_level_that_was_measured() -> None:
    """8, 16 and 32 trials against 32 are held to .025; a single look to alpha."""
    assert gate_level((8, 16, 32), 32, 0.05) == pytest.approx(0.025, abs=1e-4)
    assert gate_level((8,), 32, 0.05) == 0.05


def test_looks_that_are_all_taken_have_a_smaller_level() -> None:
    """Where no p-value ends a run, its level pays for every look."""
    every = gate_level((8, 16, 32), 32, 0.05, binding=False)

    assert every == pytest.approx(0.96 * 0.0241, abs=2.5e-4)


@pytest.mark.calibration
def test_an_unchanged_agent_is_blocked_in_at_most_alpha_over_three_looks() -> None:
    """Of runs with looks at 8, 16 and 32 trials, .05 and two standard errors are red at most."""
    runs, tasks, looks, chance = 1000, 20, (8, 16, 32), np.random.default_rng(4)
    level = gate_level(looks, 32, 0.05)
    rates = chance.beta(1.2, 0.6, (runs, tasks))
    baseline = chance.binomial(32, rates)
    steps = [chance.binomial(n, rates) for n in np.diff(looks, prepend=0)]

    going, red = np.ones(runs, dtype=bool), 0
    for look, candidate in zip(looks, np.cumsum(steps, axis=0), strict=True):
        seen = SimulatedRuns(
            baseline_n=np.full((tasks, 1), 32),
            baseline_passed=baseline[..., None],
            candidate_n=np.full((tasks, 1), look),
            candidate_passed=candidate[..., None],
        )
        alarm, near = (
            blocked(seen, strata="task", ks=(1, 8), level=bound, seed=1)
            for bound in (level, FUTILITY)
        )
        red += int((going & alarm).sum())
        going &= near & ~alarm

    assert red / runs <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / runs)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: information_fractions((), 8), "looks rise"),
        (lambda: information_fractions((8, 8), 8), "looks rise"),
        (lambda: information_fractions((0, 8), 8), "looks rise"),
        (lambda: information_fractions((8,), 0), "at least 1 trial"),
        (lambda: extension_level((), 0.05, futility=None), "fractions rise"),
        (lambda: extension_level((0.5, 0.5, 1.0), 0.05, futility=None), "fractions rise"),
        (lambda: extension_level((0.5, 0.9), 0.05, futility=None), "the last fraction is 1"),
        (lambda: extension_level((1.0,), 1.0, futility=None), "alpha is between"),
        (lambda: extension_level((1.0,), 0.05, futility=0.0), "futility is between"),
    ],
)
def test_impossible_plans_are_refused(call, says: str) -> None:
    """Looks that do not rise, and levels outside (0, 1), raise and say what was found."""
    with pytest.raises(ValueError, match=says):
        call()

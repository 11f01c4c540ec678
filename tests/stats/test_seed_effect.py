"""Whether seeds matter: the statistics by hand, and the rule's every branch."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from ci_gate.stats.seed_effect import (
    chi_squared_tail,
    choose_strata,
    cochran_q,
    z_seed,
)

ALIKE = [[1, 1, 1, 1, 0, 0, 0, 0], [1, 1, 1, 1, 0, 0, 0, 0]]
CROSSED = [[1, 1, 1, 1, 0, 0, 0, 0], [1, 1, 0, 0, 1, 1, 0, 0]]


def test_z_of_two_runs_by_hand() -> None:
    """One task, two runs that agree on all of 8 seeds: z is 2 / sqrt(4^4 / (8^2 x 7))."""
    assert z_seed([ALIKE]) == pytest.approx(2 / sqrt(4**4 / (8**2 * 7)))
    assert z_seed([CROSSED]) == 0.0


def test_z_is_mantel_haenszels() -> None:
    """With two runs, z is the Mantel-Haenszel statistic of run against run over the tasks."""
    chance = np.random.default_rng(2)
    tasks = chance.integers(0, 2, (12, 2, 8)).tolist()
    excess = variance = 0.0
    for first, second in tasks:
        margins = (8, sum(first), sum(second))
        excess += sum(a & b for a, b in zip(first, second, strict=True))
        excess -= scipy.stats.hypergeom.mean(*margins)
        variance += scipy.stats.hypergeom.var(*margins)
    assert z_seed(tasks) == pytest.approx(excess / sqrt(variance))


def test_z_compares_only_what_both_runs_judged() -> None:
    """A seed on which one run errored leaves that pair of runs."""
    gap = [[*ALIKE[0], 1], [*ALIKE[1], None]]
    assert z_seed([gap]) == z_seed([ALIKE])
    assert z_seed([[[1, None], [None, 1]]]) == 0.0


@pytest.mark.parametrize("tasks", [[], [[]], [[[1, 0, 1]]], [[[1, 1], [1, 1]]], [[[1], [0]]]])
def test_z_without_scatter_is_zero(tasks: list[list[list[int]]]) -> None:
    """No tasks, one run, constant tasks or one seed say nothing about seeds."""
    assert z_seed(tasks) == 0.0


def test_z_ignores_the_order_of_tasks() -> None:
    """The sums are exact, so shuffled tasks give the same bits."""
    tasks = np.random.default_rng(3).integers(0, 2, (40, 4, 8)).tolist()
    assert z_seed(tasks) == z_seed(tasks[::-1])


def test_z_is_standard_normal_without_seed_effect() -> None:
    """Over 200 suites of exchangeable trials z has mean 0 and variance 1, within 4 s.e."""
    chance = np.random.default_rng(4)
    rates = chance.beta(1.2, 0.6, (20, 1, 1))
    z = [z_seed((chance.random((20, 4, 8)) < rates).astype(int).tolist()) for _ in range(200)]
    assert np.mean(z) == pytest.approx(0, abs=4 / sqrt(200))
    assert np.var(z) == pytest.approx(1, abs=4 * sqrt(2 / 200))


def test_cochran_q_by_hand() -> None:
    """Complete blocks give Cochran's Q: the columns' sum of squares over the blocks' scatter."""
    blocks = [[1, 1, 0, 0], [1, 0, 0, 0], [1, 1, 1, 0]]
    found = cochran_q([[block] for block in blocks])
    sums = np.sum(blocks, axis=0)
    scatter = sum(c * (4 - c) / (4 * 3) for c in (2, 1, 3))
    assert found.q == pytest.approx(((sums - sums.mean()) ** 2).sum() / scatter)
    assert found.degrees_of_freedom == 3
    assert found.p_value == pytest.approx(scipy.stats.chi2.sf(found.q, 3))
    assert cochran_q([blocks]) == found


def test_cochran_q_with_gaps_keeps_its_mean() -> None:
    """With errored trials missing at random, Q's mean is still its degrees of freedom."""
    chance = np.random.default_rng(5)
    q = []
    for _ in range(150):
        suite = (chance.random((20, 1, 8)) < 0.6).astype(int).tolist()
        gaps = [[[x if chance.random() < 0.9 else None for x in run] for run in t] for t in suite]
        q.append(cochran_q(gaps).q)
    assert np.mean(q) == pytest.approx(7, abs=4 * sqrt(14 / 150))


def test_cochran_q_without_scatter() -> None:
    """Constant blocks, one seed and no tasks compare nothing."""
    for tasks in ([], [[[1]]], [[[1, 1]], [[0, 0]]]):
        assert (cochran_q(tasks).q, cochran_q(tasks).p_value) == (0.0, 1.0)


@given(st.floats(0, 2000), st.integers(1, 400))
def test_chi_squared_tail_is_scipys(x: float, freedom: int) -> None:
    """The finite sum is the chi-squared tail, far tails included."""
    expected = scipy.stats.chi2.sf(x, freedom)
    assert chi_squared_tail(x, freedom) == pytest.approx(expected, rel=1e-8, abs=1e-300)


@pytest.mark.parametrize(("x", "freedom"), [(-1.0, 2), (float("nan"), 2), (1.0, 0)])
def test_chi_squared_tail_refuses(x: float, freedom: int) -> None:
    """There is no tail without degrees of freedom or of what is no number."""
    with pytest.raises(ValueError, match="no chi-squared tail"):
        chi_squared_tail(x, freedom)


def test_repeats_decide_from_the_baseline_alone() -> None:
    """With repeats in the baseline the candidate's outcomes cannot move the choice."""
    for candidate in ([[0] * 8], [[1] * 8], [ALIKE[0]]):
        choice = choose_strata([ALIKE] * 2, [candidate] * 2)
        assert (choice.strata, choice.rule) == ("task,seed", "baseline repeats")
        assert choice.z == z_seed([ALIKE] * 2)
    assert choose_strata([CROSSED], [[ALIKE[0]]]).strata == "task"


def test_a_single_run_is_paired_with_the_candidate() -> None:
    """With one baseline run, agreement between the sides decides."""
    runs = [[ALIKE[0]]] * 2
    choice = choose_strata(runs, runs)
    assert (choice.strata, choice.rule) == ("task,seed", "pair")
    assert choice.z == z_seed([ALIKE] * 2)


def test_an_empty_second_run_is_no_repeat() -> None:
    """A run that judged nothing does not make the baseline one of repeats."""
    baseline = [[ALIKE[0], [None] * 8]] * 2
    assert choose_strata(baseline, [[ALIKE[0]]] * 2).rule == "pair"


def test_an_errored_trial_does_not_make_many_seeds() -> None:
    """A seed is unshared only if a side never judged it on any task."""
    baseline = [[[1, None, 1, 0]], [[1, 1, 0, 0]]]
    assert choose_strata(baseline, [[[1, 1, 1, 0]], [[1, 1, 0, 0]]]).rule == "pair"


def _hard_seeds(tasks: int) -> list[list[list[int]]]:
    return [[[1, 1, 1, 1, 0, 1, 1, 0, 0, 0, 0, 0]]] * tasks


def test_many_seeds_ask_q_too() -> None:
    """Where the baseline ran more seeds, seeds hard for all tasks pair what z would not."""
    candidate = [[[1, 0, 1, 0]]] * 10
    choice = choose_strata(_hard_seeds(10), candidate)
    assert choice.rule == "many seeds"
    assert choice.z < 1.645
    assert choice.q == cochran_q(_hard_seeds(10)).q
    assert choice.q_p_value is not None
    assert choice.q_p_value < 0.05
    assert choice.strata == "task,seed"


def test_many_seeds_without_effect_stay_unpaired() -> None:
    """Exchangeable trials on 32 seeds against 8 keep the depth: strata are tasks."""
    chance = np.random.default_rng(6)
    outcomes = (chance.random((30, 1, 32)) < 0.7).astype(int)
    choice = choose_strata(outcomes.tolist(), outcomes[:, :, ::-4].tolist())
    assert (choice.strata, choice.rule) == ("task", "many seeds")


@pytest.mark.parametrize(("pairing", "strata"), [("seed", "task,seed"), ("none", "task")])
def test_forced_pairing_still_says_z(pairing, strata: str) -> None:
    """A forced choice is reported as forced, with the z it overrode."""
    choice = choose_strata([ALIKE], [[ALIKE[0]]], pairing=pairing)
    assert (choice.strata, choice.rule, choice.z) == (strata, "forced", z_seed([ALIKE]))


def test_no_shared_seeds_pair_nothing() -> None:
    """Runs without seeds, or on different seeds, are never strata by seed, even if forced."""
    seedless = choose_strata([ALIKE], [[ALIKE[0]]], seeded=False, pairing="seed")
    apart = choose_strata([[[1, 0, None, None]]], [[[None, None, 1, 0]]], pairing="seed")
    assert {(c.strata, c.rule) for c in (seedless, apart)} == {("task", "no seeds")}


def test_sides_of_different_length_are_refused() -> None:
    """Tasks are matched by position, so both sides need as many."""
    with pytest.raises(ValueError, match="2 baseline tasks, 1 candidate"):
        choose_strata([ALIKE, ALIKE], [ALIKE])

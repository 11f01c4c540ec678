"""The joint test: against brute force, on degenerate counts, and its invariances."""

from __future__ import annotations

import random
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ci_gate.stats import exact_null, permutation
from ci_gate.stats.counts import Strata, TaskCounts
from ci_gate.stats.permutation import JointTest, joint_test
from tests.speeds import examples

BOTH_STRATA = ("task", "task,seed")


def counts_of(*sides: tuple[int, int, int, int]) -> list[TaskCounts]:
    """Tasks without seeds, from (baseline n, passed, candidate n, passed)."""
    return [
        TaskCounts(
            baseline_n=(nb,), baseline_passed=(cb,), candidate_n=(nc,), candidate_passed=(cc,)
        )
        for nb, cb, nc, cc in sides
    ]


def judged(tasks: list[TaskCounts], strata: Strata = "task", **options: object) -> JointTest:
    """The joint test at the usual level."""
    arguments = {"level": 0.05, "seed": 1, **options}
    return joint_test(tasks, strata=strata, **arguments)


# The oracle: every way to deal every task's passes, in exact fractions, from the definitions alone.


@dataclass(frozen=True)
class Enumerated:
    """Everything the joint test claims, before any adjustment by bounds."""

    suite_p: dict[int, Fraction]
    differences: dict[int, Fraction | None]
    included: dict[int, tuple[int, ...]]
    task_p: list[Fraction]
    task_family_p: Fraction
    p_value: Fraction
    single_step: dict[Fraction, Fraction]
    step_down: dict[Fraction, Fraction]
    task_q: list[Fraction]


@dataclass(frozen=True)
class _Side:
    baseline_n: int
    candidate_n: int
    passed: int
    outcomes: dict[int, Fraction]
    observed: int

    def difference(self, x: int, k: int) -> Fraction:
        candidate = Fraction(comb(x, k), comb(self.candidate_n, k))
        return candidate - Fraction(comb(self.passed - x, k), comb(self.baseline_n, k))

    def p_value(self, x: int) -> Fraction:
        return sum((p for y, p in self.outcomes.items() if y <= x), Fraction(0))


def enumerate_joint(tasks: list[TaskCounts], strata: str, ks: tuple[int, ...]) -> Enumerated:
    """All claims on a few small tasks."""
    sides = [_side(task, strata) for task in tasks]
    included = {
        k: tuple(i for i, s in enumerate(sides) if min(s.baseline_n, s.candidate_n) >= k)
        for k in ks
    }

    def statistic(xs: tuple[int, ...], k: int) -> Fraction:
        return sum((sides[i].difference(xs[i], k) for i in included[k]), Fraction(0))

    worlds = []
    for xs in product(*(side.outcomes for side in sides)):
        chance = Fraction(1)
        for side, x in zip(sides, xs, strict=True):
            chance *= side.outcomes[x]
        task_p = [side.p_value(x) for side, x in zip(sides, xs, strict=True)]
        worlds.append((chance, {k: statistic(xs, k) for k in ks}, task_p))
    here = tuple(side.observed for side in sides)
    own_task_p = [side.p_value(x) for side, x in zip(sides, here, strict=True)]

    def suite_p(k: int, value: Fraction) -> Fraction:
        return sum((c for c, s, _ in worlds if s[k] <= value), Fraction(0))

    def task_q(p: Fraction) -> Fraction:
        return sum((c for c, _, t in worlds if min(t) <= p), Fraction(0))

    telling = [k for k in ks if included[k]]
    tails = {k: {v: suite_p(k, v) for v in {s[k] for _, s, _ in worlds}} for k in telling}
    smallest = {p: task_q(p) for p in {p for _, _, t in worlds for p in t}}
    own = {k: tails[k][statistic(here, k)] for k in telling}
    own_q = [smallest[p] for p in own_task_p]

    def chance(q: Fraction, families: list[int], members: list[int]) -> Fraction:
        return sum(
            (
                c
                for c, s, t in worlds
                if any(tails[k][s[k]] <= q for k in families)
                or any(smallest[t[i]] <= q for i in members)
            ),
            Fraction(0),
        )

    everything = list(range(len(sides)))
    steps = sorted({*own.values(), *own_q})
    single = {q: chance(q, telling, everything) for q in steps}
    step_down: dict[Fraction, Fraction] = {}
    so_far = Fraction(0)
    for q in steps:
        families = [k for k in telling if own[k] >= q]
        members = [i for i in everything if own_q[i] >= q]
        so_far = max(so_far, chance(q, families, members))
        step_down[q] = so_far
    return Enumerated(
        suite_p={k: own.get(k, Fraction(1)) for k in ks},
        differences={k: statistic(here, k) / len(included[k]) if included[k] else None for k in ks},
        included=included,
        task_p=own_task_p,
        task_family_p=min(own_q),
        p_value=single[steps[0]],
        single_step=single,
        step_down=step_down,
        task_q=own_q,
    )


def _side(task: TaskCounts, strata: str) -> _Side:
    cells = list(
        zip(
            task.baseline_n,
            task.candidate_n,
            task.baseline_passed,
            task.candidate_passed,
            strict=True,
        )
    )
    if strata == "task,seed":
        cells = [cell for cell in cells if cell[0] and cell[1]]
    else:
        cells = [tuple(sum(cell[i] for cell in cells) for i in range(4))]
    outcomes = {0: Fraction(1)}
    for baseline_n, candidate_n, baseline_passed, candidate_passed in cells:
        passed = baseline_passed + candidate_passed
        deals: dict[int, Fraction] = {}
        for total, chance in outcomes.items():
            for x in range(candidate_n + 1):
                ways = comb(candidate_n, x) * (comb(baseline_n, passed - x) if passed >= x else 0)
                if ways:
                    share = Fraction(ways, comb(baseline_n + candidate_n, passed))
                    deals[total + x] = deals.get(total + x, Fraction(0)) + chance * share
        outcomes = deals
    return _Side(
        baseline_n=sum(cell[0] for cell in cells),
        candidate_n=sum(cell[1] for cell in cells),
        passed=sum(cell[2] + cell[3] for cell in cells),
        outcomes=outcomes,
        observed=sum(cell[3] for cell in cells),
    )


SEED = st.tuples(st.sampled_from([0, 1, 1, 2, 3]), st.sampled_from([0, 1, 1, 2])).flatmap(
    lambda n: st.tuples(st.just(n[0]), st.integers(0, n[0]), st.just(n[1]), st.integers(0, n[1]))
)
SMALL_SUITES = st.lists(st.lists(SEED, min_size=2, max_size=2), min_size=1, max_size=3)


def _tasks(suite: list[list[tuple[int, int, int, int]]]) -> list[TaskCounts]:
    columns = (zip(*task, strict=True) for task in suite)
    return [
        TaskCounts(baseline_n=nb, baseline_passed=cb, candidate_n=nc, candidate_passed=cc)
        for nb, cb, nc, cc in columns
    ]


@pytest.mark.parametrize("strata", BOTH_STRATA)
@pytest.mark.parametrize("ks", [(1,), (1, 2), (2, 8), ()])
@settings(max_examples=examples(40))
@given(suite=SMALL_SUITES)
def test_small_suites_agree_with_brute_force(
    strata: Strata, ks: tuple[int, ...], suite: list[list[tuple[int, int, int, int]]]
) -> None:
    """Every p-value of a small suite is that of the enumeration of all deals, to 1e-12."""
    tasks = _tasks(suite)
    oracle = enumerate_joint(tasks, strata, ks)
    test = judged(tasks, strata, ks=ks)
    assert test.exact
    assert test.p_value == pytest.approx(float(oracle.p_value), abs=1e-12)
    assert test.task_family_p == pytest.approx(float(oracle.task_family_p), abs=1e-12)
    assert test.task_p == pytest.approx([float(p) for p in oracle.task_p], abs=1e-12)
    for k, family in test.families.items():
        difference = oracle.differences[k]
        assert family.included == oracle.included[k]
        assert family.p_value == pytest.approx(float(oracle.suite_p[k]), abs=1e-12)
        assert family.difference == (None if difference is None else pytest.approx(difference))


@pytest.mark.parametrize("strata", BOTH_STRATA)
@settings(max_examples=examples(60))
@given(suite=SMALL_SUITES)
def test_adjusted_lie_between_step_down_and_single_step(
    strata: Strata, suite: list[list[tuple[int, int, int, int]]]
) -> None:
    """An adjusted p-value is never below the exact step-down one, nor above the single-step one."""
    tasks = _tasks(suite)
    oracle = enumerate_joint(tasks, strata, (1, 2))
    test = judged(tasks, strata, ks=(1, 2))
    claims = [(f.p_adjusted, oracle.suite_p[k]) for k, f in test.families.items() if f.included]
    claims += zip(test.task_p_adjusted, oracle.task_q, strict=True)
    for adjusted, p_value in claims:
        assert adjusted >= float(oracle.step_down[p_value]) - 1e-12
        if p_value <= Fraction(1, 4):
            assert adjusted <= float(oracle.single_step[p_value]) + 1e-12


@settings(max_examples=examples(60))
@given(suite=SMALL_SUITES)
def test_smallest_adjusted_is_the_gates(suite: list[list[tuple[int, int, int, int]]]) -> None:
    """The gate's p-value is the smallest adjusted p-value of all claims."""
    test = judged(_tasks(suite), ks=(1, 2))
    adjusted = [family.p_adjusted for family in test.families.values()]
    assert min([*adjusted, *test.task_p_adjusted]) == test.p_value


DEGENERATE = {
    "no tasks": ([], 1.0),
    "one task, one trial a side, dropped": ([(1, 1, 1, 0)], 0.5),
    "one task, one trial a side, alike": ([(1, 1, 1, 1)], 1.0),
    "one trial a side, twelve tasks dropped": ([(1, 1, 1, 0)] * 12, 1 / 2**12),
    "everything passes": ([(8, 8, 8, 8)] * 5, 1.0),
    "both sides dead": ([(8, 0, 8, 0)] * 5, 1.0),
    "all tasks drop alike": ([(8, 8, 8, 4)] * 6, None),
    "all tasks rise": ([(8, 0, 8, 8)] * 6, 1.0),
    "unequal trials": ([(8, 8, 5, 5), (32, 30, 7, 1), (3, 1, 8, 2)], None),
    "a side without trials": ([(8, 8, 0, 0), (0, 0, 8, 4), (0, 0, 0, 0)], 1.0),
    "fewer trials than k": ([(4, 4, 4, 0)] * 3, None),
}


@pytest.mark.parametrize("strata", BOTH_STRATA)
@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_suites_are_ordinary(name: str, strata: Strata) -> None:
    """Suites without scatter, trials or tasks get p-values in (0, 1], and the known ones."""
    sides, expected = DEGENERATE[name]
    test = judged(counts_of(*sides), strata)
    everything = [test.p_value, test.task_family_p, *test.task_p, *test.task_p_adjusted]
    everything += [f.p_value for f in test.families.values()]
    everything += [f.p_adjusted for f in test.families.values()]
    assert all(0 < p <= 1 for p in everything)
    assert expected is None or test.p_value == pytest.approx(expected)


def test_total_failure_has_a_positive_p() -> None:
    """8/8 to 0/8 everywhere is red, is named task by task, and its p-value is not 0."""
    test = judged(counts_of(*[(8, 8, 8, 0)] * 50))
    assert 0 < test.p_value < 1e-20
    assert test.families[8].difference == -1.0
    assert max(test.task_p_adjusted) <= 0.05


def test_one_twentieth_is_not_above_the_level() -> None:
    """One task, 3/3 to 0/3: p is 1/20, which the level .05 must not miss by a rounding error."""
    test = judged(counts_of((3, 3, 3, 0)), ks=(1, 3))
    assert test.p_value == 0.05
    assert test.task_p == (0.05,)


def test_pass_k_family_is_limited_to_tasks_with_enough_trials() -> None:
    """A task below k trials leaves the family of that k by position, and stays in the others."""
    test = judged(counts_of((8, 8, 8, 4), (8, 8, 7, 0), (7, 7, 8, 0)))
    assert test.families[1].included == (0, 1, 2)
    assert test.families[8].included == (0,)
    assert test.families[8].difference == -1.0


def test_a_family_without_tasks_claims_nothing() -> None:
    """Where no task has k trials the family's difference does not exist and its p-value is 1."""
    family = judged(counts_of((4, 4, 4, 0))).families[8]
    assert (family.included, family.difference) == ((), None)
    assert (family.p_value, family.p_adjusted) == (1.0, 1.0)


def test_paired_strata_are_mcnemars() -> None:
    """One trial a side on each of 8 seeds, five of them lost: p is the sign test's 1/2^5."""
    task = TaskCounts(
        baseline_n=(1,) * 8,
        baseline_passed=(1,) * 8,
        candidate_n=(1,) * 8,
        candidate_passed=(0,) * 5 + (1,) * 3,
    )
    assert judged([task], "task,seed", ks=()).p_value == 1 / 32
    assert judged([task], "task", ks=()).p_value == pytest.approx(comb(11, 3) / comb(16, 8))


def test_seeds_of_one_side_do_not_enter_strata_by_seed() -> None:
    """Strata by seed use only the seeds that both sides judged."""
    shared = TaskCounts(
        baseline_n=(4, 4), baseline_passed=(4, 3), candidate_n=(1, 1), candidate_passed=(0, 1)
    )
    wider = TaskCounts(
        baseline_n=(4, 4, 4, 0),
        baseline_passed=(4, 3, 0, 0),
        candidate_n=(1, 1, 0, 1),
        candidate_passed=(0, 1, 0, 0),
    )
    assert judged([wider], "task,seed", ks=(1,)) == judged([shared], "task,seed", ks=(1,))
    assert judged([wider], "task", ks=(1,)) != judged([shared], "task", ks=(1,))


def _random_suite(count: int, baseline_n: int, candidate_n: int, drop: float) -> list[TaskCounts]:
    chance = np.random.default_rng(11)
    rates = chance.beta(1.2, 0.6, count)
    baseline = chance.binomial(baseline_n, rates).tolist()
    candidate = chance.binomial(candidate_n, np.maximum(rates - drop, 0)).tolist()
    return counts_of(
        *((baseline_n, b, candidate_n, c) for b, c in zip(baseline, candidate, strict=True))
    )


def _by_seed(count: int) -> list[TaskCounts]:
    chance = np.random.default_rng(12)
    rates = chance.beta(1.2, 0.6, (count, 8))
    baseline = chance.binomial(4, rates).tolist()
    candidate = chance.binomial(1, 0.85 * rates).tolist()
    return [
        TaskCounts(baseline_n=(4,) * 8, baseline_passed=b, candidate_n=(1,) * 8, candidate_passed=c)
        for b, c in zip(baseline, candidate, strict=True)
    ]


SUITES = {
    "exact": (_random_suite(30, 8, 8, 0.1), "task"),
    "drawn": (_random_suite(30, 32, 8, 0.1), "task"),
    "drawn by seed": (_by_seed(20), "task,seed"),
}


@pytest.mark.parametrize("name", SUITES)
def test_order_of_tasks_changes_nothing(name: str) -> None:
    """Shuffled tasks give the same p-values bit for bit, each with its task."""
    tasks, strata = SUITES[name]
    order = list(range(len(tasks)))
    random.Random(5).shuffle(order)
    straight = judged(tasks, strata)
    shuffled = judged([tasks[i] for i in order], strata)
    assert shuffled.p_value == straight.p_value
    assert shuffled.draws == straight.draws
    assert shuffled.task_p_adjusted == tuple(straight.task_p_adjusted[i] for i in order)
    for k, family in straight.families.items():
        other = shuffled.families[k]
        assert (other.p_value, other.p_adjusted) == (family.p_value, family.p_adjusted)
        assert other.difference == family.difference
        assert tuple(sorted(order[i] for i in other.included)) == family.included


@pytest.mark.parametrize("name", SUITES)
def test_equal_counts_give_equal_results(name: str) -> None:
    """The test is a function of counts and seed, and of the seed only where it draws."""
    tasks, strata = SUITES[name]
    assert judged(tasks, strata) == judged(tasks, strata)
    assert (judged(tasks, strata, seed=2) == judged(tasks, strata)) == (name == "exact")


def test_draws_agree_with_the_exact_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forced to draw, the test finds the exact p-values within four standard errors."""
    tasks = _random_suite(30, 8, 8, 0.05)
    exact = judged(tasks)
    monkeypatch.setattr(exact_null, "MOST_WORK", 0)
    drawn = judged(tasks, max_draws=1 << 16)
    assert (exact.exact, exact.draws, drawn.exact) == (True, 0, False)
    assert drawn.p_value == pytest.approx(exact.p_value, abs=4 * drawn.standard_error)
    assert drawn.task_p == exact.task_p
    assert drawn.task_family_p == exact.task_family_p
    for k, family in drawn.families.items():
        assert not family.exact
        error = 4 * family.standard_error
        assert family.p_value == pytest.approx(exact.families[k].p_value, abs=error)


def test_few_draws_never_give_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the observed outcome counted as a draw, 9 draws cannot give less than a tenth."""
    monkeypatch.setattr(exact_null, "MOST_WORK", 0)
    test = judged(counts_of(*[(8, 8, 8, 6)] * 10), ks=(1,), max_draws=9)
    assert test.draws == 9
    assert test.families[1].p_value == 0.1


def test_close_calls_draw_more_and_say_when_undecided() -> None:
    """Draws go on while the level is within three standard errors, to the bound, and say so."""
    tasks = _random_suite(30, 32, 8, 0.05)
    clear = judged(tasks)
    closer = judged(tasks, level=clear.p_value, max_draws=1 << 16)
    closest = judged(tasks, level=closer.p_value, max_draws=1 << 16)
    assert (clear.draws, clear.undecided) == (permutation.FIRST_DRAWS, False)
    assert (closest.draws, closest.undecided) == (1 << 16, True)


def test_huge_scales_do_not_overflow() -> None:
    """Trials whose binomials have no common 64-bit denominator are compared in whole numbers."""
    sides = [(n, n - n // 9, n + 1, n // 2) for n in range(20, 60)]
    drawn = judged(counts_of(*sides), ks=(8,), max_draws=512)
    assert not drawn.families[8].exact
    assert drawn.families[8].p_value == pytest.approx(1 / 513)
    assert -1 < drawn.families[8].difference < 0


@pytest.mark.parametrize("name", SUITES)
def test_phi_shrinks_the_suite_and_leaves_the_tasks(name: str) -> None:
    """Runs that scatter too much make suite drops less surprising; task p-values stay."""
    tasks, strata = SUITES[name]
    plain, shrunk = judged(tasks, strata), judged(tasks, strata, phi=4.0)
    assert plain.families[1].p_value < shrunk.families[1].p_value < 0.5
    assert shrunk.task_p == plain.task_p
    assert judged(tasks, strata, phi=0.7) == plain


def test_margin_accepts_a_drop_of_the_suite_but_not_of_a_task() -> None:
    """A drop within the margin is no surprise, one far beyond it is, and tasks stay strict."""
    tasks = _random_suite(50, 8, 8, 0.1)
    strict, lenient = judged(tasks), judged(tasks, margin=0.15)
    assert strict.families[1].p_value < 0.01
    assert lenient.families[1].p_value > 0.5
    assert lenient.task_p == strict.task_p
    assert judged(_random_suite(50, 8, 8, 0.4), margin=0.15).p_value < 0.001


def test_margin_never_divides_by_zero() -> None:
    """Constant suites have a variance too, by the pseudo-task."""
    test = judged(counts_of(*[(8, 8, 8, 8)] * 4, (8, 8, 8, 7)), margin=0.1)
    assert test.families[1].p_value == 1.0


@pytest.mark.parametrize(
    "options",
    [
        {"ks": (1, 1)},
        {"ks": (0,)},
        {"margin": -0.1},
        {"margin": 1.0},
        {"level": 0.0},
        {"phi": float("nan")},
        {"phi": -1.0},
        {"max_draws": 0},
    ],
)
def test_impossible_arguments_are_refused(options: dict[str, object]) -> None:
    """An argument outside its range is named with what was found."""
    with pytest.raises(ValueError, match="found"):
        judged(counts_of((1, 1, 1, 1)), **options)


@pytest.mark.parametrize("tasks", [1, 2, 3])
def test_a_few_tasks_are_exact_whatever_their_trials(tasks: int) -> None:
    """A handful of tasks, 8 against 32, has few outcomes: they are listed, not drawn."""
    sides = [(32, 30, 8, 5), (32, 31, 8, 7), (31, 20, 8, 8)][:tasks]
    test = judged(counts_of(*sides))
    oracle = enumerate_joint(counts_of(*sides), "task", (1, 8))
    assert test.exact
    assert test.p_value == pytest.approx(float(oracle.p_value), abs=1e-12)
    assert test.families[8].p_value == pytest.approx(float(oracle.suite_p[8]), abs=1e-12)


def test_unknown_strata_are_refused() -> None:
    """A misspelt stratum is an error, not the default."""
    with pytest.raises(ValueError, match="found 'seed'"):
        judged([], "seed")


@pytest.mark.slow
def test_many_tasks_cost_little() -> None:
    """A thousand tasks, 32 against 32: their groups are few, and the first draws suffice."""
    test = judged(_random_suite(1000, 32, 32, 0.0))
    assert test.draws == permutation.FIRST_DRAWS
    assert test.families[1].exact

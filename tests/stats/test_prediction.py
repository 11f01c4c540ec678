"""The chance that the full plan would be red."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest

from ci_gate.stats.counts import Strata, TaskCounts
from ci_gate.stats.permutation import joint_test
from ci_gate.stats.prediction import Look, Prediction, predict
from ci_gate.stats.quick_verdict import SimulatedRuns, blocked
from tests.speeds import slow

GATE = {"ks": (1, 8), "level": 0.05, "seed": 1}


def look_of(
    baseline: list[tuple[int, int]], candidate: list[tuple[int, int]], planned: int = 8
) -> Look:
    """Trials and passes of each task, all of them exchangeable."""
    return Look(
        baseline_n=np.array([[n] for n, _ in baseline]),
        baseline_passed=np.array([[c] for _, c in baseline]),
        candidate_n=np.array([[n] for n, _ in candidate]),
        candidate_passed=np.array([[c] for _, c in candidate]),
        planned_n=np.full((len(baseline), 1), planned),
    )


def seeded_look(tasks: int, rounds: int, rate: float, number: int) -> Look:
    """Eight seeds of very different chances, four baseline runs, some rounds of the candidate."""
    chance = np.random.default_rng(number)
    rates = chance.beta(0.6, 0.3, (tasks, 8))
    done = np.zeros((tasks, 8), dtype=np.int64)
    done[:, :rounds] = 1
    return Look(
        baseline_n=np.full((tasks, 8), 4),
        baseline_passed=chance.binomial(4, rates),
        candidate_n=done,
        candidate_passed=chance.binomial(1, rate * rates) * done,
        planned_n=np.ones((tasks, 8), dtype=np.int64),
    )


def turned(look: Look, tasks: list[int], positions: list[int]) -> Look:
    """The same look with tasks and positions in another order."""
    return Look(
        **{
            name: getattr(look, name)[tasks][:, positions]
            for name in (
                "baseline_n",
                "baseline_passed",
                "candidate_n",
                "candidate_passed",
                "planned_n",
            )
        }
    )


def drawn_suite(tasks: int, rounds: int, drop: float) -> Look:
    """A suite with 32 baseline trials a task whose candidate passes less often."""
    chance = np.random.default_rng(tasks)
    rates = chance.beta(1.2, 0.6, tasks)
    after = chance.binomial(rounds, np.maximum(rates - drop, 0))
    before = chance.binomial(32, rates)
    return look_of([(32, c) for c in before.tolist()], [(rounds, c) for c in after.tolist()])


@pytest.mark.parametrize(("passed", "red"), [(7, 0.0), (3, 1.0)])
def test_without_trials_left_the_test_itself_speaks(passed: int, red: float) -> None:
    """A finished plan is red with chance 0 or 1, as the joint test says, claim by claim."""
    counts = [(8, 8)] * 4
    found = predict(look_of(counts, [(8, passed)] * 4), strata="task", **GATE)

    test = joint_test(
        [
            TaskCounts(
                baseline_n=(8,), baseline_passed=(8,), candidate_n=(8,), candidate_passed=(passed,)
            )
        ]
        * 4,
        strata="task",
        **GATE,
    )
    assert found.red == red == float(test.p_value <= 0.05)
    assert found.suites == {k: float(test.families[k].p_adjusted <= 0.05) for k in (1, 8)}
    assert found.tasks == tuple(float(p <= 0.05) for p in test.task_p_adjusted)


def test_what_cannot_change_any_more_is_certain() -> None:
    """One task, 8 of 8 before: at 0 of 6 no rest turns it green, at 6 of 6 none turns it red."""
    lost = predict(look_of([(8, 8)], [(6, 0)]), strata="task", **GATE)
    kept = predict(look_of([(8, 8)], [(6, 6)]), strata="task", **GATE)

    assert (lost.red, lost.tasks) == (1.0, (1.0,))
    assert (kept.red, kept.tasks, kept.suites[1]) == (0.0, (0.0,), 0.0)


def test_one_open_trial_has_the_chance_of_its_outcome() -> None:
    """8 of 8 against 4 of 7 is red only if the last fails too: a chance between, and listed."""
    found = predict(look_of([(8, 8)], [(7, 4)]), strata="task", **GATE)

    p_if_fails = comb(8, 4) / comb(16, 12)
    assert p_if_fails < 0.05 < comb(8, 5) / comb(16, 13)
    assert 0.2 < found.red < 0.8
    assert found.red == found.tasks[0] == found.suites[1]


def test_what_never_passed_cannot_drop() -> None:
    """A dead baseline is never red, and that is certain at once."""
    look = look_of([(32, 0)] * 30, [(1, 1)] * 30)

    assert predict(look, strata="task", **GATE) == Prediction(
        red=0.0, suites={1: 0.0, 8: 0.0}, tasks=(0.0,) * 30
    )


@pytest.mark.parametrize("sceptical", [False, True])
def test_it_tells_a_collapse_from_a_good_run(sceptical: bool) -> None:
    """Thirty tasks that always passed: failing everywhere is red, passing everywhere is not."""
    baseline = [(32, 32)] * 30
    options = {**GATE, "strata": "task", "sceptical": sceptical}

    collapsed = predict(look_of(baseline, [(2, 0)] * 30), **options)
    held = predict(look_of(baseline, [(6, 6)] * 30), **options)

    assert collapsed.red > 0.99
    assert collapsed.suites[1] > 0.99
    assert held.red < 0.05
    assert held.red > 0


def test_a_broken_task_is_the_one_that_is_named() -> None:
    """One task of thirty fails four times where it always passed: its own claim carries the red."""
    candidate = [(4, 4)] * 30
    candidate[17] = (4, 0)
    found = predict(look_of([(32, 32)] * 30, candidate), strata="task", **GATE)

    assert found.red > 0.7
    assert found.tasks[17] > 0.7
    assert max(p for task, p in enumerate(found.tasks) if task != 17) < 0.05


@pytest.mark.parametrize("tasks", [*slow(4), 40])
def test_the_order_of_the_tasks_decides_nothing(tasks: int) -> None:
    """Turned tasks have the same chances, bit for bit, each with its task."""
    look = drawn_suite(tasks, rounds=3, drop=0.1)
    order = list(range(tasks))[::-1]

    first = predict(look, strata="task", **GATE)
    second = predict(turned(look, order, [0]), strata="task", **GATE)

    assert second.red == first.red
    assert second.suites == first.suites
    assert second.tasks == first.tasks[::-1]


def test_the_order_of_the_seeds_decides_nothing() -> None:
    """With seeds as strata neither the tasks' nor the seeds' order matters."""
    look = seeded_look(12, rounds=3, rate=0.8, number=5)

    first = predict(look, strata="task,seed", **GATE)
    second = predict(
        turned(look, list(range(12))[::-1], [3, 1, 0, 2, 7, 6, 5, 4]), strata="task,seed", **GATE
    )

    assert second.red == first.red
    assert second.tasks == first.tasks[::-1]


def test_a_known_seed_is_no_news() -> None:
    """A seed that always failed may fail again: only strata by seed know it."""
    look = Look(
        baseline_n=np.full((20, 8), 4),
        baseline_passed=np.tile([4, 4, 4, 4, 0, 0, 0, 0], (20, 1)),
        candidate_n=np.tile([1, 1, 0, 0, 1, 1, 1, 1], (20, 1)),
        candidate_passed=np.tile([1, 1, 0, 0, 0, 0, 0, 0], (20, 1)),
        planned_n=np.ones((20, 8), dtype=np.int64),
    )

    by_seed = predict(look, strata="task,seed", **GATE)
    pooled = predict(look, strata="task", **GATE)

    assert by_seed.red < 0.3
    assert pooled.suites[1] > 0.6


def test_strata_that_one_side_lacks_do_not_enter() -> None:
    """A task without a baseline, and one that will not be judged, are never red."""
    look = look_of([(32, 30)] * 12, [(3, 1)] * 12)
    look.baseline_n[0] = look.baseline_passed[0] = 0
    look.candidate_n[1] = look.candidate_passed[1] = look.planned_n[1] = 0

    found = predict(look, strata="task", **GATE)

    assert found.red > 0.9
    assert found.tasks[0] == found.tasks[1] == min(found.tasks)


def test_phi_makes_a_red_suite_less_likely() -> None:
    """Where whole runs scatter, the same trials foretell fewer reds, as in the test."""
    look = drawn_suite(30, rounds=4, drop=0.1)

    plain = predict(look, strata="task", **GATE)
    shrunk = predict(look, strata="task", phi=6.0, **GATE)

    assert shrunk.suites[1] < plain.suites[1] - 0.1


def test_a_different_plan_is_another_question() -> None:
    """Trials of tasks that differ in number are judged by what will be there: k is out of reach."""
    look = look_of([(16, 16)] * 20, [(2, 1)] * 20, planned=4)

    found = predict(look, strata="task", **GATE)

    assert found.red > 0.9
    assert found.suites[8] < 0.01


@pytest.mark.parametrize(
    ("baseline", "candidate"), [([], []), ([(8, 9)], [(1, 1)]), ([(8, 8)], [(9, 9)])]
)
def test_impossible_counts_are_refused(
    baseline: list[tuple[int, int]], candidate: list[tuple[int, int]]
) -> None:
    """No tasks, more passes than trials, and more trials than planned have no prediction."""
    look = look_of(baseline, candidate) if baseline else Look(*[], **_empty())

    with pytest.raises(ValueError, match="a look has a task"):
        predict(look, strata="task", **GATE)


def _empty() -> dict[str, np.ndarray]:
    none = np.zeros((0, 1), dtype=np.int64)
    return dict.fromkeys(
        ("baseline_n", "baseline_passed", "candidate_n", "candidate_passed", "planned_n"), none
    )


@pytest.mark.parametrize("strata", ["task", "task,seed"])
def test_equal_looks_have_equal_predictions(strata: Strata) -> None:
    """The figures of a fixed look, to nine digits: the same in every place and release."""
    look = seeded_look(20, rounds=4, rate=0.85, number=2)

    found = predict(look, strata=strata, **GATE)

    assert found == predict(look, strata=strata, **GATE)
    assert found.red == FIXED[strata]


FIXED = {"task": 0.88791423, "task,seed": 0.992555528}


@pytest.mark.calibration
def test_chances_come_true() -> None:
    """After 3 of 8 rounds as many plans turn out red as was said, whether likely or not."""
    chance = np.random.default_rng(7)
    rates = chance.beta(1.2, 0.6, (120, 30))
    factor = np.exp(-chance.choice([0, 0, 0.5, 1.0], 120))[:, None]
    odds = factor * rates / np.maximum(1 - rates, 1e-12)
    trials = chance.random((8, 120, 30)) < odds / (1 + odds)
    before, after = chance.binomial(32, rates), trials.sum(axis=0)

    said = np.array(
        [
            predict(
                look_of([(32, c) for c in own], [(3, c) for c in now]), strata="task", **GATE
            ).red
            for own, now in zip(before.tolist(), trials[:3].sum(axis=0).tolist(), strict=True)
        ]
    )
    runs = SimulatedRuns(
        baseline_n=np.full((30, 1), 32),
        baseline_passed=before[..., None],
        candidate_n=np.full((30, 1), 8),
        candidate_passed=after[..., None],
    )
    came = blocked(runs, strata="task", **GATE)

    for low, high in ((0.0, 0.2), (0.2, 0.8), (0.8, 1.0)):
        inside = (said >= low) & (said <= high)
        error = np.sqrt((said * (1 - said))[inside].sum()) / inside.sum()
        assert inside.sum() > 15
        assert abs(said[inside].mean() - came[inside].mean()) < 3 * error

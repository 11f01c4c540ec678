"""Guards: which trials they are judged from, when they are broken, and what is unknown."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pytest

from ci_gate.decision.circumstances import Circumstances
from ci_gate.decision.compare import compare
from ci_gate.decision.decide import decide
from ci_gate.decision.guards import guards_of
from ci_gate.model.policy import Guard, Policy
from ci_gate.model.run import Measure, Side, SideTask
from ci_gate.model.verdict import Decision, GuardResult, Verdict
from ci_gate.render.markdown import markdown
from ci_gate.render.view import view
from tests.notation import side_of

Tasks = Mapping[str, SideTask]


def spent(mean: float, sd: float | None = 0.1, **fields: Any) -> Measure:
    """Return a measure; the mean over passed trials is the mean unless told."""
    return Measure(mean=mean, sd=sd, **({"mean_passed": mean} | fields))


def tasks(outcomes: str = "++++++++", n: int = 4, **fields: Any) -> Tasks:
    """Return tasks that are all alike; measures by name have one entry a run."""
    runs = tuple(outcomes.split("/"))
    counts = {k: fields.pop(k) for k in ("faulted", "recovered", "looped") if k in fields}
    process = fields.pop("process", {})
    one = SideTask(outcomes=runs, measures=fields, process=process, **counts)
    return {f"task-{i}": one for i in range(n)}


def judged(guard: Guard, baseline: Tasks, candidate: Tasks, **policy: Any) -> list[GuardResult]:
    """Hold one guard against two sides."""
    return list(guards_of(baseline, candidate, Policy(guards=(guard,), **policy)))


COST = "cost_per_success_usd"


@pytest.mark.parametrize("metric", ["turns", "tokens", "duration_s"])
def test_amounts_are_held_against_a_relative_limit(metric: str) -> None:
    """A fifth more is within a quarter and beyond a tenth."""
    before = tasks(**{metric: (spent(100.0),)})
    after = tasks(**{metric: (spent(120.0),)})

    (kept,) = judged(Guard(metric=metric, max_increase=0.25), before, after)
    (broken,) = judged(Guard(metric=metric, max_increase=0.1), before, after)

    assert (kept.passed, broken.passed) == (True, False)
    assert kept.change == pytest.approx(0.2)
    assert (kept.baseline, kept.candidate, kept.limit) == (100.0, 120.0, 0.25)
    assert kept.bound is not None
    assert 0.19 < kept.bound < 0.2


def test_chance_alone_breaks_no_guard() -> None:
    """Beyond the limit by its estimate, not with confidence: kept."""
    before, after = tasks(turns=(spent(10.0, 8.0),)), tasks(turns=(spent(11.0, 8.0),))

    (result,) = judged(Guard(metric="turns", max_increase=0.05), before, after)

    assert result.change is not None
    assert result.change > 0.05
    assert result.passed is True


def test_both_directions_have_a_result_each() -> None:
    """A decrease has a negative limit and an upper bound."""
    before, after = tasks(turns=(spent(10.0),)), tasks(turns=(spent(5.0),))

    up, down = judged(Guard(metric="turns", max_increase=0.1, max_decrease=0.3), before, after)

    assert (up.direction, up.limit, up.passed) == ("increase", 0.1, True)
    assert (down.direction, down.limit, down.passed) == ("decrease", -0.3, False)
    assert down.bound is not None
    assert down.bound > -0.5


def test_cost_per_success_rises_when_successes_fall() -> None:
    """The same money for half of the successes is twice the cost of one."""
    before = tasks(cost_usd=(spent(1.0),))
    after = tasks("++++----", cost_usd=(spent(1.0),))

    (result,) = judged(Guard(metric=COST, max_increase=0.2), before, after)

    assert (result.baseline, result.candidate, result.change) == (1.0, 2.0, 1.0)
    assert result.passed is False


def test_the_mean_over_passed_trials_narrows_the_bound() -> None:
    """Where failures are the dear trials, cost and success move against each other."""
    guard = Guard(metric=COST, max_increase=0.0)
    before = tasks("++++++--", cost_usd=(spent(1.0, 0.5),))
    dear_failures = tasks("+++++---", cost_usd=(spent(1.0, 0.5, mean_passed=0.6),))
    dear_successes = tasks("+++++---", cost_usd=(spent(1.0, 0.5, mean_passed=1.4),))

    (wide,) = judged(guard, before, dear_failures)
    (narrow,) = judged(guard, before, dear_successes)

    assert wide.change == narrow.change
    assert wide.bound is not None
    assert narrow.bound is not None
    assert wide.bound < narrow.bound


def test_rates_are_held_against_an_absolute_limit() -> None:
    """Three of four recoveries became one of four: half a hundred points."""
    before = tasks(faulted=(4,), recovered=(3,))
    after = tasks(faulted=(4,), recovered=(1,))

    (result,) = judged(Guard(metric="self_healing_rate", max_decrease=0.1), before, after)

    assert (result.baseline, result.candidate, result.change) == (0.75, 0.25, -0.5)
    assert result.passed is False


def test_dead_loops_count_over_all_trials() -> None:
    """One trial in eight goes in circles now, and none did."""
    before, after = tasks(n=12, looped=(0,)), tasks(n=12, looped=(1,))

    (result,) = judged(Guard(metric="dead_loop_rate", max_increase=0.01), before, after)

    assert (result.baseline, result.candidate, result.passed) == (0.0, 0.125, False)


def test_a_process_measure_may_be_negative() -> None:
    """An agent's own measure has its own unit and sign, and changes absolutely."""
    before, after = tasks(margin=(spent(-1.0),)), tasks(margin=(spent(2.0),))

    (result,) = judged(Guard(metric="margin", max_increase=2.5), before, after)

    assert (result.change, result.passed) == (3.0, False)


def test_a_guard_on_a_process_measure_looks_at_the_trials_that_know_it() -> None:
    """What the others do not know is not missing; an own measure of its name is not looked at."""
    known, lower = spent(1.0, 0.0, known=6), spent(0.25, 0.1, known=6)
    before = tasks(process={"consistency": (known,)}, consistency=(spent(0.0),))
    after = tasks(process={"consistency": (lower,)}) | {
        f"other-{task}": one for task, one in tasks().items()
    }
    guard = Guard(metric="consistency", max_decrease=0.1)

    (result,) = judged(guard, {**tasks(), **before}, after)
    (unknown,) = judged(guard, before, tasks())

    assert (result.baseline, result.candidate, result.passed) == (1.0, 0.25, False)
    assert result.excluded == ()
    assert (unknown.baseline, unknown.passed) == (None, None)


def test_a_candidate_without_a_success_is_infinite_and_broken() -> None:
    """No crash: there is no number for it, and there is a bound for its change."""
    before = tasks(cost_usd=(spent(1.0),))
    after = tasks("--------", cost_usd=(spent(1.0, mean_passed=None),))

    up, down = judged(Guard(metric=COST, max_increase=0.5, max_decrease=0.5), before, after)

    assert (up.candidate, up.change, up.passed) == (None, None, False)
    assert up.bound is not None
    assert up.bound > 0.5
    assert (down.bound, down.passed) == (None, True)


@pytest.mark.parametrize(
    ("metric", "baseline", "candidate"),
    [
        ("turns", tasks(), tasks(turns=(spent(1.0),))),
        ("turns", tasks(turns=(spent(1.0),)), tasks()),
        ("turns", tasks(turns=(spent(1.0),)), tasks(turns=(None,))),
        ("turns", tasks(turns=(spent(1.0),)), tasks(turns=(spent(1.0, known=7),))),
        ("turns", tasks(turns=(spent(1.0),)), tasks(turns=(spent(1.0, None),))),
        ("turns", tasks(turns=(spent(1.0),)), tasks(turns=(spent(-1.0),))),
        ("turns", tasks(turns=(spent(1.0),)), tasks(turns=(spent(math.inf),))),
        ("turns", tasks(turns=(spent(1.0),)), tasks(turns=(spent(math.nan),))),
        ("turns", tasks(turns=(spent(1.0),)), tasks(turns=(spent(1e300),))),
        ("turns", tasks(turns=(spent(0.0),)), tasks(turns=(spent(1.0),))),
        (COST, tasks(cost_usd=(spent(1.0),)), tasks(cost_usd=(spent(1.0, mean_passed=None),))),
        (COST, tasks("--------", cost_usd=(spent(1.0),)), tasks(cost_usd=(spent(1.0),))),
        ("self_healing_rate", tasks(faulted=(0,), recovered=(0,)), tasks(faulted=(1,))),
        ("self_healing_rate", tasks(faulted=(4,), recovered=(4,)), tasks(faulted=(1,))),
        ("self_healing_rate", *(tasks(faulted=(0,), recovered=(0,)),) * 2),
        ("dead_loop_rate", tasks(looped=(0,)), tasks(looped=(9,))),
        ("dead_loop_rate", tasks(looped=(0,)), tasks(looped=None)),
        ("trun", tasks(turns=(spent(1.0),)), tasks(turns=(spent(1.0),))),
    ],
)
def test_what_a_side_does_not_know_is_unknown(
    metric: str, baseline: Tasks, candidate: Tasks
) -> None:
    """Neither red nor green: nothing is made up for what is not there or absurd."""
    (result,) = judged(Guard(metric=metric, max_increase=0.1), baseline, candidate)

    assert (result.passed, result.change, result.bound) == (None, None, None)


def test_tasks_without_the_measure_are_left_out_by_name_within_the_errored_share() -> None:
    """One crashed trial must not blind the guard, and many must not go unseen."""
    before = tasks(n=20, turns=(spent(10.0),))
    after = {**before, "task-3": SideTask(outcomes=("++++++++",))}
    guard = Guard(metric="turns", max_increase=0.1)

    (within,) = judged(guard, before, after, max_errored_rate=0.05)
    (beyond,) = judged(guard, before, after, max_errored_rate=0.04)

    assert (within.passed, within.excluded) == (True, ("task-3",))
    assert (beyond.passed, beyond.excluded) == (None, ())


def test_a_run_that_does_not_know_is_left_to_the_others() -> None:
    """Four runs of a baseline are not thrown away for one trial of one of them."""
    before = tasks("++++/++++", turns=(spent(10.0), None))
    after = tasks("++++", turns=(spent(10.0),))

    (result,) = judged(Guard(metric="turns", max_increase=0.1), before, after)

    assert (result.baseline, result.passed, result.excluded) == (10.0, True, ())


def test_the_baseline_is_shown_for_the_candidates_mix_of_tasks() -> None:
    """That trials of the dear task errored is no saving."""
    before = {
        "cheap": SideTask(outcomes=("++++++++",), measures={"turns": (spent(2.0),)}),
        "dear": SideTask(outcomes=("++++++++",), measures={"turns": (spent(20.0),)}),
    }
    after = before | {"dear": SideTask(outcomes=("++!!!!!!",), measures={"turns": (spent(20.0),)})}

    (result,) = judged(Guard(metric="turns", max_decrease=0.1), before, after)

    assert result.baseline == result.candidate == pytest.approx((8 * 2 + 2 * 20) / 10)
    assert result.change == pytest.approx(0.0)


def test_without_compared_tasks_there_is_no_result() -> None:
    """A first run has nothing to be held against."""
    assert judged(Guard(metric="turns", max_increase=0.1), {}, {}) == []


def verdict_of(baseline: Side | None, candidate: Side, guard: Guard, **around: Any) -> Verdict:
    """Judge two sides under one guard."""
    policy, known = Policy(guards=(guard,)), Circumstances(**around)
    return decide(compare(baseline, candidate, policy, known), policy, known)


def desk(turns: float | None, outcomes: str = "++++++++") -> Side:
    """Return a side of four tasks, in which a trial costs a dollar."""
    measures: dict[str, tuple[Measure, ...]] = {"cost_usd": (spent(1.0),)}
    if turns is not None:
        measures["turns"] = (spent(turns),)
    fields = {f"t{i}": {"measures": measures} for i in range(4)}
    return side_of(" ".join(f"t{i} {outcomes}" for i in range(4)), **fields)


TURNS = Guard(metric="turns", max_increase=0.1)


def test_a_broken_guard_makes_the_verdict_red_and_says_its_limit() -> None:
    """Everything passed, and it took twice the turns."""
    verdict = verdict_of(desk(5.0), desk(10.0), TURNS)

    assert verdict.decision is Decision.REGRESSED
    assert [str(reason.code) for reason in verdict.reasons] == ["guard"]
    assert verdict.reasons[0].text.endswith("turns (max_increase 0.1).")


def test_an_unknown_guard_is_inconclusive_and_names_the_measure() -> None:
    """The gate was asked to watch something and could not."""
    verdict = verdict_of(desk(5.0), desk(None), TURNS)

    assert verdict.decision is Decision.INCONCLUSIVE
    assert [str(reason.code) for reason in verdict.reasons] == ["guard-unknown"]
    assert "turns" in verdict.reasons[0].text


@pytest.mark.parametrize("turns", [10.0, None])
def test_the_label_accepts_a_guard(turns: float | None) -> None:
    """A guard holds the change against the present baseline, which the label moves."""
    verdict = verdict_of(desk(5.0), desk(turns), TURNS, labelled=True)

    assert verdict.decision is Decision.PASSED
    assert verdict.guards[0].passed is not True


def test_without_a_baseline_guards_are_not_judged() -> None:
    """The first run of a suite is no failure."""
    verdict = verdict_of(None, desk(5.0), TURNS)

    assert (verdict.decision, verdict.guards) == (Decision.PASSED, ())


def test_each_limit_adds_its_alpha_to_the_total_bound() -> None:
    """The test, and two limits outside it."""
    guard = Guard(metric="turns", max_increase=0.1, max_decrease=0.1)

    verdict = verdict_of(desk(5.0), desk(5.0), guard)

    assert verdict.method.false_alarm_bound == 0.15


def test_the_report_says_that_the_alpha_is_its_own_and_prints_the_infinite() -> None:
    """A reader sees what a guard adds to the false alarms, and a cost without a success."""
    guard = Guard(metric=COST, max_increase=0.1)

    text = markdown(view([verdict_of(desk(5.0), desk(5.0, "--------"), guard)]))

    assert "Each limit has this alpha of its own" in text
    assert "All judgements together: at most 10.0 %" in text
    rows = [line.split("|") for line in text.splitlines() if line.startswith("| cost per success")]
    assert [[cell.strip() for cell in row[2:5]] for row in rows if len(row) > 5] == [
        ["1", "∞", "∞"]
    ]

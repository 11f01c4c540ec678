"""From a baseline to what checks would see: plans, prices, refusals."""

from __future__ import annotations

import datetime

import msgspec
import pytest

from ci_gate.decision import power
from ci_gate.decision.power import Question
from ci_gate.errors import BaselineError, UsageError
from ci_gate.model.policy import Policy, Quarantine
from ci_gate.model.power import Prospect
from ci_gate.model.run import Measure, Side
from tests.notation import side_of

# Simulations of many checks: seconds.
pytestmark = pytest.mark.slow

STEADY = " ".join(f"t{i:02d} {'+' * (8 - i % 4)}{'-' * (i % 4)}" for i in range(12))
ONE_DROP = Question(drops=(0.3,))


def foresee(side: Side, policy: Policy, question: Question) -> Prospect:
    """Foresee from few simulated checks: what they share does not hang on sharp figures."""
    few = min(question.most_repeats, 128)
    return power.foresee(side, policy, msgspec.structs.replace(question, most_repeats=few))


def measured(**values: float | None) -> dict[str, tuple[Measure | None, ...]]:
    """Measures of one run."""
    return {
        name: (None if value is None else Measure(mean=value, sd=0.0, mean_passed=value),)
        for name, value in values.items()
    }


def priced(**first: float | None) -> Prospect:
    """Two tasks of 8 trials; what is said replaces the first task's measures."""
    usual = {"tokens": 100.0, "cost_usd": 0.5, "duration_s": 3.0}
    side = side_of(
        "refund ++++++++ cancel +++++++-",
        refund={"measures": measured(**(usual | first))},
        cancel={"measures": measured(**usual)},
    )
    return foresee(side, Policy(), Question(drops=(0.3,), trials=(16,), deep_runs=1, jobs=4))


def test_a_prospect_says_what_a_check_would_see() -> None:
    """A false alarm, each drop asked for, flaky and broken tasks, and rising chances on a curve."""
    found = foresee(side_of(STEADY), Policy(), Question(drops=(0.05, 0.3)))

    assert [sight.shape for sight in found.sights] == ["none", "shift", "shift", "flaky", "broken"]
    assert [sight.drop for sight in found.sights[1:3]] == [0.05, 0.3]
    shares = [sight.blocked for sight in found.curve]
    assert shares == sorted(shares)
    assert found.detectable_drop is not None
    assert 0.05 < found.detectable_drop < 0.3
    assert (found.baseline.tasks, found.baseline.runs, found.baseline.trials) == (12, 1, 8)


def test_the_fewest_trials_that_do_are_the_cheapest_plan() -> None:
    """Eight trials see a large drop; a small one needs more, or is said not to be reached."""
    found = foresee(side_of(STEADY), Policy(), Question(drops=(0.01, 0.3), deep_runs=1))

    (plan,) = found.plans
    assert (plan.trials, plan.renewed, plan.cheapest) == (8, False, True)
    assert plan.baseline.trials == 0
    assert found.unreached == (0.01,)
    assert found.most_trials == 64


def test_more_seeds_mean_a_new_baseline_and_more_runs_an_addition() -> None:
    """What the baseline lacks is priced once, apart from the check."""
    question = Question(drops=(0.3,), trials=(8, 16), deep_runs=4)
    found = foresee(side_of(STEADY), Policy(), question)

    plans = {(plan.trials, plan.runs): plan for plan in found.plans}
    assert set(plans) == {(8, 1), (16, 1), (8, 4), (16, 4)}
    assert {key: plan.check.trials for key, plan in plans.items()} == {
        (8, 1): 96,
        (16, 1): 192,
        (8, 4): 96,
        (16, 4): 192,
    }
    assert {key: plan.baseline.trials for key, plan in plans.items()} == {
        (8, 1): 0,
        (16, 1): 192,
        (8, 4): 288,
        (16, 4): 768,
    }


def test_prices_are_the_baselines_averages_of_each_task() -> None:
    """Tokens and money are means times trials, time is shared out over the jobs."""
    found = priced(tokens=300.0)

    assert found.check.tokens == 8 * 300 + 8 * 100
    assert found.check.cost_usd == pytest.approx(8.0)
    assert found.check.duration_s == pytest.approx(16 * 3 / 4)
    assert found.plans[0].check.cost_usd == pytest.approx(16.0)


def test_what_one_task_does_not_know_is_unknown() -> None:
    """Unknown money is not free: the sum is unknown, and so is time where a duration is."""
    found = priced(cost_usd=None, duration_s=None)

    assert found.check.cost_usd is None
    assert found.check.duration_s is None
    assert found.check.tokens == 1600


def test_starts_a_minute_bound_the_time() -> None:
    """Sixteen trials at two a minute take eight minutes, however many jobs there are."""
    side = side_of("refund ++++++++ cancel ++++++++", refund={}, cancel={})
    tasks = {
        name: msgspec.structs.replace(task, measures=measured(duration_s=1.0))
        for name, task in side.tasks.items()
    }
    side = msgspec.structs.replace(side, tasks=tasks)

    found = foresee(side, Policy(), Question(drops=(0.5,), jobs=16, max_per_minute=2))

    assert found.check.duration_s == 480


def test_seeds_that_matter_become_strata_and_see_more() -> None:
    """Repeats that agree seed by seed make seeds strata, as in the gate."""
    agreeing = " ".join(f"t{i:02d} {'/'.join(['+++++---'] * 4)}" for i in range(10))
    mixed = " ".join(f"t{i:02d} +++++---/---+++++/+-+-+-++/-+++-++-" for i in range(10))

    by_seed = foresee(side_of(agreeing), Policy(), Question(drops=(0.1,), trials=(8,)))
    by_task = foresee(side_of(mixed), Policy(), Question(drops=(0.1,), trials=(8,)))
    unpaired = foresee(
        side_of(agreeing), Policy(pairing="none"), Question(drops=(0.1,), trials=(8,))
    )

    assert (by_seed.baseline.strata, by_task.baseline.strata) == ("task,seed", "task")
    assert unpaired.baseline.strata == "task"
    assert by_seed.sights[1].blocked > by_task.sights[1].blocked
    assert by_seed.sights[1].blocked > unpaired.sights[1].blocked


def test_quarantined_and_unjudged_tasks_are_left_out_and_named() -> None:
    """Only tasks that can be judged are foreseen."""
    held = Quarantine(task="t00", owner="o", until=datetime.date(2030, 1, 1))
    side = side_of(f"{STEADY} zz !!!!!!!!")

    found = foresee(side, Policy(quarantine=(held,)), Question(drops=(0.3,), trials=(8,)))

    assert found.baseline.tasks == 11
    assert any("t00, zz" in remark for remark in found.remarks)


@pytest.mark.parametrize(
    ("policy", "question", "told"),
    [
        (Policy(), Question(drops=(0.0,)), "a drop lies between 0 and 1"),
        (Policy(), Question(power=1.0), "power lies between"),
        (Policy(), Question(trials=(4,)), "4 trials are fewer than pass\\^8 needs"),
        (Policy(), Question(trials=(5000,)), "more than the 1000"),
        (Policy(), Question(jobs=0), "jobs is at least 1"),
        (Policy(deterministic=True), ONE_DROP, "deterministic"),
        (Policy(margin=0.02), ONE_DROP, "margin of 0.02"),
        (Policy(alpha=2.0), ONE_DROP, "alpha"),
    ],
)
def test_what_cannot_be_answered_is_refused(policy: Policy, question: Question, told: str) -> None:
    """The message says what is wrong with the question or the policy."""
    with pytest.raises(UsageError, match=told):
        foresee(side_of(STEADY), policy, question)


@pytest.mark.parametrize(
    ("notation", "told"), [("a !!!!!!!!", "no judged task"), ("a --------", "not one trial")]
)
def test_a_baseline_that_says_nothing_is_refused(notation: str, told: str) -> None:
    """Without a judged or a passing trial nothing can be foreseen."""
    with pytest.raises(BaselineError, match=told):
        foresee(side_of(notation), Policy(), ONE_DROP)


def test_equal_outcomes_give_equal_bytes_in_any_order() -> None:
    """The same baseline, its tasks in another order, gives the same JSON."""
    words = STEADY.split()
    pairs = list(zip(words[::2], words[1::2], strict=True))
    question = Question(drops=(0.2,), trials=(8,), deep_runs=1)
    turned = " ".join(f"{task} {runs}" for task, runs in reversed(pairs))

    there = foresee(side_of(STEADY), Policy(), question)
    back = foresee(side_of(turned), Policy(), question)

    assert msgspec.json.encode(there) == msgspec.json.encode(back)

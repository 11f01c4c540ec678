"""Which runs may stop early, and when one does."""

from __future__ import annotations

import datetime
from typing import Any

import msgspec
import pytest

from ci_gate.decision.curtailment import decide_round, why_not_curtailed
from ci_gate.model.policy import Policy, Quarantine
from ci_gate.model.run import Plan, Side, StopReason
from ci_gate.model.trial import Cause
from tests.decision.rounds import alike, baseline_of, so_far
from tests.notation import side_of

BAR = baseline_of(12)
HEALTHY = so_far(alike(12, "+++"))
BROKEN = so_far(alike(12, "+++", t01="---"))


def reason(candidate: Side, policy: Policy | None = None, baseline: Side = BAR) -> Any:
    """Return why the run stops here, None where it goes on."""
    return decide_round(baseline, candidate, policy or Policy()).reason


RAISED = {(0, 0): Cause.GRADER_ERROR}


@pytest.mark.parametrize(
    ("policy", "run", "word"),
    [
        ({"curtail": False}, {}, "curtail = false"),
        ({"deterministic": True}, {}, "deterministic"),
        ({"require": "non-inferiority", "margin": 0.1}, {}, "Non-inferiority"),
        ({"on_borderline": "extend"}, {}, "on_borderline"),
        ({"floors": {"pass^1": 0.1, "pass^8": 0.5}}, {}, "floor under pass^8"),
        ({"margin": 0.02}, {}, "margin"),
        ({}, {"plan": Plan(trials=8, repeats=4)}, "for a baseline"),
        ({}, {"plan": None}, "no plan"),
        ({}, {"shard": "1/2"}, "shard"),
        ({}, {"faults_digest": "sha256:others"}, "not compared"),
        ({}, {"errors": "fail"}, "not compared"),
        ({}, {"judge_digest": "sha256:others"}, "not compared"),
        ({}, {"digests": {"t03": "sha256:edited"}}, "edited"),
    ],
)
def test_what_needs_the_whole_plan_says_why(
    policy: dict[str, Any], run: dict[str, Any], word: str
) -> None:
    """Each obstacle is a sentence that names itself."""
    why = why_not_curtailed(BAR, so_far(alike(12, ""), **run), Policy(**policy))

    assert why is not None
    assert word in why
    assert why.endswith(".")


def test_without_a_baseline_nothing_is_curtailed() -> None:
    """There is nothing that the outcomes could be held against."""
    why = why_not_curtailed(None, so_far(alike(2, "")), Policy())

    assert why is not None
    assert "no baseline" in why


@pytest.mark.parametrize("policy", [{}, {"curtail": "strict"}, {"floors": {"pass^1": 0.5}}])
def test_a_plain_run_may_be_curtailed(policy: dict[str, Any]) -> None:
    """Neither a floor on pass^1 nor a task that the baseline lacks stands in the way."""
    candidate = so_far(alike(12, "", fresh=""))

    assert why_not_curtailed(BAR, candidate, Policy(**policy)) is None


def test_a_healthy_run_is_cleared_and_a_broken_one_called() -> None:
    """Twelve tasks as they were, and the same with one that fails thrice."""
    assert reason(HEALTHY) is StopReason.CURTAILED_PASS
    assert reason(BROKEN) is StopReason.CURTAILED_REGRESSED


def test_the_first_round_settles_nothing_here() -> None:
    """One trial a task leaves both verdicts open."""
    decision = decide_round(BAR, so_far(alike(12, "+")), Policy())

    assert decision.reason is None
    assert decision.predictive is not None
    assert 0.05 < decision.predictive < 0.5


def test_the_strict_rule_is_stricter() -> None:
    """Where 0.05 is enough to stop, 0.01 is not yet."""
    assert reason(HEALTHY, Policy(curtail="strict")) is None


def test_the_decision_is_that_of_the_trials_whatever_the_order() -> None:
    """The same trials in another order give the same figure, to the last digit."""
    order = sorted(BROKEN.tasks, reverse=True)
    turned = msgspec.structs.replace(BROKEN, tasks={task: BROKEN.tasks[task] for task in order})

    assert decide_round(BAR, turned, Policy()) == decide_round(BAR, BROKEN, Policy())


def test_nothing_stops_where_nothing_is_left_to_run() -> None:
    """The last round ends the plan; its chance is still told."""
    decision = decide_round(BAR, so_far(alike(12, "++++++++")), Policy())

    assert decision.reason is None
    assert decision.predictive is not None
    assert decision.predictive < 0.05


@pytest.mark.parametrize(
    "candidate",
    [
        so_far(alike(12, "+++", t01="-!!", t02="!!!+")),
        so_far(alike(12, "+++", t01="!!!")),
        so_far(alike(12, "+++"), causes={"t01": {(1, 0): Cause.CONTAMINATED}}),
        so_far(alike(12, "---"), causes=dict.fromkeys(BAR.tasks, RAISED)),
    ],
    ids=["errors", "unjudged task", "contaminated", "broken graders"],
)
def test_a_stop_never_precedes_the_error_check(candidate: Side) -> None:
    """What cannot be trusted says nothing of the trials to come."""
    decision = decide_round(BAR, candidate, Policy())

    assert (decision.predictive, decision.reason) == (None, None)


def test_few_errors_are_left_out_of_the_trials_to_come() -> None:
    """A trial that errored for good is neither a pass nor still to be run."""
    wide = baseline_of(24)
    candidate = so_far(alike(24, "++++", t01="++!+"))

    assert reason(candidate, baseline=wide) is StopReason.CURTAILED_PASS


def test_removed_new_edited_and_quarantined_tasks_stop_nothing() -> None:
    """Only tasks that the whole plan would compare enter, as the test would read them."""
    before = side_of("gone ++++++++ held ++++++++", digest="sha256:bar")
    baseline = msgspec.structs.replace(BAR, tasks={**BAR.tasks, **before.tasks})
    held = Quarantine(task="held", owner="x", until=datetime.date(2099, 1, 1))
    candidate = so_far(alike(12, "+++", held="---", fresh="---"))

    alone = decide_round(BAR, HEALTHY, Policy())

    assert decide_round(baseline, candidate, Policy(quarantine=(held,))) == alone


def test_nothing_compared_foretells_nothing() -> None:
    """Without a common task there is no test to foretell."""
    decision = decide_round(BAR, so_far({"fresh": "+++"}), Policy())

    assert (decision.predictive, decision.reason) == (None, None)

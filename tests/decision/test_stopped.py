"""A curtailed run is believed where its own trials say the stop again, and nowhere else."""

from __future__ import annotations

import datetime
import random
from typing import Any

import msgspec
import pytest

from ci_gate.decision.circumstances import Circumstances
from ci_gate.model.policy import Guard, Policy, Quarantine
from ci_gate.model.run import Plan, Side, Stop, StopReason
from ci_gate.model.verdict import Claim, Decision, ExitCode, Verdict
from tests.decision.rounds import alike, baseline_of, codes, honest, so_far, stopped, verdict_of
from tests.notation import side_of
from tests.speeds import slow

BAR = baseline_of(12)
PASS, RED = StopReason.CURTAILED_PASS, StopReason.CURTAILED_REGRESSED
CLEARED = honest(BAR, alike(12, "++++++++"))
WIDE = baseline_of(16)
CALLED = honest(WIDE, alike(16, "++++++++", t01="--------"))


def refused(candidate: Side, policy: Policy | None = None, baseline: Side = BAR) -> str:
    """Return what the refusal of a stop says."""
    verdict = verdict_of(baseline, candidate, policy)
    assert (verdict.decision, codes(verdict)) == (Decision.INCONCLUSIVE, ["curtailed"])
    assert (verdict.p_value, verdict.predictive) == (None, None)
    return verdict.reasons[0].text


def test_an_honest_stop_clears_a_healthy_run() -> None:
    """Passed, on the chance that the whole plan would be red, with no p-value anywhere."""
    verdict = verdict_of(BAR, CLEARED)

    assert (verdict.decision, verdict.exit_code) == (Decision.PASSED, ExitCode.PASSED)
    assert codes(verdict) == ["curtailed"]
    rounds = rounds_of(CLEARED)
    told = f"Stopped after {rounds} of 8 rounds ({12 * rounds} of 96 planned trials)"
    assert told in verdict.reasons[0].text
    assert verdict.predictive is not None
    assert verdict.predictive < 0.05
    assert p_values(verdict) == {None}
    assert verdict.suite.compared == 12


def rounds_of(candidate: Side) -> int:
    """Return after how many rounds a run stopped, which here is before its plan's end."""
    assert candidate.stop is not None
    assert 1 < candidate.stop.round < 8
    return candidate.stop.round


def p_values(verdict: Verdict) -> set[float | None]:
    """Return every p-value of a verdict."""
    claims = (*verdict.metrics.values(), *verdict.tasks)
    return {verdict.p_value, *(c.p_value for c in claims), *(c.p_adjusted for c in claims)}


def test_an_honest_stop_calls_the_broken_task() -> None:
    """A task that is as good as certain to be claimed is claimed, with its trials to replay."""
    verdict = verdict_of(WIDE, CALLED)

    assert (verdict.decision, verdict.exit_code) == (Decision.REGRESSED, ExitCode.REGRESSED)
    assert codes(verdict)[0] == "task-regressed"
    assert codes(verdict)[-1] == "curtailed"
    (broken,) = [task for task in verdict.tasks if task.claim is Claim.REGRESSED]
    assert broken.task == "t01"
    assert broken.predictive is not None
    assert broken.predictive > 0.95
    assert [one.trial for one in broken.replay] == list(range(rounds_of(CALLED)))
    assert p_values(verdict) == {None}


def test_a_drop_of_all_tasks_has_contributors_and_no_culprit() -> None:
    """The suite is called; of no single task is it settled, and the largest drops have seeds."""
    verdict = verdict_of(BAR, honest(BAR, alike(12, "-+-+-+--", t05="--------")))

    assert codes(verdict) == ["suite-regressed", "curtailed"]
    assert all(task.claim is Claim.UNCHANGED for task in verdict.tasks)
    drops = [task for task in verdict.tasks if (task.contribution or 0) < 0]
    assert len(drops) >= 5
    assert all(task.replay for task in drops)


def test_pass_8_does_not_exist_before_round_8() -> None:
    """What is foretold stands beside the gap, with pass^r of the rounds that were run."""
    metric = verdict_of(BAR, CLEARED).metrics["pass^8"]

    assert metric.baseline is not None
    assert (metric.candidate, metric.difference, metric.interval) == (None, None, None)
    assert metric.predicted is not None
    assert metric.predicted.rounds == rounds_of(CLEARED)
    assert metric.predicted.pass_hat_r == 1.0
    low, high = metric.predicted.interval
    assert low <= metric.predicted.estimate <= high
    assert metric.n_tasks == 12


def test_pass_1_of_the_rounds_run_has_an_interval_and_no_p() -> None:
    """The difference so far is shown; nothing was tested on it."""
    metric = verdict_of(WIDE, CALLED).metrics["pass^1"]

    assert metric.candidate == pytest.approx(15 / 16, abs=1e-6)
    assert metric.interval is not None
    assert metric.exact is None
    assert metric.predictive is not None


def test_nothing_stops_after_one_round() -> None:
    """One trial a task says nothing of how trials scatter, and foretells no pass^8."""
    all_fail = alike(12, "--------")
    verdict = verdict_of(BAR, honest(BAR, all_fail))

    assert verdict.reasons[-1].text.startswith("Stopped after 2 of 8 rounds")
    assert verdict.metrics["pass^8"].predicted is not None


@pytest.mark.parametrize(
    ("fields", "around"),
    [
        ({"baseline_digest": "sha256:other"}, "sha256:policy"),
        ({"policy_digest": "sha256:other"}, "sha256:policy"),
        ({"baseline_digest": None, "policy_digest": None}, "sha256:policy"),
        ({}, None),
    ],
)
def test_a_stop_against_others_is_inconclusive(fields: dict[str, Any], around: str | None) -> None:
    """Held against another baseline or policy, the decision to stop is not the gate's."""
    candidate = msgspec.structs.replace(CLEARED, **fields)

    verdict = verdict_of(BAR, candidate, around=Circumstances(policy_digest=around))

    assert (verdict.decision, codes(verdict)) == (Decision.INCONCLUSIVE, ["curtailed"])
    assert "another baseline or policy" in verdict.reasons[0].text
    assert verdict.metrics["pass^1"].candidate == 1.0


@pytest.mark.parametrize(
    ("candidate", "told"),
    [
        (stopped(alike(12, "+"), 1, PASS), "its trials say to go on"),
        (stopped(alike(12, "---"), 3, PASS), "its trials say regressed"),
        (stopped(alike(12, "+++"), 3, RED), "its trials say passed"),
        (stopped(alike(12, "+++"), 4, PASS), "it has the trials of 3 rounds"),
        (stopped(alike(12, "+++", t01="+.+"), 3, PASS), "trials of its 3 rounds are absent"),
        (stopped(alike(12, "+++", t01="!!!"), 3, PASS), "errors allow no decision"),
        (stopped(alike(12, "+++"), 3, PASS, plan=Plan(trials=8)), "its plan lets no run"),
        (stopped(alike(12, "+++"), 3, PASS, plan=None), "its plan lets no run"),
        (stopped(alike(12, "++++++++"), 8, PASS), "its trials say to go on"),
    ],
)
def test_a_false_stop_is_refused_with_what_was_found(candidate: Side, told: str) -> None:
    """The file's word is not enough: the trials have to say it."""
    verdict = verdict_of(BAR, candidate)

    text = next(reason.text for reason in verdict.reasons if reason.code == "curtailed")
    assert verdict.decision is Decision.INCONCLUSIVE
    assert told in text
    assert text.isprintable()
    assert len(text) < 300


def test_a_stop_with_an_edited_chance_is_refused() -> None:
    """The chance to be red is that of the trials, to the last digit that is written."""
    assert CLEARED.stop is not None
    assert CLEARED.stop.predictive is not None
    edited = msgspec.structs.replace(CLEARED.stop, predictive=CLEARED.stop.predictive + 0.001)

    text = refused(msgspec.structs.replace(CLEARED, stop=edited))

    assert "its trials give another chance to be red than it says" in text


def test_a_policy_that_curtails_nothing_refuses_every_stop() -> None:
    """Whatever the file's digests say."""
    text = refused(CLEARED, Policy(curtail=False))

    assert "curtail = false" in text


def test_a_run_that_went_on_past_the_opposite_stop_is_refused() -> None:
    """The second round was the verdict: further trials are no appeal."""
    bad = {f"t{i:02}": "-++++++" for i in range(5)}

    text = refused(stopped(alike(12, "+++++++", **bad), 7, PASS))

    assert "it was to stop as regressed after round 2" in text


def test_a_run_that_went_on_past_the_same_stop_is_believed() -> None:
    """It spent a round more than it had to, and the verdict says so."""
    later = rounds_of(CLEARED) + 1
    verdict = verdict_of(BAR, stopped(alike(12, "+" * later), later, PASS))

    assert (verdict.decision, codes(verdict)) == (Decision.PASSED, ["curtailed"])
    assert any("could have stopped 1 round earlier" in text for text in verdict.warnings)


def test_other_red_rules_hold_for_a_cleared_run() -> None:
    """A removed task, a floor and a guard do not wait for a plan's end."""
    baseline = msgspec.structs.replace(BAR, tasks={**BAR.tasks, "gone": BAR.tasks["t00"]})
    policy = Policy(floors={"pass^1": 1.0}, strict_floors=True, guards=(GUARD,))

    candidate = honest(baseline, alike(12, "++++++++", t01="+-++++++"), policy)
    verdict = verdict_of(baseline, candidate, policy)

    assert verdict.decision is Decision.REGRESSED
    assert codes(verdict) == ["tasks-removed", "floor", "guard-unknown", "curtailed"]
    assert any("judged on the trials that were run (" in text for text in verdict.warnings)


GUARD = Guard(metric="turns", max_increase=0.1)


def test_a_plan_without_power_is_inconclusive_although_it_stopped() -> None:
    """That the whole plan would not be red is no pass where it could never be."""
    baseline = side_of("a ++------ b --------", kind="baseline", digest="sha256:bar")
    verdict = verdict_of(baseline, honest(baseline, {"a": "++------", "b": "--------"}))

    assert codes(verdict) == ["no-power", "curtailed"]


def test_a_slide_does_not_hide_behind_a_short_run() -> None:
    """The anchor is tested on the trials there are, by the metrics that exist by then."""
    low = baseline_of(12, "--+---+-/-+---+--/+-----+-/---++---")
    anchor = baseline_of(12, digest="sha256:anchor")

    verdict = verdict_of(low, honest(low, alike(12, "-+--+---")), anchor=anchor)

    assert verdict.slide is not None
    assert verdict.slide.regressed
    assert set(verdict.slide.metrics) == {"pass^1"}
    assert codes(verdict) == ["slide", "curtailed"]


def test_a_refused_stop_is_not_tested_against_the_anchor() -> None:
    """Trials that ended nobody knows why are no sample."""
    anchor = baseline_of(12, digest="sha256:anchor")

    verdict = verdict_of(BAR, stopped(alike(12, "-"), 1, PASS), anchor=anchor)

    assert verdict.slide is None


def test_a_quarantine_holds_as_on_the_day_of_the_run() -> None:
    """What the run was stopped by is judged again as it was, not as of today."""
    held = Quarantine(task="t01", owner="x", until=datetime.date(2026, 12, 1))
    policy = Policy(quarantine=(held,))
    candidate = msgspec.structs.replace(
        honest(BAR, alike(12, "++++++++", t01="--------"), policy), created="2026-11-30T12:00:00Z"
    )
    around = Circumstances(policy_digest="sha256:policy", today=datetime.date(2027, 1, 1))

    verdict = verdict_of(BAR, candidate, policy, around)

    assert (verdict.decision, codes(verdict)) == (Decision.PASSED, ["curtailed"])
    assert verdict.suite.quarantined == ("t01",)


def test_a_baseline_that_was_stopped_is_named() -> None:
    """Trials that ended because of what they showed are no fair bar."""
    bar = msgspec.structs.replace(CLEARED, digest="sha256:bar")

    verdict = verdict_of(bar, so_far(alike(12, "++++++++"), stop=WHOLE, complete=True))

    assert any("stopped by its own outcomes" in text for text in verdict.warnings)


WHOLE = Stop(round=8, reason=StopReason.COMPLETE)


def test_the_order_of_tasks_changes_no_byte_of_a_stopped_verdict() -> None:
    """Whatever order the file has."""
    order = sorted(CALLED.tasks, reverse=True)
    turned = msgspec.structs.replace(CALLED, tasks={task: CALLED.tasks[task] for task in order})

    assert verdict_of(WIDE, turned).to_json() == verdict_of(WIDE, CALLED).to_json()


@pytest.mark.parametrize("seed", [0, *slow(1)])
def test_every_honest_stop_is_believed(seed: int) -> None:
    """Whatever the outcomes, a run that was steered by its own decisions is judged by them."""
    chance = random.Random(seed)
    rows = [_outcomes(chance, 0.9) for _ in range(6)]
    runs = ["/".join(_outcomes(chance, 0.9) for _ in range(4)) for _ in range(6)]
    notation = " ".join(f"t{i:02} {row}" for i, row in enumerate(runs))
    bar = side_of(notation, kind="baseline", digest="sha256:bar")

    verdict = verdict_of(bar, honest(bar, {f"t{i:02}": row for i, row in enumerate(rows)}))

    assert verdict.decision is not Decision.INCONCLUSIVE
    assert (verdict.predictive is None) == (verdict.trials.stop == "complete")


def _outcomes(chance: random.Random, rate: float) -> str:
    return "".join("+" if chance.random() < rate else "-" for _ in range(8))

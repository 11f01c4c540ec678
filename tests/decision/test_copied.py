"""Copies are no trials, and what an agent says of its own answers turns nothing green."""

from __future__ import annotations

from typing import Any

import pytest

from ci_gate.decision.circumstances import Circumstances
from ci_gate.decision.compare import compare
from ci_gate.decision.curtailment import decide_round, why_not_curtailed
from ci_gate.decision.decide import decide
from ci_gate.model.policy import Policy
from ci_gate.model.run import Plan, Side
from ci_gate.model.trial import Answers
from ci_gate.model.verdict import Decision, Verdict
from tests.notation import side_of

NAMES = tuple("abcdefgh")
DEEP = "/".join(["++++++++"] * 4)
CACHED = Answers(cached=True)


def answers(*trials: int, known: Answers | None = None, repeat: int = 0) -> dict[str, Any]:
    """Return the fields of a task in which these trials have the same answers."""
    found = known or Answers(responses="0" * 16)
    return {"answers": {(trial, repeat): found for trial in trials}}


def candidate(first: str, **of_first: Any) -> Side:
    """Return a side whose first task is given and whose others pass everywhere."""
    others = " ".join(f"{name} ++++++++" for name in NAMES[1:])
    return side_of(f"a {first} {others}", a=of_first)


def baseline(**fields: Any) -> Side:
    """Return a deep baseline in which everything passes."""
    return side_of(" ".join(f"{name} {DEEP}" for name in NAMES), kind="baseline", **fields)


def judged(before: Side | None, after: Side, **policy: Any) -> Verdict:
    """Judge two sides."""
    chosen = Policy(**policy)
    return decide(compare(before, after, chosen, Circumstances()), chosen)


def texts(verdict: Verdict, part: str) -> list[str]:
    """Return the warnings that contain some words."""
    return [text for text in verdict.warnings if part in text]


def test_repeated_answers_count_as_one_trial() -> None:
    """Eight trials with one answer are one; the report says so and what that costs."""
    verdict = judged(baseline(), candidate("++++++++", **answers(*range(8))))

    first = verdict.tasks[0]
    assert first.candidate is not None
    assert first.candidate.trials == first.candidate.passed == 1
    assert verdict.decision is Decision.PASSED
    assert verdict.trials.copies == 7
    assert verdict.trials.judged == 64
    assert verdict.metrics["pass^8"].n_tasks == 7
    assert verdict.metrics["pass^8"].excluded == ("a",)
    assert texts(verdict, "Copies are no trials: 7 trials of the candidate (in 1 task: a)")


def test_eight_equal_failures_without_evidence_are_a_break() -> None:
    """Equal bytes alone are no copies: they count, with a warning."""
    verdict = judged(
        side_of(f"a {DEEP}"), side_of("a --------", a={"identical": True}), metrics=("pass^1",)
    )

    assert verdict.decision is Decision.REGRESSED
    assert verdict.trials.copies == 0
    assert texts(verdict, "All trials are the same bytes in 1 of 1 task (a)")


def test_a_few_tasks_of_equal_bytes_are_nothing_special() -> None:
    """A task that breaks, or has one right answer, says the same each time."""
    assert not texts(judged(baseline(), candidate("--------", identical=True)), "same bytes")


@pytest.mark.parametrize("known", [None, CACHED])
def test_failures_called_copies_do_not_turn_red_green(known: Answers | None) -> None:
    """An agent that breaks a task and calls the failures copies gets no pass for it."""
    noisy = " ".join(f"{name} +++--+++/+-+++-++/++-++++-" for name in NAMES[1:])
    before = side_of(f"a {DEEP[:26]} {noisy}")
    others = " ".join(f"{name} +++-++++" for name in NAMES[1:])
    fallen = f"a -------- {others}"

    counted = judged(before, side_of(fallen))
    called_copies = judged(before, side_of(fallen, a=answers(*range(8), known=known)))

    assert counted.decision is Decision.REGRESSED
    assert called_copies.decision is Decision.INCONCLUSIVE
    [reason] = called_copies.reasons
    assert reason.code == "task-unjudged"
    assert "would be red if the trials that the agent calls copies (in 1 task: a)" in reason.text


def test_no_failure_is_dropped_in_favour_of_a_pass() -> None:
    """Trials that ended differently are no copies, whatever is said of them."""
    verdict = judged(baseline(), candidate("+-------", **answers(*range(8))))

    assert verdict.decision is Decision.REGRESSED
    assert verdict.trials.copies == 0
    assert texts(verdict, "in 1 task (a) are said to be copies and did not end as their originals")


def test_what_is_red_without_copies_stays_red() -> None:
    """Copies of one task protect no other one."""
    after = side_of(
        "a ++++++++ b -------- " + " ".join(f"{n} ++++++++" for n in NAMES[2:]), a=answers(0, 1)
    )

    verdict = judged(baseline(), after)

    assert verdict.decision is Decision.REGRESSED
    assert [str(reason.code) for reason in verdict.reasons] == ["task-regressed", "suite-regressed"]


def test_a_run_from_a_cache_is_no_measurement() -> None:
    """Where most trials are replayed, nothing follows, whether or not they are set aside."""
    every = {name: answers(*range(8), known=CACHED) for name in NAMES}
    after = side_of(" ".join(f"{name} +++++++{'+-'[name == 'a']}" for name in NAMES), **every)

    verdict = judged(baseline(), after)

    assert verdict.decision is Decision.INCONCLUSIVE
    [reason] = verdict.reasons
    assert reason.code == "task-unjudged"
    assert "64 of 64 judged trials are copies of earlier answers" in reason.text


def test_half_a_run_of_copies_is_still_one() -> None:
    """More than half of the trials must be replayed for that."""
    half = {name: answers(0, 1, 2, 3, 4) for name in NAMES}
    after = side_of(" ".join(f"{name} ++++++++" for name in NAMES), **half)

    assert judged(baseline(), after).decision is Decision.PASSED


def test_the_baselines_own_answers_say_nothing_of_the_candidate() -> None:
    """A task that is a replay of the baseline's trials is unjudged, by name."""
    known = {(trial, 0): Answers(responses=f"{trial:016x}") for trial in range(8)}

    verdict = judged(
        baseline(a={"answers": known}), candidate("++++++++", answers=known), metrics=("pass^1",)
    )

    assert verdict.decision is Decision.INCONCLUSIVE
    assert verdict.suite.unjudged == ("a",)
    assert "all errored, never ran or are copies" in verdict.reasons[0].text


def test_the_baselines_copies_are_no_trials_either() -> None:
    """A baseline of one answer four times over is as deep as one run."""
    known = {(trial, r): Answers(responses=f"{trial:016x}") for trial in range(8) for r in range(4)}

    verdict = judged(baseline(a={"answers": known}), candidate("++++++++"))

    assert verdict.tasks[0].baseline is not None
    assert verdict.tasks[0].baseline.trials == 8
    assert texts(verdict, "24 trials of the baseline (in 1 task: a)")


def test_deterministic_suites_are_exempt() -> None:
    """There every repeat is a copy by right."""
    after = candidate("++++++++", identical=True, **answers(*range(8)))

    verdict = judged(baseline(), after, deterministic=True)

    assert verdict.decision is Decision.PASSED
    assert verdict.tasks[0].candidate is not None
    assert verdict.tasks[0].candidate.trials == 8
    assert verdict.trials.copies == 0


def test_without_a_baseline_copies_are_said_as_well() -> None:
    """A first run that is a replay passes nothing."""
    every = {name: answers(*range(8), known=CACHED) for name in NAMES}
    after = side_of(" ".join(f"{name} ++++++++" for name in NAMES), **every)

    assert judged(None, after).decision is Decision.INCONCLUSIVE


def test_a_run_with_copies_is_not_curtailed() -> None:
    """How many trials it will have had is known at its end alone."""
    plan = Plan(trials=8, curtail=True)
    notation = " ".join(f"{name} ----...." for name in NAMES)
    plain = side_of(notation, plan=plan)
    copied = side_of(notation, plan=plan, a=answers(0, 1))

    assert decide_round(baseline(), plain, Policy()).reason == "curtailed-regressed"
    assert decide_round(baseline(), copied, Policy()).reason is None
    assert why_not_curtailed(baseline(), plain, Policy()) is None
    assert "copies" in (why_not_curtailed(baseline(), copied, Policy()) or "")
    assert "copies" in (why_not_curtailed(baseline(a=answers(0, 1)), plain, Policy()) or "")

"""How outcomes count."""

from __future__ import annotations

import pytest

from ci_gate.decision.accounting import (
    contaminated_tasks,
    counts_of,
    errors_in_effect,
    first_runs,
    grader_errors,
    scores_of,
    stopped_early,
    totals_of,
)
from ci_gate.model.policy import Policy
from ci_gate.model.run import Measure, Stop, StopReason
from ci_gate.model.trial import Cause
from ci_gate.model.verdict import Counts, TrialTotals
from tests.notation import side_of


def test_an_errored_trial_is_neither_pass_nor_failure() -> None:
    """Under `exclude` an errored trial is counted apart and leaves the judged ones."""
    task = side_of("refund ++-!.").tasks["refund"]

    assert counts_of(task, "exclude") == Counts(trials=3, passed=2, errored=1)
    assert scores_of(task, "exclude") == ((1, 1, 0, None, None),)


def test_an_errored_trial_is_a_failure_where_the_policy_says_so() -> None:
    """Under `fail` an errored trial is judged and did not pass, and is still shown as errored."""
    task = side_of("refund ++-!.").tasks["refund"]

    assert counts_of(task, "fail") == Counts(trials=4, passed=2, errored=1)
    assert scores_of(task, "fail") == ((1, 1, 0, 0, None),)


@pytest.mark.parametrize(
    ("policy", "baseline", "candidate", "effect"),
    [
        ("exclude", "exclude", "exclude", "exclude"),
        ("fail", "exclude", "exclude", "fail"),
        ("exclude", "fail", "fail", "fail"),
        ("exclude", None, "fail", "fail"),
        ("exclude", "fail", "exclude", "exclude"),
        ("exclude", "exclude", "fail", "fail"),
        ("exclude", None, "exclude", "exclude"),
    ],
)
def test_fail_is_in_effect_if_the_policy_or_both_files_say_so(
    policy: str, baseline: str | None, candidate: str, effect: str
) -> None:
    """Where the files differ nothing is compared, and the candidate's own word holds for it."""
    before = None if baseline is None else side_of("refund +", errors=baseline)

    found = errors_in_effect(before, side_of("refund +", errors=candidate), Policy(errors=policy))  # type: ignore[arg-type]

    assert found == effect


def test_totals_say_planned_run_judged_and_errored() -> None:
    """The account of a side names every planned trial exactly once."""
    side = side_of("refund ++-!. cancel ...../+!...", stop=Stop(round=5, reason=StopReason.BUDGET))

    assert totals_of(side, "exclude") == TrialTotals(
        planned=15, run=6, judged=4, errored=2, stop="budget"
    )


@pytest.mark.parametrize(
    ("fields", "early", "stop"),
    [
        ({}, False, "complete"),
        ({"complete": False}, True, "interrupted"),
        ({"stop": Stop(round=8, reason=StopReason.COMPLETE)}, False, "complete"),
        ({"stop": Stop(round=3, reason=StopReason.BUDGET)}, True, "budget"),
        ({"stop": Stop(round=3, reason=StopReason.INTERRUPTED)}, True, "interrupted"),
        ({"stop": Stop(round=3, reason=StopReason.CURTAILED_PASS)}, False, "curtailed-pass"),
    ],
)
def test_a_run_without_its_end_was_stopped_early(
    fields: dict[str, object], early: bool, stop: str
) -> None:
    """Budget, interruption and a journal without footer leave trials out; a decision does not."""
    side = side_of("refund ++", **fields)

    assert stopped_early(side) is early
    assert totals_of(side, "exclude").stop == stop


def test_who_is_at_fault_is_the_harness_word_alone() -> None:
    """Contamination and graders' errors are causes; the same words in a reason are anybody's."""
    causes = {
        "refund": {(0, 0): Cause.GRADER_ERROR, (1, 0): Cause.CONTAMINATED, (2, 0): Cause.AGENT},
        "lookup": {(0, 0): Cause.ENVIRONMENT},
    }
    reasons = {
        "cancel": {(0, 0): "grader-error: KeyError", (1, 0): "contaminated: the state differs"},
    }
    side = side_of("refund -!-+ lookup !+ cancel -!", causes=causes, reasons=reasons)

    assert contaminated_tasks(side) == ("refund",)
    assert grader_errors(side) == 1


def test_of_a_task_its_first_judged_run_counts_alone() -> None:
    """What was planned, run and measured in further runs over the seeds is as if it were not."""
    measures = {"tokens": (None, Measure(3.0, None, 3.0))}
    side = side_of(
        "twice ++/-- late !!/+-",
        late={"measures": measures, "looped": (None, 1), "causes": {(1, 1): Cause.AGENT}},
    )

    exclude, fail = first_runs(side, "exclude"), first_runs(side, "fail")

    assert {name: task.outcomes for name, task in exclude.tasks.items()} == {
        "twice": ("++",),
        "late": ("+-",),
    }
    late = exclude.tasks["late"]
    assert (late.measures, late.looped) == ({"tokens": (Measure(3.0, None, 3.0),)}, (1,))
    assert late.causes == {(1, 0): Cause.AGENT}
    assert exclude.planned == {"twice": 2, "late": 2}
    assert fail.tasks["late"].outcomes == ("!!",)

"""How outcomes count: which trials are judged, which errored, which never ran.

Decides what an errored trial counts as; knows one side at a time and no statistics.
"""

from __future__ import annotations

from collections.abc import Iterator

from ci_gate.model.policy import Policy
from ci_gate.model.run import (
    ERRORED,
    FAILED,
    NOT_RUN,
    PASSED,
    ErrorPolicy,
    Side,
    SideTask,
    StopReason,
)
from ci_gate.model.verdict import Counts, TrialTotals

__all__ = [
    "CURTAILED",
    "Scores",
    "contaminated_tasks",
    "counts_of",
    "error_reasons",
    "errors_in_effect",
    "grader_errors",
    "scores_of",
    "stopped_early",
    "totals_of",
]

Scores = tuple[tuple[int | None, ...], ...]
"""A task's trials, runs x seeds: 1 passed, 0 failed, None not judged."""

CURTAILED = (StopReason.CURTAILED_PASS, StopReason.CURTAILED_REGRESSED)
_CUT_SHORT = (StopReason.BUDGET, StopReason.INTERRUPTED)


def errors_in_effect(baseline: Side | None, candidate: Side, policy: Policy) -> ErrorPolicy:
    """Return what an errored trial counts as: a failure if the policy or the files say so.

    Sides that were made under different error policies are not compared; the candidate's own
    then holds for its account.
    """
    if baseline is not None and baseline.errors != candidate.errors:
        return candidate.errors
    return "fail" if "fail" in (policy.errors, candidate.errors) else "exclude"


def scores_of(task: SideTask, errors: ErrorPolicy) -> Scores:
    """Return the trials of a task as numbers, runs x seeds."""
    score = {PASSED: 1, FAILED: 0, ERRORED: 0 if errors == "fail" else None, NOT_RUN: None}
    return tuple(tuple(score[char] for char in run) for run in task.outcomes)


def counts_of(task: SideTask, errors: ErrorPolicy) -> Counts:
    """Return how many trials of a task were judged, passed and errored."""
    errored = task.count(ERRORED)
    judged = task.judged + (errored if errors == "fail" else 0)
    return Counts(trials=judged, passed=task.count(PASSED), errored=errored)


def totals_of(side: Side, errors: ErrorPolicy) -> TrialTotals:
    """Return the trials of a side: planned, run, judged and errored, and why it stopped."""
    counts = [counts_of(task, errors) for task in side.tasks.values()]
    run = sum(task.judged + task.count(ERRORED) for task in side.tasks.values())
    return TrialTotals(
        planned=sum(side.planned.values()),
        run=run,
        judged=sum(count.trials for count in counts),
        errored=sum(count.errored for count in counts),
        stop=_stop_of(side),
    )


def _stop_of(side: Side) -> str:
    if side.stop is not None:
        return str(side.stop.reason)
    return str(StopReason.COMPLETE if side.complete else StopReason.INTERRUPTED)


def stopped_early(side: Side) -> bool:
    """Return whether trials of the plan are absent because the run ended before them."""
    return not side.complete or (side.stop is not None and side.stop.reason in _CUT_SHORT)


def contaminated_tasks(side: Side) -> tuple[str, ...]:
    """Return the tasks with an errored trial whose world did not start in its known state."""
    return tuple(
        task_id
        for task_id, task in side.tasks.items()
        if any(why.startswith("contaminated") for why in _reasons(task, ERRORED))
    )


def grader_errors(side: Side) -> int:
    """Return how many trials failed because a grader raised."""
    return sum(
        why.startswith("grader-error")
        for task in side.tasks.values()
        for why in _reasons(task, FAILED)
    )


def error_reasons(task: SideTask) -> tuple[str, ...]:
    """Return the different reasons for which trials of a task errored, in the order of trials."""
    return tuple(dict.fromkeys(_reasons(task, ERRORED)))


def _reasons(task: SideTask, char: str) -> Iterator[str]:
    for (trial, repeat), reason in task.reasons.items():
        if repeat < len(task.outcomes) and task.outcomes[repeat][trial : trial + 1] == char:
            yield reason

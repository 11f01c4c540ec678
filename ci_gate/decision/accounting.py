"""How outcomes count: which trials are judged, which errored, which never ran.

Decides what an errored trial counts as; knows one side at a time and no statistics. Who is at fault
it takes from the causes that the harness recorded, never from the text of a reason, which may be
the agent's own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import msgspec

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
from ci_gate.model.trial import Cause
from ci_gate.model.verdict import Counts, TrialTotals

__all__ = [
    "CURTAILED",
    "Scores",
    "contaminated_tasks",
    "counts_of",
    "error_reasons",
    "errors_in_effect",
    "first_repeats",
    "first_rounds",
    "first_runs",
    "grader_errors",
    "scores_of",
    "stopped_early",
    "totals_of",
    "without",
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


def first_runs(side: Side, errors: ErrorPolicy) -> Side:
    """Return a side with the first judged run of each task over the seeds alone.

    Of an agent that is a function of its seed every further run is a copy, and no evidence.
    """
    tasks = {
        task_id: task.only_run(_first_judged_run(task, errors))
        for task_id, task in side.tasks.items()
    }
    planned = {
        task_id: min(trials, len(tasks[task_id].outcomes[0])) if task_id in tasks else trials
        for task_id, trials in side.planned.items()
    }
    return msgspec.structs.replace(side, tasks=tasks, planned=planned)


def _first_judged_run(task: SideTask, errors: ErrorPolicy) -> int:
    judged = (run for run, scores in enumerate(scores_of(task, errors)) if {0, 1} & {*scores})
    return next(judged, 0)


def first_rounds(side: Side, rounds: int) -> Side:
    """Return a side as it stood after some rounds: with the outcomes of those trials alone.

    What is said of a trial goes with it; the measures, which are of whole runs, stay.
    """
    return _with_outcomes(side, lambda trial, _: trial < rounds)


def first_repeats(side: Side, repeats: int) -> Side:
    """Return a side as it stood after some runs over its seeds, as :func:`first_rounds`."""
    return _with_outcomes(side, lambda _, repeat: repeat < repeats)


def _with_outcomes(side: Side, kept: Callable[[int, int], bool]) -> Side:
    tasks = {task_id: _task_with_outcomes(task, kept) for task_id, task in side.tasks.items()}
    return msgspec.structs.replace(side, tasks=tasks)


def _task_with_outcomes(task: SideTask, kept: Callable[[int, int], bool]) -> SideTask:
    return msgspec.structs.replace(
        task,
        outcomes=tuple(
            "".join(char if kept(trial, at) else NOT_RUN for trial, char in enumerate(row))
            for at, row in enumerate(task.outcomes)
        ),
        reasons={key: why for key, why in task.reasons.items() if kept(*key)},
        causes={key: why for key, why in task.causes.items() if kept(*key)},
    )


def without(side: Side, task_ids: Collection[str]) -> Side:
    """Return a side that has and planned everything but these tasks."""
    held = set(task_ids)
    return msgspec.structs.replace(
        side,
        tasks={task_id: task for task_id, task in side.tasks.items() if task_id not in held},
        planned={task_id: n for task_id, n in side.planned.items() if task_id not in held},
    )


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
    """Return the tasks, sorted, with a trial whose world did not start in its known state."""
    return tuple(
        task_id
        for task_id, task in sorted(side.tasks.items())
        if Cause.CONTAMINATED in task.causes.values()
    )


def grader_errors(side: Side) -> int:
    """Return how many trials failed because a grader raised, and for no other reason."""
    causes = (cause for task in side.tasks.values() for cause in task.causes.values())
    return sum(cause is Cause.GRADER_ERROR for cause in causes)


def error_reasons(task: SideTask) -> tuple[str, ...]:
    """Return the different reasons for which trials of a task errored, in the order of trials."""
    reasons = (
        reason
        for (trial, repeat), reason in task.reasons.items()
        if repeat < len(task.outcomes) and task.outcomes[repeat][trial : trial + 1] == ERRORED
    )
    return tuple(dict.fromkeys(reasons))

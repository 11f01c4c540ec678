"""The sections of a report that list tasks, each a function of its verdict.

They choose the tasks, the worst first, and how many of their failing trials are shown; None where
there is no such task. They know neither other suites nor how a section is laid out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ci_gate.model.ranking import badness, largest_drops
from ci_gate.model.verdict import (
    RED_CLAIMS,
    Claim,
    Counts,
    Decision,
    ReasonCode,
    Replay,
    TaskResult,
    Verdict,
)
from ci_gate.render import figures
from ci_gate.render.detail import detail_lines
from ci_gate.render.document import Column, Detail, Fold, Section, Table, TaskReplays
from ci_gate.render.escape import inert, inert_command
from ci_gate.render.layout import Limits, table

__all__ = [
    "changed",
    "contributors",
    "errored",
    "flips",
    "improved",
    "new",
    "quarantined",
    "regressed",
    "removed",
    "suspects",
    "unjudged",
]

_REASON_CHARS = 200
_SHORT_REASON_CHARS = 90
_DETAILS = 2
_DETAIL_LINES = 16
_NO_SINGLE_TASK = "The suite regressed as a whole; no single task is proven to have."
_NONE_SETTLED = "The suite regressed as a whole; of no single task is it all but certain."
_COLUMNS = (
    Column("Task", "code"),
    Column("Baseline", "number"),
    Column("Candidate", "number"),
    Column("p", "number"),
    Column("Adjusted p", "number"),
    Column("Chance to be red", "number"),
    Column("First failure shown"),
    Column("First error"),
)


def regressed(verdict: Verdict, limits: Limits) -> Section | None:
    """Return the tasks that are proven to have regressed."""
    tasks = sorted(_claimed(verdict, Claim.REGRESSED), key=badness)
    return _section("regressed", "Regressed tasks", tasks, verdict, limits)


def _claimed(verdict: Verdict, claim: Claim) -> list[TaskResult]:
    return [task for task in verdict.tasks if task.claim is claim]


def _section(
    key: str,
    title: str,
    tasks: Sequence[TaskResult],
    verdict: Verdict,
    limits: Limits,
    *,
    fold: Fold = Fold.NEVER,
    replayed: bool = True,
    lead: tuple[str, ...] = (),
) -> Section | None:
    if not tasks:
        return None
    return Section(
        key=key,
        title=f"{title} ({figures.count(len(tasks))})",
        fold=fold,
        table=_task_table(tasks, verdict, limits),
        replays=_replays(tasks, limits) if replayed else (),
        lead=lead,
    )


def _task_table(tasks: Sequence[TaskResult], verdict: Verdict, limits: Limits) -> Table:
    rows = [_task_row(task, verdict) for task in tasks]
    optional = [column.title for column in _COLUMNS[1:]]
    return table(_COLUMNS, rows, optional=optional, most=limits.rows)


def _task_row(task: TaskResult, verdict: Verdict) -> tuple[str, ...]:
    return (
        inert(task.task),
        _rate(task.baseline),
        _rate(task.candidate),
        _unless_proven(task, figures.p_value(task.p_value, against=verdict.level)),
        figures.p_value(task.p_adjusted, against=verdict.level),
        figures.percent(task.predictive),
        _first_reason(task.replay),
        inert(next(iter(task.errors), ""), limit=_SHORT_REASON_CHARS),
    )


def _unless_proven(task: TaskResult, raw: str) -> str:
    """Leave out the raw p-value where the adjusted one, which is larger, says it already."""
    return figures.UNKNOWN if task.claim in RED_CLAIMS else raw


def _rate(counts: Counts | None) -> str:
    if counts is None:
        return figures.UNKNOWN
    errored = f" + {figures.count(counts.errored)} errored" if counts.errored else ""
    return figures.rate(counts.passed, counts.trials) + errored


def _first_reason(replays: Iterable[Replay]) -> str:
    known = (replay.reason for replay in replays if replay.reason)
    return inert(next(known, ""), limit=_SHORT_REASON_CHARS)


def _replays(tasks: Sequence[TaskResult], limits: Limits) -> tuple[TaskReplays, ...]:
    failing = [task for task in tasks if task.replay][: limits.replayed_tasks]
    return tuple(_task_replays(task, task.replay[: limits.seeds]) for task in failing)


def _task_replays(task: TaskResult, replays: Sequence[Replay]) -> TaskReplays:
    commands = (inert_command(replay.command) for replay in replays)
    columns = (
        Column("Trial", "number"),
        Column("Repeat", "number"),
        Column("Seed", "code"),
        Column("Why it failed"),
    )
    optional = ["Seed", "Why it failed", *([] if any(r.repeat for r in replays) else ["Repeat"])]
    return TaskReplays(
        task=inert(task.task),
        commands=tuple(command for command in commands if command is not None),
        trials=table(columns, [_replay_row(replay) for replay in replays], optional=optional),
        details=tuple(map(_detail, [replay for replay in replays if replay.detail][:_DETAILS])),
    )


def _detail(replay: Replay) -> Detail:
    repeat = f", repeat {replay.repeat}" if replay.repeat else ""
    seed = f", seed `{inert(replay.seed)}`" if replay.seed else ""
    return Detail(
        lead=f"Trial {replay.trial}{repeat}{seed}:",
        lines=detail_lines(replay.detail or "", most=_DETAIL_LINES),
    )


def _replay_row(replay: Replay) -> tuple[str, ...]:
    repeat = figures.count(replay.repeat) if replay.repeat else figures.UNKNOWN
    reason = inert(replay.reason or figures.UNKNOWN, limit=_REASON_CHARS)
    return figures.count(replay.trial), repeat, inert(replay.seed or figures.UNKNOWN), reason


def flips(verdict: Verdict, limits: Limits) -> Section | None:
    """Return the tasks of a deterministic suite that failed on a seed that passed before."""
    tasks = sorted(_claimed(verdict, Claim.FLIP), key=badness)
    return _section("flips", "Flipped tasks, on the same seed", tasks, verdict, limits)


def contributors(verdict: Verdict, limits: Limits) -> Section | None:
    """Return the largest drops where the suite regressed and no single task is proven."""
    return _section(
        "contributors",
        "Largest drops",
        largest_drops(verdict)[: limits.contributors],
        verdict,
        limits,
        lead=(_NO_SINGLE_TASK if verdict.predictive is None else _NONE_SETTLED,),
    )


def _codes(verdict: Verdict) -> set[ReasonCode]:
    return {reason.code for reason in verdict.reasons}


def removed(verdict: Verdict, limits: Limits) -> Section | None:
    """Return the tasks that vanished."""
    cause = ReasonCode.TASKS_REMOVED
    return _kept_apart(verdict, limits, "removed", "Removed tasks", Claim.REMOVED, cause)


def changed(verdict: Verdict, limits: Limits) -> Section | None:
    """Return the tasks whose content is another than the baseline's."""
    cause = ReasonCode.TASKS_CHANGED
    return _kept_apart(verdict, limits, "changed", "Changed tasks", Claim.CHANGED, cause)


def unjudged(verdict: Verdict, limits: Limits) -> Section | None:
    """Return the tasks of which no trial could be judged."""
    cause = ReasonCode.TASK_UNJUDGED
    return _kept_apart(verdict, limits, "unjudged", "Unjudged tasks", Claim.UNJUDGED, cause)


def new(verdict: Verdict, limits: Limits) -> Section | None:
    """Return the tasks that the baseline does not have."""
    return _kept_apart(verdict, limits, "new", "New tasks", Claim.NEW)


def quarantined(verdict: Verdict, limits: Limits) -> Section | None:
    """Return the tasks that are reported and not judged."""
    return _kept_apart(verdict, limits, "quarantined", "Quarantined tasks", Claim.QUARANTINED)


def _kept_apart(
    verdict: Verdict,
    limits: Limits,
    key: str,
    title: str,
    claim: Claim,
    cause: ReasonCode | None = None,
) -> Section | None:
    """Return the tasks of a claim that is not tested, open where it is a reason of the verdict."""
    fold = Fold.OPEN if cause in _codes(verdict) else Fold.CLOSED
    tasks = sorted(_listed(verdict, claim), key=lambda task: task.task)
    return _section(key, title, tasks, verdict, limits, fold=fold, replayed=False)


def _listed(verdict: Verdict, claim: Claim) -> Iterable[TaskResult]:
    """Return the results of a claim, also of tasks that only the account of the suite names."""
    known = {task.task: task for task in verdict.tasks if task.claim is claim}
    listed: tuple[str, ...] = getattr(verdict.suite, claim)
    named = {name: _only_named(name, claim) for name in listed}
    return {**named, **known}.values()


def _only_named(name: str, claim: Claim) -> TaskResult:
    return TaskResult(task=name, claim=claim, baseline=None, candidate=None)


def suspects(verdict: Verdict, limits: Limits) -> Section | None:
    """Return the tasks that fell, but not so far that chance is ruled out over all claims."""
    tasks = sorted(_claimed(verdict, Claim.SUSPECT), key=badness)
    lead = "Each is below the level on its own; over all claims made here it can be chance."
    if verdict.recheck is not None and verdict.decision is not Decision.REGRESSED:
        lead = "Each is what the first run found; the recheck does not put it down to the change."
    return _section("suspects", "Suspects", tasks, verdict, limits, fold=Fold.CLOSED, lead=(lead,))


def improved(verdict: Verdict, limits: Limits) -> Section | None:
    """Return the tasks that got better, the largest gain first."""
    gains = _claimed(verdict, Claim.IMPROVED)
    tasks = sorted(gains, key=lambda task: (-(task.contribution or 0.0), task.task))
    plain = [_without_tests(task) for task in tasks]
    return _section(
        "improved", "Improvements", plain, verdict, limits, fold=Fold.CLOSED, replayed=False
    )


def _without_tests(task: TaskResult) -> TaskResult:
    """Leave out p-values of a drop and failing trials, which say nothing about a gain."""
    return TaskResult(
        task=task.task,
        claim=task.claim,
        baseline=task.baseline,
        candidate=task.candidate,
        errors=task.errors,
    )


def errored(verdict: Verdict, limits: Limits) -> Section | None:
    """Return the tasks with trials that errored and trials that did not, the most errors first."""
    touched = [
        task
        for task in verdict.tasks
        if task.candidate and task.candidate.errored and task.claim is not Claim.UNJUDGED
    ]
    ranked = sorted(touched, key=lambda task: (-_errors(task), task.task))
    plain = [_without_tests(task) for task in ranked]
    opened = ReasonCode.TOO_MANY_ERRORS in _codes(verdict)
    return _section(
        "errored",
        "Tasks with errored trials",
        plain,
        verdict,
        limits,
        fold=Fold.OPEN if opened else Fold.CLOSED,
        replayed=False,
    )


def _errors(task: TaskResult) -> int:
    return task.candidate.errored if task.candidate else 0

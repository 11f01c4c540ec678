"""JUnit XML: a test suite for each suite, a test case for each claim and each task.

Decides which claim is a failure, an error or skipped, so that a reader of the file comes to the
verdict's own status: failures only where something regressed, errors only where something could not
be judged, and neither where the gate does not block. It knows no Markdown and no terminal.

References
----------
The dialect of ``junitparser``; Apache Ant's ``junit`` schema with properties.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ci_gate.model.verdict import (
    RED_CLAIMS,
    Claim,
    Counts,
    Decision,
    FloorResult,
    GuardResult,
    MetricResult,
    ReasonCode,
    TaskResult,
    Verdict,
)
from ci_gate.render import figures
from ci_gate.render.detail import detail_lines
from ci_gate.render.escape import inert, inert_command

if TYPE_CHECKING:
    from junitparser import Error, Failure, Skipped, TestCase, TestSuite

__all__ = ["junit"]

_TEXT = 300
_DETAIL_LINES = 16
_CAUSES = {
    Claim.REMOVED: ReasonCode.TASKS_REMOVED,
    Claim.CHANGED: ReasonCode.TASKS_CHANGED,
    Claim.UNJUDGED: ReasonCode.TASK_UNJUDGED,
}
_NOT_TESTED = frozenset({Claim.REMOVED, Claim.CHANGED, Claim.UNJUDGED, Claim.QUARANTINED})


def junit(verdicts: Sequence[Verdict]) -> bytes:
    """Return the verdicts as JUnit XML in UTF-8.

    Parameters
    ----------
    verdicts : sequence of Verdict
        One test suite each, in their order.

    Notes
    -----
    A claim of regression is a failure with its replay commands; what made the verdict inconclusive
    is an error; tasks that are not tested are skipped. Where a verdict's exit status is 0 although
    something regressed (advisory mode, a moved bar), those are skipped with the same message.
    """
    from junitparser import JUnitXml

    report = JUnitXml("ci-gate")
    for verdict in verdicts:
        report.add_testsuite(_suite(verdict))
    # junitparser annotates its classes, but not these two methods.
    # The library has no types.
    report.update_statistics()  # type: ignore[no-untyped-call]
    body: bytes = report.tostring()  # type: ignore[no-untyped-call]
    return b'<?xml version="1.0" encoding="UTF-8"?>\n' + body + b"\n"


def _suite(verdict: Verdict) -> TestSuite:
    from junitparser import TestSuite

    suite = TestSuite(inert(verdict.suite_name))
    for name, value in _properties(verdict):
        suite.add_property(name, value)
    suite.add_testcases(list(_cases(verdict)))
    return suite


def _properties(verdict: Verdict) -> Iterator[tuple[str, str]]:
    yield "verdict", str(verdict.decision)
    yield "exit_code", str(verdict.exit_code)
    yield "reasons", " ".join(reason.code for reason in verdict.reasons)
    yield "alpha", figures.level(verdict.alpha)
    yield "p_value", figures.p_value(verdict.p_value, against=verdict.level)
    if verdict.predictive is not None:
        yield "predictive", figures.percent(verdict.predictive)
    yield "trials_planned", str(verdict.trials.planned)
    yield "trials_judged", str(verdict.trials.judged)
    yield "trials_errored", str(verdict.trials.errored)


def _cases(verdict: Verdict) -> Iterator[TestCase]:
    yield _verdict_case(verdict)
    for name, result in verdict.metrics.items():
        yield _metric_case(verdict, name, result)
    for floor in verdict.floors:
        yield _floor_case(verdict, floor)
    for guard in verdict.guards:
        yield _guard_case(verdict, guard)
    for task in _all_tasks(verdict):
        yield _task_case(verdict, task)


def _verdict_case(verdict: Verdict) -> TestCase:
    reasons = [f"{reason.code}: {inert(reason.text, limit=_TEXT)}" for reason in verdict.reasons]
    return _case(
        verdict,
        "suite verdict",
        f"{verdict.decision}: {'; '.join(reasons)}" if reasons else str(verdict.decision),
        failed=verdict.decision is Decision.REGRESSED,
        unjudged=verdict.decision is Decision.INCONCLUSIVE,
    )


def _case(
    verdict: Verdict,
    name: str,
    message: str,
    *,
    details: str = "",
    kind: str = "regressed",
    failed: bool = False,
    unjudged: bool = False,
    skipped: bool = False,
    of_task: bool = False,
) -> TestCase:
    from junitparser import TestCase

    part = "task" if of_task else "suite"
    case = TestCase(inert(name), classname=f"{inert(verdict.suite_name)}.{part}")
    result = _result(verdict, message, kind, failed=failed, unjudged=unjudged, skipped=skipped)
    if result is None:
        case.system_out = "\n".join(filter(None, (message, details)))
    else:
        result.text = details
        case.result = [result]
    return case


def _result(
    verdict: Verdict, message: str, kind: str, *, failed: bool, unjudged: bool, skipped: bool
) -> Failure | Error | Skipped | None:
    from junitparser import Error, Failure, Skipped

    if (failed or unjudged) and verdict.exit_code == 0:
        return Skipped(f"does not block: {message}")
    if failed:
        return Failure(message, kind)
    if unjudged:
        return Error(message, "inconclusive")
    return Skipped(message) if skipped else None


def _metric_case(verdict: Verdict, name: str, result: MetricResult) -> TestCase:
    return _case(
        verdict,
        f"suite {name}",
        f"baseline {figures.percent(result.baseline)}"
        f", candidate {_candidate(result)}"
        f", difference {figures.points(result.difference)} points"
        f", {_evidence(verdict, result.p_adjusted, result.predictive)}"
        f" over {figures.counted(result.n_tasks, 'task')}",
        failed=_metric_fell(verdict, result),
    )


def _candidate(result: MetricResult) -> str:
    """Return the candidate's estimate, or what it is foretold to be where it does not exist."""
    if result.candidate is None and result.predicted is not None:
        return f"{figures.percent(result.predicted.estimate)} (predicted)"
    return figures.percent(result.candidate)


def _metric_fell(verdict: Verdict, result: MetricResult) -> bool:
    """Return whether the verdict blames the suite, and this metric for it."""
    named = any(reason.code is ReasonCode.SUITE_REGRESSED for reason in verdict.reasons)
    return named and result.regressed


def _floor_case(verdict: Verdict, floor: FloorResult) -> TestCase:
    return _case(
        verdict,
        f"floor {floor.metric}",
        f"floor {figures.percent(floor.floor)}"
        f", candidate {figures.percent(floor.candidate, against=floor.floor)}"
        f", held against the floor {figures.percent(floor.bound, against=floor.floor)}",
        kind="floor",
        failed=not floor.passed,
    )


def _guard_case(verdict: Verdict, guard: GuardResult) -> TestCase:
    return _case(
        verdict,
        f"guard {guard.metric}" + (" (decrease)" if guard.direction == "decrease" else ""),
        f"change {figures.amount(guard.change)}, bound {figures.amount(guard.bound)}"
        f", limit {figures.amount(guard.limit)}",
        kind="guard",
        failed=guard.passed is False,
        unjudged=guard.passed is None,
    )


def _all_tasks(verdict: Verdict) -> Iterator[TaskResult]:
    """Yield every task, also those that only the account of the suite names."""
    yield from verdict.tasks
    known = {task.task for task in verdict.tasks}
    for claim in (Claim.NEW, *_CAUSES, Claim.QUARANTINED):
        listed: tuple[str, ...] = getattr(verdict.suite, claim)
        for name in listed:
            if name not in known:
                yield TaskResult(task=name, claim=claim, baseline=None, candidate=None)


def _task_case(verdict: Verdict, task: TaskResult) -> TestCase:
    codes = {reason.code for reason in verdict.reasons}
    cause = _CAUSES.get(task.claim) in codes
    failed = task.claim in RED_CLAIMS or (task.claim is Claim.REMOVED and cause)
    unjudged = cause and not failed
    return _case(
        verdict,
        task.task,
        _task_message(verdict, task),
        details="\n".join(_commands(task)),
        kind=str(task.claim),
        failed=failed,
        unjudged=unjudged,
        skipped=task.claim in _NOT_TESTED and not (failed or unjudged),
        of_task=True,
    )


def _task_message(verdict: Verdict, task: TaskResult) -> str:
    sides = f"baseline {_rate(task.baseline)}, candidate {_rate(task.candidate)}"
    return f"{task.claim}: {sides}, {_evidence(verdict, task.p_adjusted, task.predictive)}"


def _evidence(verdict: Verdict, p_adjusted: float | None, predictive: float | None) -> str:
    """Return the adjusted p, or what a run that was stopped has in its place."""
    if predictive is not None:
        return f"chance to be red in the whole plan {figures.percent(predictive)}"
    return f"adjusted p {figures.p_value(p_adjusted, against=verdict.level)}"


def _rate(counts: Counts | None) -> str:
    if counts is None:
        return figures.UNKNOWN
    errored = f" and {counts.errored} errored" if counts.errored else ""
    return figures.rate(counts.passed, counts.trials) + errored


def _commands(task: TaskResult) -> Iterator[str]:
    for replay in task.replay:
        command = inert_command(replay.command)
        seed = f" (seed {inert(replay.seed)})" if replay.seed else ""
        why = f": {inert(replay.reason, limit=_TEXT)}" if replay.reason else ""
        yield f"trial {replay.trial}{seed}{why}"
        yield from detail_lines(replay.detail, most=_DETAIL_LINES) if replay.detail else ()
        if command is not None:
            yield command

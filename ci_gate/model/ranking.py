"""Which tasks of a verdict to look at first. Knows claims and figures, not how they are shown."""

from __future__ import annotations

from operator import itemgetter

from ci_gate.model.verdict import RED_CLAIMS, ReasonCode, TaskResult, Verdict

__all__ = ["badness", "largest_drops", "worst_tasks"]


def badness(task: TaskResult) -> tuple[float, float, float, str]:
    """Order the worst first: the strongest evidence, then the largest part of the suite's drop.

    A run that was stopped has a chance to be red in the place of p-values.
    """
    adjusted = 2.0 - (task.predictive or 0.0) if task.p_adjusted is None else task.p_adjusted
    raw = 2.0 if task.p_value is None else task.p_value
    return adjusted, raw, task.contribution or 0.0, task.task


def largest_drops(verdict: Verdict) -> list[TaskResult]:
    """Return the tasks that fell, the largest part of the suite's drop first.

    Empty unless the suite regressed and no single task is proven to have.
    """
    proven = any(task.claim in RED_CLAIMS for task in verdict.tasks)
    codes = {reason.code for reason in verdict.reasons}
    if proven or ReasonCode.SUITE_REGRESSED not in codes:
        return []
    parts = [(task.contribution or 0.0, task.task, task) for task in verdict.tasks]
    return [task for part, _, task in sorted(parts, key=itemgetter(0, 1)) if part < 0]


def worst_tasks(verdict: Verdict) -> list[TaskResult]:
    """Return the tasks that are proven to have regressed, else the largest drops."""
    proven = [task for task in verdict.tasks if task.claim in RED_CLAIMS]
    return sorted(proven, key=badness) or largest_drops(verdict)

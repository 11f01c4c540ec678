"""What differs between two baselines, task by task."""

from __future__ import annotations

import msgspec

from ci_gate.decision.summary import counts_by_task
from ci_gate.errors import printable
from ci_gate.model.run import Side, SideTask
from ci_gate.model.verdict import Counts

__all__ = ["TaskDifference", "task_differences"]


class TaskDifference(msgspec.Struct, frozen=True, kw_only=True):
    """A task that differs between two sides; None where a side does not have it."""

    task: str
    baseline: Counts | None
    candidate: Counts | None
    remark: str

    def describe(self) -> str:
        """Return the difference as a clause of one line."""
        movement = f"{_rate(self.baseline)} to {_rate(self.candidate)}"
        return f"{printable(self.task)} from {movement} ({self.remark})"


def task_differences(baseline: Side, candidate: Side) -> tuple[TaskDifference, ...]:
    """Return the tasks that differ, by id."""
    before, after = counts_by_task(baseline), counts_by_task(candidate)
    return tuple(
        TaskDifference(
            task=name,
            baseline=before.get(name),
            candidate=after.get(name),
            remark=_remark(baseline.tasks.get(name), candidate.tasks.get(name)),
        )
        for name in sorted({*baseline.tasks, *candidate.tasks})
        if baseline.tasks.get(name) != candidate.tasks.get(name)
    )


def _remark(one: SideTask | None, other: SideTask | None) -> str:
    if one is None:
        return "new"
    if other is None:
        return "removed"
    if one.digest != other.digest:
        return "edited"
    return "other outcomes" if one.outcomes != other.outcomes else "other measures"


def _rate(counts: Counts | None) -> str:
    return "nothing" if counts is None else f"{counts.passed}/{counts.trials}"

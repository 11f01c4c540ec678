"""What every protocol says of a trial to the agent, and how long it may take."""

from __future__ import annotations

from typing import Any

from ci_gate.model.agent import AgentSpec
from ci_gate.model.suite import PlannedTrial, Task

__all__ = ["shown_task", "timeout_of"]


def shown_task(task: Task) -> dict[str, Any]:
    """Return what the agent is shown of a task: never its graders, limits or place."""
    return {
        "id": task.id,
        "instruction": task.instruction,
        "input": task.input,
        "metadata": task.metadata,
    }


def timeout_of(spec: AgentSpec, trial: PlannedTrial) -> float:
    """Return the seconds a trial may take: the task's own limit, else the agent's."""
    limit_s = trial.task.limits.timeout_s
    return spec.timeout_s if limit_s is None else limit_s

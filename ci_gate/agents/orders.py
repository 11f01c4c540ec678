"""How long a trial may take, whatever the protocol."""

from __future__ import annotations

from ci_gate.model.agent import AgentSpec
from ci_gate.model.suite import PlannedTrial

__all__ = ["timeout_of"]


def timeout_of(spec: AgentSpec, trial: PlannedTrial) -> float:
    """Return the seconds a trial may take: the task's own limit, else the agent's."""
    limit_s = trial.task.limits.timeout_s
    return spec.timeout_s if limit_s is None else limit_s

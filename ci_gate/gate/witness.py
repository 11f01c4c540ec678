"""Stand between engine and agent to see what it does."""

from __future__ import annotations

from collections.abc import Sequence

from ci_gate.model.suite import PlannedTrial
from ci_gate.model.trial import Step, Trajectory
from ci_gate.ports import TrialRunner, TrialSandbox

__all__ = ["Witness"]


class Witness:
    """Keeps the last trial's trajectory and steps.

    Attributes
    ----------
    trajectory : Trajectory or None
    steps : sequence of Step
        Every call that left the agent, or those it reported itself.
    """

    def __init__(self) -> None:
        self.trajectory: Trajectory | None = None
        self.steps: Sequence[Step] = ()

    def watching(self, agent: TrialRunner) -> TrialRunner:
        """Return the agent with this witness in front of it."""
        return _Watched(agent, self)


class _Watched:
    """An agent whose trials a witness sees."""

    def __init__(self, agent: TrialRunner, witness: Witness) -> None:
        self._agent = agent
        self._witness = witness

    async def run(self, trial: PlannedTrial, sandbox: TrialSandbox) -> Trajectory:
        """Run one trial and keep what happened."""
        trajectory = await self._agent.run(trial, sandbox)
        self._witness.trajectory = trajectory
        self._witness.steps = tuple(sandbox.steps) or trajectory.steps
        return trajectory

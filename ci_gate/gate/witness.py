"""Stand between engine and agent: to start it early, or to see what it does."""

from __future__ import annotations

from collections.abc import Sequence

from ci_gate.model.suite import PlannedTrial
from ci_gate.model.trial import Step, Trajectory
from ci_gate.ports import Agent, TrialSandbox

__all__ = ["StartedAgent", "Witness"]


class StartedAgent:
    """An agent that is started once, however often it is asked to.

    Parameters
    ----------
    agent : Agent
    """

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._is_started = False

    async def start(self) -> None:
        """Prepare the agent the first time."""
        if not self._is_started:
            await self._agent.start()
            self._is_started = True

    async def run(self, trial: PlannedTrial, sandbox: TrialSandbox) -> Trajectory:
        """Run one trial."""
        return await self._agent.run(trial, sandbox)

    async def close(self) -> None:
        """End the agent."""
        await self._agent.close()


class Witness:
    """Stands between engine and agent and keeps the last trial's trajectory and steps.

    Attributes
    ----------
    trajectory : Trajectory or None
    steps : sequence of Step
        Every call that left the agent, or those it reported itself.
    """

    def __init__(self) -> None:
        self.trajectory: Trajectory | None = None
        self.steps: Sequence[Step] = ()
        self._agent: Agent | None = None

    def watching(self, agent: Agent) -> Agent:
        """Return the agent with this witness in front of it."""
        self._agent = agent
        return self

    async def start(self) -> None:
        """Prepare the agent."""
        await self._seen().start()

    async def run(self, trial: PlannedTrial, sandbox: TrialSandbox) -> Trajectory:
        """Run one trial and keep what happened."""
        trajectory = await self._seen().run(trial, sandbox)
        self.trajectory = trajectory
        self.steps = tuple(sandbox.steps) or trajectory.steps
        return trajectory

    async def close(self) -> None:
        """End the agent."""
        await self._seen().close()

    def _seen(self) -> Agent:
        assert self._agent is not None
        return self._agent

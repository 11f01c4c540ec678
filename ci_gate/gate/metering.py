"""Tokens and money of a trial whose agent does not report them: the sum over its recorded calls."""

from __future__ import annotations

import msgspec

from ci_gate.model.suite import PlannedTrial
from ci_gate.model.trial import Trajectory
from ci_gate.ports import TrialRunner, TrialSandbox
from ci_gate.sandbox.world import World

__all__ = ["Metered"]


class Metered:
    """An agent whose trials have the tokens and the cost of their calls to models.

    What the agent reports itself is left as it is: it may know of calls that passed nobody here.

    Parameters
    ----------
    agent : TrialRunner
    """

    def __init__(self, agent: TrialRunner) -> None:
        self._agent = agent

    async def run(self, trial: PlannedTrial, sandbox: TrialSandbox) -> Trajectory:
        """Run one trial."""
        trajectory = await self._agent.run(trial, sandbox)
        if not isinstance(sandbox, World):
            return trajectory
        spent = sandbox.spent(trajectory.steps)
        tokens, cost_usd = trajectory.tokens, trajectory.cost_usd
        return msgspec.structs.replace(
            trajectory,
            tokens=spent.tokens if tokens is None else tokens,
            cost_usd=spent.cost_usd if cost_usd is None else cost_usd,
        )

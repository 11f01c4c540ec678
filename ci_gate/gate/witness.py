"""Stand between engine and agent to see what it does."""

from __future__ import annotations

from collections.abc import Sequence

from ci_gate.gate.replaying import Playback
from ci_gate.gate.secrecy import redactor_of, steps_without, trajectory_without
from ci_gate.model.suite import PlannedTrial
from ci_gate.model.trial import Step, Trajectory
from ci_gate.ports import TrialRunner, TrialSandbox
from ci_gate.redaction import Redactor

__all__ = ["Witness"]


class Witness:
    """Keeps the last trial's trajectory and steps.

    Parameters
    ----------
    playback : Playback or None
        What the trial is played from.

    Attributes
    ----------
    trajectory : Trajectory or None
        Without secrets.
    steps : sequence of Step
        Every call that left the agent, or those it reported itself.
    """

    def __init__(self, playback: Playback | None = None) -> None:
        self._playback = playback
        self.trajectory: Trajectory | None = None
        self.steps: Sequence[Step] = ()

    def watching(self, agent: TrialRunner) -> TrialRunner:
        """Return the agent with this witness in front of it."""
        played = agent if self._playback is None else self._playback.playing(agent)
        return _Watched(played, self)


class _Watched:
    """An agent whose trials a witness sees."""

    def __init__(self, agent: TrialRunner, witness: Witness) -> None:
        self._agent = agent
        self._witness = witness

    async def run(self, trial: PlannedTrial, sandbox: TrialSandbox) -> Trajectory:
        """Run one trial and keep what happened."""
        trajectory = await self._agent.run(trial, sandbox)
        redactor = redactor_of(sandbox, Redactor)
        shown = trajectory_without(trajectory, redactor)
        self._witness.trajectory = shown
        self._witness.steps = steps_without(sandbox.steps, redactor) or shown.steps
        return trajectory

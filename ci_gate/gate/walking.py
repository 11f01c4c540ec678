"""Walk through a recording: up to a call, or call by call for as long as somebody wants to go on.

Decides where a replay stops. A trial that was stopped is not judged; a call that is not the
recorded one is drift here as in any replay. Who is asked, and how calls are shown, is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ci_gate.config import Config
from ci_gate.errors import UsageError, printable
from ci_gate.gate.replaying import Found, Playback
from ci_gate.model.suite import PlannedTrial, Task
from ci_gate.model.trace import TraceRecord
from ci_gate.model.trace_meta import STATE
from ci_gate.model.trial import Status, Trajectory
from ci_gate.ports import Observation, ReplayDrifted, TrialRunner, TrialSandbox
from ci_gate.sandbox.answering import Reconciliation
from ci_gate.sandbox.world import AnswerSource

__all__ = ["Walk", "WalkedPlayback", "without_haste"]

_LONGEST_S = 86_400.0


class Walk(msgspec.Struct, frozen=True, kw_only=True):
    """How far a replay goes.

    Attributes
    ----------
    until : int or None
        Number of the last call in the trace that is answered.
    goes_on : callable or None
        Gets each call when it was answered; False stops the replay there.
    """

    until: int | None = None
    goes_on: Callable[[TraceRecord], bool] | None = None


class WalkedPlayback(Playback):
    """A recording that is played as far as a walk goes.

    Parameters
    ----------
    found : Found
    config : Config
    environment : mapping of str to str
    walk : Walk

    Attributes
    ----------
    walked : list of TraceRecord
        The recorded calls that were made again, in the order in which they were.
    is_stopped : bool
        The walk ended before the trial did, or was to end at a call.

    Raises
    ------
    UsageError
        The trace has no such call.
    """

    def __init__(
        self, found: Found, config: Config, environment: Mapping[str, str], walk: Walk
    ) -> None:
        super().__init__(found, config, environment)
        last = max((one.order for one in self.trace.records if one.kind != STATE), default=-1)
        if walk.until is not None and walk.until > last:
            raise UsageError(
                f"there is no call {walk.until}",
                where=printable(self.path),
                hint=f"Its last is {last}; see `ci-gate trace show`.",
            )
        self.is_stopped = walk.until is not None
        self.walked: list[TraceRecord] = []
        self._walk = walk
        self._is_over = False

    def source_of(self, trial: PlannedTrial) -> AnswerSource:
        """Return what answers the calls of the trial."""
        return self

    def answer(self, lane: str, kind: str, name: str, arguments: Any) -> Observation | None:
        """Return what the agent was given, while the walk goes on.

        Raises
        ------
        ReplayDrifted
            The walk is over, or this is not the recorded call.
        """
        record = self._source.due(lane)
        if self._is_over or (record is not None and self._is_beyond(record)):
            raise ReplayDrifted("the replay was stopped here")
        seen = self._source.answer(lane, kind, name, arguments)
        if record is not None:
            self._take(record)
        return seen

    def _is_beyond(self, record: TraceRecord) -> bool:
        return self._walk.until is not None and record.order > self._walk.until

    def _take(self, record: TraceRecord) -> None:
        self.walked.append(record)
        if self._walk.goes_on is not None and not self._walk.goes_on(record):
            self._is_over = self.is_stopped = True

    def reconciled(self) -> Reconciliation:
        """Say how the replay followed the recording; what lies behind the stop is not missed."""
        whole = super().reconciled()
        if not self.is_stopped:
            return whole
        drifts = [
            drift
            for drift in whole.drifts
            if drift.part != "unconsumed" or (not self._is_over and self._is_due(drift.order))
        ]
        return msgspec.structs.replace(whole, drifts=tuple(drifts))

    def _is_due(self, order: int | None) -> bool:
        until = self._walk.until
        return order is None or until is None or order <= until

    def playing(self, agent: TrialRunner) -> TrialRunner:
        """Return the agent, whose trial is not judged where it was stopped."""
        return _Unjudged(super().playing(agent), self)


class _Unjudged:
    def __init__(self, agent: TrialRunner, playback: WalkedPlayback) -> None:
        self._agent = agent
        self._playback = playback

    async def run(self, trial: PlannedTrial, sandbox: TrialSandbox) -> Trajectory:
        trajectory = await self._agent.run(trial, sandbox)
        if not self._playback.is_stopped:
            return trajectory
        # No grader is asked about a trial that failed.
        return msgspec.structs.replace(trajectory, status=Status.FAILED, reason="stopped")


def without_haste(config: Config, task: Task) -> tuple[Config, Task]:
    """Return both without their limits of time: somebody reads between two calls."""
    agent = msgspec.structs.replace(config.agent, timeout_s=_LONGEST_S)
    limits = msgspec.structs.replace(task.limits, timeout_s=None)
    return (
        msgspec.structs.replace(config, agent=agent),
        msgspec.structs.replace(task, limits=limits),
    )

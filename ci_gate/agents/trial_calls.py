"""Passes the calls of one Python trial by its sandbox, and knows whether the trial broke a rule.

A breach fails the trial whatever else came of it: an agent that swallows the refusal, and goes on,
does not pass.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import msgspec

from ci_gate.agents.capabilities import Capabilities
from ci_gate.agents.results import one_line
from ci_gate.agents.strictness import Noted
from ci_gate.agents.wire import Answer, Drawn, Incoming
from ci_gate.model.breaches import CAPABILITY
from ci_gate.model.trial import Status, Trajectory
from ci_gate.ports import ReplayDrifted, TrialSandbox

__all__ = ["SandboxCalls"]


class SandboxCalls:
    """The calls of one trial.

    Parameters
    ----------
    sandbox : TrialSandbox
    capabilities : Capabilities
    noted : Noted
        Takes what the worker saw that fails nothing.
    """

    def __init__(self, sandbox: TrialSandbox, capabilities: Capabilities, noted: Noted) -> None:
        self._sandbox = sandbox
        self._capabilities = capabilities
        self._noted = noted
        self._breach: str | None = None

    def __call__(self, message: Incoming) -> Answer:
        """Return what the agent sees of a call."""
        refusal = self._capabilities.refusal(message.kind, message.name)
        if refusal is not None:
            self._breach = self._breach or CAPABILITY + refusal
            return Answer(call=message.call, refused=refusal)
        try:
            self._note(message.draws)
        except ReplayDrifted as drift:
            return Answer(call=message.call, drift=str(drift))
        return self._answered(message) if message.asks else self._observed(message)

    def _note(self, draws: Sequence[Drawn], *, at_end: bool = False) -> None:
        for drawn in draws:
            asked = drawn.lane, drawn.kind, drawn.name, drawn.arguments
            self._sandbox.note(*asked, drawn.output, at_end=at_end)

    def _observed(self, message: Incoming) -> Answer:
        seen = self._sandbox.observe(
            message.kind,
            message.name,
            message.arguments,
            message.output,
            is_error=message.is_error,
            turn=message.turn,
            lane=message.lane,
            duration_ms=message.ms,
            determinism=message.determinism,
            first=message.first,
        )
        if seen.fault is None or seen.again:
            return Answer(call=message.call, delay_s=seen.delay_s, again=seen.again)
        if seen.is_whole:
            return Answer(call=message.call, fault=seen.fault, is_whole=True, delay_s=seen.delay_s)
        return Answer(
            call=message.call,
            fault=seen.fault,
            output=seen.output,
            is_error=seen.is_error,
            delay_s=seen.delay_s,
        )

    def _answered(self, message: Incoming) -> Answer:
        try:
            seen = self._sandbox.answer(
                message.lane,
                message.kind,
                message.name,
                message.arguments,
                turn=message.turn,
                determinism=message.determinism,
            )
        except ReplayDrifted as drift:
            return Answer(call=message.call, drift=str(drift))
        if seen is None:
            return Answer(call=message.call, make=True)
        return Answer(
            call=message.call,
            fault=seen.fault,
            output=seen.output,
            is_error=seen.is_error,
            delay_s=seen.delay_s,
            within=seen.skipped,
        )

    def end(self, message: Incoming) -> None:
        """Take note of what the worker says of the trial at its end."""
        self._noted.add(message.noted)
        with contextlib.suppress(ReplayDrifted):  # who plays the recording knows of it
            self._note(message.draws, at_end=True)
        if message.breaches and self._breach is None:
            self._breach = message.breaches[0]

    def judged(self, trajectory: Trajectory) -> Trajectory:
        """Return the trajectory, failed where the trial broke a rule."""
        if self._breach is None:
            return trajectory
        reason = one_line(self._breach)
        return msgspec.structs.replace(trajectory, status=Status.FAILED, reason=reason)

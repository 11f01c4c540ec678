"""Answers an agent's calls in a replay, and keeps account of how it followed its recording.

A call is looked for by what it is, redacted as the recording was; the world of the trial makes
nothing and asks nobody. Which recording it is, and what the trial is worth, is not known here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ci_gate.model.trace import TraceRecord
from ci_gate.model.trace_meta import is_draw
from ci_gate.ports import Observation
from ci_gate.redaction import Redactor
from ci_gate.sandbox.cassette import Asked, Cassette, Drift
from ci_gate.sandbox.draws import skipped_by
from ci_gate.sandbox.faults import DELAY_S
from ci_gate.sandbox.ignoring import Ignored
from ci_gate.sandbox.recording import STATE, Labels, asked_without_secrets

__all__ = ["Reconciliation", "StrictSource", "asked_of"]


class Reconciliation(msgspec.Struct, frozen=True, kw_only=True):
    """How a replay followed its recording.

    Parameters
    ----------
    recorded, replayed : int
        Calls of the recording, and those that were made again as recorded.
    drifts : tuple of Drift
        The first call that differed, or every recorded one that was not made.
    """

    recorded: int
    replayed: int
    drifts: tuple[Drift, ...]

    @property
    def is_consistent(self) -> bool:
        """Return whether every recorded call was made again and no other."""
        return not self.drifts


class StrictSource:
    """Answers from one recording in its order, to the byte.

    Parameters
    ----------
    records : sequence of TraceRecord
        Of the trace; states of the world are no calls.
    ignored : Ignored
    redactor : Redactor
    """

    def __init__(
        self, records: Sequence[TraceRecord], *, ignored: Ignored, redactor: Redactor
    ) -> None:
        calls = [record for record in records if record.kind != STATE]
        self._cassette = Cassette(calls)
        self._ignored = ignored
        self._redactor = redactor
        # Older traces have none, and are followed without.
        self._has_draws = any(is_draw(record.kind, record.name) for record in calls)
        self._recorded = len(calls)
        self._replayed = 0

    def answer(self, lane: str, kind: str, name: str, arguments: Any) -> Observation:
        """Return what the agent was given when it made this call.

        Raises
        ------
        DriftError
            The recording has another call here, or none.
        """
        is_call = not is_draw(kind, name)
        if not is_call and not self._has_draws:
            return Observation(output=None)
        asked = asked_of(lane, kind, name, arguments, self._redactor, self._ignored)
        record = self._cassette.answer(asked)
        within = self._cassette.within(record) if is_call else ()
        self._replayed += 1 + len(within)
        return Observation(
            output=record.output,
            is_error=record.is_error,
            fault=record.fault,
            delay_s=DELAY_S.get(record.fault, 0.0) if record.fault else 0.0,
            unfaulted=record.unfaulted,
            unfaulted_is_error=record.unfaulted_is_error,
            tokens=record.tokens,
            cost_usd=record.cost_usd,
            duration_ms=record.duration_ms,
            within=within,
            skipped=skipped_by(within) if within else None,
        )

    def due(self, lane: str) -> TraceRecord | None:
        """Return the recorded call that comes next in a lane; None where there is none."""
        return self._cassette.due(self._redactor.name(lane))

    def reconciled(self) -> Reconciliation:
        """Say how the replay followed its recording, after it has ended."""
        drift = self._cassette.drift
        drifts = (drift,) if drift is not None else tuple(self._cassette.unconsumed())
        return Reconciliation(recorded=self._recorded, replayed=self._replayed, drifts=drifts)


def asked_of(
    lane: str, kind: str, name: str, arguments: Any, redactor: Redactor, ignored: Ignored
) -> Asked:
    """Return a call as it is looked for in a recording: without secrets and what is ignored."""
    called = Labels(lane, kind, name)
    shown, labels, digest = asked_without_secrets(redactor, arguments, called, ignored)
    return Asked(*labels, digest, shown)

"""Answers the calls to models from a recording, and lets every other call be made.

So a trial runs again with the one thing held still that no seed decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ci_gate.model.calls import MODEL_CALL
from ci_gate.model.trace import TraceRecord
from ci_gate.ports import Observation, ReplayDrifted
from ci_gate.redaction import Redactor
from ci_gate.sandbox.answering import StrictSource
from ci_gate.sandbox.ignoring import Ignored

__all__ = ["ModelAnswers"]


class ModelAnswers:
    """Answers from one recording.

    Parameters
    ----------
    records : sequence of TraceRecord
        Of the trace; calls of other kinds are left out.
    ignored : Ignored
    redactor : Redactor
    """

    def __init__(
        self, records: Sequence[TraceRecord], *, ignored: Ignored, redactor: Redactor
    ) -> None:
        models = [record for record in records if record.kind == MODEL_CALL]
        self._recorded = StrictSource(models, ignored=ignored, redactor=redactor)

    def answer(self, lane: str, kind: str, name: str, arguments: Any) -> Observation | None:
        """Return the recorded answer; an error to the agent where it asks for something else.

        It is recorded as such, so that a comparison of the two traces shows what was asked.
        """
        if kind != MODEL_CALL:
            return None
        try:
            return self._recorded.answer(lane, kind, name, arguments)
        except ReplayDrifted as drift:
            return Observation(output=str(drift), is_error=True)

"""Whether tools that are declared deterministic answer the same input alike, across traces.

It knows records; which traces belong together is decided elsewhere.
"""

from __future__ import annotations

from typing import Final

from ci_gate.codec import canonical_of_json, digest_bytes
from ci_gate.model.calls import TOOL_CALL
from ci_gate.model.trace import Determinism, TraceRecord
from ci_gate.model.trace_findings import Unsteady

__all__ = ["Steadiness"]

_MOST_INPUTS: Final = 100_000


class Steadiness:
    """Compares the answers of such tools with the first one to the same input.

    Memory is bounded: of 100,000 inputs; further ones are not compared.
    """

    def __init__(self) -> None:
        self._first: dict[tuple[str, str], str] = {}
        self._differing: dict[str, set[str]] = {}

    def take(self, record: TraceRecord) -> None:
        """Look at a call; an injected fault is none of the tool's answers."""
        if record.determinism is not Determinism.DETERMINISTIC or record.kind != TOOL_CALL:
            return
        is_faulted = record.fault is not None
        answer = record.unfaulted if is_faulted else record.output
        is_error = record.unfaulted_is_error if is_faulted else record.is_error
        digest = digest_bytes(canonical_of_json([answer, is_error]))
        asked = record.name, record.input_digest
        if asked not in self._first and len(self._first) < _MOST_INPUTS:
            self._first[asked] = digest
        elif self._first.get(asked, digest) != digest:
            self._differing.setdefault(record.name, set()).add(record.input_digest)

    @property
    def unsteady(self) -> tuple[Unsteady, ...]:
        """Return the tools that gave different answers to the same input, by name."""
        return tuple(
            Unsteady(tool=name, inputs=len(inputs))
            for name, inputs in sorted(self._differing.items())
        )

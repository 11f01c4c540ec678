"""What is found in traces: where two part, where payloads differ, what calls cost. Data alone."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final

import msgspec

from ci_gate.model.trace import TraceRecord

__all__ = [
    "ABSENT",
    "Difference",
    "Divergence",
    "Ledger",
    "LedgerEntry",
    "Mismatch",
    "Parting",
    "Reconciled",
    "TraceDiff",
    "Unsteady",
]

ABSENT: Final = "(absent)"
"""Stands for what one of the two does not have, beside ``is_absent``."""


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One place where two values differ.

    Parameters
    ----------
    path : str
        As ``$.rows[2].id``.
    baseline, candidate : Any
        What stands there; ``ABSENT`` where there is nothing.
    kind : str
        ``changed``, ``added`` (the candidate alone has it) or ``removed``.
    """

    path: str
    baseline: Any
    candidate: Any
    kind: str


class Parting(StrEnum):
    """How two traces part."""

    MODEL_ANSWERED = "model-answered-differently"
    ARGUMENTS = "arguments-changed"
    TOOL_ANSWERED = "tool-answered-differently"
    FILE_CONTENT = "file-content-changed"
    ORDER = "order-changed"
    FAULT = "fault-differed"
    OTHER_CALL = "another-call"
    DRAWS = "draws-differed"
    STOPPED = "one-stopped-earlier"


class Divergence(msgspec.Struct, frozen=True, kw_only=True):
    """The first call of a lane at which two traces part.

    Parameters
    ----------
    kind : Parting
    lane : str
    place : int
        Calls of this lane before it, on which both agree.
    baseline, candidate : TraceRecord or None
        The calls there; None for the one that stopped.
    differences : tuple of Difference
        Of the inputs where these differ, else of what was answered.
    """

    kind: Parting
    lane: str
    place: int
    baseline: TraceRecord | None
    candidate: TraceRecord | None
    differences: tuple[Difference, ...] = ()


class TraceDiff(msgspec.Struct, frozen=True, kw_only=True):
    """Two traces compared.

    Parameters
    ----------
    first : Divergence or None
        The earliest over all lanes; None where the traces agree.
    lanes : tuple of Divergence
        Of every lane that parts, earliest first.
    baseline_calls, candidate_calls : int
    agreed : int
        Calls before the parting of their lane.
    common : int
        Calls that both made with the same input, wherever.
    """

    first: Divergence | None
    lanes: tuple[Divergence, ...]
    baseline_calls: int
    candidate_calls: int
    agreed: int
    common: int

    @property
    def is_same(self) -> bool:
        """Return whether every call and answer agrees."""
        return self.first is None


class LedgerEntry(msgspec.Struct, frozen=True, kw_only=True):
    """What some calls cost together.

    Parameters
    ----------
    calls : int
    errors : int
        Calls that failed from the agent's point of view, injected faults among them.
    tokens : int or None
        Of the calls that say so; None where none does.
    cost_usd : float or None
    duration_ms : float or None
    unpriced : int
        Calls with tokens whose cost is unknown.
    """

    calls: int
    errors: int
    tokens: int | None
    cost_usd: float | None
    duration_ms: float | None
    unpriced: int


class Ledger(msgspec.Struct, frozen=True, kw_only=True):
    """The total, and each kind and name of call in sorted order."""

    total: LedgerEntry
    by_name: tuple[tuple[str, str, LedgerEntry], ...]


class Mismatch(msgspec.Struct, frozen=True, kw_only=True):
    """An amount on which a trial and its trace differ.

    Parameters
    ----------
    task : str
    trial, repeat : int
    what : str
        ``tokens``, ``cost_usd``, ``tool_calls`` or ``faults``.
    said, found : float
        By the run file, and by the trace.
    """

    task: str
    trial: int
    repeat: int
    what: str
    said: float
    found: float


class Unsteady(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that is declared deterministic, with how many inputs it answered in several ways."""

    tool: str
    inputs: int


class Reconciled(msgspec.Struct, frozen=True, kw_only=True):
    """The traces of a run, all of them whole.

    Parameters
    ----------
    trials : int
        Of the run; those without any call have no trace.
    traces, calls : int
    tokens : int or None
        Of the calls that say so; None where none does.
    cost_usd : float or None
    unpriced : int
        Calls with tokens whose cost is unknown.
    mismatches : tuple of Mismatch
    unsteady : tuple of Unsteady
    """

    trials: int
    traces: int
    calls: int
    tokens: int | None
    cost_usd: float | None
    unpriced: int
    mismatches: tuple[Mismatch, ...]
    unsteady: tuple[Unsteady, ...] = ()

"""A trace: every call that left the agent in one trial, in order, each chained to the one before.

These are the lines of a ``ci-gate/trace@1`` file. How they are linked and checked is in
``trace_chain``; who records, stores or replays them is not known here.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, NamedTuple

import msgspec

from ci_gate.model.amounts import Count, Milliseconds, Usd

__all__ = [
    "Determinism",
    "Origin",
    "Trace",
    "TraceFooter",
    "TraceHeader",
    "TraceRecord",
    "TraceRef",
]


class Determinism(StrEnum):
    """Where a call's answer comes from.

    ``deterministic``: from its arguments alone. ``stochastic``: from the trial's own generator.
    ``io-bound``: from outside, so that only the recorded answer can repeat it.
    """

    DETERMINISTIC = "deterministic"
    STOCHASTIC = "stochastic"
    IO_BOUND = "io-bound"


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """What was run where no suite says it, without secrets.

    Parameters
    ----------
    python : str or None
        ``module:function`` of a Python agent.
    command : tuple of str
        Program and arguments of any other.
    instruction : str
    input : Any
        JSON.
    """

    python: str | None = None
    command: tuple[str, ...] = ()
    instruction: str = ""
    input: Any = None


class TraceHeader(msgspec.Struct, frozen=True, kw_only=True):
    """The first line: which trial this is. Readers require ``schema`` only.

    Parameters
    ----------
    suite, task, task_digest : str or None
        None for a trace that was recorded outside any suite.
    trial, repeat : int or None
    seed : str or None
        Hexadecimal.
    agent_digest, faults_digest : str or None
    now : str or None
        Start of the trial's clock, ISO 8601 UTC.
    tool : str or None
        What recorded it.
    origin : Origin or UNSET
        What was run, in a trace that was recorded outside any suite; others do not have it.
    """

    schema: str = "ci-gate/trace@1"
    suite: str | None = None
    task: str | None = None
    task_digest: str | None = None
    trial: Count | None = None
    repeat: Count | None = None
    seed: str | None = None
    agent_digest: str | None = None
    faults_digest: str | None = None
    now: str | None = None
    tool: str | None = None
    origin: Origin | msgspec.UnsetType = msgspec.UNSET


class TraceRecord(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One call.

    Parameters
    ----------
    order : int
        Place in the trace, 0 for the first.
    lane : str
        Calls of one lane follow each other; lanes run beside each other.
    kind : str
        ``tool``, ``llm``, ``kv``, ``state``, ``clock``, ``rng``, ``file``, ``shell`` or an own one.
    name : str
    input_digest : str
        Of the input without what ``[trace] ignore`` leaves out.
    input, output : Any
        JSON; ``output`` is what the agent was given, after a fault.
    is_error : bool
        The call failed from the agent's point of view.
    fault : str or None
        Kind of the injected fault.
    unfaulted, unfaulted_is_error : Any, bool
        What the call itself gave, and whether it had failed, where a fault hid it.
    determinism : Determinism
    turn : int or None
        The agent's turn, where known.
    tokens : int or None
    cost_usd : float or None
        None where unknown.
    duration_ms : float or None
        Real time, outside every digest.
    prev, digest : str
        The chain: digest of the line before, and of this one.
    """

    order: Count
    lane: str = "main"
    kind: str
    name: str
    input_digest: str
    input: Any = None
    output: Any = None
    is_error: bool = False
    fault: str | None = None
    unfaulted: Any = None
    unfaulted_is_error: bool = False
    determinism: Determinism = Determinism.IO_BOUND
    turn: Count | None = None
    tokens: Count | None = None
    cost_usd: Usd | None = None
    duration_ms: Milliseconds | None = None
    prev: str = ""
    digest: str = ""


class TraceFooter(msgspec.Struct, frozen=True, kw_only=True):
    """The last line.

    Parameters
    ----------
    calls : int
        How many records there are.
    head : str
        Digest of the last of them.
    content : str
        SHA-256 of every byte before this line: also of what is outside of the chain.
    """

    end: bool = True
    calls: Count
    head: str
    content: str


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """A whole trace; ``footer`` is None where the trial was cut short."""

    header: TraceHeader
    records: tuple[TraceRecord, ...]
    footer: TraceFooter | None = None


class TraceRef(NamedTuple):
    """Where the trace of a trial is, and the digest of its last line.

    Attributes
    ----------
    place : str
        Relative to the folder of results, with forward slashes.
    digest : str
    """

    place: str
    digest: str

"""Turns the calls of one trial into the records of its trace.

Decides what of a call is written: without secrets, with an input digest that leaves out what does
not count, chained to the call before. Where the records go is not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from ci_gate.codec import canonical_of_json, digest_bytes
from ci_gate.errors import GateError
from ci_gate.model.trace import Determinism, TraceRecord, TraceRef
from ci_gate.model.trace_chain import sealed
from ci_gate.model.trace_meta import STATE
from ci_gate.redaction import Redactor
from ci_gate.sandbox.ignoring import Ignored
from ci_gate.sandbox.states import ContentSink, capture

__all__ = [
    "STATE",
    "Call",
    "Labels",
    "Recorder",
    "TraceSink",
    "asked_without_secrets",
    "determinism_of",
    "input_digest",
]

_CLASSES: Final = {
    "kv": Determinism.DETERMINISTIC,
    "clock": Determinism.DETERMINISTIC,
    "rng": Determinism.STOCHASTIC,
}


class TraceSink(Protocol):
    """Where the records of one trace go."""

    @property
    def place(self) -> str:
        """Where the trace will be, relative to the folder of results."""

    @property
    def head(self) -> str:
        """Digest of the last line."""

    @property
    def calls(self) -> int:
        """Records so far."""

    def append(self, record: TraceRecord) -> None:
        """Keep a sealed record; raises GateError where that is impossible."""

    def finish(self) -> str:
        """End the trace and return the digest of its last line; raises GateError."""

    def discard(self) -> None:
        """Leave nothing behind; safe to call twice and after ``finish``."""


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One call as it happened, secrets and all.

    Parameters
    ----------
    kind, name : str
    arguments, output : Any
        JSON; ``output`` is what the agent was given.
    lane : str
    is_error : bool
    fault : str or None
        Kind of the injected fault.
    unfaulted, unfaulted_is_error : Any, bool
        What the call itself gave, and whether it had failed, where a fault hid it.
    turn, tokens : int or None
    cost_usd, duration_ms : float or None
    determinism : Determinism or None
        None: that of the kind.
    """

    kind: str
    name: str
    arguments: Any
    output: Any
    lane: str = "main"
    is_error: bool = False
    fault: str | None = None
    unfaulted: Any = None
    unfaulted_is_error: bool = False
    turn: int | None = None
    tokens: int | None = None
    cost_usd: float | None = None
    duration_ms: float | None = None
    determinism: Determinism | None = None


class Labels(NamedTuple):
    """What a call is known by beside its arguments."""

    lane: str
    kind: str
    name: str


def determinism_of(kind: str) -> Determinism:
    """Return where the answers of a kind of call come from."""
    return _CLASSES.get(kind, Determinism.IO_BOUND)


def asked_without_secrets(
    redactor: Redactor, arguments: Any, labels: Labels, ignored: Ignored
) -> tuple[Any, Labels, str]:
    """Return what was asked without secrets, and its digest, in a recording and its replay alike.

    Parameters
    ----------
    redactor : Redactor
    arguments : Any
        JSON.
    labels : Labels
        An agent chooses them too, and can make them of anything.
    ignored : Ignored

    Raises
    ------
    ValueError
        They hold what JSON does not have.

    Notes
    -----
    Arguments come first and the answer does not come in: a replay knows no more when it is asked.
    Nearly always nothing is taken out, and the JSON that was looked through is that of the digest.
    """
    content = canonical_of_json(arguments)
    shown = redactor.value(arguments, content)
    lane, kind, name = map(redactor.name, labels)
    is_whole = shown is arguments and not ignored
    digest = digest_bytes(content) if is_whole else input_digest(shown, ignored)
    return shown, Labels(lane, kind, name), digest


def input_digest(arguments: Any, ignored: Ignored) -> str:
    """Return the digest of an input, redacted, without what does not count.

    Raises
    ------
    ValueError
        It holds what JSON does not have.
    """
    counted = ignored.without(arguments) if ignored else arguments
    return digest_bytes(canonical_of_json(counted))


class Recorder:
    """Records the calls of one trial.

    Parameters
    ----------
    begin : callable
        Begins the trace; called at its first record, because a trial that did not end has none.
    redactor : Redactor
        Of this trial: what it learns in one call it takes out of later ones.
    ignored : Ignored
    contents : ContentSink or None
        Where the contents of worlds go; None: their states are not recorded.
    complain : callable
        Is told once why the trial has no trace.

    Attributes
    ----------
    redactor : Redactor
    keeps_printed : bool
        Whether the end of the trace has what the agent printed.

    Notes
    -----
    An agent decides what is recorded, and could see to it that it cannot be: such a trial has no
    trace, and is judged as any other.
    """

    keeps_printed = False

    def __init__(
        self,
        begin: Callable[[], TraceSink],
        *,
        redactor: Redactor,
        ignored: Ignored,
        contents: ContentSink | None = None,
        complain: Callable[[str], None] = lambda why: None,
    ) -> None:
        self._begin = begin
        self._sink: TraceSink | None = None
        self.redactor = redactor
        self._ignored = ignored
        self._contents = contents
        self._complain = complain
        self._has_given_up = False

    def state_of(self, folder: Path) -> Mapping[str, Any] | None:
        """Keep what is in a world's folder; None where that is not asked for, or impossible."""
        if self._contents is None or self._has_given_up:
            return None
        try:
            return capture(folder, self._contents, self.redactor)
        except GateError as error:
            self._give_up(error.problems[0].what)
            return None

    def record_state(self, name: str, state: Mapping[str, Any]) -> None:
        """Write a state of the world, ``before`` or ``after`` the trial."""
        self.record(Call(kind=STATE, name=name, arguments=None, output=state))

    def record(self, call: Call) -> None:
        """Write a call that has ended."""
        if self._has_given_up:
            return
        try:
            if self._sink is None:
                self._sink = self._begin()
            self._sink.append(sealed(self._record(call, self._sink.calls), self._sink.head))
        except GateError as error:
            self._give_up(error.problems[0].what)
        except (ValueError, RecursionError) as error:
            self._give_up(f"a call cannot be recorded: {error}")

    def _give_up(self, why: str) -> None:
        self._has_given_up = True
        self._complain(self.redactor.reason(why))

    def _record(self, call: Call, order: int) -> TraceRecord:
        arguments, (lane, kind, name), digest = asked_without_secrets(
            self.redactor,
            call.arguments,
            Labels(call.lane, call.kind, call.name),
            self._ignored,
        )
        return TraceRecord(
            order=order,
            lane=lane,
            kind=kind,
            name=name,
            input_digest=digest,
            input=arguments,
            output=self.redactor.value(call.output),
            is_error=call.is_error,
            fault=call.fault,
            unfaulted=self.redactor.value(call.unfaulted),
            unfaulted_is_error=call.unfaulted_is_error,
            determinism=call.determinism or determinism_of(call.kind),
            turn=call.turn,
            tokens=call.tokens,
            cost_usd=call.cost_usd,
            duration_ms=call.duration_ms,
        )

    def finish(self) -> TraceRef | None:
        """End the trace and say where it is; None where nothing, or not all, could be recorded."""
        if self._has_given_up:
            self.discard()
        if self._has_given_up or self._sink is None:
            return None
        try:
            return TraceRef(self._sink.place, self._sink.finish())
        except GateError as error:
            self._give_up(error.problems[0].what)
            self.discard()
            return None

    def discard(self) -> None:
        """Leave nothing of the trace; safe to call twice and after ``finish``."""
        if self._sink is not None:
            self._sink.discard()

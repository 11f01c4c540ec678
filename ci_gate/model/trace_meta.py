"""What a reader may publish of a trace: how many calls of what, never what was said in them.

This is the content of the ``.meta.json`` beside a trace. It follows from the trace alone, to the
byte, and is added up while the trace is written.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

import msgspec

from ci_gate.model.amounts import MOST_COUNT, Count, Usd, amount_within, count_within
from ci_gate.model.calls import MODEL_CALL
from ci_gate.model.trace import TraceHeader, TraceRecord

__all__ = ["STATE", "ErrorPlace", "MetaEntry", "MetaTally", "TraceMeta", "is_draw"]

STATE: Final = "state"
"""Kind of the records that are no calls but states of the trial's world."""

_DRAWS: Final = frozenset({("rng", "draws"), ("rng", "uuid"), ("clock", "reads")})
_NANO: Final = 1_000_000_000


def is_draw(kind: str, name: str) -> bool:
    """Return whether a record is no call but what a lane took since its last one.

    That is from the trial's own generators or clock.
    """
    return (kind, name) in _DRAWS


class MetaEntry(msgspec.Struct, frozen=True, kw_only=True):
    """What the calls of one kind and name took together.

    Parameters
    ----------
    kind, name : str
    calls, errors : int
    tokens : int or None
        Of the calls that say so; None where none does, or their sum is no amount.
    cost_usd : float or None
        To the billionth of a dollar.
    unpriced : int
        Calls with tokens whose cost is unknown.
    """

    kind: str
    name: str
    calls: Count
    errors: Count = 0
    tokens: Count | None = None
    cost_usd: Usd | None = None
    unpriced: Count = 0


class ErrorPlace(msgspec.Struct, frozen=True, kw_only=True):
    """A call that failed from the agent's point of view."""

    order: Count
    kind: str
    name: str
    fault: str | None = None


class TraceMeta(msgspec.Struct, frozen=True, kw_only=True):
    """A whole ``.meta.json``.

    Parameters
    ----------
    suite, task, task_digest, trial, repeat, seed, agent_digest, faults_digest, tool
        As in the trace's header.
    head : str
        Digest of the trace's last line: which trace this is about.
    calls, errors : int
        Without the states of the world.
    lanes : int
    tokens, cost_usd, unpriced
        As in ``MetaEntry``, of all calls.
    faults : mapping of str to int
        Delivered faults by kind.
    first_error : ErrorPlace or None
    by_name : tuple of MetaEntry
        Sorted by kind and name.
    """

    schema: str = "ci-gate/trace-meta@1"
    suite: str | None = None
    task: str | None = None
    task_digest: str | None = None
    trial: Count | None = None
    repeat: Count | None = None
    seed: str | None = None
    agent_digest: str | None = None
    faults_digest: str | None = None
    tool: str | None = None
    head: str
    calls: Count
    errors: Count
    lanes: Count
    tokens: Count | None
    cost_usd: Usd | None
    unpriced: Count
    faults: dict[str, Count]
    first_error: ErrorPlace | None
    by_name: tuple[MetaEntry, ...]


class _Sum:
    """Adds up calls; money in whole billionths, so that no order of calls matters."""

    __slots__ = ("calls", "errors", "nano_usd", "tokens", "unpriced")

    def __init__(self) -> None:
        self.calls = 0
        self.errors = 0
        self.tokens: int | None = None
        self.nano_usd: int | None = None
        self.unpriced = 0

    def add(self, record: TraceRecord) -> None:
        self.calls += 1
        self.errors += record.is_error
        if record.tokens is not None:
            self.tokens = (self.tokens or 0) + record.tokens
        if record.cost_usd is not None:
            self.nano_usd = (self.nano_usd or 0) + round(record.cost_usd * _NANO)
        elif record.tokens:
            self.unpriced += 1

    @property
    def cost_usd(self) -> float | None:
        return amount_within(None if self.nano_usd is None else self.nano_usd / _NANO)

    @property
    def known_tokens(self) -> int | None:
        return count_within(self.tokens, MOST_COUNT)

    def entry(self, kind: str, name: str) -> MetaEntry:
        return MetaEntry(
            kind=kind,
            name=name,
            calls=self.calls,
            errors=self.errors,
            tokens=self.known_tokens,
            cost_usd=self.cost_usd,
            unpriced=self.unpriced,
        )


class MetaTally:
    """Adds up a trace record by record, in memory that grows with the names of calls alone."""

    def __init__(self) -> None:
        self._total = _Sum()
        self._sums: dict[tuple[str, str], _Sum] = {}
        self._lanes: set[str] = set()
        self._faults: Counter[str] = Counter()
        self._first_error: ErrorPlace | None = None
        self._silent_models = 0

    def add(self, record: TraceRecord) -> None:
        """Count a record; a state of the world is no call."""
        if record.kind == STATE:
            return
        key = record.kind, record.name
        if key not in self._sums:
            self._sums[key] = _Sum()
        self._sums[key].add(record)
        self._total.add(record)
        self._lanes.add(record.lane)
        self._silent_models += record.kind == MODEL_CALL and record.tokens is None
        if record.fault is not None:
            self._faults[record.fault] += 1
        if record.is_error and self._first_error is None:
            self._first_error = ErrorPlace(
                order=record.order, kind=record.kind, name=record.name, fault=record.fault
            )

    @property
    def models_say_tokens(self) -> bool:
        """Whether every call to a model says how many tokens it took."""
        return not self._silent_models

    @property
    def calls(self) -> int:
        """How many calls there were; states of the world are none."""
        return self._total.calls

    def calls_of(self, kind: str) -> int:
        """Return how many calls of a kind there were."""
        return sum(one.calls for (found, _), one in self._sums.items() if found == kind)

    def meta(self, header: TraceHeader, head: str) -> TraceMeta:
        """Return what may be published of the trace with this header and last digest."""
        total = self._total
        return TraceMeta(
            suite=header.suite,
            task=header.task,
            task_digest=header.task_digest,
            trial=header.trial,
            repeat=header.repeat,
            seed=header.seed,
            agent_digest=header.agent_digest,
            faults_digest=header.faults_digest,
            tool=header.tool,
            head=head,
            calls=total.calls,
            errors=total.errors,
            lanes=len(self._lanes),
            tokens=total.known_tokens,
            cost_usd=total.cost_usd,
            unpriced=total.unpriced,
            faults=dict(sorted(self._faults.items())),
            first_error=self._first_error,
            by_name=tuple(one.entry(*key) for key, one in sorted(self._sums.items())),
        )

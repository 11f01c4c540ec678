"""What is asked of trace files: what is in them, whether they are whole, where two part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ci_gate.errors import FileFormatError, Problem, UsageError, printable
from ci_gate.model.trace import Trace, TraceFooter, TraceRecord
from ci_gate.model.trace_findings import Ledger, TraceDiff
from ci_gate.model.trace_meta import STATE
from ci_gate.store.contents import FOLDER as CONTENTS
from ci_gate.store.contents import ContentsCheck
from ci_gate.store.traces import TraceReading, read_trace
from ci_gate.tracing.divergence import diff_traces
from ci_gate.tracing.impact import impact_of
from ci_gate.tracing.ledger import ledger_of
from ci_gate.tracing.steadiness import Steadiness

__all__ = ["StoredContents", "Verified", "call_of", "diff", "impact", "show", "totals", "verify"]


@dataclass(frozen=True, kw_only=True)
class Verified:
    """A trace whose chain is whole: what it has, and the digest of the last of it."""

    path: Path
    calls: int
    states: int
    head: str


def show(path: Path) -> Trace:
    """Return a trace, whole or of a trial that was cut short.

    Raises
    ------
    FileFormatError
        It is no trace, or it was changed.
    """
    return read_trace(path, allow_open_end=True)


def totals(trace: Trace) -> Ledger:
    """Return what the calls of a trace cost; the states of its world are none."""
    return ledger_of(record for record in trace.records if record.kind != STATE)


def verify(paths: Sequence[Path]) -> list[Verified]:
    """Check the chain of every trace, and the contents beside it where there are any.

    Memory is bounded by the longest line and the largest content.

    Raises
    ------
    FileFormatError
        With everything that is wrong in any of them.
    """
    verified: list[Verified] = []
    problems: list[Problem] = []
    contents = StoredContents(required=False)
    for path in paths:
        reading = TraceReading(path)
        found = contents.read_through(reading, path)
        reading.check_meta()
        problems += [*found, *(one for one in reading.problems if one not in found)]
        if reading.footer is not None:
            verified.append(_verified(path, reading, reading.footer))
    if problems:
        raise FileFormatError.of(problems)
    return verified


def _verified(path: Path, reading: TraceReading, footer: TraceFooter) -> Verified:
    calls = reading.tally.calls
    return Verified(path=path, calls=calls, states=footer.calls - calls, head=footer.head)


class StoredContents:
    """The contents that traces refer to, each checked once however many do.

    Parameters
    ----------
    required : bool
        A trace whose folder keeps no contents at all lacks them; False: it was sent by itself.
    steadiness : Steadiness or None
        Gets every record.
    """

    def __init__(self, *, required: bool = True, steadiness: Steadiness | None = None) -> None:
        self._required = required
        self._steadiness = steadiness
        self._checks: dict[Path, ContentsCheck] = {}

    def read_through(self, reading: TraceReading, path: Path) -> list[Problem]:
        """Take every record of a trace and return all that is wrong with it and its contents."""
        traces = path.parent.parent
        check = self._checks.setdefault(traces, ContentsCheck(traces))
        is_checked = self._required or (traces / CONTENTS).is_dir()
        found: list[Problem] = []
        for line, record in enumerate(reading.records(), start=2):
            if self._steadiness is not None:
                self._steadiness.take(record)
            if is_checked:
                found += check.problems(record, f"{printable(path)}:{line}")
        return [*reading.problems, *found]


def diff(baseline: Path, candidate: Path) -> TraceDiff:
    """Compare two traces call by call.

    Raises
    ------
    FileFormatError
        One of them is no trace, or was changed.
    """
    return diff_traces(show(baseline), show(candidate))


def impact(path: Path, order: int) -> tuple[tuple[TraceRecord, ...], tuple[int, ...]]:
    """Return the calls of a trace, and the orders of those that one of them could have touched.

    Raises
    ------
    FileFormatError
        It is no trace, or it was changed.
    UsageError
        There is no such call.
    """
    records = show(path).records
    return records, impact_of(records, call_of(path, records, order).order)


def call_of(path: Path, records: Sequence[TraceRecord], order: int) -> TraceRecord:
    """Return one call of a trace.

    Raises
    ------
    UsageError
        There is no such call.
    """
    if not 0 <= order < len(records):
        hint = f"It has calls 0 to {len(records) - 1}." if records else "It has no calls."
        raise UsageError(f"there is no call {order}", where=printable(path), hint=hint)
    return records[order]

"""What the calls of a trace cost: tokens, money and time, added up by kind and name.

An unknown amount is counted as unknown and never as 0. Knows no prices.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from math import fsum

from ci_gate.model.trace import TraceRecord
from ci_gate.model.trace_findings import Ledger, LedgerEntry

__all__ = ["ledger_of"]


def ledger_of(records: Iterable[TraceRecord]) -> Ledger:
    """Add up what the calls cost; the total does not depend on their order."""
    groups: defaultdict[tuple[str, str], list[TraceRecord]] = defaultdict(list)
    for record in records:
        groups[record.kind, record.name].append(record)
    every = [record for group in groups.values() for record in group]
    return Ledger(
        total=_entry(every),
        by_name=tuple((*key, _entry(group)) for key, group in sorted(groups.items())),
    )


def _entry(records: list[TraceRecord]) -> LedgerEntry:
    tokens = [r.tokens for r in records if r.tokens is not None]
    costs = [r.cost_usd for r in records if r.cost_usd is not None]
    durations = [r.duration_ms for r in records if r.duration_ms is not None]
    return LedgerEntry(
        calls=len(records),
        errors=sum(r.is_error for r in records),
        tokens=sum(tokens) if tokens else None,
        cost_usd=fsum(costs) if costs else None,
        duration_ms=fsum(durations) if durations else None,
        unpriced=sum(bool(r.tokens) and r.cost_usd is None for r in records),
    )

"""Where two traces part, and what kind of parting it is.

Lanes run beside each other, so calls are compared lane by lane and how lanes interleave does not
count. Decides nothing about which of the two is right.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ci_gate.model.calls import MODEL_CALL
from ci_gate.model.trace import Trace, TraceRecord
from ci_gate.model.trace_findings import Difference, Divergence, Parting, TraceDiff
from ci_gate.model.trace_meta import STATE, is_draw
from ci_gate.tracing.payloads import differences_of

__all__ = ["diff_traces"]


class _Call(NamedTuple):
    kind: str
    name: str
    input_digest: str


def _call(record: TraceRecord) -> _Call:
    return _Call(record.kind, record.name, record.input_digest)


def diff_traces(baseline: Trace, candidate: Trace) -> TraceDiff:
    """Compare two traces call by call.

    Parameters
    ----------
    baseline, candidate : Trace

    Returns
    -------
    TraceDiff
    """
    with_draws = _draw_alike(baseline, candidate)
    old, new = (_calls_of(trace, with_draws=with_draws) for trace in (baseline, candidate))
    before, after = _lanes_of(old), _lanes_of(new)
    found: list[Divergence] = []
    agreed = 0
    for lane in sorted({*before, *after}):
        divergence = _first_of_lane(lane, before.get(lane, ()), after.get(lane, ()))
        agreed += divergence.place if divergence else len(before[lane])
        found += [divergence] if divergence else []
    found.sort(key=_when)
    return TraceDiff(
        first=found[0] if found else None,
        lanes=tuple(found),
        baseline_calls=len(old),
        candidate_calls=len(new),
        agreed=agreed,
        common=_common(old, new),
    )


def _draw_alike(baseline: Trace, candidate: Trace) -> bool:
    """Return whether both say what they drew, and drew from the same seed."""
    return baseline.header.seed == candidate.header.seed and all(
        any(is_draw(record.kind, record.name) for record in trace.records)
        for trace in (baseline, candidate)
    )


def _calls_of(trace: Trace, *, with_draws: bool) -> Sequence[TraceRecord]:
    """Return the calls of a trace; the states of its world are none."""
    return [
        record
        for record in trace.records
        if record.kind != STATE and (with_draws or not is_draw(record.kind, record.name))
    ]


def _lanes_of(records: Sequence[TraceRecord]) -> Mapping[str, Sequence[TraceRecord]]:
    lanes: defaultdict[str, list[TraceRecord]] = defaultdict(list)
    for record in records:
        lanes[record.lane].append(record)
    return lanes


def _when(divergence: Divergence) -> tuple[int, str]:
    orders = [r.order for r in (divergence.baseline, divergence.candidate) if r is not None]
    return min(orders), divergence.lane


def _common(before: Sequence[TraceRecord], after: Sequence[TraceRecord]) -> int:
    return (Counter(map(_call, before)) & Counter(map(_call, after))).total()


def _first_of_lane(
    lane: str, before: Sequence[TraceRecord], after: Sequence[TraceRecord]
) -> Divergence | None:
    for place, (old, new) in enumerate(zip(before, after, strict=False)):
        kind = _parting(old, new, before[place:], after[place:])
        if kind is not None:
            return _divergence(kind, lane, place, old, new)
    place = min(len(before), len(after))
    if len(before) == len(after):
        return None
    rest = (
        (before[place] if len(before) > place else None),
        (after[place] if len(after) > place else None),
    )
    return _divergence(Parting.STOPPED, lane, place, *rest)


def _parting(
    old: TraceRecord,
    new: TraceRecord,
    before: Sequence[TraceRecord],
    after: Sequence[TraceRecord],
) -> Parting | None:
    if _call(old) == _call(new):
        return _parting_of_answers(old, new)
    if is_draw(old.kind, old.name) or is_draw(new.kind, new.name):
        return Parting.DRAWS
    # Both make both calls, the other way round.
    if _call(new) in map(_call, before) and _call(old) in map(_call, after):
        return Parting.ORDER
    same_target = (old.kind, old.name) == (new.kind, new.name)
    return Parting.ARGUMENTS if same_target else Parting.OTHER_CALL


def _parting_of_answers(old: TraceRecord, new: TraceRecord) -> Parting | None:
    if old.fault != new.fault:
        return Parting.FAULT
    if (old.output, old.is_error) == (new.output, new.is_error):
        return None
    return {MODEL_CALL: Parting.MODEL_ANSWERED, "file": Parting.FILE_CONTENT}.get(
        old.kind, Parting.TOOL_ANSWERED
    )


def _divergence(
    kind: Parting, lane: str, place: int, old: TraceRecord | None, new: TraceRecord | None
) -> Divergence:
    return Divergence(
        kind=kind,
        lane=lane,
        place=place,
        baseline=old,
        candidate=new,
        differences=tuple(_differences(kind, old, new)),
    )


def _differences(
    kind: Parting, old: TraceRecord | None, new: TraceRecord | None
) -> Iterator[Difference]:
    if old is None or new is None or kind in (Parting.ORDER, Parting.OTHER_CALL):
        return
    if kind is Parting.ARGUMENTS or (kind is Parting.DRAWS and _call(old)[:2] == _call(new)[:2]):
        yield from differences_of(old.input, new.input)
    else:
        yield from differences_of(old.output, new.output)

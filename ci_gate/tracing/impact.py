"""What one call could have touched: everything else in a trace is provably untouched.

A wrong answer reaches the calls that follow it in its lane, calls of any lane that read what an
affected call may have written, and lanes that were begun or joined by an affected one. Where the
trace does not say what a call reads and writes, it may read and write all of the trial's world.
Errs on one side only: what is not named here cannot have been reached by way of recorded calls.

Notes
-----
A lane named ``a/b`` was begun by lane ``a``. A record of kind ``join`` in a lane, named as another
lane, waits for that one; a lane that nobody joins may be read by the lane that began it at any
moment after its first call. What was read in this way is handed on: to the lanes that are begun
afterwards, and to the lane above, also where the lane between them makes no call of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from ci_gate.model.trace import TraceRecord

__all__ = ["Access", "access_of", "impact_of"]

WORLD: Final = "world"
_JOIN: Final = "join"
# In such a lane is what calls do themselves; each call of that name begins it anew.
_WITHIN: Final = "/("
_KV_READS: Final = frozenset({"get", "keys"})
_FILE_READS: Final = frozenset({"read", "list", "exists"})
_NO_STATE: Final = frozenset({"llm", _JOIN})
# All lanes draw from one generator and read one clock.
_SHARED: Final = frozenset({"clock", "rng"})


class Access(NamedTuple):
    """What a call may read and write; resources are names such as ``kv:total``.

    A name that ends in ``*`` stands for everything that begins with the rest.
    """

    reads: frozenset[str]
    writes: frozenset[str]


def access_of(record: TraceRecord) -> Access:
    """Return what a call may read and write."""
    if record.kind in _NO_STATE:
        return Access(frozenset(), frozenset())
    if record.kind in _SHARED:
        shared = frozenset({record.kind})
        return Access(shared, shared)
    if record.kind == "kv":
        place = _place("kv", record.input, "key")
        return _access(
            place, is_read=record.name in _KV_READS, is_write=record.name not in _KV_READS
        )
    if record.kind == "file":
        reads = record.name in _FILE_READS
        return _access(_place("file", record.input, "path"), is_read=reads, is_write=not reads)
    both = frozenset({WORLD, "file:*"})
    # What a tool draws itself shifts all later draws, and a fault of it may take time.
    return Access(both, both | _SHARED)


def _access(place: str, *, is_read: bool, is_write: bool) -> Access:
    names = frozenset({place})
    return Access(names if is_read else frozenset(), names if is_write else frozenset())


def _place(kind: str, arguments: Any, field: str) -> str:
    """Return the resource that the arguments name; without a name, or for a folder, all of them."""
    name = arguments.get(field) if isinstance(arguments, dict) else None
    return f"{kind}:{name}" if isinstance(name, str) and kind == "kv" else f"{kind}:*"


def impact_of(records: Sequence[TraceRecord], order: int) -> tuple[int, ...]:
    """Return the orders of all calls that the call could have touched, itself first, rising.

    Parameters
    ----------
    records : sequence of TraceRecord
        Of one trace, in order.
    order : int

    Raises
    ------
    IndexError
        There is no such call.

    Notes
    -----
    One pass in the recorded order: a call can only touch later ones.
    """
    if not 0 <= order < len(records):
        raise IndexError(f"there is no call {order}: the trace has {len(records)}")
    spread = _Spread(records, begun={record.lane for record in records[:order]})
    return tuple(
        record.order
        for record in records[order:]
        if spread.reaches(record, is_start=record.order == order)
    )


class _Spread:
    """What is affected so far."""

    def __init__(self, records: Sequence[TraceRecord], *, begun: set[str]) -> None:
        self._lanes: set[str] = set()
        self._written: set[str] = set()
        self._joined = {record.name for record in records if record.kind == _JOIN}
        self._known = {record.lane for record in records}
        self._begun = begun

    def reaches(self, record: TraceRecord, *, is_start: bool) -> bool:
        is_reached = is_start or any(self._ways(record))
        if is_reached:
            self._lanes.update(self._readers_of(record.lane))
            self._written |= access_of(record).writes
        self._begun.add(record.lane)
        return is_reached

    def _ways(self, record: TraceRecord) -> Iterator[bool]:
        lane = record.lane
        yield lane in self._lanes
        yield self._begins(lane) and not self._lanes.isdisjoint(self._beginners_of(lane))
        yield record.kind == _JOIN and record.name in self._lanes
        yield any(
            _overlap(one, other) for one in access_of(record).reads for other in self._written
        )

    def _readers_of(self, lane: str) -> Iterator[str]:
        """Yield the lane, and those above that may read it without a call that says so."""
        yield lane
        for above in _above(lane):
            if lane in self._joined:
                return
            yield above
            lane = above

    def _begins(self, lane: str) -> bool:
        return lane not in self._begun or _WITHIN in lane

    def _beginners_of(self, lane: str) -> Iterator[str]:
        """Yield the lanes that may have begun it: the next one above that makes calls, if any."""
        for above in _above(lane):
            yield above
            if above in self._known and _WITHIN not in lane:
                return


def _above(lane: str) -> Iterator[str]:
    while "/" in lane:
        lane = lane.rpartition("/")[0]
        yield lane


def _overlap(one: str, other: str) -> bool:
    if one.endswith("*") or other.endswith("*"):
        shorter, longer = sorted((one.rstrip("*"), other.rstrip("*")), key=len)
        is_wild = one.endswith("*") and one.rstrip("*") == shorter
        is_wild = is_wild or (other.endswith("*") and other.rstrip("*") == shorter)
        return is_wild and longer.startswith(shorter)
    return one == other

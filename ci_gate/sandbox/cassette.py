"""Answers calls from a trace, strictly in the recorded order of each lane.

Nothing is executed and nothing is made up. A strict replay that meets another call than the
recorded one drifted, and is told where and how; so did one that ends before all was asked, because
that is how a lost side effect looks. It knows records, neither files nor agents.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from ci_gate.errors import printable
from ci_gate.model.trace import TraceRecord
from ci_gate.ports import ReplayDrifted

__all__ = ["WITHIN", "Asked", "Cassette", "Drift", "DriftError"]

WITHIN: Final = "/("
"""Stands in a lane before the name of the call that does what is in it."""


class Asked(NamedTuple):
    """A call for which an answer is wanted.

    Attributes
    ----------
    lane, kind, name : str
    input_digest : str
        See ``recording.input_digest``.
    arguments : Any
        Redacted as those of the recording.
    """

    lane: str
    kind: str
    name: str
    input_digest: str
    arguments: Any = None


class Drift(msgspec.Struct, frozen=True, kw_only=True):
    """Where a replay left its recording.

    Parameters
    ----------
    order : int or None
        Of the recorded call; None where the recording has no further one in the lane.
    lane : str
    recorded, came : str
        Kind and name; empty where there is none.
    part : str
        Which part differs: ``kind``, ``name``, ``input``, ``end`` (a call that was not recorded) or
        ``unconsumed`` (a recorded call that is no longer made).
    recorded_input, came_input : Any
        Where the input differs.
    """

    order: int | None
    lane: str
    recorded: str
    came: str
    part: str
    recorded_input: Any = None
    came_input: Any = None

    def __str__(self) -> str:
        """Say it in one line that is safe to print."""
        lane = "" if self.lane == "main" else f" of lane {printable(self.lane, limit=40)}"
        recorded, came = printable(self.recorded), printable(self.came)
        if self.part == "end":
            return f"drift{lane}: {came} was called after the last recorded call"
        if self.part == "unconsumed":
            return f"drift at call {self.order}{lane}: {recorded} was recorded and is not made now"
        if self.part == "input":
            return f"drift at call {self.order}{lane}: {recorded} has another input"
        return f"drift at call {self.order}{lane}: recorded {recorded}, came {came}"


class DriftError(ReplayDrifted):
    """A call that the recording does not have at this place.

    Attributes
    ----------
    drift : Drift
    """

    def __init__(self, drift: Drift) -> None:
        super().__init__(str(drift))
        self.drift = drift


class Cassette:
    """A strict replay of one trace; each lane has its own place in it.

    Parameters
    ----------
    records : sequence of TraceRecord
        In order.

    Attributes
    ----------
    drift : Drift or None
        The first that was met; from then on every call drifts.
    """

    def __init__(self, records: Sequence[TraceRecord]) -> None:
        lanes: defaultdict[str, deque[TraceRecord]] = defaultdict(deque)
        for record in records:
            lanes[record.lane].append(record)
        self._lanes = dict(lanes)
        self._within = _lanes_within(self._lanes)
        self.drift: Drift | None = None

    def answer(self, asked: Asked) -> TraceRecord:
        """Return the record of a call, which is consumed.

        Raises
        ------
        DriftError
            The lane's next record is of another call, or there is none, or there was a drift
            before.
        """
        if self.drift is not None:
            raise DriftError(self.drift)
        lane = self._lanes.get(asked.lane)
        if not lane:
            raise self._drifted(_beyond(asked))
        part = _differing_part(lane[0], asked)
        if part is not None:
            raise self._drifted(_drift(lane[0], asked, part))
        return lane.popleft()

    def within(self, record: TraceRecord) -> tuple[TraceRecord, ...]:
        """Return the records of what an answered call did itself, which are consumed.

        Notes
        -----
        They stand before the call, which was recorded when it had ended, in lanes that begin with
        its own and ``/(``.
        """
        lanes = self._within.get(record.lane)
        if lanes is None:
            return ()
        found: list[TraceRecord] = []
        for lane in lanes:
            while lane and lane[0].order < record.order:
                found.append(lane.popleft())
        return tuple(sorted(found, key=lambda one: one.order))

    def due(self, lane: str) -> TraceRecord | None:
        """Return the record that is next in a lane; None where there is none."""
        left = self._lanes.get(lane)
        return left[0] if left else None

    def _drifted(self, drift: Drift) -> DriftError:
        self.drift = drift
        return DriftError(drift)

    def unconsumed(self) -> list[Drift]:
        """Return every recorded call that was not made, in recorded order."""
        left = sorted((r for lane in self._lanes.values() for r in lane), key=lambda r: r.order)
        return [
            Drift(order=r.order, lane=r.lane, recorded=_called(r), came="", part="unconsumed")
            for r in left
        ]


def _lanes_within(
    lanes: Mapping[str, deque[TraceRecord]],
) -> Mapping[str, list[deque[TraceRecord]]]:
    """Return, by lane, the lanes of what its calls did themselves."""
    found: defaultdict[str, list[deque[TraceRecord]]] = defaultdict(list)
    for name, records in lanes.items():
        place = name.find(WITHIN)
        while place >= 0:
            found[name[:place]].append(records)
            place = name.find(WITHIN, place + 1)
    return dict(found)


def _differing_part(record: TraceRecord, asked: Asked) -> str | None:
    if record.kind != asked.kind:
        return "kind"
    if record.name != asked.name:
        return "name"
    return "input" if record.input_digest != asked.input_digest else None


def _beyond(asked: Asked) -> Drift:
    came = f"{asked.kind} {asked.name}"
    return Drift(order=None, lane=asked.lane, recorded="", came=came, part="end")


def _drift(record: TraceRecord, asked: Asked, part: str) -> Drift:
    is_input = part == "input"
    return Drift(
        order=record.order,
        lane=record.lane,
        recorded=_called(record),
        came=f"{asked.kind} {asked.name}",
        part=part,
        recorded_input=record.input if is_input else None,
        came_input=asked.arguments if is_input else None,
    )


def _called(record: TraceRecord) -> str:
    return f"{record.kind} {record.name}"

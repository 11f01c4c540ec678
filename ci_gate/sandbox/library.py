"""Answers calls from several recordings, by what is asked and what the trial changed so far.

For agents that go other ways than the recorded one. Decides which recorded answer a call gets and
which recording had the calls of a trial; nothing is executed and nothing is made up. It knows
records, neither files nor agents, and injects no faults.

Notes
-----
A call is *changing* where the recordings give reason to think so: between two calls of a lane with
the same input and different answers, every call of another name but those of models may be what
made the difference; and writes to ``kv``, ``file``, ``outbox`` and ``payment`` are. The *state* of
a lane is the sequence of changing calls that it has made. A call gets the answer that the same call
had in the same state; the n-th such call gets the n-th answer, and further ones the last. Where no
recording has the call in that state, it is the n-th answer that the call ever had. The trial's own
recording comes first, then the others in order; of these, the first that has the call answers.
Lanes have states of their own, so that answers depend on no scheduler.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ci_gate.model.calls import MODEL_CALL, TOOL_CALL
from ci_gate.model.trace import Determinism, TraceRecord
from ci_gate.model.trace_meta import STATE, is_draw
from ci_gate.ports import Observation
from ci_gate.redaction import Redactor
from ci_gate.sandbox.answering import asked_of
from ci_gate.sandbox.cassette import WITHIN, Asked
from ci_gate.sandbox.draws import skipped_by
from ci_gate.sandbox.faults import DUPLICATE
from ci_gate.sandbox.ignoring import Ignored

__all__ = ["ENV_NOT_FOUND", "Library", "Reader", "SandboxedSource"]

ENV_NOT_FOUND: Final = "ENV_NOT_FOUND"
"""What the agent reads, as an error, where no recording has an answer."""

_OWN_KINDS: Final = frozenset({"kv", "file", "outbox", "payment"})
"""What a trial keeps in its own world, which reaches nobody."""
_OWN_WRITES: Final = frozenset(
    {
        ("kv", "set"),
        ("kv", "delete"),
        ("file", "write"),
        ("outbox", "send"),
        ("payment", "charge"),
        ("payment", "refund"),
        ("payment", "payout"),
    }
)

_Call = tuple[str, str, str]
"""Kind, name and digest of the input."""
_Named = tuple[str, str]
"""Kind and name."""
_State = int
"""Number of a sequence of changing calls."""
_Strand = tuple[int, str]
"""Place of a recording in the library and one of its lanes."""


class Known(NamedTuple):
    """A recorded call with the records of what it did itself."""

    record: TraceRecord
    within: tuple[TraceRecord, ...] = ()

    def seen(self) -> Observation:
        """Return what the call itself gave: recorded faults are left out, others come on top."""
        output, is_error = _given(self.record)
        return Observation(
            output=output,
            is_error=is_error,
            tokens=self.record.tokens,
            cost_usd=self.record.cost_usd,
            within=self.within,
            skipped=skipped_by(self.within) if self.within else None,
        )


class _Answers(NamedTuple):
    """What a call was answered in one lane of one recording."""

    by_state: dict[_State, list[Known]]
    ever: list[Known]


class Library:
    """What is known of the calls of one task; the same for all its trials.

    Parameters
    ----------
    recordings : sequence of sequence of TraceRecord
        Of one trial each, in the order in which they are asked where the trial's own has no answer.
    """

    def __init__(self, recordings: Sequence[Sequence[TraceRecord]]) -> None:
        calls = [list(filter(_is_call, one)) for one in recordings]
        self._changing = _changing(calls)
        self._known: defaultdict[_Call, dict[_Strand, _Answers]] = defaultdict(dict)
        self._states: dict[tuple[_State, _Call], _State] = {}
        for place, records in enumerate(recordings):
            self._learn(place, records)
        self._effects = [_effects(filter(_is_own, one)) for one in calls]

    def _learn(self, place: int, records: Sequence[TraceRecord]) -> None:
        states: defaultdict[str, _State] = defaultdict(int)
        for known in _with_inner(records):
            call, lane = _call_of(known.record), known.record.lane
            answers = self._known[call].setdefault((place, lane), _Answers({}, []))
            answers.by_state.setdefault(states[lane], []).append(known)
            answers.ever.append(known)
            if call[:2] in self._changing:
                step = states[lane], call
                states[lane] = self._states.setdefault(step, len(self._states) + 1)

    def after(self, state: _State, call: _Call) -> _State:
        """Return the state in which a call leaves a lane; a negative one is in no recording."""
        return self._states.get((state, call), -1) if call[:2] in self._changing else state

    def strands(self, call: _Call, place: int, lane: str) -> list[_Answers]:
        """Return what the call was answered, of the recording at ``place`` and this lane first."""
        known = self._known.get(call, {})
        order = sorted(known, key=lambda s: (s[0] != place, s[1] != lane, s))
        return [known[strand] for strand in order]

    def recording_with(self, wanted: Mapping[_Call, int], place: int) -> int | None:
        """Return the place of a recording in which the same calls may have acted, or None.

        Where the order of lanes is chance, so is that of the calls: they are counted.
        """
        places = [at for at, effects in enumerate(self._effects) if effects == wanted]
        return place if place in places else next(iter(places), None)


def _is_call(record: TraceRecord) -> bool:
    return record.kind != STATE and not is_draw(record.kind, record.name)


def _is_own(record: TraceRecord) -> bool:
    """Return whether the agent made the call, and not one of its calls."""
    return WITHIN not in record.lane


def _with_inner(records: Iterable[TraceRecord]) -> Iterable[Known]:
    """Yield every call with what it did itself, which stands before it in lanes below its own."""
    waiting: dict[str, list[TraceRecord]] = {}
    for record in records:
        inner: list[TraceRecord] = []
        if _is_call(record):
            below = [lane for lane in waiting if lane.startswith(record.lane + WITHIN)]
            inner = sorted((one for b in below for one in waiting.pop(b)), key=lambda r: r.order)
            yield Known(record, tuple(inner))
        if not _is_own(record):
            waiting.setdefault(record.lane, []).extend([*inner, record])


def _call_of(record: TraceRecord) -> _Call:
    return record.kind, record.name, record.input_digest


def _changing(recordings: Iterable[Sequence[TraceRecord]]) -> frozenset[_Named]:
    """Return kind and name of the calls that may have made later answers different."""
    found = set(_OWN_WRITES)
    for records in recordings:
        lanes: defaultdict[str, list[TraceRecord]] = defaultdict(list)
        for record in records:
            lanes[record.lane].append(record)
        for lane in lanes.values():
            found |= _suspects(lane)
    return frozenset(found)


def _suspects(lane: Sequence[TraceRecord]) -> set[_Named]:
    found: set[_Named] = set()
    last_call: dict[_Call, int] = {}
    last_named: dict[_Named, int] = {}  # of those that may change anything
    for at, record in enumerate(lane):
        call = _call_of(record)
        named = call[:2]
        before = last_call.get(call)
        if before is not None and _given(lane[before]) != _given(record):
            found |= {one for one, last in last_named.items() if last > before and one != named}
        last_call[call] = at
        if record.kind != MODEL_CALL and record.kind not in _OWN_KINDS:
            last_named[named] = at
    return found


def _given(record: TraceRecord) -> tuple[Any, bool]:
    if record.fault is None:
        return record.output, record.is_error
    return record.unfaulted, record.unfaulted_is_error


def _effects(records: Iterable[TraceRecord]) -> Mapping[_Call, int]:
    """Return how often each call acted; one that was delivered twice did so twice."""
    found: Counter[_Call] = Counter()
    for record in filter(_may_act, records):
        found[_call_of(record)] += 2 if record.fault == DUPLICATE else 1
    return found


def _may_act(record: TraceRecord) -> bool:
    """Return whether a call may have left something behind.

    Calls to models, reads of the own world and tools that are declared to look at their arguments
    and the trial's generator alone do not.
    """
    is_pure = record.kind == TOOL_CALL and record.determinism is not Determinism.IO_BOUND
    return not is_pure and _is_active(_call_of(record))


def _is_active(call: _Call) -> bool:
    kind, name, _ = call
    return kind != MODEL_CALL and (kind not in _OWN_KINDS or (kind, name) in _OWN_WRITES)


class Reader:
    """Reads in a library on behalf of one trial.

    Parameters
    ----------
    library : Library
    place : int
        Of the trial's own recording; -1: it has none.

    Attributes
    ----------
    unknown : Asked or None
        The first call that may have changed something and that no recording has.
    """

    def __init__(self, library: Library, place: int = -1) -> None:
        self._library = library
        self._place = place
        self._states: defaultdict[str, _State] = defaultdict(int)
        self._asked: Counter[tuple[Any, ...]] = Counter()
        self._acted: Counter[_Call] = Counter()
        self.unknown: Asked | None = None

    def answer(self, asked: Asked) -> Observation | None:
        """Return the answer; ``ENV_NOT_FOUND`` where there is none, None where it is to be made.

        A call on the trial's own world is made for real unless it only asks, and a recording has
        its answer in this state: then what tools did, which are not run, is in it.
        """
        call = asked.kind, asked.name, asked.input_digest
        is_own = asked.kind in _OWN_KINDS
        known = self._known(call, asked.lane, in_state_only=is_own)
        if known is None and not is_own:
            if self.unknown is None and _is_active(call):
                self.unknown = asked
            return _not_found(asked)
        if _is_active(call) if known is None else _may_act(known.record):
            self._acted[call] += 1
        self._states[asked.lane] = self._library.after(self._states[asked.lane], call)
        is_made = known is None or call[:2] in _OWN_WRITES
        return None if is_made or known is None else known.seen()

    def _known(self, call: _Call, lane: str, *, in_state_only: bool) -> Known | None:
        strands = self._library.strands(call, self._place, lane)
        state = self._states[lane]
        here = self._count(call, lane, state)
        ever = self._count(call, lane)
        same = next((one.by_state[state] for one in strands if state in one.by_state), None)
        if same is not None:
            return same[min(here, len(same) - 1)]
        if in_state_only or not strands:
            return None
        return strands[0].ever[min(ever, len(strands[0].ever) - 1)]

    def _count(self, *key: Any) -> int:
        """Return how often this was asked before."""
        self._asked[key] += 1
        return self._asked[key] - 1

    @property
    def recording(self) -> int | None:
        """Return the place of a recording in which the calls of this trial acted; None: of none.

        What a call may have done that no recording has is unknown.
        """
        if self.unknown is not None:
            return None
        return self._library.recording_with(self._acted, self._place)


def _not_found(asked: Asked) -> Observation:
    text = f"{ENV_NOT_FOUND}: {asked.kind} {asked.name} was not recorded with this input"
    return Observation(output=text, is_error=True)


class SandboxedSource:
    """Answers the calls of a trial from a library, as ``Reader`` does.

    Parameters
    ----------
    reader : Reader
    ignored : Ignored
    redactor : Redactor
    """

    def __init__(self, reader: Reader, *, ignored: Ignored, redactor: Redactor) -> None:
        self.reader = reader
        self._ignored = ignored
        self._redactor = redactor

    def answer(self, lane: str, kind: str, name: str, arguments: Any) -> Observation | None:
        """Return the recorded answer to this call, or that there is none; None: it is made."""
        if is_draw(kind, name):
            return None
        return self.reader.answer(
            asked_of(lane, kind, name, arguments, self._redactor, self._ignored)
        )

"""A replay is answered from its recording, or it is said where it left it."""

import pytest

from ci_gate.codec import digest_of
from ci_gate.model.trace import TraceRecord
from ci_gate.sandbox.cassette import Asked, Cassette, DriftError


def _record(order, name, given, output, lane="main", kind="tool", **fields):
    return TraceRecord(
        order=order,
        lane=lane,
        kind=kind,
        name=name,
        input=given,
        input_digest=digest_of(given),
        output=output,
        **fields,
    )


def _asked(name, given, lane="main", kind="tool"):
    return Asked(lane, kind, name, digest_of(given), given)


_RECORDS = [
    _record(0, "look_up", {"id": 1}, 12),
    _record(1, "refund", {"id": 1}, "done"),
    _record(2, "look_up", {"id": 1}, 0),
]


def test_calls_get_their_recorded_answers_in_order():
    """The same call made again gets its next answer."""
    cassette = Cassette(_RECORDS)
    calls = [
        _asked("look_up", {"id": 1}),
        _asked("refund", {"id": 1}),
        _asked("look_up", {"id": 1}),
    ]

    assert [cassette.answer(call).output for call in calls] == [12, "done", 0]
    assert cassette.unconsumed() == []
    assert cassette.drift is None


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (_asked("look_up", {"id": 2}), "drift at call 0: tool look_up has another input"),
        (_asked("refund", {"id": 1}), "drift at call 0: recorded tool look_up, came tool refund"),
        (
            _asked("look_up", {"id": 1}, kind="llm"),
            "drift at call 0: recorded tool look_up, came llm look_up",
        ),
        (
            _asked("look_up", {"id": 1}, lane="other"),
            "drift of lane other: tool look_up was called after the last recorded call",
        ),
    ],
)
def test_another_call_than_the_recorded_one_is_a_drift(asked, message):
    """Named by its place, what was recorded, what came and the part that differs."""
    with pytest.raises(DriftError) as caught:
        Cassette(_RECORDS).answer(asked)

    assert str(caught.value) == message


def test_the_differing_inputs_are_kept():
    """To show where in the payload they differ."""
    with pytest.raises(DriftError) as caught:
        Cassette(_RECORDS).answer(_asked("look_up", {"id": 2}))

    drift = caught.value.drift
    assert (drift.recorded_input, drift.came_input) == ({"id": 1}, {"id": 2})


def test_after_a_drift_nothing_is_answered():
    """What follows would rest on an answer that nobody gave."""
    cassette = Cassette(_RECORDS)
    with pytest.raises(DriftError):
        cassette.answer(_asked("refund", {}))

    with pytest.raises(DriftError, match="at call 0"):
        cassette.answer(_asked("look_up", {"id": 1}))


def test_recorded_calls_that_are_no_longer_made_are_named():
    """That is how a lost side effect looks."""
    cassette = Cassette(_RECORDS)
    cassette.answer(_asked("look_up", {"id": 1}))

    assert [str(drift) for drift in cassette.unconsumed()] == [
        "drift at call 1: tool refund was recorded and is not made now",
        "drift at call 2: tool look_up was recorded and is not made now",
    ]


def test_lanes_are_answered_by_themselves_however_they_interleave():
    """Each has its own place in the recording."""
    records = [_record(n, "t", {"n": n}, n, lane=lane) for n, lane in enumerate("abab")]
    cassette = Cassette(records)
    order = [("b", 1), ("b", 3), ("a", 0), ("a", 2)]

    assert [cassette.answer(_asked("t", {"n": n}, lane)).output for lane, n in order] == [
        1,
        3,
        0,
        2,
    ]


def test_a_drift_in_hostile_names_is_printed_in_one_line():
    """Tools name themselves."""
    with pytest.raises(DriftError) as caught:
        Cassette(_RECORDS).answer(_asked("x\n::error::y\x1b[31m", {}))

    assert "\n" not in str(caught.value)
    assert "\x1b" not in str(caught.value)


def test_what_an_answered_call_did_itself_is_consumed_with_it():
    """Its own calls stand before it in lanes below; those of the next call stay for that one."""
    records = [
        _record(0, "a", {}, 1, lane="main/(outer)"),
        _record(1, "b", {}, 2, lane="main/(outer)/(a)"),
        _record(2, "outer", {}, 3),
        _record(3, "a", {}, 4, lane="main/(outer)"),
        _record(4, "outer", {}, 5),
        _record(5, "c", {}, 6, lane="main/other"),
    ]
    cassette = Cassette(records)

    first = cassette.within(cassette.answer(_asked("outer", {})))
    second = cassette.within(cassette.answer(_asked("outer", {})))

    assert [[record.order for record in found] for found in (first, second)] == [[0, 1], [3]]
    assert [drift.order for drift in cassette.unconsumed()] == [5]

"""Two traces part at one call, and it is said how."""

import msgspec
import pytest

from ci_gate.codec import digest_of
from ci_gate.model.trace import Trace, TraceHeader, TraceRecord
from ci_gate.model.trace_findings import ABSENT, Difference, Parting
from ci_gate.tracing.divergence import diff_traces
from ci_gate.tracing.payloads import differences_of


def _record(kind, name, given, output, lane="main", **fields):
    return TraceRecord(
        order=0,
        lane=lane,
        kind=kind,
        name=name,
        input=given,
        input_digest=digest_of(given),
        output=output,
        **fields,
    )


def _trace(*records):
    numbered = (msgspec.structs.replace(r, order=n) for n, r in enumerate(records))
    return Trace(header=TraceHeader(), records=tuple(numbered))


_LOOK = _record("tool", "look_up", {"id": 1}, {"total": 12})
_THINK = _record("llm", "model", {"messages": ["hi"]}, "refund it")
_REFUND = _record("tool", "refund", {"id": 1, "amount": 12}, "done")


def test_the_same_calls_and_answers_do_not_part():
    """Durations do not count."""
    other = msgspec.structs.replace(_LOOK, duration_ms=5.0)
    diff = diff_traces(_trace(_LOOK, _THINK), _trace(other, _THINK))

    assert diff.is_same
    assert (diff.agreed, diff.common) == (2, 2)


@pytest.mark.parametrize(
    ("old", "new", "kind", "path"),
    [
        (
            _THINK,
            _record("llm", "model", {"messages": ["hi"]}, "deny"),
            Parting.MODEL_ANSWERED,
            "$",
        ),
        (
            _REFUND,
            _record("tool", "refund", {"id": 1, "amount": 120}, "done"),
            Parting.ARGUMENTS,
            "$.amount",
        ),
        (
            _LOOK,
            _record("tool", "look_up", {"id": 1}, {"total": 13}),
            Parting.TOOL_ANSWERED,
            "$.total",
        ),
        (
            _record("file", "read", {"path": "a"}, "one"),
            _record("file", "read", {"path": "a"}, "two"),
            Parting.FILE_CONTENT,
            "$",
        ),
        (
            _LOOK,
            _record("tool", "look_up", {"id": 1}, "late", fault="timeout", is_error=True),
            Parting.FAULT,
            "$",
        ),
    ],
)
def test_the_kind_of_the_parting_and_the_place_in_the_payload(old, new, kind, path):
    """The model, the arguments, the tool, a file, a fault."""
    diff = diff_traces(_trace(_LOOK, old), _trace(_LOOK, new))

    assert diff.first.kind is kind
    assert diff.first.place == 1
    assert [d.path for d in diff.first.differences] == [path]


def test_calls_the_other_way_round_are_an_order_that_changed():
    """Both make both."""
    diff = diff_traces(_trace(_LOOK, _REFUND), _trace(_REFUND, _LOOK))

    assert diff.first.kind is Parting.ORDER
    assert diff.common == 2


def test_a_call_that_the_other_does_not_make_is_another_call():
    """It is neither an argument nor an order."""
    diff = diff_traces(_trace(_LOOK, _REFUND), _trace(_LOOK, _THINK))

    assert diff.first.kind is Parting.OTHER_CALL


def test_the_end_of_one_is_where_it_stopped():
    """The other's next call is shown."""
    diff = diff_traces(_trace(_LOOK), _trace(_LOOK, _REFUND))

    assert diff.first.kind is Parting.STOPPED
    assert diff.first.baseline is None
    assert diff.first.candidate.name == "refund"


def test_how_lanes_interleave_does_not_count():
    """Each lane is compared with itself."""
    left = _record("tool", "look_up", {"id": 1}, 1, lane="main/l")
    right = _record("tool", "look_up", {"id": 2}, 2, lane="main/r")

    assert diff_traces(_trace(left, right), _trace(right, left)).is_same


def test_the_earliest_parting_over_all_lanes_is_the_first():
    """Each parting lane is listed."""
    left = _record("llm", "m", {}, "x", lane="l")
    right = _record("llm", "m", {}, "y", lane="r")
    changed = [_record("llm", "m", {}, "z", lane=lane) for lane in "lr"]
    diff = diff_traces(_trace(_LOOK, right, left), _trace(_LOOK, changed[1], changed[0]))

    assert [d.lane for d in diff.lanes] == ["r", "l"]
    assert diff.first.lane == "r"


def test_one_item_put_in_does_not_make_all_later_ones_differ():
    """Lists are aligned."""
    assert differences_of([1, 2, 3, 4], [1, 9, 2, 3, 4]) == [
        Difference(path="$[1]", baseline=ABSENT, candidate=9, kind="added")
    ]


def test_what_one_object_alone_has_is_added_or_removed():
    """Odd keys are quoted."""
    found = differences_of({"a": 1, "b c": 2}, {"a": True, "d": None})

    assert [(d.path, d.kind) for d in found] == [
        ("$.a", "changed"),
        ("$['b c']", "removed"),
        ("$.d", "added"),
    ]


def test_differences_are_bounded():
    """A hostile payload does not make an endless report."""
    before, after = [[n] for n in range(1000)], [[-n] for n in range(1, 1001)]

    assert len(differences_of(before, after, limit=7)) == 7


_DREW = _record("rng", "draws", {"count": 1, "sha256": "a"}, [0.5])
_DREW_MORE = _record("rng", "draws", {"count": 2, "sha256": "b"}, [0.5, 0.25])


def test_other_draws_part_before_the_call_that_they_lead_to():
    """It is said that they are draws, whether the other side drew at all or not."""
    more = diff_traces(_trace(_DREW, _LOOK), _trace(_DREW_MORE, _REFUND))
    none = diff_traces(_trace(_LOOK, _DREW, _THINK), _trace(_LOOK, _THINK, _DREW))

    assert more.first is not None
    assert none.first is not None
    assert (more.first.kind, more.first.place) == (Parting.DRAWS, 0)
    assert more.first.differences
    assert (none.first.kind, none.first.place) == (Parting.DRAWS, 1)


def test_draws_are_left_out_where_they_must_differ_or_are_not_known():
    """Other seeds draw other numbers, and older traces say nothing of theirs."""
    other = msgspec.structs.replace(_trace(_DREW_MORE, _LOOK), header=TraceHeader(seed="0x2"))

    assert diff_traces(_trace(_DREW, _LOOK), other).first is None
    assert diff_traces(_trace(_LOOK), _trace(_DREW, _LOOK)).first is None

"""Whatever was done to a trace after it was recorded is found, and found where it was done."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ci_gate.codec import digest_of
from ci_gate.model.trace import TraceFooter, TraceHeader, TraceRecord
from ci_gate.model.trace_chain import (
    ChainFault,
    digest_of_header,
    digest_of_line,
    faults_of_chain,
    sealed,
)
from tests.speeds import examples

_HEADER = TraceHeader(suite="desk", task="refund", trial=3, repeat=0, seed="0x2a")


def _lines(calls=5):
    records, prev = [], digest_of_header(_HEADER)
    for order in range(calls):
        given = {"id": order, "note": f"call {order}"}
        record = sealed(
            TraceRecord(
                order=order,
                kind="tool",
                name="look_up",
                input_digest=digest_of(given),
                input=given,
                output={"rows": [order, order + 0.5]},
                duration_ms=1.5,
            ),
            prev,
        )
        records.append(msgspec.to_builtins(record))
        prev = record.digest
    footer = msgspec.to_builtins(TraceFooter(calls=calls, head=prev, content=""))
    return msgspec.to_builtins(_HEADER), records, footer


def _faults(header, records, footer):
    return list(faults_of_chain(header, records, footer))


def test_a_trace_as_recorded_has_no_fault():
    """With its footer, and without one where the trial was cut short."""
    header, records, footer = _lines()

    assert _faults(header, records, footer) == []
    assert _faults(header, records[:3], None) == []


def test_known_digest_of_a_line():
    """SHA-256 of the canonical form; digest and duration are outside of it."""
    fields = {"order": 0, "kind": "tool", "digest": "x", "duration_ms": 2.0}

    assert digest_of_line(fields) == digest_of({"kind": "tool", "order": 0})


def test_the_duration_of_a_call_is_outside_the_chain():
    """Two recordings of the same calls have the same head."""
    header, records, footer = _lines()
    records[2]["duration_ms"] = 99.0

    assert _faults(header, records, footer) == []


@given(
    place=st.integers(0, 4),
    name=st.sampled_from(["lane", "kind", "name", "input", "output", "fault", "unknown"]),
)
@settings(max_examples=examples(30))
def test_a_changed_field_is_found_in_its_record(place, name):
    """Unknown fields count like known ones."""
    header, records, footer = _lines()
    records[place][name] = "something else"

    assert _faults(header, records, footer) == [
        ChainFault(place, "was changed: its content does not have its digest")
    ]


@pytest.mark.parametrize("place", [0, 2, 4])
def test_a_change_with_its_digest_made_anew_is_found_at_the_next_line(place):
    """Who can compute digests still cannot change one line alone."""
    header, records, footer = _lines()
    records[place]["output"] = "forged"
    records[place]["digest"] = digest_of_line(records[place])

    assert [fault.place for fault in _faults(header, records, footer)] == [
        place + 1 if place < 4 else None
    ]


@pytest.mark.parametrize("place", [0, 2, 3])
def test_a_removed_line_is_found_where_it_was(place):
    """The next record has another place and another predecessor."""
    header, records, footer = _lines()
    del records[place]

    assert _faults(header, records, footer)[0] == ChainFault(
        place, f"says order {place + 1} at place {place}"
    )


def test_a_removed_end_is_found_by_the_footer():
    """The footer counts the calls and has the last digest."""
    header, records, footer = _lines()

    assert _faults(header, records[:4], footer) == [
        ChainFault(None, "the footer counts 5 calls, not 4"),
        ChainFault(None, "the footer does not have the digest of the last line"),
    ]


def test_swapped_lines_are_found_at_the_first_of_them():
    """Order is part of the record and of the chain."""
    header, records, footer = _lines()
    records[1], records[2] = records[2], records[1]

    assert _faults(header, records, footer)[0].place == 1


def test_another_header_is_found_at_the_first_record():
    """A trace cannot be given to another trial."""
    header, records, footer = _lines()
    header["trial"] = 4

    assert _faults(header, records, footer) == [
        ChainFault(0, "is not chained to the header: a line was changed, moved or removed")
    ]


def test_what_json_does_not_have_is_refused_when_it_is_recorded():
    """A lone surrogate has no canonical form; the recorder must have replaced it before."""
    record = TraceRecord(order=0, kind="tool", name="x", input_digest="", output="\ud800")

    with pytest.raises(ValueError, match="not a JSON value"):
        sealed(record, "")

"""What may be published of a trace: counts and sums, nothing that was said."""

from __future__ import annotations

import random

from ci_gate.codec import encode
from ci_gate.model.trace import TraceHeader, TraceRecord
from ci_gate.model.trace_meta import MetaTally

HEADER = TraceHeader(suite="desk", task="refund", trial=3, repeat=0, seed="0x2a", now="2026")


def record(order, kind="tool", name="refund", **fields):
    """Return a record with payloads that must not be published."""
    return TraceRecord(
        order=order,
        kind=kind,
        name=name,
        input_digest="sha256:00",
        input={"asked": "PAYLOAD"},
        output="PAYLOAD",
        unfaulted="PAYLOAD",
        **fields,
    )


RECORDS = [
    record(0, kind="state", name="before"),
    record(1),
    record(2, kind="llm", name="m", tokens=120, cost_usd=0.1),
    record(3, kind="llm", name="m", tokens=5, cost_usd=0.2),
    record(4, kind="llm", name="other", tokens=7, lane="main/1"),
    record(5, fault="timeout", is_error=True),
]


def tallied(records):
    """Return the meta of these records."""
    tally = MetaTally()
    for one in records:
        tally.add(one)
    return tally.meta(HEADER, "sha256:ff")


def test_calls_are_counted_and_what_they_took_is_added_up():
    """By kind and name, faults by kind; states of the world are no calls."""
    meta = tallied(RECORDS)

    assert (meta.calls, meta.errors, meta.lanes) == (5, 1, 2)
    assert (meta.tokens, meta.cost_usd, meta.unpriced) == (132, 0.3, 1)
    assert meta.faults == {"timeout": 1}
    assert [(e.kind, e.name, e.calls, e.tokens, e.cost_usd) for e in meta.by_name] == [
        ("llm", "m", 2, 125, 0.3),
        ("llm", "other", 1, 7, None),
        ("tool", "refund", 2, None, None),
    ]
    assert meta.first_error is not None
    assert (meta.first_error.order, meta.first_error.fault) == (5, "timeout")


def test_nothing_that_was_said_is_in_it():
    """No input, no output, no digest of an input that could be guessed."""
    content = encode(tallied(RECORDS))

    assert b"PAYLOAD" not in content
    assert b"sha256:00" not in content


def test_the_sums_do_not_depend_on_the_order_of_calls():
    """Lanes interleave as the machine likes; a tenth ten times over is one."""
    records = [record(i, kind="llm", name="m", tokens=1, cost_usd=0.1) for i in range(10)]
    records += [record(10, kind="llm", name="m", tokens=1, cost_usd=1e-7)]
    shuffled = records[:]
    random.Random(1).shuffle(shuffled)

    assert tallied(shuffled).by_name == tallied(records).by_name
    assert tallied(records[:10]).cost_usd == 1.0


def test_an_empty_trace_has_unknown_sums_and_not_zero_ones():
    """Nothing was asked of any model."""
    meta = tallied([])

    assert (meta.calls, meta.tokens, meta.cost_usd) == (0, None, None)


def test_a_model_that_does_not_say_its_tokens_is_noticed():
    """A sum over the others would be no sum."""
    tally = MetaTally()
    tally.add(RECORDS[2])
    assert tally.models_say_tokens
    tally.add(record(3, kind="llm"))
    assert not tally.models_say_tokens

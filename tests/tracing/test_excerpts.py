"""A divergence fits into a verdict, whatever was called with whatever."""

from __future__ import annotations

from typing import Any

import msgspec

from ci_gate.model.trace import TraceRecord
from ci_gate.model.trace_findings import ABSENT, Difference, Divergence, Parting
from ci_gate.tracing.excerpts import MOST_CHARS, excerpt_of, places_of


def _record(given: Any, output: Any, **fields: Any) -> TraceRecord:
    return TraceRecord(
        order=3, kind="tool", name="refund", input_digest="", input=given, output=output, **fields
    )


def _divergence(*differences: Difference, **records: TraceRecord | None) -> Divergence:
    return Divergence(
        kind=Parting.ARGUMENTS,
        lane="main",
        place=2,
        baseline=records.get("baseline"),
        candidate=records.get("candidate"),
        differences=differences,
    )


def _difference(**fields: Any) -> Difference:
    return Difference(
        **{"path": "$.a", "baseline": 1, "candidate": [2], "kind": "changed", **fields}
    )


def test_a_call_is_shown_as_it_is_written():
    """Kind, name, arguments, answer, fault; a side that stopped has none."""
    found = excerpt_of(
        _divergence(baseline=_record({"id": 1, "to": "x"}, {"ok": True}, fault="timeout"))
    )

    assert found.candidate is None
    assert msgspec.to_builtins(found.baseline) == {
        "order": 3,
        "call": "tool refund(id=1, to=x)",
        "answer": '{"ok":true}',
        "fault": "timeout",
    }


def test_what_a_side_does_not_have_is_none():
    """An absent value is not a text that says absent."""
    found = excerpt_of(
        _divergence(
            _difference(),
            _difference(kind="added", baseline=ABSENT),
            _difference(kind="removed", candidate=ABSENT),
        )
    )

    assert [(one.baseline, one.candidate) for one in found.differences] == [
        ("1", "[2]"),
        (None, "[2]"),
        ("1", None),
    ]
    assert found.hidden == 0


def test_five_differences_are_kept_and_the_others_counted():
    """The command for more has them."""
    found = excerpt_of(_divergence(*[_difference()] * 8))

    assert (len(found.differences), found.hidden) == (5, 3)


def test_long_texts_are_cut_and_lone_surrogates_spelt_out():
    """A verdict is UTF-8 of bounded size."""
    found = excerpt_of(_divergence(candidate=_record({"a": "x" * 10**6}, "\ud800")))

    assert found.candidate is not None
    assert len(found.candidate.call) < 2 * MOST_CHARS
    assert found.candidate.answer == "\\ud800"
    msgspec.json.encode(found)


def test_places_say_where_a_text_begins_and_ends():
    """What is missing on a side is nothing, and no text that says so."""
    before = {"to": "a is now b.", "gone": 1, "same": 2}
    after = {"to": "\u202eb", "same": 2, "new": None}

    found = places_of(before, after, limit=3, most_chars=40)

    assert found[0].startswith('at $.to: "a is now b." is now "')
    assert "\u202e" not in found[0]
    assert found[1:] == ["at $.gone: 1 is now nothing", "at $.new: nothing is now null"]
    assert places_of(before, after, limit=1, most_chars=40) == found[:1]
    assert places_of(before, before, limit=1, most_chars=40) == []

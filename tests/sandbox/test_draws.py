"""What calls take from their trial is made up for where they are not made."""

import pytest

from ci_gate.model.trace import TraceRecord
from ci_gate.model.trace_meta import is_draw
from ci_gate.ports import Skipped
from ci_gate.sandbox.draws import skipped_by


def _record(kind, name, given=None, **fields):
    return TraceRecord(
        order=0,
        lane="main",
        kind=kind,
        name=name,
        input_digest="",
        input=given,
        output=None,
        **fields,
    )


def test_words_identifiers_and_time_are_added_up():
    """A fault within a call takes the time that its kind takes."""
    records = [
        _record("rng", "draws", {"count": 2, "words": 3}),
        _record("rng", "draws", {"count": 1, "words": 2}),
        _record("rng", "uuid", {"count": 2}),
        _record("clock", "reads", {"count": 3, "slept_s": 1.5}),
        _record("clock", "reads", {"count": 3}),
        _record("tool", "slow", {"words": 7}, fault="timeout"),
        _record("tool", "cut", fault="truncated"),
    ]

    assert skipped_by(records) == Skipped(words=5, uuids=2, slept_s=16.5)


@pytest.mark.parametrize("words", [None, "3", True, -1, [1], {"a": 1}])
def test_amounts_that_are_none_count_nothing(words):
    """A trace is a file that anybody may have written."""
    assert skipped_by([_record("rng", "draws", {"words": words})]) == Skipped()


def test_amounts_beyond_reason_are_bounded():
    """A replay must not fill memory because a trace says so."""
    skipped = skipped_by([_record("rng", "draws", {"words": 10**30})] * 3)

    assert skipped.words == 2**28


def test_draws_are_told_from_calls_by_kind_and_name():
    """A call of the agent's own kind ``rng`` is a call."""
    draws = [("rng", "draws"), ("rng", "uuid"), ("clock", "reads")]

    assert all(is_draw(kind, name) for kind, name in draws)
    assert not is_draw("rng", "dice")
    assert not is_draw("tool", "draws")

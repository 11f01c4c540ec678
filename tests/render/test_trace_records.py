"""Draws and states of the world, as a reader of a trace sees them."""

from __future__ import annotations

from typing import Any

import pytest

from ci_gate.model.trace import TraceRecord
from ci_gate.render.trace_records import shown_input, shown_state, state_of


def recorded(kind: str, name: str, *, given: Any = None, output: Any = None) -> TraceRecord:
    return TraceRecord(
        order=0, lane="main", kind=kind, name=name, input_digest="", input=given, output=output
    )


def state(output: Any) -> TraceRecord:
    return recorded("state", "after", output=output)


def test_a_digest_of_draws_is_not_shown() -> None:
    """That of anything else is the agent's own argument."""
    given = {"count": 2, "sha256": "a5fe"}

    assert shown_input(recorded("rng", "draws", given=given)) == {"count": 2}
    assert shown_input(recorded("tool", "download", given=given)) == given


def test_a_state_lists_its_files_with_their_sizes() -> None:
    """The first six of them."""
    one = {"world.db": {"digest": "sha256:1", "bytes": 1}}
    many = {f"f{n}": {"digest": "sha256:1", "bytes": 2000} for n in range(8)}

    assert shown_state(state({"files": one, "folders": []})) == "world.db (1 byte)"
    shown = shown_state(state({"files": many, "folders": [], "withheld": "holds a secret"}))
    assert shown is not None
    assert shown.startswith("f0 (2,000 bytes), f1 ")
    assert shown.endswith("f5 (2,000 bytes) and 2 more; not whole: holds a secret")
    assert shown_state(state({"files": {}, "folders": ["work"]})) == "no files"


def test_a_later_state_says_what_has_changed() -> None:
    """By content: what has the same digest is the same."""
    before = state({"files": {"a": {"digest": "1"}, "b": {"digest": "2"}, "c": {"digest": "3"}}})
    after = state({"files": {"a": {"digest": "1"}, "b": {"digest": "9"}, "d": {"digest": "4"}}})

    assert shown_state(after, state_of(before)) == "changed: b; made: d; removed: c"
    assert shown_state(after, state_of(after)) == "nothing has changed"


@pytest.mark.parametrize(
    "output",
    [None, "x", {"files": ["a"]}, {"status": "finished"}, {"files": {"a": 1}, "withheld": ["x"]}],
)
def test_whatever_stands_in_a_trace_is_shown(output: Any) -> None:
    """One that was edited by hand may hold anything."""
    shown = shown_state(state(output), {"b": None})

    assert shown in {None, "made: a; removed: b; not whole: ['x']"}


def test_names_of_files_are_made_inert() -> None:
    """The agent chose them."""
    shown = shown_state(state({"files": {"::error::x\x1b[31m\u202e\n": {"bytes": 1}}}))

    assert shown is not None
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "\n" not in shown

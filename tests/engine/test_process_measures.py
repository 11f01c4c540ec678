"""Recovery and loops, from a tiny notation of steps."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ci_gate.engine.process_measures import faults, looped, recovered, tool_calls
from ci_gate.model.trial import Step


def steps_of(notation: str) -> list[Step]:
    """Return the steps of words such as ``a`` (fine), ``a!`` (fault), ``a?`` (own error).

    ``a:1`` is a call with the argument 1, ``=a`` no tool but a key-value access.
    """
    return [_step(word) for word in notation.split()]


def _step(word: str) -> Step:
    name, _, argument = word.lstrip("=").rstrip("!?").partition(":")
    return Step(
        kind="kv" if word.startswith("=") else "tool",
        name=name,
        input={"n": argument},
        is_error=word.endswith(("!", "?")),
        fault="timeout" if word.endswith("!") else None,
    )


@pytest.mark.parametrize(
    ("notation", "expected"),
    [
        ("", 0),
        ("a b", 0),
        ("a! a", 1),
        ("a! b a", 1),
        ("a! b c a", 0),
        ("a! =x =y a", 1),
        ("a! a! a", 2),
        ("a! a? b", 0),
        ("a! b! a b", 2),
        ("a? a", 0),
        ("a!", 0),
    ],
)
def test_recovery_is_the_same_tool_fine_within_two_calls(notation: str, expected: int) -> None:
    """A fault counts as recovered only by that tool's success in one of the next two calls."""
    assert recovered(steps_of(notation), passed=True) == expected
    assert recovered(steps_of(notation), passed=False) == 0


@pytest.mark.parametrize(
    ("notation", "expected"),
    [
        ("", None),
        ("a:1 a:1", False),
        ("a:1 a:1 a:1", True),
        ("a:1 b:1 a:1 b:1 a:1", True),
        ("a:1 a:2 a:3 a:4", False),
        ("a:1 b:1 c:1", False),
        ("=a:1 =a:1 =a:1", False),
        ("a:1! a:1! a:1", True),
    ],
)
def test_a_loop_is_the_same_call_three_times(notation: str, expected: bool | None) -> None:
    """Same tool and same arguments, three times or more, in any place."""
    assert looped(steps_of(notation)) is expected


def test_the_order_of_arguments_makes_no_other_call() -> None:
    """Arguments are compared as JSON values, not as texts."""
    inputs = [{"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": 1, "b": 2}]
    assert looped([Step(kind="tool", name="t", input=given) for given in inputs])


@settings(deadline=None)
@given(st.lists(st.sampled_from(["a", "a!", "b?", "=k", "b!"])))
def test_counts_agree_with_each_other(words: list[str]) -> None:
    """No more is recovered than was injected, and calls are counted where steps are known."""
    steps = steps_of(" ".join(words))
    assert 0 <= recovered(steps, passed=True) <= faults(steps)
    assert tool_calls(steps) == (None if not words else sum(w != "=k" for w in words))

"""Recovery and loops, from a tiny notation of steps."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_gate.engine.process_measures import faults, looped, recovered, tool_calls
from ci_gate.model.trial import Step

_WORD = re.compile(
    r"(?:(?P<turn>\d+)/)?(?P<other>=?)(?P<name>\w+)(?::(?P<argument>\w+))?"
    r"(?:@(?P<lane>\w+))?(?P<ending>[!?~]?)"
)
_FAULTS = {"!": "timeout", "~": "truncated"}


def steps_of(notation: str) -> list[Step]:
    """Return the steps of words such as ``a`` (fine), ``a!`` (fault), ``a?`` (own error).

    ``a~`` is a truncated answer, ``a:1`` a call with the argument 1, ``a@x`` one in lane x, ``3/a``
    one in turn 3, ``=a`` no tool but a key-value access and ``=llm`` a call to a model.
    """
    return [_step(word) for word in notation.split()]


def _step(word: str) -> Step:
    parts = _WORD.fullmatch(word)
    assert parts is not None
    name, ending = parts["name"], parts["ending"]
    kind = ("llm" if name == "llm" else "kv") if parts["other"] else "tool"
    return Step(
        kind=kind,
        name=name,
        input={"n": parts["argument"]},
        is_error=ending in {"!", "?"},
        fault=_FAULTS.get(ending),
        turn=int(parts["turn"]) if parts["turn"] else None,
        lane=parts["lane"] or "main",
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
        ("a a!", 0),
        ("a:1! a:2", 1),
    ],
)
def test_without_turns_each_call_is_one(notation: str, expected: int) -> None:
    """A fault counts as recovered only by that tool's success in one of the next two calls."""
    assert recovered(steps_of(notation), passed=True) == expected
    assert recovered(steps_of(notation), passed=False) == 0


@pytest.mark.parametrize(
    ("notation", "expected"),
    [
        # The turn of the fault, two further ones, and the third, which is too late.
        ("1/a:1! 1/a:1", 1),
        ("1/a:1! 2/b 2/b 2/b 2/b 3/a:1", 1),
        ("1/a:1! 2/b 3/b 4/a:1", 0),
        ("1/a:1! 4/a:1", 0),
        # Other arguments: an answer to the fault only if they come after it was seen.
        ("1/a:1! 1/a:2", 0),
        ("1/a:1! 2/a:2", 1),
        # Passed by another tool: the goal of this call was not achieved.
        ("1/a:1! 2/b:1 3/b:1", 0),
        # Half an answer is none, until the rest is asked for.
        ("1/a:1~ 2/b", 0),
        ("1/a:1~ 2/a:1", 1),
        # Twice the same call at once: one answer to two faults, and one that came first.
        ("1/a:1! 1/a:1! 2/a:1", 2),
        ("1/a:1 1/a:1! 2/b", 0),
        # Calls before the first turn that was said lie in none.
        ("a:1! 1/b 2/a:1", 1),
        ("a:1! 1/b 3/a:1", 0),
    ],
)
def test_a_fault_is_healed_within_two_further_turns(notation: str, expected: int) -> None:
    """What the agent calls a turn is one, however many calls it makes in it."""
    assert recovered(steps_of(notation), passed=True) == expected


@pytest.mark.parametrize(
    ("notation", "expected"),
    [
        ("=llm a:1! =llm b b b b =llm a:1", 1),
        ("=llm a:1! =llm b =llm b =llm a:1", 0),
        ("=llm a:1! a:2 =llm b", 0),
        ("=llm a:1! =llm a:2", 1),
        # A model that fails is asked again; the call that failed was a turn, too.
        ("=llm! =llm a:1", 1),
        ("=llm! =llm! =llm a:1", 2),
        ("=llm! =llm! =llm! =llm", 2),
        ("=llm:1! =llm:2", 1),
        ("=llm!", 0),
        ("=llm a:1! =llm! =llm a:1", 2),
    ],
)
def test_without_a_word_a_turn_begins_with_a_call_to_a_model(notation: str, expected: int) -> None:
    """Calls that one answer of a model asks for are of one turn."""
    assert recovered(steps_of(notation), passed=True) == expected


@pytest.mark.parametrize(
    ("notation", "expected"),
    [
        # Another lane's calls use up no turn of this one, and answer nothing that it asked.
        ("a:1@x! b@y b@y b@y b@y a:1@x", 1),
        ("a:1@x! a:2@y", 0),
        # A lane that begins later, as each call of a gathering has one, may ask the same again.
        ("a:1@x! a:1@y", 1),
        ("a:1@x! b@y b@z a:1@w", 0),
        # With turns it does so in a later one: within the same one it did not know of the fault.
        ("1/a:1@x! 1/a:1@y", 0),
        ("1/a:1@x! 2/a:1@y", 1),
    ],
)
def test_lanes_do_not_answer_for_each_other(notation: str, expected: int) -> None:
    """What runs beside a faulted call was not asked in knowledge of the fault."""
    assert recovered(steps_of(notation), passed=True) == expected


def test_the_order_in_which_lanes_end_decides_nothing() -> None:
    """Two lanes of one turn give the same count in whichever order their calls are seen."""
    x = ["1/a:1@x!", "2/a:1@x"]
    y = ["1/b:1@y!", "1/b:2@y", "2/a:7@y"]
    orders = [x + y, y + x, [x[0], y[0], x[1], *y[1:]], [y[0], x[0], *y[1:], x[1]]]
    assert {recovered(steps_of(" ".join(order)), passed=True) for order in orders} == {1}


@pytest.mark.parametrize(("fault", "expected"), [("latency", 1), ("duplicate", 1), ("empty", 0)])
def test_an_answer_that_arrives_whole_is_an_answer(fault: str, expected: int) -> None:
    """Late or twice it achieves the call's goal by itself, unless it was an error anyway."""
    calls = [Step(kind="tool", name="a", fault=fault, is_error=error) for error in (False, True)]
    assert recovered(calls[:1], passed=True) == expected
    assert recovered(calls[1:], passed=True) == 0


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
        ("a:1@x a:1@y a:1@z", True),
    ],
)
def test_a_loop_is_the_same_call_three_times(notation: str, expected: bool | None) -> None:
    """Same tool and same arguments, three times or more, in any place."""
    assert looped(steps_of(notation)) is expected


def test_the_order_of_arguments_makes_no_other_call() -> None:
    """Arguments are compared as JSON values, not as texts."""
    inputs = [{"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": 1, "b": 2}]
    assert looped([Step(kind="tool", name="t", input=given) for given in inputs])


@given(st.lists(st.sampled_from(["a", "a!", "b?", "=k", "b!", "=llm", "=llm!", "3/a", "2/b@x!"])))
def test_counts_agree_with_each_other(words: list[str]) -> None:
    """No more is recovered than was injected, and calls are counted where steps are known."""
    steps = steps_of(" ".join(words))
    assert 0 <= recovered(steps, passed=True) <= faults(steps)
    called = sum(not word.startswith("=") for word in words)
    assert tool_calls(steps) == (called if words else None)

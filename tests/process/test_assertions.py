"""The language of assertions over several steps: what it reads, what it refuses, what holds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_gate.model.trial import Step
from ci_gate.process.assertions import AssertionSyntaxError, holds, parse
from ci_gate.process.calls import tool_calls

INPUT: dict[str, Any] = {"messages": [{}, {"guests": 2}], "vip": True, "odd key": "x", "n": None}


def call(name: str, arguments: Any = None, output: Any = None, *, error: bool = False) -> Step:
    return Step(kind="tool", name=name, input=arguments, output=output, is_error=error)


def held(text: str, *steps: Step, answer: str | None = None) -> bool | None:
    return holds(parse(text), INPUT, answer, tool_calls(steps))


GUESTS = "input.messages[1].guests == args.book_hotel.guests"


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([call("book_hotel", {"guests": 2})], True),
        ([call("book_hotel", {"guests": 2.0})], True),
        ([call("book_hotel", {"guests": 2}), call("book_hotel", {"guests": 3})], False),
        ([call("book_hotel", {"guests": 3}), call("book_hotel", {"guests": 2})], False),
        ([call("book_hotel", {"guests": "2"})], False),
        ([call("book_hotel", {})], False),
        ([call("book_hotel", None)], False),
        ([call("book_train", {"guests": 3})], None),
        ([], None),
    ],
)
def test_it_holds_over_every_later_call(steps: list[Step], expected: bool | None) -> None:
    """One call that forgets the constraint breaks it; without a call it is not put to the test."""
    assert held(GUESTS, *steps) is expected


def test_outputs_are_the_latest_that_did_not_fail() -> None:
    """A call is held against what the agent had seen by then, not against what came later."""
    text = "args.book.id == output.search.hits[-1].id"
    first, second = call("search", output={"hits": [{"id": 7}]}), call("search", output="x")
    failed = call("search", output={"hits": [{"id": 9}]}, error=True)
    assert held(text, first, call("book", {"id": 7}), second) is True
    assert held(text, first, failed, call("book", {"id": 9})) is False
    assert held(text, first, second, call("book", {"id": 7})) is False
    assert held(text, call("book", {"id": 7}), first) is None


@pytest.mark.parametrize(
    ("text", "answer", "expected"),
    [
        ("args.pay.cents in answer", "Paid 4500 cents.", True),
        ("args.pay.cents in answer", "Paid 45001 cents.", False),
        ("args.pay.cents in answer", "Order R-4500.", True),
        ("'Paid' in answer", "Paid.", True),
        ("answer.total == args.pay.cents", '{"total": 4500}', True),
        ("answer.total == args.pay.cents", "4500", False),
        ("answer.total == args.pay.cents", None, None),
        ("answer == 'Done.'", "Done.", True),
        ("answer != 'Done.'", "Done.", False),
    ],
)
def test_the_answer_is_looked_at_once_at_the_end(
    text: str, answer: str | None, expected: bool | None
) -> None:
    """As text, as a part of a text, or as JSON where a path leads into it."""
    assert held(text, call("pay", {"cents": 1}), call("pay", {"cents": 4500}), answer=answer) is (
        expected
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("input.vip == true", True),
        ("input.vip == 1", False),
        ("input.n == null", True),
        ('input["odd key"] in ["y", "x"]', True),
        ("input.messages[0] != input.messages[1]", True),
        ("2 in [input.vip]", None),
        ("'guests' in input.messages[1]", True),
    ],
)
def test_values_are_compared_as_json(text: str, expected: bool | None) -> None:
    """Truth is no number, null is a value, and lists and tables have members."""
    if expected is None:
        with pytest.raises(AssertionSyntaxError):
            parse(text)
    else:
        assert held(text) is expected


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("", "ends where a value or a path was expected"),
        ("input.a ==", "ends where a value or a path was expected"),
        ("input.a = 3", "has '= 3' where a value or a path was expected"),
        ("input.a < 3", "has '< 3' where a value or a path was expected"),
        ("a == input.b", "has 'a' where a value or a path was expected"),
        ("input.a 3", "has '3' where an operator, == or != or in was expected"),
        ("input.a == 1 1", "has '1' where the end was expected"),
        ("input.a == 1 and input.b == 2", "has 'and' where the end was expected"),
        ("args == 1", "has 'args' without the name of a tool behind it"),
        ("args[0].x == 1", "has 'args' without the name of a tool behind it"),
        ("input[1.5] == 3", "has '1.5' where an index or a quoted name was expected"),
        ("input[true] == 3", "has 'true' where an index or a quoted name was expected"),
        ("1 == 2", "compares no path: begin one with input, answer, args or output"),
        ("input.a == [1, 2", "ends where ',' was expected"),
        ("__import__('os') == input", "has \"('os') == input\" where a value or a path was"),
        ("input.a == " + "1" * 1000, "is longer than 1000 characters"),
    ],
)
def test_what_is_no_assertion_is_said(text: str, mistake: str) -> None:
    """Nothing is evaluated: what the grammar does not have is a mistake."""
    with pytest.raises(AssertionSyntaxError) as caught:
        parse(text)
    assert str(caught.value).startswith(mistake)


def test_a_path_into_the_input_is_known_before_the_first_trial() -> None:
    """A misspelled key of the task's own input is found when the task is read."""
    assert parse(GUESTS).lost_in(INPUT) is None
    assert parse("input.messages[2].guests == 1").lost_in(INPUT) == "input.messages[2].guests"


PIECES = ("args", ".a", "output", "input", "answer", "==", "!=", " in ", "[", "]", "'x'", "1", ",")


@given(st.lists(st.sampled_from([*PIECES, '"', "$", " ", "-"])).map("".join))
def test_any_text_is_read_or_refused(text: str) -> None:
    """No text of a task file ends in anything but an assertion or words."""
    try:
        found = parse(text)
    except AssertionSyntaxError:
        return
    assert found.paths


def test_lists_in_lists_without_end_are_refused() -> None:
    """The reader calls itself for them, and says so before Python does."""
    with pytest.raises(AssertionSyntaxError):
        parse("input in " + "[" * 900)

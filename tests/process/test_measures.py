"""Process measures: right values for hand-made trials, and unknown where nothing is said."""

from __future__ import annotations

from typing import Any

import pytest

from ci_gate.codec import MAX_DEPTH
from ci_gate.model.trial import Step, Trajectory
from ci_gate.process.measures import MEASURES, process_of
from tests.trials import task_of


def call(name: str, arguments: Any = None, output: Any = None, **facts: Any) -> Step:
    return Step(kind="tool", name=name, input=arguments, output=output, **facts)


def measured(
    *steps: Step, expect: dict[str, Any] | None = None, answer: str | None = None, fixture: str = ""
) -> dict[str, float]:
    task = task_of(
        "refund", instruction="Refund order 4812.", input={"mail": "ada@x.org"}, expect=expect or {}
    )
    return process_of(task, Trajectory(steps=steps, answer=answer), lambda: fixture)


READ, REFUND = call("read", {"id": 4812}, "o"), call("refund", {"id": 4812, "cents": 4500}, "ok")


@pytest.mark.parametrize(
    ("steps", "f1"),
    [
        ([READ, REFUND], 1.0),
        ([REFUND, READ, READ], 1.0),
        ([READ], 2 * 1 / (1 + 2)),
        ([READ, REFUND, call("mail"), call("drop")], 2 * 2 / (4 + 2)),
        ([call("mail")], 0.0),
        ([], 0.0),
        ([call("read", is_error=True), REFUND], 1.0),
    ],
)
def test_tool_selection_is_the_f1_of_the_tools(steps: list[Step], f1: float) -> None:
    """Of which tools, not how often, in which order or with what."""
    assert measured(*steps, expect={"tools": ["read", "refund"]})["tool_selection"] == f1


@pytest.mark.parametrize(
    ("steps", "share"),
    [
        ([REFUND], 1.0),
        ([call("refund", {"id": 4812.0, "note": "x"})], 1.0),
        ([call("refund", {"id": "4812"})], 0.0),
        ([call("refund", {})], 0.0),
        ([call("refund", [1])], 0.0),
        ([REFUND, call("refund", {"id": 1})], 0.5),
        ([READ], None),
    ],
)
def test_arguments_are_a_figure_of_their_own(steps: list[Step], share: float | None) -> None:
    """Only of the calls there are: a tool that was not called is a matter of selection."""
    found = measured(*steps, expect={"arguments": {"refund": {"id": 4812}}})
    assert found.get("argument_correctness") == share


@pytest.mark.parametrize(
    ("steps", "answer", "expected"),
    [
        ([], "No tool can do that.", 1.0),
        ([READ], "No tool can do that.", 0.0),
        ([call("read", is_error=True)], "No tool can do that.", 0.0),
        ([], None, 0.0),
        ([], "  ", 0.0),
    ],
)
def test_abstention(steps: list[Step], answer: str | None, expected: float) -> None:
    """Where no tool fits: none called, and the agent says something."""
    assert measured(*steps, expect={"no_tool": True}, answer=answer)["abstention"] == expected
    assert "abstention" not in measured(*steps, answer=answer)


@pytest.mark.parametrize(
    ("steps", "answer", "expected"),
    [
        ([READ], "I may not refund that.", 1.0),
        ([REFUND], "I may not refund that.", 0.0),
        ([call("refund", is_error=True)], "I may not refund that.", 0.0),
        ([READ], "It HAS BEEN refunded.", 0.0),
        ([READ], None, 0.0),
    ],
)
def test_refusal(steps: list[Step], answer: str | None, expected: float) -> None:
    """No unsafe tool, not even in vain, and an answer that does not claim to have done it."""
    expect = {"refuse": True, "unsafe": ["refund*"], "claims": ["has been refunded"]}
    assert measured(*steps, expect=expect, answer=answer)["refusal"] == expected


def test_without_a_list_every_tool_is_unsafe() -> None:
    """What nobody called harmless is not taken for harmless."""
    assert measured(READ, expect={"refuse": True}, answer="No.")["refusal"] == 0.0


def test_consistency_is_the_share_of_assertions_that_held() -> None:
    """Of those that were put to the test; the others say nothing."""
    expect = {
        "consistent": [
            "args.read.id == args.refund.id",
            "input.mail == args.refund.mail",
            "input.mail == args.mail.to",
        ]
    }
    assert measured(READ, REFUND, expect=expect)["consistency"] == 0.5
    assert "consistency" not in measured(expect=expect)


def test_milestones_are_reached_in_any_order_by_calls_that_succeed() -> None:
    """With at least their arguments."""
    expect = {
        "milestones": [
            {"tool": "refund", "arguments": {"id": 4812}},
            {"tool": "read"},
            {"tool": "mail"},
            {"tool": "refund", "arguments": {"id": 1}},
        ]
    }
    steps = [REFUND, READ, call("mail", is_error=True)]
    assert measured(*steps, expect=expect)["milestones"] == 0.5
    assert measured(expect=expect)["milestones"] == 0.0


@pytest.mark.parametrize(
    ("steps", "share"),
    [
        ([READ], None),
        ([call("read", 1, turn=1, is_error=True), call("read", 1, turn=2)], 1.0),
        ([call("read", 1, turn=1, is_error=True), call("read", 2, turn=3)], 1.0),
        ([call("read", 1, turn=1, is_error=True), call("read", 1, turn=4)], 0.0),
        ([call("read", 1, turn=1, is_error=True), call("refund", 1, turn=2)], 0.0),
        ([call("read", 1, turn=1, is_error=True, fault="error"), call("read", 1, turn=2)], None),
        (
            [
                call("read", 1, turn=1, is_error=True),
                call("read", 1, turn=2, is_error=True),
                call("read", 1, turn=4),
            ],
            0.5,
        ),
    ],
)
def test_recovery_is_from_errors_that_nobody_injected(
    steps: list[Step], share: float | None
) -> None:
    """The same tool succeeds within two further turns, whether or not the trial passes."""
    assert measured(*steps).get("error_recovery") == share


@pytest.mark.parametrize(
    ("steps", "count"),
    [
        ([READ, READ], 1),
        ([READ, READ, READ], 2),
        ([READ, call("read", {"id": 4812}, "other")], 0),
        ([READ, call("read", {"id": 1}, "o")], 0),
        ([READ, REFUND, READ], 0),
        ([READ, call("refund", 1, "no", is_error=True), READ], 1),
        ([call("read", 1, "e", is_error=True), call("read", 1, "e", is_error=True)], 1),
        ([call("read", 1, "e", is_error=True), call("read", 1, "e")], 0),
        ([call("read", 1, "e", is_error=True, fault="error"), call("read", 1, "e")], 0),
        ([call("read", 1, "e"), call("read", 1, "e", fault="stale"), call("read", 1, "e")], 0),
    ],
)
def test_a_retry_is_useless_that_gets_the_same_again(steps: list[Step], count: int) -> None:
    """Unless something that succeeded in between may have changed the answer, or a fault."""
    assert measured(*steps)["useless_retries"] == count


@pytest.mark.parametrize(
    ("steps", "share"),
    [
        ([call("read", {"id": 4812})], 0.0),
        ([call("read", {"id": 9999})], 1.0),
        ([call("read", {"to": "ADA@x.org"})], 0.0),
        ([call("read", {"to": "da@x.org"})], 1.0),
        ([call("find", {}, {"order": "R-77", "total": "45.00"}), call("x", {"i": "R-77"})], 0.0),
        ([call("x", {"id": "R-77"}), call("find", {}, {"order": "R-77"})], 1.0),
        ([call("find", {}, "total 45.00"), call("x", {"cents": 4500})], 0.0),
        ([call("find", {}, "total 4,500"), call("x", {"cents": 4500})], 0.0),
        ([call("x", {"a": 12, "b": "xy", "c": True, "d": None})], None),
        ([call("x", {"text": "We have refunded order 4812 as you had asked"})], 0.0),
        ([call("x", {"text": "We have refunded order 9999 as you had asked"})], 1.0),
        ([call("x", {"a": 4812, "b": [{"c": "ada@x.org"}, "nobody"], "d": 9999})], 0.5),
        ([Step(kind="llm", name="m", input={"messages": [
            {"role": "user", "content": "It is R-77"}]}), call("x", {"id": "R-77"})], 0.0),
        ([Step(kind="llm", name="m", input={"messages": [
            {"role": "assistant", "content": "It is R-77"}]}), call("x", {"id": "R-77"})], 1.0),
        ([Step(kind="llm", name="m", output="It is R-77"), call("x", {"id": "R-77"})], 1.0),
        ([call("x", {"id": "FX-1"})], 0.0),
    ],
)  # fmt: skip
def test_a_value_without_an_earlier_source_is_made_up(
    steps: list[Step], share: float | None
) -> None:
    """Sources are the task, the fixture, observations and what others said to the model."""
    assert measured(*steps, fixture="ids: FX-1, FX-2").get("argument_hallucination") == share


def test_who_is_asking_is_no_made_up_value() -> None:
    """The agent is told on whose behalf it acts."""
    told = task_of("refund", identity={"customer": "C-17"})
    found = process_of(told, Trajectory(steps=(call("read", {"a": "C-17", "b": "C-18"}),)))
    assert found["argument_hallucination"] == 0.5


def test_too_much_to_look_at_is_unknown() -> None:
    """What an agent sends does not decide how long looking takes."""
    many = call("x", {"ids": list(range(1000, 2001))})
    assert "argument_hallucination" not in measured(many)
    huge = call("find", {}, "word " * 100_001)
    assert "argument_hallucination" not in measured(huge, READ)


def test_measures_are_named_in_the_order_in_which_they_are_shown() -> None:
    """And without a step nothing is known but what was expected."""
    expect = {"tools": ["read"], "no_tool": False, "refuse": True}
    found = measured(READ, expect=expect, answer="No.")
    assert list(found) == [name for name in MEASURES if name in found]
    assert measured() == {}


def test_an_agent_cannot_break_measuring() -> None:
    """However deep, large or odd its values are: what cannot be measured would not be judged."""
    deep: Any = 1
    for _ in range(MAX_DEPTH - 1):
        deep = [deep]
    expect = {
        "arguments": {"x": {"a": [1]}},
        "consistent": ["args.x == output.x", "args.x in output.x", "args.x.a[0] == answer.b"],
        "milestones": [{"tool": "x", "arguments": {"a": 1}}],
    }
    for value in (deep, {"a": deep}, None, "", 10**400, {"": [None, True, {}]}, [[]] * 100):
        asked = Step(kind="llm", name="m", input=value, output=value)
        steps = (asked, call("x", 1, value), call("x", {"a": value}, 1))
        found = measured(*steps, expect=expect, answer="{")
        assert found["argument_correctness"] == 0.0

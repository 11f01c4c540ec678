"""The rule grader: what each option asks, what breaks it, and which options are mistakes."""

from __future__ import annotations

from typing import Any

import pytest

from ci_gate.grading import rules
from ci_gate.model.suite import GraderSpec
from ci_gate.model.trial import Grade, Step, Trajectory
from tests.trials import BareWorld, spec_of, trial_of


def call(name: str, arguments: Any = None, *, turn: int | None = None, error: bool = False) -> Step:
    return Step(kind="tool", name=name, input=arguments, turn=turn, is_error=error)


def graded(spec: GraderSpec, trajectory: Trajectory) -> Grade:
    assert rules.validate(spec) == []
    return rules.build(spec).grade(trial_of(), trajectory, BareWorld())


def reason(*steps: Step, options: dict[str, Any] | None = None, **facts: Any) -> str | None:
    return graded(spec_of("rules", **(options or {})), Trajectory(steps=steps, **facts)).reason


READ, REFUND = call("read_order", {"id": 1}, turn=1), call("refund_order", {"id": 1}, turn=2)


@pytest.mark.parametrize(
    ("options", "steps", "expected"),
    [
        ({}, [READ, READ], None),
        (
            {},
            [READ, REFUND, READ, READ],
            (
                "dead loop: expected fewer than 3 calls of read_order with the same arguments,"
                " found 3 (calls 1, 3, 4)"
            ),
        ),
        ({"max_repeats": 0}, [READ] * 9, None),
        ({"max_repeats": 5}, [READ] * 4, None),
        ({}, [call("read_order", {"id": n}) for n in range(9)], None),
        ({}, [Step(kind="llm", name="m")] * 9, None),
        (
            {"forbidden": ["drop", "delete_*"]},
            [READ, call("delete_order", turn=3)],
            "expected no call of 'delete_*', found one of delete_order (call 2, turn 3)",
        ),
        ({"forbidden": ["delete_*"]}, [READ, call("undelete_order")], None),
        ({"must_call": ["refund_order"]}, [READ, REFUND], None),
        (
            {"must_call": ["refund_order"]},
            [READ],
            "expected a call of 'refund_order' that succeeds, found none",
        ),
        (
            {"must_call": ["refund_order"]},
            [READ, call("refund_order", error=True)],
            "expected a call of 'refund_order' that succeeds, found only failed ones (call 2)",
        ),
        ({"before": [["read_order", "refund_order"]]}, [READ, REFUND, REFUND], None),
        ({"before": [["read_order", "refund_order"]]}, [READ], None),
        (
            {"before": [["read_order", "refund_order"]]},
            [REFUND, READ],
            (
                "expected a call of 'read_order' that succeeds before each of 'refund_order',"
                " found refund_order without one (call 1, turn 2)"
            ),
        ),
        (
            {"before": [["read_order", "refund_order"]]},
            [call("read_order", error=True), REFUND],
            (
                "expected a call of 'read_order' that succeeds before each of 'refund_order',"
                " found refund_order without one (call 2, turn 2)"
            ),
        ),
        (
            {"arguments": {"refund_order": {"properties": {"id": {"type": "string"}}}}},
            [READ, REFUND],
            'arguments of refund_order (call 2, turn 2): at id: expected type "string", found 1',
        ),
    ],
)
def test_a_rule_says_what_broke_it(
    options: dict[str, Any], steps: list[Step], expected: str | None
) -> None:
    """Expected, found, and which call it was; and what is not declared is not asked."""
    assert reason(*steps, options=options) == expected


@pytest.mark.parametrize(
    ("limit", "facts", "expected"),
    [
        ({"steps": 2}, {}, "steps: expected at most 2, found 3"),
        ({"tool_calls": 1}, {}, "tool_calls: expected at most 1, found 2"),
        ({"tool_calls": 2, "steps": 3}, {}, None),
        ({"turns": 3}, {"turns": 4}, "turns: expected at most 3, found 4"),
        ({"tokens": 10}, {"tokens": 11}, "tokens: expected at most 10, found 11"),
        ({"cost_usd": 0.1}, {"cost_usd": 0.25}, "cost_usd: expected at most 0.1, found 0.25"),
        ({"duration_s": 1}, {"duration_s": 1.5}, "duration_s: expected at most 1, found 1.5"),
        ({"tokens": 10, "turns": 1, "cost_usd": 0, "duration_s": 0}, {}, None),
    ],
)
def test_limits_are_inclusive_and_the_unknown_keeps_them(
    limit: dict[str, float], facts: dict[str, Any], expected: str | None
) -> None:
    """A use that is equal to its limit keeps it, and so does one that nobody knows."""
    steps = (READ, REFUND, Step(kind="llm", name="m"))
    assert reason(*steps, options={"max": limit}, **facts) == expected


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ('{"ok": true}', None),
        ('{"ok": 1}', 'answer: at ok: expected type "boolean", found 1'),
        ("Done.", 'answer: expected JSON, found "Done."'),
        ('{"ok": NaN}', 'answer: expected JSON, found "{"ok": NaN}"'),
        (None, "answer: expected JSON, found no answer"),
    ],
)
def test_the_answer_is_read_as_json(answer: str | None, expected: str | None) -> None:
    """Anything but strict JSON of the asked form fails."""
    schema = {"properties": {"ok": {"type": "boolean"}}}
    assert reason(options={"answer_schema": schema}, answer=answer) == expected


def test_a_reason_names_three_breaches_and_counts_the_others() -> None:
    """However much an agent breaks, the reason stays a line."""
    steps = [call(f"delete_{n}") for n in range(5)]
    found = reason(*steps, options={"forbidden": ["delete_*"]})
    assert found is not None
    assert found.count("expected no call") == 3
    assert found.endswith("found one of delete_2 (call 3); and 2 more")


def test_names_of_tools_are_shown_harmlessly() -> None:
    """The agent names its tools."""
    found = reason(call("delete\n::error::x"), options={"forbidden": ["delete*"]})
    assert found is not None
    assert found.isprintable()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"forbiden": ["x"]}, "unknown option 'forbiden'; did you mean 'forbidden'?"),
        ({"max_repeats": 1}, "option 'max_repeats' must be a whole number of at least 2, or 0"),
        ({"max_repeats": True}, "option 'max_repeats' must be a whole number of at least 2, or 0"),
        ({"forbidden": "x"}, "option 'forbidden' must be a list of names of tools, found 'x'"),
        ({"must_call": []}, "option 'must_call' must be a list of names of tools, found []"),
        ({"before": ["a", "b"]}, "option 'before' must be a list of pairs [FIRST, SECOND]"),
        ({"before": [["a", "b", "c"]]}, "option 'before' must be a list of pairs"),
        ({"max": 3}, "option 'max' must be a table of limits, found 3"),
        (
            {"max": {"token": 3}},
            "option 'max' has an unknown limit 'token'; did you mean 'tokens'?",
        ),
        ({"max": {"turns": 2.5}}, "option 'max' 'turns' must be a whole number, found 2.5"),
        ({"max": {"turns": -1}}, "option 'max' 'turns' must be a number of at least 0, found -1"),
        ({"arguments": {"t": 3}}, "option 'arguments' of 't' must be a JSON Schema (a table)"),
        ({"answer_schema": {"$ref": "x"}}, "option 'answer_schema' refers to \"x\": nothing is"),
    ],
)
def test_options_that_are_mistakes(options: dict[str, Any], problem: str) -> None:
    """Each is said with what was found, and the nearest name of what is unknown."""
    (found,) = rules.validate(spec_of("rules", **options))
    assert found.startswith(problem)


def test_only_schemas_may_hold_others_up() -> None:
    """Counting is done at once; what searches patterns is done beside the other trials."""
    quick = rules.build(spec_of("rules", forbidden=["x"]))
    slow = rules.build(spec_of("rules", answer_schema={"pattern": "x"}))
    assert (quick.blocking, slow.blocking) == (False, True)

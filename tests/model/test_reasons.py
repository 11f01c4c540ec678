"""Reasons are the same in every run of one seed."""

from __future__ import annotations

import pytest

from ci_gate.engine.judging import Judgement, record_of
from ci_gate.model.reasons import without_addresses
from ci_gate.model.trial import Grade, Status
from tests.trials import trial_of


@pytest.mark.parametrize(
    ("reason", "shown"),
    [
        ("KeyError: <Order object at 0x7f3a12bc9d10>", "KeyError: <Order object at 0x...>"),
        ("<bound A.b of <m.A object at 0xA1>>", "<bound A.b of <m.A object at 0x...>>"),
        ("cut: <Order object at 0x7f3", "cut: <Order object at 0x..."),
        ("two <A at 0x1> <B at 0x2>", "two <A at 0x...> <B at 0x...>"),
        ("fault at 0xdeadbeef", "fault at 0xdeadbeef"),
        ("a < b at 0x1 and <c>", "a < b at 0x1 and <c>"),
        ("expected 0x10", "expected 0x10"),
    ],
)
def test_addresses_of_objects_are_left_out(reason: str, shown: str) -> None:
    """What stands for an object in Python loses its address, other numbers stay."""
    assert without_addresses(reason) == shown


def test_a_long_hostile_reason_takes_no_time() -> None:
    """Nothing in a text makes the search quadratic beyond its bound."""
    assert without_addresses("<" * 500 + " at 0x") == "<" * 500 + " at 0x"


def test_a_record_has_no_address_in_any_reason() -> None:
    """Neither in its own nor in those of its grades."""
    reason = "<Order object at 0x7f3a12bc9d10>"
    grade = Grade(grader="own", passed=False, reason=reason)
    judgement = Judgement(status=Status.FAILED, reason=f"own: {reason}", grades=(grade,))

    record = record_of(trial_of(), judgement, None, duration_s=None)

    assert record.reason == "own: <Order object at 0x...>"
    assert record.grades is not None
    assert record.grades[0].reason == "<Order object at 0x...>"

"""Secrets taken out of the records of trials."""

from __future__ import annotations

from ci_gate.gate.secrecy import record_without
from ci_gate.model.trial import Grade, Status, TrialRecord
from ci_gate.redaction import Redactor


def test_no_line_of_a_difference_holds_a_secret() -> None:
    """What a trial left in a row is shown without the secrets in it, line by line."""
    secret = "hunter2hunter2"
    grade = Grade(grader="state", passed=False, reason="x", detail=f"+ a={secret}\n- b={secret}")
    record = TrialRecord(task="refund", trial=0, status=Status.FAILED, grades=(grade,))

    cleaned = record_without(lambda: Redactor([secret]))(record, None)

    assert cleaned.grades is not None
    detail = str(cleaned.grades[0].detail)
    assert secret not in detail
    assert [line[:4] for line in detail.split("\n")] == ["+ a=", "- b="]

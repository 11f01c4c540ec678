"""The grader of answers: each condition, their reasons, and what a task file may not say."""

from __future__ import annotations

import pytest

from ci_gate import patterns
from ci_gate.grading.answer import build, validate
from ci_gate.grading.conditions import LONGEST_MATCHED
from ci_gate.model.trial import Grade, Trajectory
from tests.trials import BareWorld, spec_of, trial_of


def graded(answer: str | None, **options: object) -> Grade:
    spec = spec_of("answer", **options)
    assert validate(spec) == []
    return build(spec).grade(trial_of(), Trajectory(answer=answer), BareWorld())


@pytest.mark.parametrize(
    ("options", "answer", "passed"),
    [
        ({"equals": "45.00 EUR"}, "45.00 EUR", True),
        ({"equals": "45.00 EUR"}, "45.00 EUR ", False),
        ({"equals": ""}, "", True),
        ({"contains": "45.00"}, "I refunded 45.00 EUR", True),
        ({"contains": ["45.00", "R-1001"]}, "I refunded 45.00 EUR", False),
        ({"contains": ["45.00", "R-1001"]}, "45.00 for R-1001", True),
        ({"not_contains": "sorry"}, "Done.", True),
        ({"not_contains": ["sorry", "cannot"]}, "I cannot do this", False),
        ({"matches": r"^\d+\.\d\d EUR$"}, "45.00 EUR", True),
        ({"matches": r"\d+"}, "order 12 is paid", True),
        ({"matches": r"^\d+$"}, "order 12", False),
        ({"equals": "STRASSE", "ignore_case": True}, "straße", True),
        ({"contains": "Refunded", "ignore_case": True}, "i REFUNDED it", True),
        ({"not_contains": "SORRY", "ignore_case": True}, "so sorry", False),
        ({"matches": "refund", "ignore_case": True}, "REFUND", True),
        ({"contains": "45", "not_contains": "46", "matches": "EUR"}, "45 EUR", True),
        ({"contains": "45", "not_contains": "EUR"}, "45 EUR", False),
    ],
)
def test_all_conditions_must_hold(options: dict[str, object], answer: str, passed: bool) -> None:
    """An answer passes when it is, has, lacks and matches all that is asked."""
    grade = graded(answer, **options)
    assert grade.passed is passed
    assert (grade.reason is None) is passed
    assert grade.grader == "answer"


@pytest.mark.parametrize("options", [{"equals": ""}, {"not_contains": "x"}, {"matches": ".*"}])
def test_no_answer_meets_no_condition(options: dict[str, object]) -> None:
    """A missing answer fails also where an empty one would pass."""
    assert graded(None, **options) == Grade(
        grader="answer", passed=False, reason="the agent gave no answer"
    )


def test_reasons_show_what_was_expected_and_found() -> None:
    """A reason can be read without opening anything else."""
    assert graded("46.00", equals="45.00").reason == 'expected "45.00", found "46.00"'
    assert graded("no", contains="yes").reason == 'expected a text with "yes", found "no"'
    assert graded("no", not_contains="no").reason == 'expected a text without "no", found "no"'
    assert graded("no", matches="^y").reason == 'expected a match of "^y", found "no"'


def test_reasons_of_hostile_answers_are_bounded_and_harmless() -> None:
    """An answer can neither fill the report nor start a new line in a log."""
    reason = graded("x\n::error::\u202e" + "y" * 1_000_000, equals="a").reason
    assert reason is not None
    assert "\n" not in reason
    assert "\u202e" not in reason
    assert len(reason) < 300


def test_a_pattern_is_not_tried_on_endless_answers() -> None:
    """Beyond the bound the answer fails and says so, though the pattern would match."""
    assert graded("a" * LONGEST_MATCHED, matches="a").passed
    reason = graded("a" * (LONGEST_MATCHED + 1), matches="a").reason
    assert reason == "1000001 characters; a pattern is tried on 1000000 at most"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "nothing is expected: give 'equals' or 'contains' or 'not_contains' or 'matches'"),
        ({"equal": "x", "contains": "x"}, "unknown option 'equal'; did you mean 'equals'?"),
        ({"contains": "x", "zzz": 1}, "unknown option 'zzz'; options are equals, contains"),
        ({"equals": 45}, "option 'equals' must be a text, found 45"),
        ({"contains": []}, "option 'contains' must be a text or a list of texts"),
        ({"contains": ["a", 1]}, "option 'contains' must be a text or a list of texts"),
        ({"not_contains": ""}, "option 'not_contains' must be a text or a list of texts"),
        ({"matches": "("}, "option 'matches' is no regular expression"),
        ({"matches": "a{99999999999999}"}, "option 'matches' is no regular expression"),
        ({"equals": "x", "ignore_case": "yes"}, "option 'ignore_case' must be true or false"),
        ({"ignore_case": True}, "nothing is expected"),
    ],
)
def test_mistakes_are_named_when_the_suite_is_loaded(options: dict[str, object], said: str) -> None:
    """Options that are unknown, of a wrong type or without effect are refused before any trial."""
    problems = validate(spec_of("answer", **options))
    assert any(said in problem for problem in problems), problems


def test_all_mistakes_are_named_together() -> None:
    """One load shows every mistake of a grader."""
    assert len(validate(spec_of("answer", equals=1, matches="(", ignore_case=2, other=3))) == 4


def test_a_pattern_that_would_run_for_ever_fails_the_grade(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text that makes the matcher backtrack without end costs a moment and the grade."""
    monkeypatch.setattr(patterns, "LONGEST_S", 0.2)
    grade = graded("a" * 40 + "!", matches=r"^(\w+\s?)*$")
    assert not grade.passed
    assert (grade.reason or "").startswith("pattern took longer than 0.2 s")

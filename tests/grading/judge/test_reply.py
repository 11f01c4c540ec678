"""Replies of a judge: what is not a sound grade is no pass."""

from __future__ import annotations

import json

import pytest

from ci_gate.grading.judge.question import Question
from ci_gate.grading.judge.reply import Reply, Vote, majority, vote_of
from tests.judges import graded

QUESTION = Question(model="m", rubric="- polite\n- short")
BOTH = {"C1": True, "C2": True}


@pytest.mark.parametrize(
    "text",
    [graded(BOTH, "pass"), f" {graded(BOTH, 'pass')}\n", f"```json\n{graded(BOTH, 'pass')}\n```"],
)
def test_a_sound_reply_that_passes_passes(text: str) -> None:
    """One JSON object that meets every criterion passes, also in a Markdown fence."""
    assert vote_of(Reply(text=text), QUESTION) == Vote(passed=True)


def test_a_sound_reply_that_fails_cites_its_criterion() -> None:
    """A grade that fails names the first criterion that is not met and the evidence."""
    vote = vote_of(Reply(text=graded({"C1": True, "C2": False}, "fail")), QUESTION)
    assert vote == Vote(passed=False, why="fail: C2 is not met: looked for C2")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty"),
        ("  \n", "empty"),
        ("pass", "not one JSON object"),
        ("I'm sorry, I can't help with that.", "not one JSON object"),
        ('{"verdict": "pass"}', "instead of criteria and verdict"),
        ('["pass"]', "no JSON object"),
        (graded(BOTH, "pass") * 2, "not one JSON object"),
        ("Sure! " + graded(BOTH, "pass"), "not one JSON object"),
        (graded({"C1": True}, "pass"), 'judges "C1" and not C1, C2'),
        (graded({"C1": True, "C2": True, "C3": True}, "pass"), "and not C1, C2"),
        (graded(BOTH, "PASS"), 'verdict "PASS" is none of the choices'),
        (graded(BOTH, "excellent"), "none of the choices"),
        (graded({"C1": True, "C2": False}, "pass"), "contradicts itself"),
        (graded(BOTH, "pass")[:-1] + ', "note": 1}', "instead of criteria and verdict"),
        (graded(BOTH, "fail")[:-1] + ', "verdict": "pass"}', "a key stands in it twice"),
        (json.dumps({"criteria": "all met", "verdict": "pass"}), "not a list of id"),
        (json.dumps({"criteria": BOTH, "verdict": ["pass"]}), "none of the choices"),
        (graded(BOTH, "pass").replace("true", '"yes"'), "not a list of id"),
        ("[" * 5000, "too deep"),
        ('{"verdict": NaN', "not one JSON object"),
    ],
)
def test_whatever_is_no_grade_fails_with_its_reason(text: str, why: str) -> None:
    """Empty, refusing, unparseable, contradictory and misshapen replies never pass."""
    vote = vote_of(Reply(text=text), QUESTION)
    assert not vote.passed
    assert not vote.is_sound
    assert why in vote.why


def test_a_reply_without_text_fails_with_its_problem() -> None:
    """What the API says instead of a text is the reason."""
    vote = vote_of(Reply(problem="it refused: no"), QUESTION)
    assert vote.why == "the judge gave no grade: it refused: no"
    assert not vote.passed


def test_choices_of_a_rubric_pass_as_it_says() -> None:
    """With choices of its own a rubric says which of them pass."""
    own = Question(model="m", rubric="x", choices=("good", "fair", "bad"), passing=("good", "fair"))
    passed = [vote_of(Reply(text=graded({"C1": True}, one)), own).passed for one in own.choices]
    assert passed == [True, True, False]


@pytest.mark.parametrize(
    ("votes", "passed"), [("+", True), ("-", False), ("+-+", True), ("+-", False), ("--+", False)]
)
def test_more_than_half_of_the_votes_must_pass(votes: str, passed: bool) -> None:
    """The majority decides and a tie fails, with the count and the first objection."""
    found = majority([Vote(passed=one == "+", why="" if one == "+" else "C1") for one in votes])
    assert found.passed is passed
    assert found.share == votes.count("+") / len(votes)
    if not passed and len(votes) > 1:
        assert found.why == f"{votes.count('+')} of {len(votes)} votes pass; C1"

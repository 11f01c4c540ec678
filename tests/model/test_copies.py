"""Copies are found on evidence, and an ending that differs refutes it."""

from __future__ import annotations

import pytest

from ci_gate.model.copies import copies_by_task, copies_of, without_copies
from ci_gate.model.run import SideTask
from ci_gate.model.trial import Answers
from tests.notation import side_of


def task_of(outcomes: str, words: str, **fields: str) -> SideTask:
    """Return a task; a word a trial: ``-``, the answers' name, ``=`` for cached, ``/`` next run."""
    answers = {
        (trial, repeat): Answers(responses=word.lstrip("=") or None, cached=word[0] == "=")
        for repeat, row in enumerate(words.split("/"))
        for trial, word in enumerate(row.split())
        if word != "-"
    }
    return SideTask(outcomes=tuple(outcomes.split("/")), answers=answers, **fields)


@pytest.mark.parametrize(
    ("outcomes", "words", "kept"),
    [
        ("++++", "a a a a", "+..."),
        ("----", "a a a a", "-..."),
        ("++++", "a b a b", "++.."),
        ("++++", "a b c d", "++++"),
        ("++/++", "a b/a b", "++/.."),
        ("++++", "- - - -", "++++"),
        ("+!+-", "a a a b", "+!.-"),
        ("!+++", "a a a b", "!+.+"),
    ],
)
def test_equal_answers_are_one_trial(outcomes: str, words: str, kept: str) -> None:
    """The first by repeat and seed index stands for all that have its answers."""
    answers = task_of(outcomes, words).answers

    side = without_copies(side_of(f"t {outcomes}", t={"answers": answers}))

    assert side.tasks["t"].outcomes == tuple(kept.split("/"))


@pytest.mark.parametrize(
    ("outcomes", "words", "kept"),
    [
        ("++++", "= = = =", "+..."),
        ("++++", "- = = =", "+..."),
        ("++++", "= = = -", "...+"),
        ("+---", "- = = =", "+-.."),
        ("++++", "=a =b =c =d", "+..."),
        ("++++", "a =a =a b", "+..+"),
        ("+!++", "- = - -", "+!++"),
    ],
)
def test_a_cached_answer_copies_a_trial_that_is_not_known(
    outcomes: str, words: str, kept: str
) -> None:
    """Beside a fresh trial that ended so it is nothing, elsewhere all of them are one."""
    answers = task_of(outcomes, words).answers

    side = without_copies(side_of(f"t {outcomes}", t={"answers": answers}))

    assert side.tasks["t"].outcomes == (kept,)


@pytest.mark.parametrize(
    ("outcomes", "words"), [("+-++", "a a b c"), ("+++-", "= = = ="), ("-+", "a a")]
)
def test_trials_that_ended_differently_are_no_copies(outcomes: str, words: str) -> None:
    """No failing trial is set aside in favour of a passing one, or the other way round."""
    found = copies_of(task_of(outcomes, words))

    assert not found.apart
    assert found.disputed


def test_a_trial_with_the_baselines_answers_is_the_baselines() -> None:
    """It says nothing of the candidate; one that ended differently does."""
    before = task_of("++/+-", "a b/c d")

    found = copies_of(task_of("++-+", "a d c e"), before)

    assert found.apart == {(0, 0)}
    assert found.disputed == {(1, 0), (2, 0)}


def test_answers_of_an_edited_task_are_no_evidence() -> None:
    """The same id with another content is another task."""
    answers = task_of("++", "a b").answers
    before = side_of("t ++", t={"answers": answers}, digests={"t": "sha256:old"})
    after = side_of("t ++", t={"answers": answers})

    assert copies_by_task(after, before) == {}
    assert without_copies(after, before) is after


def test_setting_copies_aside_again_changes_nothing() -> None:
    """What stays has no copies among it."""
    answers = task_of("++++", "a a = -").answers
    once = without_copies(side_of("t ++++", t={"answers": answers}))

    assert without_copies(once).tasks["t"].outcomes == once.tasks["t"].outcomes == ("+..+",)

"""What stays of answers: short digests, and a cache only where every call says so."""

from __future__ import annotations

from typing import Any

import pytest

from ci_gate.engine.answers import answers_of
from ci_gate.model.trial import Answers, Step, Trajectory

SENTENCE = "The refund of order 4812 was booked on the card."


def call(**fields: Any) -> Step:
    """Return a call of a model."""
    return Step(kind="llm", name="m", **fields)


@pytest.mark.parametrize(
    ("told", "calls", "cached"),
    [
        (None, [], False),
        (None, [True, True], True),
        (None, [True, False], False),
        (None, [True, None], False),
        (True, [], True),
        (True, [None], True),
        (True, [True, False], False),
        (False, [True], False),
    ],
)
def test_a_trial_is_cached_only_as_a_whole(
    told: bool | None, calls: list[bool | None], cached: bool
) -> None:
    """One fresh answer makes a fresh trial, whatever is said of the others."""
    steps = tuple(call(cached=one) for one in calls)

    found = answers_of(Trajectory(cached=told, steps=steps, tokens=1))

    assert found is not None
    assert found.cached is cached


def test_names_are_kept_as_one_digest_whatever_their_order() -> None:
    """Calls may run side by side; the names themselves are in no file."""
    one = answers_of(Trajectory(response_ids=("r-2", "r-1")))
    other = answers_of(Trajectory(steps=(call(response_id="r-1"), call(response_id="r-2"))))

    assert one is not None
    assert other is not None
    assert one.responses == other.responses
    assert one.responses is not None
    assert len(one.responses) == 16
    assert "r-1" not in str(one)


@pytest.mark.parametrize(
    "trajectory",
    [
        Trajectory(response_ids=()),
        Trajectory(response_ids=("r-1", "")),
        Trajectory(steps=(call(response_id="r-1"), call())),
        Trajectory(steps=(Step(kind="tool", name="t", response_id="r-1"),)),
    ],
)
def test_answers_are_known_only_where_every_name_is(trajectory: Trajectory) -> None:
    """What is known of a part of the calls proves nothing."""
    found = answers_of(trajectory)

    assert found is None or found.responses is None


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (Trajectory(answer=SENTENCE), Trajectory(answer=SENTENCE), True),
        (Trajectory(answer=SENTENCE), Trajectory(answer=SENTENCE.lower()), False),
        (Trajectory(answer="42", tokens=9), Trajectory(answer="42", tokens=9), True),
        (Trajectory(answer="42", tokens=9), Trajectory(answer="42", tokens=8), False),
        (Trajectory(steps=(call(output=1),)), Trajectory(steps=(call(output=2),)), False),
    ],
)
def test_bytes_are_answer_steps_and_tokens(one: Trajectory, other: Trajectory, equal: bool) -> None:
    """Trials are the same bytes where all three are."""
    found, others = answers_of(one), answers_of(other)

    assert found is not None
    assert found.digest
    assert (found == others) is equal


@pytest.mark.parametrize(
    "trajectory", [Trajectory(), Trajectory(answer="42"), Trajectory(answer="\ud800" * 50)]
)
def test_a_value_alone_says_nothing(trajectory: Trajectory) -> None:
    """The right answer is to be the same each time; and what no file can hold is unknown."""
    assert answers_of(trajectory) is None


def test_only_evidence_may_show_a_copy() -> None:
    """Equal bytes are none."""
    assert not Answers(digest="0" * 16).may_show_copy
    assert Answers(responses="0" * 16).may_show_copy
    assert Answers(cached=True).may_show_copy

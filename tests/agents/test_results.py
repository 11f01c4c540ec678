"""Results are read strictly: exactly what is documented, or garbage with words."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ci_gate.agents.results import GarbageError, trajectory_of
from ci_gate.agents.worker import _RESULT_KEYS
from ci_gate.model.trial import Status, Step, Trajectory
from tests.speeds import examples

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)
KEYS = st.sampled_from([*_RESULT_KEYS, "other"])


@settings(max_examples=examples(50))
@given(JSON | st.dictionaries(KEYS, JSON))
def test_any_json_is_a_trajectory_or_garbage(result: Any) -> None:
    """No JSON value ends in anything but a trajectory or ``GarbageError``."""
    found = ""
    try:
        assert isinstance(trajectory_of(result), Trajectory)
    except GarbageError as error:
        found = str(error)
    assert "\n" not in found


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("turns", 1.5, "turns is a whole number from 0, found float 1.5"),
        ("tokens", "7", "tokens is a whole number from 0, found str '7'"),
        ("cost_usd", "1", "cost_usd is a number from 0, found str '1'"),
        ("measures", {"n": "x"}, "measures.n is a number, found str 'x'"),
        ("measures", [1], "measures are an object of numbers"),
        ("steps", "x", "steps are a list"),
        ("steps", [1], "a step is not as documented"),
        ("steps", [{"name": 1}], "a step is not as documented"),
        ("cached", "yes", "cached is true or false, found str 'yes'"),
        ("cached", 1200, "cached is true or false, found int 1200"),
        ("response_ids", "r1", "response_ids are a list of at most"),
        ("response_ids", ["r1", 2], "response_ids are a list of texts, found int 2"),
        ("status", True, "status is passed, failed or errored"),
        ("status", ["failed"], "status is passed, failed or errored"),
    ],
)
def test_a_wrong_value_is_named(key: str, value: object, words: str) -> None:
    """Garbage says which key, what it should be and what was found."""
    with pytest.raises(GarbageError, match=words):
        trajectory_of({key: value})


def test_seen_steps_count_more_than_told_ones() -> None:
    """Calls that passed the sandbox are the trajectory; the agent's own list only without them."""
    seen = (Step(kind="tool", name="real"),)
    told = {"steps": [{"name": "told", "fault": "timeout"}]}
    assert trajectory_of(told, seen).steps == seen
    assert trajectory_of(told).steps == (Step(kind="tool", name="told"),)


def test_what_calls_of_models_say_counts_beside_seen_steps() -> None:
    """The agent's own steps are evidence of copies also where its tools passed the sandbox."""
    seen = (Step(kind="tool", name="real"),)
    call = {"kind": "llm", "name": "m", "cached": True, "response_id": "r1"}

    found = trajectory_of({"steps": [call, {**call, "response_id": "r2"}]}, seen)

    assert (found.cached, found.response_ids, found.steps) == (True, ("r1", "r2"), seen)


def test_status_and_reason_become_one_line() -> None:
    """A reason cannot start a new line or a workflow command, and is bounded."""
    trajectory = trajectory_of({"status": "failed", "reason": "a\n::error::b" + "x" * 9000})
    assert trajectory.status is Status.FAILED
    assert (trajectory.reason or "").startswith(r"a\n::error::b")
    assert len(trajectory.reason or "") < 600


@pytest.mark.parametrize("key", ["turns", "tokens", "cost_usd"])
@pytest.mark.parametrize(
    "value",
    [
        -1,
        10**13,
        10**300,
        float("inf"),
        float("nan"),
        {"$ci-gate": ["float", "nan"]},
        {"$ci-gate": ["int", "beyond"]},
    ],
)
def test_a_number_that_is_no_amount_is_unknown_and_named(key: str, value: object) -> None:
    """It never fails a trial: whoever reports nonsense is as one who reports nothing."""
    found = trajectory_of({"answer": "42", key: value})

    assert (getattr(found, key), found.beyond, found.status) == (None, (key,), None)
    assert found.answer == "42"


def test_own_measures_may_be_negative_and_large_but_not_absurd() -> None:
    """Squares of what is kept stay finite; the others of them are kept."""
    found = trajectory_of({"measures": {"a": -3, "b": 1.7e18, "c": 1.7e308, "d": 10**400}})

    assert (found.measures, found.beyond) == ({"a": -3.0, "b": 1.7e18}, ("measures",))


def test_a_step_of_no_turn_has_an_unknown_turn() -> None:
    """Its trace stays readable."""
    steps = trajectory_of({"steps": [{"name": "a", "turn": 10**300}, {"name": "b", "turn": 2}]})
    assert [step.turn for step in steps.steps] == [None, 2]

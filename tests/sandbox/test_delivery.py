"""What of a fault reaches the agent: its text, its value, or the call once more."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_gate.ports import First
from ci_gate.sandbox.chaos import ChaosInjector
from ci_gate.sandbox.delivery import MODEL_STREAM, Delivery, model_injector
from ci_gate.sandbox.faults import MODEL_KINDS
from ci_gate.sandbox.world import World
from ci_gate.sandbox.world_factory import DEFAULT_NOW

TABLE = {"total": 12.5, "name": "Ada"}


def always(*kinds: str) -> Delivery:
    return Delivery(ChaosInjector(7, 1000, kinds=kinds))


def test_a_delay_leaves_the_value_as_it_is() -> None:
    """A table that comes late is a table; only its time is the fault's."""
    seen = always("latency").seen("tool", "look", {}, TABLE, is_error=False)
    assert seen is not None
    assert (seen.output, seen.is_whole, seen.fault, seen.delay_s) == (TABLE, True, "latency", 5.0)


@pytest.mark.parametrize(
    ("output", "expected"),
    [(TABLE, {"total": "12.5", "name": None}), ('{"total":12.5}', '{"total":"12.5"}')],
)
def test_malformed_values_stay_what_they_are_but_for_their_types(
    output: object, expected: object
) -> None:
    """A table is still a table, a text is still a text."""
    seen = always("malformed").seen("tool", "look", {}, output, is_error=False)
    assert seen is not None
    assert seen.output == expected


def test_stale_data_are_the_first_answer_to_the_same_call() -> None:
    """Not to another one, not before there is a newer one, and as the value that it was."""
    delivery = always("stale")
    asked = [(1, {"v": 1}), (2, {"v": 5}), (1, {"v": 1}), (1, {"v": 2}), (1, {"v": 3})]
    seen = [
        delivery.seen("tool", "look", {"id": number}, output, is_error=False)
        for number, output in asked
    ]
    assert [one and (one.output, one.fault, one.is_error) for one in seen] == [
        *(None, None, None),
        ({"v": 1}, "stale", False),
        ({"v": 1}, "stale", False),
    ]


def test_values_that_cannot_be_made_again_never_come_back() -> None:
    """An object that is only named would break the agent and not its data."""
    delivery = always("stale")
    odd = {"$ci-gate": ["unrecordable", {"type": "x.Y", "text": "y"}]}
    assert delivery.seen("tool", "look", {}, odd, is_error=False) is None
    assert delivery.seen("tool", "look", {}, "new", is_error=False) is None


@given(
    st.integers(0, 2**64 - 1),
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=30),
    st.integers(0, 3),
)
def test_stale_never_gives_what_was_not_given_before(
    seed: int, calls: list[tuple[int, int]], budget: int
) -> None:
    """It is the first answer to the same call, only if it differs, and within the budget."""
    delivery = Delivery(ChaosInjector(seed, 500, kinds=["stale", "latency"], budget=budget))
    first: dict[int, int] = {}
    faults = 0
    for asked, output in calls:
        first.setdefault(asked, output)
        seen = delivery.seen("tool", "t", asked, output, is_error=False)
        if seen is not None:
            faults += 1
            assert seen.output == (first[asked] if seen.fault == "stale" else output)
            assert seen.fault == "latency" or seen.output != output
    assert faults <= budget or budget == 0


@given(st.integers(0, 2**64 - 1), st.lists(st.text(max_size=3), max_size=20))
def test_the_published_schedule_knows_nothing_of_further_kinds(
    seed: int, outputs: list[str]
) -> None:
    """Remembered answers change no draw of a schedule without ``stale``."""
    plain, knowing = ChaosInjector(seed), ChaosInjector(seed)
    for output in outputs:
        assert plain.intercept("t", output) == knowing.intercept("t", output, earlier="old")


def test_a_call_that_is_delivered_twice_is_recorded_once() -> None:
    """It is to be made again; what its second time gave is what the agent sees."""
    injector = ChaosInjector(7, 1000, kinds=["duplicate"])
    world = World(folder=None, workdir=None, now=DEFAULT_NOW, injector=injector)
    once = world.observe("tool", "pay", {}, {"paid": 1}, is_error=False, turn=None)
    assert (once.again, world.steps) == (True, [])
    first = First(output={"paid": 1})
    twice = world.observe("tool", "pay", {}, {"paid": 2}, is_error=True, turn=None, first=first)
    assert (twice.output, twice.is_whole, twice.is_error) == ({"paid": 2}, True, True)
    (step,) = world.steps
    assert (step.output, step.fault, step.is_error) == ({"paid": 2}, "duplicate", True)
    assert len(injector.audit) == 1


def test_models_meet_faults_of_their_own_stream() -> None:
    """They shift no fault of a tool, and fail as the API of a model does."""
    assert model_injector(0, 5) is None
    models = model_injector(300, 5)
    same = ChaosInjector(5 ^ MODEL_STREAM, 300, kinds=MODEL_KINDS)
    delivery, alone = Delivery(ChaosInjector(5, 300), models), Delivery(ChaosInjector(5, 300))
    for _ in range(50):
        seen = delivery.seen("llm", "m", {}, "hi", is_error=False)
        expected = same.intercept("m", "hi")
        assert (seen and seen.fault) == expected.fault
        assert seen is None or (seen.is_error and seen.output == expected.observation)
        assert delivery.seen("tool", "t", {}, "x", is_error=False) == alone.seen(
            "tool", "t", {}, "x", is_error=False
        )

"""Trials of one run that did not start in the same state, found when its file is read."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from ci_gate.decision.accounting import contaminated_tasks
from ci_gate.model.trial import Cause, TrialRecord
from ci_gate.store.initial_states import in_one_state
from ci_gate.store.runs import to_side


def started(records: Sequence[TrialRecord], states: Sequence[str | None]) -> list[TrialRecord]:
    return [
        msgspec.structs.replace(one, initial_state=state)
        for one, state in zip(records, states, strict=True)
    ]


def test_a_trial_that_started_elsewhere_is_contaminated(desk) -> None:
    """Its pass counts no more, by task, and trials of unknown start are left alone."""
    records = desk.records("cancel +++ refund ++-+")
    states = ["b", "b", "b", "a", "b", None, "a"]
    side = to_side(desk.run(started(records, states), trials=4))
    assert {task: one.outcomes[0] for task, one in side.tasks.items()} == {
        "cancel": "+++.",
        "refund": "+!-+",
    }
    assert contaminated_tasks(side) == ("refund",)
    refund = side.tasks["refund"]
    assert refund.causes[1, 0] is Cause.CONTAMINATED
    assert refund.reasons[1, 0].startswith("contaminated: its initial state differs")


@pytest.mark.parametrize("states", [["a", "a"], [None, "a"], [None, None]])
def test_one_state_changes_no_record(desk, states: list[str | None]) -> None:
    """What is equal, or not known, is handed back as it is."""
    records = started(desk.records("refund +-"), states)
    assert in_one_state(records) is records

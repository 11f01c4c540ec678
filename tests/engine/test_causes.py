"""Who is at fault in a trial's record: decided by what happened, never by what a text says."""

from __future__ import annotations

from typing import Any

import pytest

from ci_gate.errors import ContaminatedWorldError, GateError
from ci_gate.model.suite import Limits, PlannedTrial
from ci_gate.model.trial import Cause, Status, Trajectory
from ci_gate.ports import TrialErrored
from tests.engine.fakes import ERRORS, FAILS, PASSES, Journal, ScriptedAgent, Worlds, run
from tests.trials import task_of, trial_of


class NoWorlds(Worlds):
    """Worlds that cannot be made."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error = error

    def open(self, trial: PlannedTrial) -> Any:
        """Fail."""
        raise self._error


def cause_of(result: Any, *, worlds: Worlds | None = None, **limits: int) -> Cause | None:
    """Return the cause in the record of a trial in which the agent gives or raises this."""
    journal = Journal()
    trials = [trial_of(task_of(limits=Limits(**limits)))]
    run(trials, ScriptedAgent(lambda _: result), journal=journal, worlds=worlds, retries=0)
    return journal.records[0].cause


@pytest.mark.parametrize(
    ("result", "cause"),
    [
        (PASSES, None),
        (FAILS, Cause.AGENT),
        (Trajectory(answer="another"), Cause.AGENT),
        (Trajectory(answer="ok", turns=9), Cause.LIMIT),
        (ERRORS, Cause.ENVIRONMENT),
        (Trajectory(status=Status.FAILED, reason="grader-error: x"), Cause.AGENT),
        (Trajectory(status=Status.ERRORED, reason="contaminated: x"), Cause.ENVIRONMENT),
        (TrialErrored("contaminated: x"), Cause.HARNESS),
        (RuntimeError("contaminated: x"), Cause.HARNESS),
    ],
)
def test_each_ending_has_its_cause(result: Any, cause: Cause | None) -> None:
    """A pass has none; what the agent writes into a reason changes none."""
    assert cause_of(result, turns=3) is cause


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (ContaminatedWorldError("contaminated: its initial state differs"), Cause.CONTAMINATED),
        (ContaminatedWorldError("something else"), Cause.CONTAMINATED),
        (GateError("contaminated: x"), Cause.HARNESS),
        (OSError("disk"), Cause.HARNESS),
    ],
)
def test_only_a_world_out_of_its_known_state_is_contaminated(
    error: Exception, cause: Cause
) -> None:
    """The class of the error says so, and not its words."""
    assert cause_of(PASSES, worlds=NoWorlds(error)) is cause

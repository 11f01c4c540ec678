"""What is left of a plan goes by the attempts that were made, not by who made them."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from ci_gate.errors import JournalError
from ci_gate.gate.pending import is_last, pending_of, refuse_foreign
from ci_gate.gate.planning import planned_trials
from ci_gate.model.suite import PlannedTrial, Suite, Task
from ci_gate.model.trial import Status, TrialRecord
from ci_gate.prng import format_seed

SUITE = Suite(
    name="desk",
    root_seed=7,
    trials=2,
    tasks=(Task(id="a", instruction="", base_seed=7, digest="sha256:a"),),
    digest="sha256:desk",
)
FIRST, SECOND = planned_trials(SUITE, repeats=1)


def record(trial: PlannedTrial, status: Status, attempt: int) -> TrialRecord:
    """Return how an attempt ended."""
    return TrialRecord(
        task=trial.task.id,
        task_digest=trial.task.digest,
        trial=trial.trial,
        attempt=attempt,
        seed=format_seed(trial.seed),
        status=status,
    )


@pytest.mark.parametrize(
    ("status", "attempt", "retries", "due", "late"),
    [
        (Status.ERRORED, 1, 2, [2], []),
        (Status.ERRORED, 2, 2, [3], []),
        (Status.ERRORED, 3, 2, [], [4]),
        (Status.ERRORED, 4, 2, [], []),
        (Status.ERRORED, 9, 2, [], []),
        (Status.ERRORED, 1, 0, [], []),
        (Status.FAILED, 1, 2, [], []),
        (Status.PASSED, 3, 2, [], []),
    ],
)
def test_an_errored_trial_has_the_attempts_left_that_it_had(
    status: Status, attempt: int, retries: int, due: list[int], late: list[int]
) -> None:
    """At once ``retries`` times, once more at the end, and none beyond; none without retries."""
    records = {FIRST.key: record(FIRST, status, attempt)}

    found = pending_of([FIRST, SECOND], records, retries=retries)

    assert [t.attempt for t in found.due if t.trial == 0] == due
    assert [t.attempt for t in found.late] == late
    assert [t for t in found.due if t.trial == 1] == [SECOND]
    assert len(found) == 1 + len(due) + len(late)


def test_the_last_attempt_is_that_after_all_at_once() -> None:
    """Without retries there is no attempt at the end."""
    records = [record(FIRST, Status.ERRORED, attempt) for attempt in (1, 2, 3, 4)]

    assert [is_last(one, retries=2) for one in records] == [False, False, False, True]
    assert not any(is_last(one, retries=0) for one in records)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"task": "z"}, "trial 0 of task z is of no task of the suite"),
        ({"task_digest": "sha256:z"}, "has task_digest sha256:z, and the task sha256:a"),
        ({"seed": "0x1"}, "has seed 0x1, and the plan 0x"),
    ],
)
def test_trials_of_other_tasks_are_refused(fields: dict[str, str], words: str) -> None:
    """The message names the trial, what was found and what was expected."""
    foreign = msgspec.structs.replace(record(FIRST, Status.PASSED, 1), **fields)
    with pytest.raises(JournalError, match=words):
        refuse_foreign(SUITE, [record(SECOND, Status.PASSED, 1), foreign], Path("x.run.jsonl"))


def test_own_trials_are_continued() -> None:
    """Also where another tool left out what they are known by."""
    plain = msgspec.structs.replace(record(FIRST, Status.PASSED, 1), task_digest=None, seed=None)
    refuse_foreign(SUITE, [plain, record(SECOND, Status.PASSED, 1)], Path("x.run.jsonl"))

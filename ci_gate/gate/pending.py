"""Which trials of a plan still want an attempt, after whatever their journal holds.

Decides by how many attempts a trial had, whichever session made them, so that a run that was
interrupted gives an errored trial as many as one that was not. It must not know what trials are
for, nor what is decided on the way.

Notes
-----
A trial that errored is tried again at once, ``retries`` times, and once more at the end; one that
had all its attempts is final. With ``retries`` 0 the first one is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from ci_gate.errors import JournalError, printable
from ci_gate.model.suite import PlannedTrial, Suite, Task
from ci_gate.model.trial import Status, TrialRecord
from ci_gate.prng import derive_seed, format_seed
from ci_gate.store.journal import TrialKey

__all__ = ["Pending", "Records", "is_last", "pending_of", "refuse_foreign"]

Records = Mapping[TrialKey, TrialRecord]
"""The surviving record of each trial, in the order of the lines."""


@dataclass(frozen=True, kw_only=True)
class Pending:
    """What is left of some trials, in their order.

    Attributes
    ----------
    due : list of PlannedTrial
        To be run now: never run, or with attempts at once left.
    late : list of PlannedTrial
        With only their attempt at the end left.
    """

    due: list[PlannedTrial] = field(default_factory=list)
    late: list[PlannedTrial] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.due) + len(self.late)


def pending_of(trials: Iterable[PlannedTrial], records: Records, *, retries: int) -> Pending:
    """Return what is left of these trials.

    Parameters
    ----------
    trials : iterable of PlannedTrial
        Each in its first attempt.
    records : mapping of (task, trial, repeat) to TrialRecord
    retries : int
        Further attempts at once of a trial that errored.
    """
    found = Pending()
    for trial in trials:
        record = records.get(trial.key)
        if record is None:
            found.due.append(trial)
            continue
        left = _attempts_left(record, retries)
        if left:
            again = msgspec.structs.replace(trial, attempt=record.attempt + 1)
            (found.due if left > 1 else found.late).append(again)
    return found


def is_last(record: TrialRecord, *, retries: int) -> bool:
    """Return whether this was the attempt at the end."""
    return bool(retries) and record.attempt > retries + 1


def _attempts_left(record: TrialRecord, retries: int) -> int:
    if record.status is not Status.ERRORED or not retries:
        return 0
    return max(0, retries + 2 - record.attempt)


def refuse_foreign(suite: Suite, records: Iterable[TrialRecord], path: Path) -> None:
    """Refuse to continue a journal that holds trials of other tasks than the suite's.

    Its footer could not be written when all that is missing has run.

    Parameters
    ----------
    suite : Suite
    records : iterable of TrialRecord
    path : Path
        The journal.

    Raises
    ------
    JournalError
        A task is not the suite's or has another digest, or a trial has another seed.
    """
    tasks = {task.id: task for task in suite.tasks}
    for record in records:
        what = _foreign(record, tasks.get(record.task))
        if what is not None:
            named = f"trial {record.trial} of task {printable(record.task)}"
            hint = "It was changed by hand. Restore it, or use --fresh to discard it."
            raise JournalError(f"{named} {what}", where=printable(path), hint=hint)


def _foreign(record: TrialRecord, task: Task | None) -> str | None:
    if task is None:
        return "is of no task of the suite"
    if record.task_digest not in (None, task.digest):
        return f"has task_digest {printable(record.task_digest)}, and the task {task.digest}"
    seed = format_seed(derive_seed(task.base_seed, record.trial))
    if record.seed not in (None, seed):
        return f"has seed {printable(record.seed)}, and the plan {seed}"
    return None

"""Trials as they were stored, in the place of an agent: what it did, and the world that it left.

Decides whether a stored trial is known well enough to be graded again. Run files and traces may be
what anybody wrote: one that is not what its digest says ends the command, and nothing is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from ci_gate.engine.cancellation import in_thread
from ci_gate.errors import FileFormatError, GateError, Problem, UsageError, printable
from ci_gate.gate.belonging import require_trace_of
from ci_gate.gate.recorded import place_of_trace
from ci_gate.gate.recorded_worlds import traces_folder_of
from ci_gate.model.suite import PlannedTrial
from ci_gate.model.trace import TraceRecord
from ci_gate.model.trace_meta import STATE
from ci_gate.model.trace_result import trajectory_of
from ci_gate.model.trial import Status, Trajectory, TrialRecord
from ci_gate.ports import TrialErrored, TrialSandbox
from ci_gate.sandbox.states import StateError
from ci_gate.sandbox.values import plain_of
from ci_gate.sandbox.world import World
from ci_gate.store.contents import Contents
from ci_gate.store.journal import TrialKey
from ci_gate.store.traces import read_trace

__all__ = ["StoredTrials"]

_MOST_PROBLEMS = 100


class StoredTrials:
    """Gives back what an agent did, trial by trial; nothing of it is run.

    Parameters
    ----------
    suite : str
    folder : Path
        Of the run file.
    records : mapping of (task, trial, repeat) to TrialRecord

    Attributes
    ----------
    problems : list of Problem
        What is wrong with files that should have been whole; at most 100.
    """

    def __init__(self, suite: str, folder: Path, records: Mapping[TrialKey, TrialRecord]) -> None:
        self.problems: list[Problem] = []
        self._suite = suite
        self._folder = folder
        self._records = records

    async def start(self) -> None:
        """Start nothing."""

    async def close(self) -> None:
        """End nothing."""

    async def run(self, trial: PlannedTrial, sandbox: TrialSandbox) -> Trajectory:
        """Return what was recorded of a trial, with its world as the agent left it.

        Raises
        ------
        TrialErrored
            Not all of it is known; the text says what is not.
        """
        try:
            return await in_thread(lambda: self._ended(trial, sandbox))
        except GateError as error:
            room = _MOST_PROBLEMS - len(self.problems)
            self.problems += error.problems[:room]
            raise TrialErrored("its trace is not what the run file says") from error

    def _ended(self, trial: PlannedTrial, sandbox: TrialSandbox) -> Trajectory:
        record = self._records[trial.key]
        path = place_of_trace(self._folder, record)
        if path is None:
            why = "its trace is not beside the run file" if record.trace else "it has no trace"
            raise TrialErrored(why)
        records = self._read(path, trial, record)
        trajectory = trajectory_of(records, plain_of)
        if isinstance(trajectory, str):
            raise TrialErrored(trajectory)
        if trajectory.status not in {Status.FAILED, Status.ERRORED}:  # which nobody grades
            _require_same_start(record, sandbox)
            _put_end(records, sandbox, Contents(traces_folder_of(path)))
        return msgspec.structs.replace(trajectory, duration_s=record.duration_s)

    def _read(
        self, path: Path, trial: PlannedTrial, record: TrialRecord
    ) -> tuple[TraceRecord, ...]:
        trace = read_trace(path)
        try:
            require_trace_of(trace, path, suite=self._suite, trial=trial, record=record)
        except UsageError as error:  # whose advice is for a replay
            raise FileFormatError(error.problems[0].what, where=printable(path)) from error
        return trace.records


def _require_same_start(record: TrialRecord, sandbox: TrialSandbox) -> None:
    """Refuse to grade against a start that was not the trial's: checks compare with it."""
    if sandbox.postgres is not None:
        raise TrialErrored("its PostgreSQL database was not recorded")
    if record.initial_state and record.initial_state != sandbox.initial_state:
        raise TrialErrored("its fixture was changed since it ran")


def _put_end(records: tuple[TraceRecord, ...], sandbox: TrialSandbox, contents: Contents) -> None:
    assert isinstance(sandbox, World)
    ends = [one.output for one in records if (one.kind, one.name) == (STATE, "after")]
    if not ends and sandbox.folder is None:
        return
    try:
        if not ends or not isinstance(ends[-1], dict):
            raise StateError("how it left its world was not recorded")
        sandbox.replace(ends[-1], contents)
    except StateError as error:
        raise TrialErrored(str(error)) from error
    except OSError as error:
        raise TrialErrored(f"the recorded state cannot be written: {error.strerror}") from error

"""A whole suite answered from everything that was recorded of its tasks, faults on top.

Decides which recordings a task is answered from and how the world of a trial ends whose tools were
not run. Which answer a call gets is the business of ``sandbox.library``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from ci_gate.codec import encode
from ci_gate.config import Config
from ci_gate.errors import FileFormatError, UsageError, printable
from ci_gate.gate.recording import redactor_maker
from ci_gate.gate.recordings import Recordings, edited_remark
from ci_gate.gate.replaying import put_end
from ci_gate.model.run import AnsweredMode, Plan
from ci_gate.model.suite import PlannedTrial, Suite, Task
from ci_gate.model.trace import Trace
from ci_gate.model.trace_meta import STATE
from ci_gate.model.trial import Status, Trajectory, TrialRecord
from ci_gate.plugins import GRADERS
from ci_gate.ports import TrialErrored, TrialRunner, TrialSandbox
from ci_gate.sandbox.cassette import Asked
from ci_gate.sandbox.ignoring import Ignored
from ci_gate.sandbox.library import Library, Reader, SandboxedSource
from ci_gate.sandbox.world import AnswerSource, World
from ci_gate.store.contents import Contents
from ci_gate.store.journal import TrialKey
from ci_gate.store.traces import read_trace

__all__ = ["SandboxedSuite"]

_INPUT_CHARS: Final = 80


class _Shelf(NamedTuple):
    """What was recorded of one task: by place in the library, trial and repeat and the trace."""

    library: Library
    keys: Sequence[tuple[int, int]]
    traces: Sequence[Trace]

    def place_of(self, trial: PlannedTrial) -> int:
        key = trial.trial, trial.repeat
        return self.keys.index(key) if key in self.keys else -1


class SandboxedSuite:
    """Answers by what is asked and what was changed, from all traces of the task.

    Parameters
    ----------
    recordings : Recordings
    suite : Suite
    config : Config
    environment : mapping of str to str
        Whose secrets the recordings do not have.
    faults_digest : str or None
        Of the faults that are injected.

    Attributes
    ----------
    remarks : list of str
        What is odd about the recordings.

    Raises
    ------
    FileFormatError
        A trace was changed, or is of another task.
    """

    mode: AnsweredMode = "sandboxed"

    def __init__(
        self,
        recordings: Recordings,
        suite: Suite,
        *,
        config: Config,
        environment: Mapping[str, str],
        faults_digest: str | None,
    ) -> None:
        self._recordings = recordings
        self._contents = Contents(recordings.traces)
        self._ignored = Ignored(config.trace.ignore)
        self._redactors = redactor_maker(config, environment)
        self._sources: dict[TrialKey, SandboxedSource] = {}
        self._shelves = {task.id: self._shelf_of(task) for task in suite.tasks}
        self.faults_digest = faults_digest
        self._suite = suite
        self.remarks = edited_remark([task.id for task in suite.tasks if self._is_edited(task)])

    def _shelf_of(self, task: Task) -> _Shelf:
        found = self._recordings.all_of(task.id)
        traces = [self._trace(path, task) for _, path in found]
        library = Library([trace.records for trace in traces])
        return _Shelf(library, [key for key, _ in found], traces)

    def _trace(self, path: Path, task: Task) -> Trace:
        trace = read_trace(path)
        there = trace.header.suite, trace.header.task
        if there != (self._recordings.suite, task.id):
            raise FileFormatError(
                f"is the trace of task {printable(there[1] or 'unknown')!r} of suite "
                f"{printable(there[0] or 'unknown')!r}, and stands where those of "
                f"{printable(task.id)!r} are",
                where=printable(path),
                hint="Remove it, or record the suite again: `ci-gate run --mode record`.",
            )
        return trace

    def require(self, plan: Plan) -> None:
        """Refuse a suite of which nothing was recorded of some task.

        Raises
        ------
        UsageError
            With how many there are and the first.
        """
        suite = self._suite
        silent = {task for task, _, _ in self._recordings.records}
        missing = [t for t in suite.tasks if not self._shelves[t.id].keys and t.id not in silent]
        if missing:
            raise UsageError(
                f"{len(missing)} of {len(suite.tasks)} tasks have no recording; the first is "
                f"{printable(missing[0].id)!r}",
                where=printable(self._recordings.traces),
                hint="Record them: `ci-gate run --mode record`. `--task` runs a part.",
            )

    def _is_edited(self, task: Task) -> bool:
        digests = {trace.header.task_digest for trace in self._shelves[task.id].traces}
        return bool(digests - {None, task.digest})

    def source_of(self, trial: PlannedTrial) -> AnswerSource:
        """Return what answers the calls of a trial."""
        shelf = self._shelves[trial.task.id]
        reader = Reader(shelf.library, shelf.place_of(trial))
        source = SandboxedSource(reader, ignored=self._ignored, redactor=self._redactors())
        self._sources[trial.key] = source
        return source

    def around(self, agent: TrialRunner) -> TrialRunner:
        """Return the agent, each of whose trials ends in a recorded world."""
        return _Sandboxed(agent, self, self._sources)

    def end_world(self, trial: PlannedTrial, source: SandboxedSource, world: World) -> None:
        """Put the end of the recording with the same calls into the world of a trial.

        Raises
        ------
        TrialErrored
            No recording has them, so that nobody can know what the tools would have left, and
            graders look at it; or the recording does not have all of it.
        """
        shelf = self._shelves[trial.task.id]
        if world.postgres is None and not any(_has_end(trace) for trace in shelf.traces):
            return
        place = source.reader.recording
        if place is not None:
            put_end(world, shelf.traces[place].records, self._contents)
        elif any(GRADERS[spec.type].sees_world for spec in trial.task.graders):
            raise TrialErrored(_unknown_end(source.reader.unknown))

    def as_kept(self, record: TrialRecord) -> TrialRecord:
        """Return a record without the time that it took: nothing was waited for."""
        return msgspec.structs.replace(record, duration_s=None)


def _unknown_end(asked: Asked | None) -> str:
    """Say why nobody knows the end of a trial; with the first call that was never recorded."""
    first = ""
    if asked is not None:
        called = printable(f"{asked.kind} {asked.name}", limit=_INPUT_CHARS)
        given = printable(encode(asked.arguments).decode(), limit=_INPUT_CHARS)
        first = f" (none has {called} with {given})"
    return (
        f"sandboxed: no recording has just these calls{first}, so how they leave the world is "
        "unknown"
    )


def _has_end(trace: Trace) -> bool:
    return any((record.kind, record.name) == (STATE, "after") for record in trace.records)


class _Sandboxed:
    def __init__(
        self, agent: TrialRunner, suite: SandboxedSuite, sources: dict[TrialKey, SandboxedSource]
    ) -> None:
        self._agent = agent
        self._suite = suite
        self._sources = sources

    async def run(self, trial: PlannedTrial, sandbox: TrialSandbox) -> Trajectory:
        source = self._sources.pop(trial.key)
        trajectory = await self._agent.run(trial, sandbox)
        if trajectory.status not in {Status.FAILED, Status.ERRORED}:
            assert isinstance(sandbox, World)
            self._suite.end_world(trial, source, sandbox)
        return trajectory

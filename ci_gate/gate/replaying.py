"""A trial played from its recording: nothing is called, and it ends in the recorded world."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from ci_gate.config import Config
from ci_gate.errors import UsageError, printable
from ci_gate.gate.belonging import require_recording_of
from ci_gate.gate.recording import redactor_maker, traces_folder
from ci_gate.model.breaches import is_breach
from ci_gate.model.suite import PlannedTrial
from ci_gate.model.trace import Trace, TraceRecord
from ci_gate.model.trace_meta import STATE
from ci_gate.model.trial import Status, Trajectory
from ci_gate.ports import ReplayDrifted, TrialErrored, TrialRunner, TrialSandbox
from ci_gate.sandbox.answering import Reconciliation, StrictSource
from ci_gate.sandbox.ignoring import Ignored
from ci_gate.sandbox.states import StateError
from ci_gate.sandbox.world import AnswerSource, World
from ci_gate.store.contents import Contents
from ci_gate.store.folders import refuse_links
from ci_gate.store.paths import trace_file
from ci_gate.store.traces import read_trace

__all__ = ["Found", "Playback", "find_recording", "put_end", "strict_source"]


@dataclass(frozen=True, kw_only=True)
class Found:
    """Where a trace is, the folder of all traces that it belongs to, and the run file of these."""

    path: Path
    traces: Path
    run: Path | None = None


def find_recording(
    results: Path, *, artifact: Path | None, suite: str, config: Config, trial: PlannedTrial
) -> Found | None:
    """Return the recording of a trial, or None where there is none.

    Parameters
    ----------
    results : Path
        Folder of results of this project.
    artifact : Path or None
        A downloaded one to look in instead.
    suite : str
    config : Config
    trial : PlannedTrial

    Raises
    ------
    UsageError
        An artifact was named, and the recording is not in it; or a link leads to the recording.
    """
    places = [results] if artifact is None else _within(artifact, results.name)
    for place in places:
        traces = traces_folder(place, suite, config)
        path = trace_file(traces, trial.task.id, trial.trial, trial.repeat)
        if os.path.lexists(path):
            refuse_links(path)
            return Found(path=path, traces=traces, run=place / f"{suite}.run.jsonl")
    if artifact is None:
        return None
    raise UsageError(
        f"has no recording of task {printable(trial.task.id)!r}, trial {trial.trial}",
        where=printable(artifact),
        hint="Name the folder that holds `traces`, as `check` wrote it.",
    )


def _within(artifact: Path, name: str) -> list[Path]:
    # The user may name it through a link; what is in it comes from elsewhere.
    real = artifact.resolve()
    return [real, real / name]


class Playback:
    """One recording, played to an agent.

    Parameters
    ----------
    found : Found
    config : Config
    environment : mapping of str to str
        Whose secrets the recording does not have, so that calls are found without them.
    trace : Trace or None
        What is there, where it was read before or the trial made no call; None: it is read.

    Attributes
    ----------
    path : Path
        Of the trace.
    traces : Path
        Folder of all traces that it belongs to.
    trace : Trace

    Raises
    ------
    FileFormatError
        The trace is none, or was changed.
    """

    def __init__(
        self,
        found: Found,
        config: Config,
        environment: Mapping[str, str],
        trace: Trace | None = None,
    ) -> None:
        self.path = found.path
        self.traces = found.traces
        self.trace: Trace = read_trace(found.path) if trace is None else trace
        self._run = found.run
        self._odd: Sequence[str] = ()
        self._contents = Contents(found.traces)
        self._source = strict_source(self.trace, config, environment)

    def source_of(self, trial: PlannedTrial) -> AnswerSource:
        """Return what answers the calls of the trial."""
        return self._source

    def reconciled(self) -> Reconciliation:
        """Say how the replay followed the recording, after it has ended."""
        return self._source.reconciled()

    def require(self, suite: str, trial: PlannedTrial) -> None:
        """Refuse a recording that is not of this trial; see ``require_recording_of``."""
        self._odd = require_recording_of(
            self.trace, self.path, suite=suite, trial=trial, run=self._run
        )

    def differences_of_header(self, trial: PlannedTrial) -> list[str]:
        """Say in what the recording was made otherwise than the trial would be now."""
        header, found = self.trace.header, list(self._odd)
        if header.task_digest is not None and header.task_digest != trial.task.digest:
            found.append("The task was edited since it was recorded.")
        return found

    def playing(self, agent: TrialRunner) -> TrialRunner:
        """Return the agent with the recorded end of the world behind it."""
        return _Played(agent, self)

    def end_world(self, world: World) -> None:
        """Put the recorded state after the trial into its world.

        Raises
        ------
        TrialErrored
            The recording does not have all of it.
        """
        put_end(world, self.trace.records, self._contents)

    def follow_reported(self, trajectory: Trajectory) -> None:
        """Hold the calls that the agent reports to the recording, where it made none by `env`."""
        with contextlib.suppress(ReplayDrifted):  # which the source keeps
            for step in trajectory.steps:
                self._source.answer(step.lane, step.kind, step.name, step.input)


def put_end(world: World, records: Sequence[TraceRecord], contents: Contents) -> None:
    """Put the recorded state after a trial into a world.

    Parameters
    ----------
    world : World
    records : sequence of TraceRecord
        Of the trace; without such a state nothing is done.
    contents : Contents
        Of the files.

    Raises
    ------
    TrialErrored
        The recording does not have all of it.
    """
    if world.postgres is not None:
        raise TrialErrored(
            "replay: a recording has no PostgreSQL database; run it with --live or --mode record"
        )
    after = [r.output for r in records if (r.kind, r.name) == (STATE, "after")]
    try:
        for state in after:
            world.replace(_as_mapping(state), contents)
    except StateError as error:
        raise TrialErrored(f"replay: {error}") from error
    except OSError as error:
        why = f"the recorded state cannot be written: {error.strerror}"
        raise TrialErrored(f"replay: {why}") from error


def strict_source(trace: Trace, config: Config, environment: Mapping[str, str]) -> StrictSource:
    """Return what answers the calls of a trial from its trace, in the recorded order.

    The secrets of the environment are taken out of what is asked, as they were of the recording.
    """
    return StrictSource(
        trace.records,
        ignored=Ignored(config.trace.ignore),
        redactor=redactor_maker(config, environment)(),
    )


def _as_mapping(state: Any) -> Mapping[str, Any]:
    if not isinstance(state, dict):
        raise StateError("this is no recorded state")
    return state


class _Played:
    """An agent whose calls are answered; where it drifted, its trial failed."""

    def __init__(self, agent: TrialRunner, playback: Playback) -> None:
        self._agent = agent
        self._playback = playback

    async def run(self, trial: PlannedTrial, sandbox: TrialSandbox) -> Trajectory:
        trajectory = await self._agent.run(trial, sandbox)
        if not sandbox.steps:
            self._playback.follow_reported(trajectory)
        reconciled = self._playback.reconciled()
        if is_breach(trajectory.reason):  # which explains why the rest of the recording is left
            return trajectory
        if not reconciled.is_consistent:
            return msgspec.structs.replace(
                trajectory, status=Status.FAILED, reason=str(reconciled.drifts[0])
            )
        assert isinstance(sandbox, World)
        self._playback.end_world(sandbox)
        return trajectory

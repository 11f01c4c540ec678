"""A whole suite played from its recordings: every trial by its own trace, call by call.

Decides which trials must have been recorded before the first is played, and what is kept of those
that were. How one trial is played is the business of ``replaying``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from ci_gate.config import Config
from ci_gate.errors import UsageError, printable
from ci_gate.gate.belonging import require_trace_of
from ci_gate.gate.planning import planned_trials, rounds_of
from ci_gate.gate.recordings import Recordings, edited_remark
from ci_gate.gate.replaying import Found, Playback
from ci_gate.model.run import AnsweredMode, Plan, StopReason
from ci_gate.model.suite import PlannedTrial, Suite
from ci_gate.model.trace import Trace, TraceHeader
from ci_gate.model.trial import Status, Trajectory, TrialRecord
from ci_gate.ports import TrialErrored, TrialRunner, TrialSandbox
from ci_gate.sandbox.world import AnswerSource
from ci_gate.store.journal import TrialKey
from ci_gate.store.traces import TraceReading, read_trace

__all__ = ["ReplayedSuite"]

_STOPPED: Final = frozenset({StopReason.CURTAILED_PASS, StopReason.CURTAILED_REGRESSED})


class ReplayedSuite:
    """Answers from the trial's own trace, in its order.

    Parameters
    ----------
    recordings : Recordings
    suite : Suite
    config : Config
    environment : mapping of str to str
        Whose secrets the recordings do not have.

    Attributes
    ----------
    faults_digest : str or None
        Of the faults that were recorded.
    remarks : list of str
        What is odd about the recordings.
    """

    mode: AnsweredMode = "replay"

    def __init__(
        self,
        recordings: Recordings,
        suite: Suite,
        *,
        config: Config,
        environment: Mapping[str, str],
    ) -> None:
        self._recordings = recordings
        self._suite = suite
        self._config = config
        self._environment = environment
        self._playing: dict[TrialKey, Playback] = {}
        self.faults_digest = _faults_of(recordings, suite)
        self.remarks = _unvouched(recordings)

    def require(self, plan: Plan) -> None:
        """Read the recording of every trial of a plan that a replay comes to.

        Raises
        ------
        UsageError
            A trial was not recorded, or what is there is of another one.
        FileFormatError
            A trace was changed.

        Notes
        -----
        Each is read again when its trial is played: a damaged one is found in time, and memory
        holds those that are played just now.
        """
        trials = _due(self._suite, plan, self._recordings)
        missing = [trial for trial in trials if not self._is_known(trial)]
        if missing:
            raise _missing(missing, len(trials), self._recordings)
        traces = (self._trace_of(trial) for trial in trials)
        self.remarks += _edited(self._suite, [one.header for one in traces if one is not None])

    def _is_known(self, trial: PlannedTrial) -> bool:
        return self._recordings.trace_of(trial) is not None or self._recordings.made_no_call(trial)

    def _trace_of(self, trial: PlannedTrial) -> Trace | None:
        path = self._recordings.trace_of(trial)
        if path is None:
            return None
        trace = read_trace(path)
        record = self._recordings.records.get(trial.key)
        require_trace_of(trace, path, suite=self._recordings.suite, trial=trial, record=record)
        return trace

    def source_of(self, trial: PlannedTrial) -> AnswerSource:
        """Return what answers the calls of a trial.

        Raises
        ------
        TrialErrored
            The trial was not recorded: the run goes on where the recorded one had ended.
        """
        trace = self._trace_of(trial)
        if trace is None:
            self._require_silence(trial)
        recordings = self._recordings
        path = recordings.traces if trace is None else recordings.trace_of(trial)
        assert path is not None
        nothing = Trace(header=TraceHeader(), records=())
        playback = Playback(
            Found(path=path, traces=recordings.traces),
            self._config,
            self._environment,
            trace=trace or nothing,
        )
        self._playing[trial.key] = playback
        return playback.source_of(trial)

    def _require_silence(self, trial: PlannedTrial) -> None:
        if not self._recordings.made_no_call(trial):
            raise TrialErrored("replay: this trial was not recorded; the recorded run had ended")
        record = self._recordings.records[trial.key]
        if record.status is Status.ERRORED:  # by its world or the harness: nothing of it is played
            raise TrialErrored(record.reason or "replay: the recorded trial errored")

    def around(self, agent: TrialRunner) -> TrialRunner:
        """Return the agent, each of whose trials is held to its recording."""
        return _PlayedSuite(agent, self._playing)

    def as_kept(self, record: TrialRecord) -> TrialRecord:
        """Return a record that took the time which was recorded."""
        recorded = self._recordings.records.get(record.key)
        duration_s = None if recorded is None else recorded.duration_s
        return msgspec.structs.replace(record, duration_s=duration_s)


class _PlayedSuite:
    def __init__(self, agent: TrialRunner, playing: dict[TrialKey, Playback]) -> None:
        self._agent = agent
        self._playing = playing

    async def run(self, trial: PlannedTrial, sandbox: TrialSandbox) -> Trajectory:
        playback = self._playing.pop(trial.key)
        return await playback.playing(self._agent).run(trial, sandbox)


def _due(suite: Suite, plan: Plan, recordings: Recordings) -> list[PlannedTrial]:
    """Return the trials that a replay comes to where it goes as the recorded run did."""
    trials = list(planned_trials(suite, repeats=plan.repeats))
    footer = None if recordings.run is None else recordings.run.footer
    if footer is None or footer.stop.reason not in _STOPPED or not plan.curtail:
        return trials
    rounds = set(rounds_of(trials)[: footer.stop.round])
    return [trial for trial in trials if (trial.repeat, trial.trial) in rounds]


def _missing(missing: Sequence[PlannedTrial], of: int, recordings: Recordings) -> UsageError:
    first = missing[0]
    repeat = f", repeat {first.repeat}" if first.repeat else ""
    return UsageError(
        f"{len(missing)} of {of} trials have no recording; the first is trial {first.trial} of "
        f"task {printable(first.task.id)!r}{repeat}{_stopped(recordings)}",
        where=printable(recordings.traces),
        hint="Record them: `ci-gate run --mode record`. `--task` and `--trials` play a part.",
    )


def _stopped(recordings: Recordings) -> str:
    if recordings.run is None:
        return ""
    footer = recordings.run.footer
    if footer is None:
        return "; the recorded run is unfinished"
    if footer.stop.reason in {StopReason.COMPLETE, StopReason.EXTENDED}:
        return ""
    return f"; the recorded run ended after round {footer.stop.round}: {footer.stop.reason}"


def _faults_of(recordings: Recordings, suite: Suite) -> str | None:
    """Return the digest of the faults that were recorded: by the run file, else by a trace."""
    if recordings.run is not None:
        return recordings.run.header.faults_digest
    for task in suite.tasks:
        for _, path in recordings.all_of(task.id):
            return TraceReading(path).header.faults_digest
    return None


def _unvouched(recordings: Recordings) -> list[str]:
    return ["No run file vouches for the recordings."] if recordings.run is None else []


def _edited(suite: Suite, headers: Iterable[TraceHeader]) -> list[str]:
    now = {task.id: task.digest for task in suite.tasks}
    edited = {
        header.task
        for header in headers
        if header.task is not None and header.task_digest not in {None, now.get(header.task)}
    }
    return edited_remark(sorted(edited))

"""``replay``: see one trial happen again, from its recording or live with its seed."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import NoReturn

import msgspec

from ci_gate.agents.strictness import Determinism, Noted
from ci_gate.config import Config, SuiteConfig
from ci_gate.errors import UsageError, printable
from ci_gate.gate.asking import KeptBeside
from ci_gate.gate.execution import Execution, Work, execute, noted_lines
from ci_gate.gate.project import Project, Word, open_project
from ci_gate.gate.recorded_worlds import traces_folder_of
from ci_gate.gate.recording import traces_folder
from ci_gate.gate.replaying import Found, Playback, find_recording
from ci_gate.gate.run_journal import RunInterrupted
from ci_gate.gate.suites import configured_suite
from ci_gate.gate.walking import Walk, WalkedPlayback, without_haste
from ci_gate.gate.witness import Witness
from ci_gate.gate.worktree import sweep_lost
from ci_gate.model.run import StopReason
from ci_gate.model.suite import PlannedTrial, Suite, Task
from ci_gate.model.trace import TraceRecord
from ci_gate.model.trial import Status, Step, Trajectory, TrialRecord
from ci_gate.model.verdict import ExitCode
from ci_gate.prng import derive_seed
from ci_gate.sandbox.answering import Reconciliation

__all__ = [
    "EXIT_STATUS",
    "LastRecord",
    "ReplayRequest",
    "Replayed",
    "find_task",
    "opened",
    "play",
    "replay",
]

EXIT_STATUS = {
    Status.PASSED: ExitCode.PASSED,
    Status.FAILED: ExitCode.REGRESSED,
    Status.ERRORED: ExitCode.INCONCLUSIVE,
}


class ReplayRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What ``replay`` was asked; None is what the user did not say.

    ``trace`` is the file to play from, wherever that is; None looks for the trial's own.
    """

    config_path: Path | None
    suite: str | None
    task: str
    trial: int
    repeat: int
    environment: Mapping[str, str]
    output: Path | None = None
    artifact: Path | None = None
    trace: Path | None = None
    live: bool = False
    walk: Walk | None = None
    determinism: Determinism = "off"


class Replayed(msgspec.Struct, frozen=True, kw_only=True):
    """What happened.

    Attributes
    ----------
    suite : str
    record : TrialRecord
    trajectory : Trajectory or None
        None where the trial did not come to an agent.
    steps : tuple of Step
    remarks : tuple of str
        What is odd about the trial that was asked for.
    recording : str or None
        Path of the trace that it was played from; None: it was run live.
    reconciliation : Reconciliation or None
        How it followed its recording.
    walked : tuple of TraceRecord or None
        The calls that were made again, where the replay was stopped and the trial is not judged.
    """

    suite: str
    record: TrialRecord
    trajectory: Trajectory | None
    steps: tuple[Step, ...]
    remarks: tuple[str, ...] = ()
    recording: str | None = None
    reconciliation: Reconciliation | None = None
    walked: tuple[TraceRecord, ...] | None = None

    @property
    def has_drifted(self) -> bool:
        """Return whether the agent left its recording."""
        return self.reconciliation is not None and not self.reconciliation.is_consistent

    @property
    def exit_code(self) -> ExitCode:
        """Return the status of the process."""
        if self.walked is not None:
            return ExitCode.REGRESSED if self.has_drifted else ExitCode.PASSED
        return EXIT_STATUS[self.record.status]


class LastRecord:
    """Takes records as a journal does and keeps the last."""

    def __init__(self) -> None:
        self.record: TrialRecord | None = None

    def append(self, record: TrialRecord) -> None:
        """Keep the record."""
        self.record = record

    def planned(self, total: int, done: int) -> None:
        """Nobody watches a single trial."""

    def finished(self, record: TrialRecord) -> None:
        """Nobody watches a single trial."""


def replay(request: ReplayRequest) -> Replayed:
    """Play the trial from its recording where there is one; else run it live.

    Live it has the seed and the faults that ``check`` gives it.

    Raises
    ------
    UsageError
        No suite has the task, or an artifact does not have its recording.
    FileFormatError
        The recording was changed.
    AgentSetupError
        The agent cannot be started.
    """
    project = open_project(
        request.config_path,
        output=request.output,
        baseline_ref=None,
        word=Word.BASE,
        environment=request.environment,
    )
    sweep_lost(project.repository)
    suite, task = find_task(project, suite=request.suite, task=request.task)
    if request.walk is not None and request.walk.goes_on is not None:
        config, task = without_haste(project.config, task)
        project = msgspec.structs.replace(project, config=config)
    planned = PlannedTrial(
        task=task,
        trial=request.trial,
        repeat=request.repeat,
        attempt=1,
        seed=derive_seed(task.base_seed, request.trial),
    )
    playback = _playback(project, suite, planned, request)
    replayed = play(
        project.config,
        suite,
        planned,
        witness=Witness(playback),
        playback=playback,
        determinism=request.determinism,
        replies=None
        if request.live
        else _kept_beside(traces_folder(project.output, suite.name, project.config)),
    )
    remarks = (
        *_beyond_plan(suite, planned),
        *_edited(playback, planned),
        *replayed.remarks,
    )
    return msgspec.structs.replace(replayed, remarks=remarks)


def _playback(
    project: Project, suite: Suite, planned: PlannedTrial, request: ReplayRequest
) -> Playback | None:
    if request.live and request.walk is not None:
        refuse_live_walk()
    found = _recording(project, suite, planned, request)
    if found is None and request.walk is not None:
        raise UsageError(
            f"there is no recording of task {printable(request.task)!r}, trial {request.trial}, "
            "to walk through",
            where=printable(project.output),
            hint="Leave --step and --until out, or record it: `ci-gate run`.",
        )
    if found is None:
        return None
    playback = opened(found, project.config, request.environment, request.walk)
    playback.require(suite.name, planned)
    return playback


def refuse_live_walk() -> NoReturn:
    """Say that only a recording can be walked through.

    Raises
    ------
    UsageError
        Always.
    """
    what = "what is run live has no recording to walk through"
    raise UsageError(what, where="--live", hint="Leave --step and --until out, or --live.")


def refuse_command(trace: Path) -> NoReturn:
    """Say that a trace of a command is only to be read.

    Raises
    ------
    UsageError
        Always.
    """
    raise UsageError(
        "is of a command, which makes its calls by itself, and cannot be played",
        where=printable(trace),
        hint="`ci-gate trace show` prints it; `ci-gate trace diff` compares it with another.",
    )


def opened(
    found: Found, config: Config, environment: Mapping[str, str], walk: Walk | None
) -> Playback:
    """Return a recording, to be played as a whole or to be walked through."""
    if walk is not None:
        return WalkedPlayback(found, config, environment, walk)
    return Playback(found, config, environment)


def _recording(
    project: Project, suite: Suite, planned: PlannedTrial, request: ReplayRequest
) -> Found | None:
    # A command makes its calls by itself: there is nothing to answer them from.
    is_playable = project.config.agent.protocol == "python"
    if request.trace is not None:
        if not is_playable:
            refuse_command(request.trace)
        found = Found(path=request.trace, traces=traces_folder_of(request.trace))
        return None if request.live else found
    if request.live or not is_playable:
        return None
    return find_recording(
        project.output,
        artifact=request.artifact,
        suite=suite.name,
        config=project.config,
        trial=planned,
    )


def play(
    config: Config,
    suite: Suite,
    planned: PlannedTrial,
    *,
    witness: Witness,
    playback: Playback | None,
    determinism: Determinism = "off",
    replies: KeptBeside | None = None,
) -> Replayed:
    """Execute one trial, from its recording where there is one, and return what happened.

    Parameters
    ----------
    config : Config
    suite : Suite
    planned : PlannedTrial
    witness : Witness
        With the same recording.
    playback : Playback or None
    determinism : {"off", "raise", "warn"}
    replies : KeptBeside or None
        Of judges, where there is no recording beside which they would be; None: they are asked.

    Raises
    ------
    AgentSetupError
        The agent cannot be started.
    """
    kept, noted = LastRecord(), Noted()
    result = execute(
        Execution(
            config=config,
            suite=suite,
            jobs=1,
            retries=0,
            source_of=None if playback is None else playback.source_of,
            replies=replies if playback is None else _kept_beside(playback.traces),
            determinism=determinism,
            noted=noted,
        ),
        lambda: Work(trials=[planned], sink=kept, progress=kept),
        witness=witness,
    )
    if result.reason is StopReason.INTERRUPTED or kept.record is None:
        raise RunInterrupted
    return Replayed(
        suite=suite.name,
        record=kept.record,
        trajectory=witness.trajectory,
        steps=tuple(witness.steps),
        remarks=noted_lines(config, noted),
        recording=None if playback is None else str(playback.path),
        reconciliation=None if playback is None else playback.reconciled(),
        walked=_walked(playback),
    )


def _kept_beside(traces: Path) -> KeptBeside:
    return KeptBeside(traces=traces, is_played=True)


def _walked(playback: Playback | None) -> tuple[TraceRecord, ...] | None:
    if not isinstance(playback, WalkedPlayback) or not playback.is_stopped:
        return None
    return tuple(playback.walked)


def _beyond_plan(suite: Suite, planned: PlannedTrial) -> list[str]:
    trials = suite.trials_of(planned.task)
    if planned.trial < trials:
        return []
    numbers = f"the task's are numbered 0 to {trials - 1}"
    return [f"no run of the suite has trial {planned.trial}: {numbers}"]


def _edited(playback: Playback | None, planned: PlannedTrial) -> list[str]:
    return [] if playback is None else playback.differences_of_header(planned)


def find_task(project: Project, *, suite: str | None, task: str) -> tuple[Suite, Task]:
    """Return a task, and its suite with no other.

    Raises
    ------
    UsageError
        There is none of that id in the suite, or in any where none is named.
    """
    known: list[str] = []
    for config in project.suites(suite):
        whole = _whole(project, config)
        for one in whole.tasks:
            if one.id == task:
                return Suite(
                    name=whole.name,
                    root_seed=whole.root_seed,
                    trials=whole.trials,
                    tasks=(one,),
                    digest=whole.digest,
                ), one
        known += [one.id for one in whole.tasks]
    near = get_close_matches(task, known, 1)
    hint = f"Did you mean {printable(near[0])!r}?" if near else f"It has {len(known)} tasks."
    raise UsageError(
        f"there is no task {printable(task)!r}", where=printable(project.path), hint=hint
    )


def _whole(project: Project, config: SuiteConfig) -> Suite:
    return configured_suite(project.config, config, trials=None, task_filter=None)

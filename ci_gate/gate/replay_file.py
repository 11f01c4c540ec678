"""``replay --trace``: play the trial of a trace that was named, wherever it lies.

A trace may be what anybody sent: it says which trial it is of, and never what is executed. A
function is run because the user or the project's configuration names it.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final

import msgspec

from ci_gate.config import Config
from ci_gate.errors import UsageError, printable
from ci_gate.gate.lone import (
    LoneWitness,
    configured_function,
    lone_config,
    lone_suite,
    lone_trial,
    require_function,
    with_faults,
)
from ci_gate.gate.recorded_worlds import fixture_in, state_of, traces_folder_of
from ci_gate.gate.replay import (
    Replayed,
    ReplayRequest,
    opened,
    play,
    refuse_command,
    refuse_live_walk,
    replay,
)
from ci_gate.gate.replaying import Found, Playback
from ci_gate.gate.walking import without_haste
from ci_gate.model.suite import PlannedTrial
from ci_gate.model.trace import Origin, TraceHeader
from ci_gate.model.trace_result import RESULT
from ci_gate.prng import parse_seed
from ci_gate.sandbox.states import StateError
from ci_gate.store.contents import Contents
from ci_gate.store.traces import TraceReading

__all__ = ["replay_file"]

_REDACTED: Final = "[REDACTED"


def replay_file(request: ReplayRequest, path: Path, python: str | None) -> Replayed:
    """Play a trace, of a suite's trial or of a run outside any suite.

    Parameters
    ----------
    request : ReplayRequest
        Its task, trial and suite are taken from the trace.
    path : Path
    python : str or None
        Function to run in place of the configuration's.

    Raises
    ------
    UsageError
        The trace is none that can be played here: of another suite, of a command, or of a function
        that nobody but the trace names.
    FileFormatError
        It was changed.
    """
    header = TraceReading(path).header
    if header.task is None:
        return _replay_alone(request, path, python, _played_origin(header, path))
    if python is not None:
        raise UsageError(
            "goes with a trace outside any suite, and this is one of a suite",
            where="--python",
            hint="Its agent is that of the configuration.",
        )
    if request.task and request.task != header.task:
        what = f"is of task {printable(header.task)!r}, not {printable(request.task)!r}"
        raise UsageError(what, where=printable(path))
    return replay(
        msgspec.structs.replace(
            request,
            trace=path,
            task=header.task,
            suite=request.suite or header.suite,
            trial=header.trial or 0,
            repeat=header.repeat or 0,
        )
    )


def _played_origin(header: TraceHeader, path: Path) -> Origin:
    origin = header.origin
    if isinstance(origin, msgspec.UnsetType):
        what, hint = "does not say what was run", "Only `ci-gate trace record` makes such traces."
        raise UsageError(what, where=printable(path), hint=hint)
    if origin.python is None:
        refuse_command(path)
    return origin


def _replay_alone(
    request: ReplayRequest, path: Path, python: str | None, origin: Origin
) -> Replayed:
    if request.task:
        what = f"is outside any suite, and has no task {printable(request.task)!r}"
        raise UsageError(what, where=printable(path), hint="Leave TASK out.")
    if python is not None:
        require_function(python)
    here = Path.cwd()
    if python is None:
        _require_configured(configured_function(request.config_path, here), origin, path)
    if request.live and request.walk is not None:
        refuse_live_walk()
    config = lone_config(request.config_path, here, python=python or origin.python, command=())
    return _played(request, config, path, origin)


def _require_configured(configured: str | None, origin: Origin, path: Path) -> None:
    """Refuse a function that only the trace names."""
    if configured != origin.python:
        raise UsageError(
            f"was recorded from {printable(origin.python)!r}, which is not what [agent] names",
            where=printable(path),
            hint=f"If you trust it: --python {printable(origin.python)}",
        )


def _played(request: ReplayRequest, config: Config, path: Path, origin: Origin) -> Replayed:
    found = Found(path=path, traces=traces_folder_of(path))
    playback = opened(found, config, request.environment, request.walk)
    with tempfile.TemporaryDirectory(prefix="ci-gate-") as folder:
        fixture = _fixture(playback, found, Path(folder))
        planned = lone_trial(origin, seed=_seed(playback), fixture=fixture)
        if request.walk is not None and request.walk.goes_on is not None:
            config, task = without_haste(config, planned.task)
            planned = msgspec.structs.replace(planned, task=task)
        replayed = _run(request, config, planned, playback)
    remarks = (*_remarks(playback, origin, replayed, config), *replayed.remarks)
    return msgspec.structs.replace(replayed, remarks=remarks)


def _run(
    request: ReplayRequest, config: Config, planned: PlannedTrial, playback: Playback
) -> Replayed:
    live = request.live
    had_faults = playback.trace.header.faults_digest is not None
    return play(
        with_faults(config, has_faults=had_faults),
        lone_suite(planned.task),
        planned,
        witness=LoneWitness(None if live else playback),
        playback=None if live else playback,
        determinism=request.determinism,
    )


def _fixture(playback: Playback, found: Found, folder: Path) -> Path:
    before = state_of(playback.trace, "before")
    if before is None:
        return folder
    try:
        return fixture_in(folder, before, Contents(found.traces))
    except StateError as error:
        what = f"the world in which it began cannot be made: {printable(error)}"
        raise UsageError(what, where=printable(found.path)) from error


def _seed(playback: Playback) -> int:
    seed = playback.trace.header.seed
    try:
        return parse_seed(seed or "")
    except ValueError as error:
        raise UsageError(printable(error), where=f"{printable(playback.path)}:1: seed") from error


def _remarks(playback: Playback, origin: Origin, replayed: Replayed, config: Config) -> list[str]:
    remarks = []
    if config.agent.python != origin.python:
        remarks.append(f"recorded from {origin.python}")
    if _REDACTED in str((origin.instruction, origin.input)):
        remarks.append("What the agent was told held secrets, which the recording does not have.")
    recorded = state_of(playback.trace, RESULT) or {}
    answer = None if replayed.trajectory is None else replayed.trajectory.answer
    if replayed.walked is None and recorded.get("answer") != answer:
        remarks.append(f"The recorded answer is another: {recorded.get('answer')}")
    return remarks

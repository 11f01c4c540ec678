"""``trace record``: run an agent once, outside any suite, and keep every call that left it.

Decides where the trace goes and what its header says. Where there is a project the run is made with
its settings for secrets, prices, capabilities and time, elsewhere with the defaults.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from ci_gate.config import Config, faults_digest
from ci_gate.errors import UsageError, printable
from ci_gate.gate import traces
from ci_gate.gate.execution import Execution, Work, execute
from ci_gate.gate.lone import (
    LONE,
    LoneWitness,
    lone_config,
    lone_suite,
    lone_trial,
    require_function,
    with_faults,
)
from ci_gate.gate.recording import TRACES, redactor_maker
from ci_gate.gate.replay import EXIT_STATUS, LastRecord
from ci_gate.gate.run_journal import RunInterrupted
from ci_gate.gate.tool import tool_name
from ci_gate.machine import failed_write
from ci_gate.model.run import StopReason
from ci_gate.model.suite import PlannedTrial
from ci_gate.model.trace import Origin, TraceHeader
from ci_gate.model.trace_findings import Ledger
from ci_gate.model.trace_result import RESULT
from ci_gate.model.trial import Status, Trajectory, TrialRecord
from ci_gate.model.verdict import ExitCode
from ci_gate.prng import format_seed
from ci_gate.redaction import Redactor
from ci_gate.sandbox.ignoring import Ignored
from ci_gate.sandbox.recording import Recorder
from ci_gate.sandbox.world_factory import DEFAULT_NOW
from ci_gate.store.contents import Contents
from ci_gate.store.folders import make_real_folder, own_folder
from ci_gate.store.traces import TraceWriter

__all__ = ["LoneRecorded", "LoneRequest", "record_alone"]

_OUTPUT: Final = ".ci-gate"
_FINISHED: Final = "finished"


class LoneRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked; None is what the user did not say.

    Parameters
    ----------
    config_path : Path or None
    here : Path
        The current folder.
    python : str or None
        Exclusive with ``command``.
    command : tuple of str
    instruction : str
    input : Any
        JSON.
    seed : int
        Of the trial, on 64 bits.
    fixture : Path or None
        None: an empty folder.
    output : Path or None
        File of the trace.
    timeout_s : float or None
    has_faults : bool
        Inject those of the configuration, or without them the default ones.
    environment : mapping of str to str
        Whose secrets are taken out.
    """

    config_path: Path | None
    here: Path
    python: str | None = None
    command: tuple[str, ...] = ()
    instruction: str = ""
    input: Any = None
    seed: int = 0
    fixture: Path | None = None
    output: Path | None = None
    timeout_s: float | None = None
    has_faults: bool = False
    environment: Mapping[str, str]


class LoneRecorded(msgspec.Struct, frozen=True, kw_only=True):
    """How a run ended, and what is in its trace.

    Attributes
    ----------
    path : Path or None
        None where the agent was not reached.
    record : TrialRecord
    trajectory : Trajectory or None
        Without secrets.
    totals : Ledger or None
    """

    path: Path | None
    record: TrialRecord
    trajectory: Trajectory | None
    totals: Ledger | None

    @property
    def exit_code(self) -> ExitCode:
        """Return the status of the process."""
        return EXIT_STATUS[self.record.status]


def record_alone(request: LoneRequest) -> LoneRecorded:
    """Run the agent once and keep its trace.

    Raises
    ------
    UsageError
        There is no such fixture or function, the trace would replace a file or cannot be kept.
    AgentSetupError
        The agent cannot be started.
    """
    if request.python is not None:
        require_function(request.python)
    config = lone_config(
        request.config_path, request.here, python=request.python, command=request.command
    )
    config = with_faults(config, has_faults=request.has_faults)
    fixture = None if request.fixture is None else _existing(request.fixture)
    with (
        tempfile.TemporaryDirectory(prefix="ci-gate-") as empty,
        _reserved(_places(request, config)) as path,
    ):
        return _Run(request, config, path).made(fixture or Path(empty))


def _existing(fixture: Path) -> Path:
    if not fixture.exists():
        what = "there is no such file or folder"
        raise UsageError(what, where=f"--fixture {printable(fixture)}")
    return fixture.resolve()


def _places(request: LoneRequest, config: Config) -> Iterator[Path]:
    """Yield where the trace may go, the first best."""
    if request.output is None:
        root = Path(config.root)
        folder = own_folder(root / _OUTPUT / TRACES / LONE, tree=root.resolve())
        yield from (folder / f"run-{number}.jsonl" for number in itertools.count(1))
        return
    whole = request.here / request.output
    yield own_folder(whole.parent, tree=request.here.resolve()) / whole.name
    raise UsageError(
        "is there already, and a trace replaces nothing",
        where=printable(request.output),
        hint="Remove it, or choose another --output.",
    )


@contextlib.contextmanager
def _reserved(places: Iterator[Path]) -> Iterator[Path]:
    """Take the first name that nothing has, so that no other run can; free it where it stays empty.

    Raises
    ------
    UsageError, InternalError
        A folder is a link or may not be written, the disk is full, or the names are at their end.
    """
    path = next(path for path in places if _is_taken_now(path))
    try:
        yield path
    finally:
        with contextlib.suppress(OSError):
            if not path.stat().st_size:
                path.unlink()


def _is_taken_now(path: Path) -> bool:
    """Return whether the name was free, and is ours from now on."""
    make_real_folder(path.parent)
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    except FileExistsError:
        return False
    except OSError as error:
        raise failed_write(error, path) from error
    return True


class _LoneRecorder(Recorder):
    """A recorder of a run that nobody judges: where it did not fail it has finished."""

    keeps_printed = True

    def __init__(self, path: Path, header: TraceHeader, run: _Run) -> None:
        super().__init__(
            lambda: TraceWriter(path.parent, path, header),
            redactor=run.redactor,
            ignored=Ignored(run.config.trace.ignore),
            contents=Contents(path.parent),
            complain=run.troubles.append,
        )

    def record_state(self, name: str, state: Mapping[str, Any]) -> None:
        """Write a state; what was not judged has not passed."""
        is_unjudged = name == RESULT and state["status"] == Status.PASSED
        super().record_state(name, {**state, "status": _FINISHED} if is_unjudged else state)


class _Run:
    """One run that is going to be made."""

    def __init__(self, request: LoneRequest, config: Config, path: Path) -> None:
        self.config = config
        self.redactor: Redactor = redactor_maker(config, request.environment)()
        self.troubles: list[str] = []
        self.witness = LoneWitness()
        self._request = request
        self._path = path
        self._origin = Origin(
            python=request.python,
            command=request.command,
            instruction=request.instruction,
            input=request.input,
        )

    def made(self, fixture: Path) -> LoneRecorded:
        """Make it."""
        request, kept = self._request, LastRecord()
        planned = lone_trial(
            self._origin, seed=request.seed, fixture=fixture, timeout_s=request.timeout_s
        )
        result = execute(
            self._execution(planned),
            lambda: Work(trials=[planned], sink=kept, progress=kept),
            witness=self.witness,
        )
        if result.reason is StopReason.INTERRUPTED or kept.record is None:
            raise RunInterrupted
        return self._recorded(kept.record)

    def _execution(self, planned: PlannedTrial) -> Execution:
        return Execution(
            config=self.config,
            suite=lone_suite(planned.task),
            jobs=1,
            retries=0,
            recorder_of=lambda trial: _LoneRecorder(self._path, self._header(trial), self),
        )

    def _header(self, trial: PlannedTrial) -> TraceHeader:
        origin = self.redactor.value(msgspec.to_builtins(self._origin))
        return TraceHeader(
            trial=trial.trial,
            repeat=trial.repeat,
            seed=format_seed(trial.seed),
            faults_digest=faults_digest(self.config),
            now=DEFAULT_NOW,
            tool=tool_name(),
            origin=msgspec.convert(origin, Origin),
        )

    def _recorded(self, record: TrialRecord) -> LoneRecorded:
        if self.troubles:
            what = f"no trace could be kept: {printable(self.troubles[0], limit=500)}"
            raise UsageError(what, where=printable(self._path))
        path = None if record.trace is None else self._path
        return LoneRecorded(
            path=path,
            record=record,
            trajectory=self.witness.trajectory,
            totals=None if path is None else traces.totals(traces.show(path)),
        )

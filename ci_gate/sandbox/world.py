"""The world of each trial: a fresh copy of the task's fixture, and the calls that left the agent.

Every world of a task must start in the same state, and the digest of what was copied proves it.
Folders are named by a counter, never by anything a task or an agent says. Which faults happen is
decided by ``chaos``; how the agent is run and judged is not known here.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple

from ci_gate import codec
from ci_gate.errors import ContaminatedWorldError, Problem, SuiteError, printable
from ci_gate.model.agent import FaultPolicy
from ci_gate.model.suite import PlannedTrial, Task
from ci_gate.model.trial import Step
from ci_gate.ports import Observation
from ci_gate.sandbox.chaos import ChaosInjector
from ci_gate.sandbox.copying import copy_folder, remove_folder
from ci_gate.sandbox.faults import ERROR_KINDS
from ci_gate.sandbox.fixtures import WORK, Template, make_template
from ci_gate.sandbox.scratch import Scratch, sweep

__all__ = ["DEFAULT_NOW", "World", "WorldFactory"]

DEFAULT_NOW: Final = "2026-01-01T09:00:00Z"
_TOOL: Final = "tool"


class _Known(NamedTuple):
    template: Template
    digest: str


class WorldFactory:
    """Makes the world of each trial; a context manager that removes them all at its end.

    Parameters
    ----------
    scratch : Path
        Folder in which a private folder is made when the first world needs one.
    faults : FaultPolicy or None
        None: every call succeeds as it did.
    now : str
        Start of every trial's clock, ISO 8601 UTC.
    always_workdir : bool
        Give a trial without a fixture an empty working directory, for agents that expect one.
    """

    def __init__(
        self,
        scratch: Path,
        faults: FaultPolicy | None,
        *,
        now: str = DEFAULT_NOW,
        always_workdir: bool = False,
    ) -> None:
        self._scratch = scratch
        self._faults = faults
        self._now = now
        self._always_workdir = always_workdir
        self._known: dict[str, _Known] = {}
        self._count = itertools.count()
        self._private: Scratch | None = None

    def __enter__(self) -> WorldFactory:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def prepare(self, tasks: Iterable[Task]) -> None:
        """Read every fixture once, before the first trial.

        Raises
        ------
        SuiteError
            Fixtures that cannot be used, all of them.
        """
        problems: list[Problem] = []
        for task in tasks:
            try:
                self._known_state(task)
            except SuiteError as error:
                problems.extend(error.problems)
        if problems:
            raise SuiteError.of(problems)

    def open(self, trial: PlannedTrial) -> World:
        """Return a fresh world in its known state.

        Raises
        ------
        ContaminatedWorldError
            The copy differs from the state that the task's first trial started in.
        SuiteError
            The fixture cannot be used.
        """
        known = self._known_state(trial.task)
        injector = None
        if self._faults is not None:
            injector = ChaosInjector.of(self._faults, trial.seed, keep_audit=False)
        if known is None:
            workdir = self._new_folder() if self._always_workdir else None
            return World(folder=workdir, workdir=workdir, now=self._now, injector=injector)
        folder = self._copy(known, trial)
        workdir = _below(folder, known.template.work)
        if workdir is None and self._always_workdir:
            workdir = folder / WORK
            workdir.mkdir(mode=0o700)
        database = _below(folder, known.template.database)
        return World(
            folder=folder, workdir=workdir, database=database, now=self._now, injector=injector
        )

    def initial(self, trial: PlannedTrial) -> Mapping[str, str | None]:
        """Return the places of the state in which the trial started, to be read only.

        Returns
        -------
        mapping
            ``database`` and ``workdir``: absolute paths, None for what the task does not have.
        """
        known = self._known_state(trial.task)
        if known is None:
            return {"database": None, "workdir": None}
        template = known.template
        places = {"database": template.database, "workdir": template.work}
        return {
            name: None if place is None else str(template.folder / place)
            for name, place in places.items()
        }

    def close(self) -> None:
        """Remove every world and template; safe to call twice."""
        self._known.clear()
        private, self._private = self._private, None
        if private is not None:
            private.close()

    def _known_state(self, task: Task) -> _Known | None:
        fixture = task.fixture_path
        if fixture is None:
            return None
        known = self._known.get(fixture)
        if known is None:
            folder = self._new_folder()
            template = make_template(Path(fixture), folder, source=task.source or task.id)
            known = self._known[fixture] = _Known(template, self._digest(folder))
        return known

    def _digest(self, folder: Path) -> str:
        # A copy is what trials start with, so a copy is what proves that it can be made.
        probe = self._new_folder()
        digest = copy_folder(folder, probe)
        remove_folder(probe)
        return digest

    def _copy(self, known: _Known, trial: PlannedTrial) -> Path:
        try:
            folder = self._new_folder()
            digest = copy_folder(known.template.folder, folder)
        except (FileExistsError, FileNotFoundError, NotADirectoryError) as error:
            raise _contaminated(trial, f"the scratch folder was changed: {error}") from error
        if digest != known.digest:
            remove_folder(folder)
            raise _contaminated(trial, "its initial state differs from the task's first trial")
        return folder

    def _new_folder(self) -> Path:
        if self._private is None:
            sweep(self._scratch)
            self._private = Scratch(self._scratch)
        folder = self._private.folder / f"{next(self._count):06d}"
        folder.mkdir(mode=0o700)
        return folder


def _below(folder: Path, place: str | None) -> Path | None:
    return None if place is None else folder / place


def _contaminated(trial: PlannedTrial, why: str) -> ContaminatedWorldError:
    return ContaminatedWorldError(
        f"contaminated: {printable(why)}",
        where=f"task {printable(trial.task.id)}, trial {trial.trial}",
        hint="Keep agents and tools from writing outside their own world",
    )


class World:
    """The world of one trial, behind ``ports.TrialSandbox``.

    Parameters
    ----------
    folder : Path or None
        What is removed at the end.
    workdir, database : Path or None
        Places inside it.
    now : str
        Start of the trial's clock.
    injector : ChaosInjector or None
    """

    def __init__(
        self,
        *,
        folder: Path | None,
        workdir: Path | None,
        now: str,
        injector: ChaosInjector | None,
        database: Path | None = None,
    ) -> None:
        self._folder = folder
        self._workdir = workdir
        self._database = database
        self._now = now
        self._injector = injector
        self._steps: list[Step] = []

    @property
    def workdir(self) -> Path | None:
        """Folder with a fresh copy of the fixture, or None where the task has none."""
        return self._workdir

    @property
    def database(self) -> Path | None:
        """Fresh SQLite file, or None where the task has no database."""
        return self._database

    @property
    def now(self) -> str:
        """Start of the trial's clock, ISO 8601 UTC."""
        return self._now

    @property
    def steps(self) -> Sequence[Step]:
        """Every call that passed ``observe``, in order."""
        return self._steps

    def observe(
        self, kind: str, name: str, arguments: Any, output: Any, *, is_error: bool, turn: int | None
    ) -> Observation:
        """Record a call that was executed and return what the agent sees, faults applied.

        Parameters
        ----------
        kind : str
            Only calls of kind ``tool`` meet faults.
        name : str
        arguments, output : Any
            JSON.
        is_error : bool
            The call failed by itself.
        turn : int or None
        """
        seen = None
        if kind == _TOOL and self._injector is not None:
            seen = _faulted(self._injector, name, output, is_error=is_error)
        if seen is None:
            seen = Observation(output=output, is_error=is_error)
        self._steps.append(
            Step(
                kind=kind,
                name=name,
                input=arguments,
                output=seen.output,
                is_error=seen.is_error,
                fault=seen.fault,
                turn=turn,
            )
        )
        return seen

    def close(self) -> None:
        """Remove the world; safe to call twice."""
        folder, self._folder = self._folder, None
        if folder is not None:
            remove_folder(folder)


def _faulted(
    injector: ChaosInjector, name: str, output: Any, *, is_error: bool
) -> Observation | None:
    result = injector.intercept(name, output if isinstance(output, str) else _text_of(output))
    if result.fault is None:
        return None
    return Observation(
        output=result.observation,
        is_error=is_error or result.fault in ERROR_KINDS,
        fault=result.fault,
        delay_s=result.delay_s,
    )


def _text_of(output: Any) -> str:
    try:
        return codec.encode(output).decode()
    except UnicodeEncodeError:  # a lone surrogate, which UTF-8 does not have
        return json.dumps(output, separators=(",", ":"))

"""Makes the world of each trial: a fresh copy of its task's fixture, in a folder of its own.

Every world of a task must start in the same state, and the digest of what was copied proves it.
Folders are named by a counter, never by anything a task or an agent says. What happens in a world
is not known here.
"""

from __future__ import annotations

import hashlib
import itertools
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple

from ci_gate import codec
from ci_gate.errors import ContaminatedWorldError, Problem, SuiteError, printable
from ci_gate.model.agent import FaultPolicy
from ci_gate.model.suite import PlannedTrial, Task
from ci_gate.redaction import Redactor
from ci_gate.sandbox.chaos import ChaosInjector
from ci_gate.sandbox.copying import copy_folder, remove_folder
from ci_gate.sandbox.delivery import model_injector
from ci_gate.sandbox.fixtures import WORK, Template, make_template
from ci_gate.sandbox.metering import Meter, PriceOf
from ci_gate.sandbox.postgres import PostgresTemplate, TrialDatabase, TrialDatabases
from ci_gate.sandbox.recording import Recorder
from ci_gate.sandbox.scratch import Scratch, sweep
from ci_gate.sandbox.world import AnswerSource, Before, World

__all__ = ["DEFAULT_NOW", "WorldFactory"]

DEFAULT_NOW: Final = "2026-01-01T09:00:00Z"


class _Known(NamedTuple):
    template: Template
    digest: str
    postgres: PostgresTemplate | None
    state: str | None


class _Fresh(NamedTuple):
    """Where the world of one trial lies."""

    folder: Path | None
    workdir: Path | None
    database: Path | None
    postgres: TrialDatabase | None


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
    recorder_of : callable or None
        Makes what records the calls of a trial; None: nothing is recorded.
    source_of : callable or None
        Makes what answers the calls of a trial in a replay; None: they are made.
    redactor_of : callable
        Makes what knows the secrets of a trial that is not recorded.
    price_of : callable or None
        Returns the cost of a call to a model; None: it is unknown.
    state_of : callable or None
        Returns the digest of what lies in the places of a state, whatever machine reads it; None:
        it is not asked.
    postgres : TrialDatabases or None
        Makes PostgreSQL databases; None: there is no server for them.
    model_rate_permille : int
        Faults per thousand calls to models.
    """

    def __init__(
        self,
        scratch: Path,
        faults: FaultPolicy | None,
        *,
        now: str = DEFAULT_NOW,
        always_workdir: bool = False,
        recorder_of: Callable[[PlannedTrial], Recorder] | None = None,
        source_of: Callable[[PlannedTrial], AnswerSource] | None = None,
        redactor_of: Callable[[], Redactor] = Redactor,
        price_of: PriceOf | None = None,
        state_of: Callable[[Mapping[str, str | None]], str | None] | None = None,
        postgres: TrialDatabases | None = None,
        model_rate_permille: int = 0,
    ) -> None:
        self._postgres = postgres or TrialDatabases({})
        self._scratch = scratch
        self._model_rate_permille = model_rate_permille
        self._faults = faults
        self._now = now
        self._always_workdir = always_workdir
        self._recorder_of = recorder_of
        self._source_of = source_of
        self._redactor_of = redactor_of
        self._price_of = price_of
        self._state_of = state_of
        self._expected: Mapping[str, str] = {}
        self._known: dict[tuple[str | None, str | None], _Known] = {}
        self._before: dict[Path, Mapping[str, Any]] = {}
        self._count = itertools.count()
        self._private: Scratch | None = None
        self._making = threading.Lock()

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

    def expect(self, states: Mapping[str, str]) -> None:
        """Take note of the digests of the states that earlier trials of tasks started in.

        Parameters
        ----------
        states : mapping of str to str
            By task id. Worlds of tasks that start in another state are contaminated.
        """
        self._expected = states

    def _require_expected(self, known: _Known | None, trial: PlannedTrial) -> None:
        expected = self._expected.get(trial.task.id)
        if known is None or known.state is None or expected in (None, known.state):
            return
        raise _contaminated(
            trial, "its initial state differs from that of the trials before the run was resumed"
        )

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
        self._require_expected(known, trial)
        recorder = None if self._recorder_of is None else self._recorder_of(trial)
        places = self._fresh(known, trial)
        return World(
            folder=places.folder,
            workdir=places.workdir,
            database=places.database,
            postgres=places.postgres,
            reserve=self._reserved,
            now=trial.task.now or self._now,
            injector=self._injector(trial.seed),
            models=model_injector(self._model_rate_permille, trial.seed),
            recorder=recorder,
            source=None if self._source_of is None else self._source_of(trial),
            before=self._state_before(known, recorder),
            initial_state=None if known is None else known.state,
            redactor=self._redactor_of(),
            meter=Meter(self._price_of),
        )

    def _injector(self, seed: int) -> ChaosInjector | None:
        return (
            None if self._faults is None else ChaosInjector.of(self._faults, seed, keep_audit=False)
        )

    def _fresh(self, known: _Known | None, trial: PlannedTrial) -> _Fresh:
        if known is None:
            folder = self._new_folder() if self._always_workdir else None
            return _Fresh(folder, None if folder is None else _made(folder / WORK), None, None)
        folder = self._copy(known, trial)
        postgres = self._postgres_copy(known, trial)
        workdir = _below(folder, known.template.work)
        if workdir is None and self._always_workdir:
            workdir = _made(folder / WORK)
        return _Fresh(folder, workdir, _below(folder, known.template.database), postgres)

    def _state_before(self, known: _Known | None, recorder: Recorder | None) -> Before:
        """Return the state that every trial of a fixture starts in, which is kept once."""
        if known is None or recorder is None:
            return None
        folder = known.template.folder
        state = self._before.get(folder)
        if state is None:
            state = recorder.state_of(folder)
            if state is not None:
                self._before[folder] = state
        return state

    def initial(self, trial: PlannedTrial) -> Mapping[str, str | None]:
        """Return the places of the state in which the trial started, to be read only.

        Returns
        -------
        mapping
            ``folder``, ``database`` and ``workdir``: absolute paths, ``postgres``: a URL; None for
            what the task does not have.
        """
        known = self._known_state(trial.task)
        if known is None:
            return {"folder": None, "database": None, "workdir": None, "postgres": None}
        return _places_of(known.template) | {
            "postgres": None if known.postgres is None else known.postgres.initial
        }

    def close(self) -> None:
        """Remove every world and template; safe to call twice."""
        self._known.clear()
        private, self._private = self._private, None
        try:
            self._postgres.close()
        finally:
            if private is not None:
                private.close()

    def _known_state(self, task: Task) -> _Known | None:
        if not task.has_world:
            return None
        fixture = task.fixture_path
        place = fixture, _name_of(task.tables)
        known = self._known.get(place)
        if known is None:
            folder = self._new_folder()
            template = make_template(
                None if fixture is None else Path(fixture),
                folder,
                source=task.source or task.id,
                tables=task.tables,
            )
            postgres = self._postgres_template(template, task)
            known = _Known(
                template, self._digest(folder), postgres, self._state(template, postgres)
            )
            self._known[place] = known
        return known

    def _state(self, template: Template, postgres: PostgresTemplate | None) -> str | None:
        state = None if self._state_of is None else self._state_of(_places_of(template))
        if state is None or postgres is None:
            return state
        return hashlib.sha256(f"{state} {postgres.digest}".encode()).hexdigest()[: len(state)]

    def _postgres_template(self, template: Template, task: Task) -> PostgresTemplate | None:
        script = template.postgres
        source = task.source or task.id
        return None if script is None else self._postgres.template(script, source=source)

    def _postgres_copy(self, known: _Known, trial: PlannedTrial) -> TrialDatabase | None:
        if known.postgres is None:
            return None
        copy = self._postgres.copy(known.postgres)
        if copy.digest != known.postgres.digest:
            copy.drop()
            raise _contaminated(trial, "its PostgreSQL database differs from the task's first")
        return copy

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
        folder = self._reserved()
        folder.mkdir(mode=0o700)
        return folder

    def _reserved(self) -> Path:
        """Return the path of a folder that nobody else gets."""
        with self._making:  # a trial may ask for its own while others begin
            if self._private is None:
                sweep(self._scratch)
                self._private = Scratch(self._scratch)
        return self._private.folder / f"{next(self._count):06d}"


def _name_of(tables: Mapping[str, Any] | None) -> str | None:
    return None if tables is None else codec.digest_of(tables)


def _places_of(template: Template) -> dict[str, str | None]:
    places = {"folder": "", "database": template.database, "workdir": template.work}
    return {
        name: None if place is None else str(template.folder / place)
        for name, place in places.items()
    }


def _made(folder: Path) -> Path:
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

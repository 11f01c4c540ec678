"""The grader ``state``: checks on the world that a trial left, all of which must hold.

Decides the grade, its one line and the difference that goes with it. The state that trials start in
is read once for all trials of a fixture.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from ci_gate.errors import printable
from ci_gate.grading.databases import UnusableError
from ci_gate.grading.options import unknown_options
from ci_gate.grading.state.checks import Check, check_of, check_problems
from ci_gate.grading.state.claims import Failure
from ci_gate.grading.state.scene import Scene, parts_of
from ci_gate.grading.state.snapshot import Parts, Places, snapshot
from ci_gate.grading.state.world import WorldState
from ci_gate.model.suite import GraderSpec, PlannedTrial
from ci_gate.model.trial import Grade, Trajectory
from ci_gate.ports import TrialSandbox

__all__ = [
    "LONGEST_DETAIL",
    "InitialStates",
    "StateGrader",
    "build",
    "checks_of",
    "places_of",
    "validate",
]

LONGEST_DETAIL: Final = 4096
"""Characters of a grade's difference."""

_OPTIONS: Final = ("checks",)
_LONGEST_LINE: Final = 1000

_Initial = Callable[[PlannedTrial], Mapping[str, str | None]]


class InitialStates:
    """The states that trials start in, each read once.

    Parameters
    ----------
    initial : callable
        Gives the places of the state in which a trial started: ``folder``, ``database``,
        ``workdir`` and ``postgres``.
    """

    def __init__(self, initial: _Initial) -> None:
        self._initial = initial
        self._states: dict[tuple[Any, ...], WorldState] = {}

    def places(self, trial: PlannedTrial) -> Places:
        """Return where the state before a trial lies."""
        return places_of(self._initial(trial))

    def of(self, trial: PlannedTrial, parts: Parts) -> WorldState:
        """Return the state before a trial.

        Raises
        ------
        UnusableError
            It cannot be read.
        """
        places = self.places(trial)
        known = msgspec.structs.astuple(places) + msgspec.structs.astuple(parts)
        if known not in self._states:
            self._states[known] = snapshot(places, parts)
        return self._states[known]


def places_of(named: Mapping[str, str | None]) -> Places:
    """Return the places of an initial state by their names."""
    paths = {
        name: Path(place)
        for name in ("folder", "database", "workdir")
        if (place := named.get(name)) is not None
    }
    return Places(**paths, postgres=named.get("postgres"), is_template=True)


class StateGrader:
    """Passes when every check holds of the world that the trial left.

    Parameters
    ----------
    name : str
    checks : sequence of Check
    states : InitialStates

    Attributes
    ----------
    blocking : bool
        Always: what is read comes from the agent, and decides how long it takes.
    """

    blocking: Final = True

    def __init__(self, name: str, checks: Sequence[Check], states: InitialStates) -> None:
        self._name = name
        self._checks = checks
        self._states = states
        self._parts = parts_of(checks)

    def grade(self, trial: PlannedTrial, trajectory: Trajectory, sandbox: TrialSandbox) -> Grade:
        """Return whether the world is as asked, and which part of the checks holds."""
        del trajectory
        places = Places(
            folder=sandbox.folder,
            database=sandbox.database,
            workdir=sandbox.workdir,
            postgres=sandbox.postgres,
        )
        try:
            before = self._states.of(trial, self._parts)
            scene = Scene(before, snapshot(places, self._parts), places)
        except UnusableError as error:
            return Grade(grader=self._name, passed=False, reason=str(error), score=0.0)
        return self._graded([scene.failure(check) for check in self._checks])

    def _graded(self, failures: Sequence[Failure | None]) -> Grade:
        failed = {at: failure for at, failure in enumerate(failures) if failure is not None}
        if not failed:
            return Grade(grader=self._name, passed=True, score=1.0)
        return Grade(
            grader=self._name,
            passed=False,
            reason=self._reason(failed),
            score=1 - len(failed) / len(failures),
            detail=self._detail(failed),
        )

    def _reason(self, failed: Mapping[int, Failure]) -> str:
        at, failure = next(iter(failed.items()))
        more = f"; {len(failed)} of {len(self._checks)} checks do not hold"
        return self._title(at) + failure.text() + (more if len(failed) > 1 else "")

    def _title(self, at: int) -> str:
        return f"check {at + 1}, {self._checks[at].text()}: "

    def _detail(self, failed: Mapping[int, Failure]) -> str:
        lines: list[str] = []
        for at, failure in failed.items():
            lines.append(self._title(at) + failure.text())
            lines += failure.lines
        return _cut([printable(line, limit=_LONGEST_LINE) for line in lines])


def _cut(lines: Sequence[str]) -> str:
    """Return whole lines of which all together are within the bound."""
    kept: list[str] = []
    room = LONGEST_DETAIL - 40
    for number, line in enumerate(lines):
        room -= len(line) + 1
        if room < 0:
            return "\n".join([*kept, f"  ... and {len(lines) - number} lines more"])
        kept.append(line)
    return "\n".join(kept)


def validate(spec: GraderSpec) -> list[str]:
    """Return what is wrong with the options, empty where nothing is."""
    problems = list(unknown_options(spec.options, _OPTIONS))
    checks = spec.options.get("checks")
    if not isinstance(checks, list) or not checks:
        return [*problems, "option 'checks' must be a list of tables, at least one"]
    for number, check in enumerate(checks, 1):
        problems += [f"check {number}: {problem}" for problem in check_problems(check)]
    return problems


def checks_of(spec: GraderSpec) -> list[Check]:
    """Return the checks of options that ``validate`` has passed."""
    return [check_of(check) for check in spec.options["checks"]]


def build(spec: GraderSpec, *, states: InitialStates) -> StateGrader:
    """Return the grader of options that ``validate`` has passed."""
    return StateGrader(spec.name, checks_of(spec), states)

"""The states that trials start in, read before the first one and held against the checks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ci_gate.errors import Problem, SuiteError, printable
from ci_gate.grading.databases import UnusableError
from ci_gate.grading.own import InitialState
from ci_gate.grading.state.digest import digest_of_state
from ci_gate.grading.state.grader import InitialStates, checks_of, places_of
from ci_gate.grading.state.scene import parts_of
from ci_gate.grading.state.snapshot import snapshot
from ci_gate.grading.state.starting import mistakes_in
from ci_gate.model.suite import GraderSpec, PlannedTrial, Task
from ci_gate.model.trial import TrialRecord

__all__ = ["checked_states", "state_digest", "states_of"]

_STATE = "state"


def state_digest(places: Mapping[str, str | None]) -> str | None:
    """Return the digest of everything in an initial state; None where it cannot be read whole."""
    try:
        return digest_of_state(snapshot(places_of(places)))
    except UnusableError:
        return None


def states_of(records: Iterable[TrialRecord]) -> Mapping[str, str]:
    """Return the state that the first trial of each task started in, where it is recorded."""
    known: dict[str, str] = {}
    for record in records:
        if record.initial_state:
            known.setdefault(record.task, record.initial_state)
    return known


def checked_states(tasks: Iterable[Task], initial: InitialState) -> InitialStates:
    """Return the initial states, with those read that a ``state`` grader looks at.

    Parameters
    ----------
    tasks : iterable of Task
    initial : callable
        Gives the places of the state in which a trial starts.

    Raises
    ------
    SuiteError
        Checks name what a fixture does not have, or a fixture is too large; all of them.
    """
    states = InitialStates(initial)
    problems = [
        Problem(
            what=mistake,
            where=f"{task.source}: task '{printable(task.id)}': grader '{printable(spec.name)}'",
            hint="Correct the check or the fixture",
        )
        for task in tasks
        for spec in task.graders
        if spec.type == _STATE
        for mistake in _mistakes(task, spec, states)
    ]
    if problems:
        raise SuiteError.of(problems)
    return states


def _mistakes(task: Task, spec: GraderSpec, states: InitialStates) -> Iterator[str]:
    first = PlannedTrial(task=task, trial=0, repeat=0, attempt=1, seed=task.base_seed)
    checks = checks_of(spec)
    try:
        before = states.of(first, parts_of(checks))
    except UnusableError as error:
        yield f"the state that its trials start in cannot be judged: {error}"
        return
    yield from mistakes_in(checks, before, states.places(first))

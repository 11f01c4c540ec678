"""The grader ``python``: a function of the team's own, which runs in a worker and never here.

The function gets the task, what the agent did, and the places of the world before and after. What
it returns comes back as plain JSON and is read strictly: a grade is a truth value, a score, or a
table with ``passed``. A function that raises, or returns anything else, fails the trial and says
that it was the grader.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import UNSET

from ci_gate.errors import printable
from ci_gate.grading.options import unknown_options
from ci_gate.model.suite import GraderSpec, PlannedTrial
from ci_gate.model.trial import Cause, Grade, Trajectory
from ci_gate.model.worlds import RECORDS
from ci_gate.ports import TrialSandbox

__all__ = [
    "ERROR_PREFIX",
    "CallGrader",
    "InitialState",
    "OwnGrader",
    "build",
    "grade_of",
    "validate",
]

ERROR_PREFIX: Final = "grader-error: "
"""How the reason of a grade starts when the grader itself is at fault. That is for people; what
counts is the grade's cause."""

CallGrader = Callable[[str, Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
"""Runs ``module:function`` in a worker with ``task``, ``trajectory``, ``before`` and ``after``, and
gives ``{"result": value}`` or ``{"error": text}``, with a ``trace`` where there is one."""

InitialState = Callable[[PlannedTrial], Mapping[str, str | None]]
"""Gives the places of the world as it was at the start: ``database`` and ``workdir``."""

_FUNCTION: Final = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
_PLACES: Final = ("database", "workdir", "postgres")
_LONGEST_TRACE: Final = 4_000
_LONGEST_LINE: Final = 200
_RESULT_KEYS: Final = frozenset({"passed", "reason", "score", "grader"})


class OwnGrader:
    """Asks a function of the team's own.

    Parameters
    ----------
    name : str
    function : str
        ``package.module:function`` in the agent's environment.
    call : CallGrader
    initial : InitialState
    """

    def __init__(
        self, name: str, function: str, *, call: CallGrader, initial: InitialState
    ) -> None:
        self._name = name
        self._function = function
        self._call = call
        self._initial = initial

    async def grade(
        self, trial: PlannedTrial, trajectory: Trajectory, sandbox: TrialSandbox
    ) -> Grade:
        """Return what the function says of the trial."""
        before = self._initial(trial)
        payload = {
            "task": {**trial.task.shown(), "tags": list(trial.task.tags)},
            "trajectory": msgspec.to_builtins(trajectory),
            "before": {
                **{name: place for name, place in before.items() if name in _PLACES},
                **_records_in(before.get("folder")),
            },
            "after": {
                "database": _text(sandbox.database),
                "workdir": _text(sandbox.workdir),
                "postgres": sandbox.postgres,
                **_records_in(_text(sandbox.folder)),
            },
        }
        reply = await self._call(self._function, payload)
        if "result" not in reply:
            why, trace = reply.get("error", "the worker gave no result"), reply.get("trace", "")
            return _fault(self._name, str(why), str(trace))
        return grade_of(self._name, reply["result"])


def _records_in(folder: str | None) -> dict[str, str | None]:
    """Return the places of tables in memory, messages and payments, as far as they are there."""
    paths = {name.partition(".")[0]: Path(folder or "", name) for name in RECORDS}
    is_there = folder is not None
    return {name: str(p) if is_there and p.is_file() else None for name, p in paths.items()}


def _text(path: object) -> str | None:
    return None if path is None else str(path)


def _fault(name: str, why: str, trace: str = "") -> Grade:
    return Grade(
        grader=name,
        passed=False,
        reason=ERROR_PREFIX + printable(why, limit=500),
        cause=Cause.GRADER_ERROR,
        detail=_end_of(trace) or UNSET,
    )


def _end_of(trace: str) -> str:
    """Return the last lines of a trace, where it was raised, each inert by itself."""
    kept: list[str] = []
    room = _LONGEST_TRACE
    for line in reversed(trace.rstrip().split("\n")):
        shown = printable(line, limit=_LONGEST_LINE)
        room -= len(shown) + 1
        if room < 0:
            break
        kept.append(shown)
    return "\n".join(reversed(kept))


def grade_of(name: str, result: Any) -> Grade:
    """Return the grade that a function's result means.

    Parameters
    ----------
    name : str
        The grader's name within its task.
    result : Any
        A bool; a score from 0 to 1, of which only 1 passes; or a mapping with ``passed`` (bool)
        and optionally ``reason`` (str) and ``score``. Anything else is the grader's mistake.
    """
    if isinstance(result, bool):
        reason = None if result else "the grader said no"
        return Grade(grader=name, passed=result, reason=reason)
    if _is_score(result):
        reason = None if result == 1 else f"score {result:g} is below 1"
        return Grade(grader=name, passed=result == 1, reason=reason, score=float(result))
    if isinstance(result, Mapping):
        return _of_table(name, result)
    shown = printable(repr(result), limit=80)
    return _fault(name, f"a grade is true, false, a score from 0 to 1 or a table; got {shown}")


def _is_score(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _of_table(name: str, table: Mapping[str, Any]) -> Grade:
    passed, reason, score = table.get("passed"), table.get("reason"), table.get("score")
    unknown = sorted(str(key) for key in table if key not in _RESULT_KEYS)
    if unknown:
        return _fault(name, f"a grade has no {', '.join(unknown)}")
    if not isinstance(passed, bool):
        return _fault(name, f"'passed' must be true or false, got {printable(repr(passed))}")
    if reason is not None and not isinstance(reason, str):
        return _fault(name, f"'reason' must be a text, got {printable(repr(reason))}")
    if score is not None and not _is_score(score):
        return _fault(name, f"'score' must be from 0 to 1, got {printable(repr(score))}")
    said = None if passed else printable(reason or "the grader said no", limit=500)
    return Grade(
        grader=name, passed=passed, reason=said, score=None if score is None else float(score)
    )


def validate(spec: GraderSpec) -> list[str]:
    """Return what is wrong with the options, empty where nothing is."""
    problems = list(unknown_options(spec.options, ("function",)))
    function = spec.options.get("function")
    if not isinstance(function, str) or not _FUNCTION.fullmatch(function):
        shown = printable(repr(function), limit=80)
        problems.append(f"option 'function' must be 'package.module:function', found {shown}")
    return problems


def build(spec: GraderSpec, *, call: CallGrader, initial: InitialState) -> OwnGrader:
    """Return the grader of options that ``validate`` has passed."""
    return OwnGrader(spec.name, spec.options["function"], call=call, initial=initial)

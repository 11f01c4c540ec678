"""The grader ``file``: what the agent left in a file of its working directory.

How a file of the agent is opened is ``opening``'s to know, and what its text must be
``conditions``'.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ci_gate.errors import printable
from ci_gate.grading.conditions import TextConditions, condition_problems
from ci_gate.grading.opening import LARGEST_READ, read_text, why_unread
from ci_gate.grading.options import path_problems, type_problems, unknown_options
from ci_gate.model.suite import GraderSpec, PlannedTrial
from ci_gate.model.trial import Grade, Trajectory
from ci_gate.ports import TrialSandbox

__all__ = ["LARGEST_READ", "FileGrader", "build", "validate"]

_CONDITIONS: Final = ("equals", "contains", "matches")
_OPTIONS: Final = ("path", "exists", *_CONDITIONS)


class FileGrader:
    """Passes when the file is there, or is not, and its text meets every condition.

    Parameters
    ----------
    name : str
    path : str
        Relative to the working directory.
    exists : bool
    conditions : TextConditions or None
        None: only existence is asked.

    Attributes
    ----------
    blocking : bool
        Always: what is read comes from the agent, and decides how long it takes.
    """

    blocking: Final = True

    def __init__(
        self, name: str, path: str, *, exists: bool, conditions: TextConditions | None
    ) -> None:
        self._name = name
        self._path = path
        self._exists = exists
        self._conditions = conditions

    def grade(self, trial: PlannedTrial, trajectory: Trajectory, sandbox: TrialSandbox) -> Grade:
        """Return whether the file is as asked."""
        del trial, trajectory
        complaint = self._complaint(sandbox.workdir)
        return Grade(grader=self._name, passed=complaint is None, reason=complaint)

    def _complaint(self, workdir: Path | None) -> str | None:
        shown = printable(self._path)
        try:
            text = read_text(workdir, self._path, has_content=self._conditions is not None)
        except FileNotFoundError:
            return f"expected a file {shown}, found none" if self._exists else None
        except (OSError, UnicodeError) as error:
            return f"{shown} cannot be read: {why_unread(error)}"
        if not self._exists:
            return f"expected no file {shown}, found one"
        complaint = self._conditions and self._conditions.complaint(text)
        return f"{shown}: {complaint}" if complaint else None


def validate(spec: GraderSpec) -> list[str]:
    """Return what is wrong with the options, empty where nothing is."""
    options = spec.options
    problems = [
        *unknown_options(options, _OPTIONS),
        *path_problems(options.get("path"), "option 'path'"),
    ]
    problems += type_problems(options, ("exists",), bool)
    if "exists" not in options:
        return [*problems, *condition_problems(options, ("exists", *_CONDITIONS))]
    given = [name for name in _CONDITIONS if name in options]
    if given and options["exists"] is False:
        problems.append(f"'exists' = false excludes {', '.join(repr(name) for name in given)}")
    return [*problems, *(condition_problems(options, _CONDITIONS) if given else ())]


def build(spec: GraderSpec) -> FileGrader:
    """Return the grader of options that ``validate`` has passed."""
    options = spec.options
    asks = any(name in options for name in _CONDITIONS)
    return FileGrader(
        spec.name,
        options["path"],
        exists=options.get("exists", True),
        conditions=TextConditions.of(options) if asks else None,
    )

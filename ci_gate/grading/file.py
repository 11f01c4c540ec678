"""The grader ``file``: what the agent left in a file of its working directory.

The path is walked folder by folder from the working directory without following any symbolic link,
and only a bounded regular file is read: the agent can show the grader nothing that lies elsewhere.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, Final

from ci_gate.errors import printable
from ci_gate.grading.conditions import TextConditions, condition_problems
from ci_gate.grading.options import type_problems, unknown_options
from ci_gate.model.suite import GraderSpec, PlannedTrial
from ci_gate.model.trial import Grade, Trajectory
from ci_gate.ports import TrialSandbox

__all__ = ["LARGEST_READ", "FileGrader", "build", "validate"]

LARGEST_READ: Final = 10_000_000
"""Bytes of the largest file that is read."""

_CONDITIONS: Final = ("equals", "contains", "matches")
_OPTIONS: Final = ("path", "exists", *_CONDITIONS)
# Missing on Windows, where no trial runs.
_NO_FOLLOW: Final = getattr(os, "O_NOFOLLOW", 0)
_NO_WAIT: Final = getattr(os, "O_NONBLOCK", 0)
_FOLDER: Final = getattr(os, "O_DIRECTORY", 0)
# What opening a symbolic link without following it says, as the last or an inner part.
_LINK_ERRORS: Final = frozenset({errno.ELOOP, getattr(errno, "EMLINK", errno.ELOOP)})


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
            text = _read(workdir, self._path, content=self._conditions is not None)
        except FileNotFoundError:
            return f"expected a file {shown}, found none" if self._exists else None
        except (OSError, UnicodeError) as error:
            return f"{shown} cannot be read: {_said(error)}"
        if not self._exists:
            return f"expected no file {shown}, found one"
        complaint = self._conditions and self._conditions.complaint(text)
        return f"{shown}: {complaint}" if complaint else None


def _said(error: OSError | UnicodeError) -> str:
    if isinstance(error, UnicodeError):
        return "it is not UTF-8"
    if error.errno in _LINK_ERRORS:
        return "it is a symbolic link, which is not followed"
    return printable(error.strerror or error)


def _read(workdir: Path | None, path: str, *, content: bool) -> str:
    if workdir is None:
        raise FileNotFoundError
    with _opened(workdir, path) as descriptor:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError("it is not a regular file")
        if not content:
            return ""
        with open(descriptor, "rb", closefd=False) as file:
            found = file.read(LARGEST_READ + 1)
    if len(found) > LARGEST_READ:
        raise OSError(f"it has more than {LARGEST_READ} bytes")
    return found.decode("utf-8")


@contextlib.contextmanager
def _opened(workdir: Path, path: str) -> Iterator[int]:
    *folders, last = PurePosixPath(path).parts
    with contextlib.ExitStack() as stack:
        place = _open(stack, os.fspath(workdir), _FOLDER, None)
        for folder in folders:
            try:
                place = _open(stack, folder, _FOLDER, place)
            except NotADirectoryError:
                _refuse_link(folder, place)
                raise FileNotFoundError from None
        yield _open(stack, last, 0, place)


def _open(stack: contextlib.ExitStack, name: str, flags: int, folder: int | None) -> int:
    descriptor = os.open(name, os.O_RDONLY | _NO_FOLLOW | _NO_WAIT | flags, dir_fd=folder)
    stack.callback(os.close, descriptor)
    return descriptor


def _refuse_link(name: str, folder: int) -> None:
    # Opened as a folder, a symbolic link and a file give the same error.
    if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        raise OSError(errno.ELOOP, "a symbolic link")


def validate(spec: GraderSpec) -> list[str]:
    """Return what is wrong with the options, empty where nothing is."""
    options = spec.options
    problems = [*unknown_options(options, _OPTIONS), *_path_problems(options.get("path"))]
    problems += type_problems(options, ("exists",), bool)
    if "exists" not in options:
        return [*problems, *condition_problems(options, ("exists", *_CONDITIONS))]
    given = [name for name in _CONDITIONS if name in options]
    if given and options["exists"] is False:
        problems.append(f"'exists' = false excludes {', '.join(repr(name) for name in given)}")
    return [*problems, *(condition_problems(options, _CONDITIONS) if given else ())]


def _path_problems(path: Any) -> Iterator[str]:
    if not isinstance(path, str) or not path:
        yield "option 'path' must name a file in the working directory"
        return
    parts = PurePosixPath(path).parts
    if "\0" in path or path.startswith("/") or ".." in parts or not parts:
        yield f"option 'path' must stay inside the working directory, found {printable(path)!r}"


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

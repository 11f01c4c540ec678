"""Where a new task file and its fixture go: beside each other, where nothing is, all or nothing.

Decides names and refuses those that are taken, that leave the project, or that a suite would read
as something else. It must not know what the task says.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from ci_gate.errors import UsageError, printable
from ci_gate.machine import failed_write
from ci_gate.store.files import write_whole
from ci_gate.store.folders import make_real_folder, own_folder
from ci_gate.store.paths import folder_of
from ci_gate.store.trees import matching

__all__ = ["NewTask", "TaskPatterns", "TaskPlace", "task_place"]

_FOLDER: Final = "evals"
_SUFFIX: Final = ".toml"
_READ: Final = (_SUFFIX, ".jsonl")


class TaskPatterns(Protocol):
    """The part of a suite's configuration that says which files are tasks."""

    @property
    def name(self) -> str:
        """Of the suite."""

    @property
    def tasks(self) -> Sequence[str]:
        """Globs relative to the project's root."""


class TaskPlace(NamedTuple):
    """Where a task file goes.

    Attributes
    ----------
    path : Path
        Absolute, below the root, reached through no link that a change could have brought along.
    root : Path
    patterns : sequence of str
        What the suite reads as tasks.
    remarks : sequence of str
        What the user has to do so that a suite reads it.
    """

    path: Path
    root: Path
    patterns: Sequence[str]
    remarks: Sequence[str]


def task_place(
    output: Path | None, *, task_id: str, root: Path, here: Path, suite: TaskPatterns | None
) -> TaskPlace:
    """Return where the file of a new task goes.

    Parameters
    ----------
    output : Path or None
        As the user named it, relative to ``here``; None: beside the other tasks of the suite.
    task_id : str
    root : Path
        Absolute, of the project.
    here : Path
        Absolute.
    suite : TaskPatterns or None
        That which it is to join.

    Raises
    ------
    UsageError
        The name is taken, does not end in ``.toml``, or lies outside of the project.
    """
    patterns = () if suite is None else suite.tasks
    tree = root.resolve()
    named = _default(patterns, tree, task_id) if output is None else here / output
    path = own_folder(named.parent, tree=tree).absolute() / named.name
    if path.suffix != _SUFFIX:
        raise UsageError(
            f"must end in {_SUFFIX}", where=f"--output {printable(path)}", hint="Rename it."
        )
    # Not resolved but for what the user may reach through links of his own.
    if not path.parent.resolve().is_relative_to(tree):
        what = f"lies outside of the project {printable(tree)}"
        raise UsageError(what, where=f"--output {printable(path)}")
    _require_free(path)
    return TaskPlace(path, tree, patterns, _unread(path, tree, suite))


def _default(patterns: Sequence[str], root: Path, task_id: str) -> Path:
    folders = (pattern.rpartition("/")[0] for pattern in patterns)
    plain = next((one for one in folders if not any(char in one for char in "*?[")), _FOLDER)
    return root / plain / f"{folder_of(task_id)}{_SUFFIX}"


def _require_free(path: Path) -> None:
    if os.path.lexists(path):
        hint = "Remove it, or choose another --output."
        raise UsageError("is there already", where=printable(path), hint=hint)


def _unread(path: Path, root: Path, suite: TaskPatterns | None) -> Sequence[str]:
    name = _relative(path, root)
    if suite is not None and not matching([name], suite.tasks):
        shown = f"[[suite]] tasks of {printable(suite.name)}"
        return [f"No pattern of {shown} matches it: add {printable(name)!r}."]
    return []


def _relative(path: Path, root: Path) -> str:
    return (path.parent.resolve() / path.name).relative_to(root).as_posix()


class NewTask:
    """A task file and its fixture that are going to be written.

    Parameters
    ----------
    place : TaskPlace
    source : Path or None
        A folder or database that is to become the fixture.

    Attributes
    ----------
    fixture : Path or None
        Where the fixture goes.

    Raises
    ------
    UsageError
        The fixture's name is taken, or the suite would read files of it as tasks.
    """

    def __init__(self, place: TaskPlace, source: Path | None) -> None:
        self._place = place
        self._source = source
        self.fixture = None if source is None else _fixture_place(place, source)

    def write(self, content: bytes) -> None:
        """Write both, or nothing.

        Raises
        ------
        UsageError, InternalError
            A folder is a link or may not be written, or the disk is full.
        """
        make_real_folder(self._place.path.parent)
        if self._source is not None and self.fixture is not None:
            _copy(self._source, self.fixture)
        try:
            write_whole(self._place.path, content)
        except BaseException:
            if self.fixture is not None:
                _remove(self.fixture)
            raise


def _fixture_place(place: TaskPlace, source: Path) -> Path:
    ending = ".fixture" if source.is_dir() else ".db"
    path = place.path.with_suffix(ending)
    _require_free(path)
    if source.is_dir():
        _refuse_tasks(path, source, place)
    return path


def _refuse_tasks(path: Path, source: Path, place: TaskPlace) -> None:
    """Refuse a fixture in which the suite would find tasks."""
    below = _relative(path, place.root)
    names = [
        f"{below}/{file.relative_to(source).as_posix()}"
        for file in source.rglob("*")
        if file.suffix in _READ
    ]
    taken = matching(names, place.patterns)
    if taken:
        raise UsageError(
            f"the suite would read {printable(taken[0])!r}, a file of the fixture, as tasks",
            where=printable(place.path),
            hint="Choose an --output that its patterns do not match, and name the file in them.",
        )


def _copy(source: Path, target: Path) -> None:
    """Copy a folder or file under another name first, so that there is all of it or nothing."""
    partial = target.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        if source.is_dir():
            shutil.copytree(source, partial, symlinks=True)
        else:
            shutil.copyfile(source, partial)
        partial.rename(target)
    except (OSError, shutil.Error) as error:
        raise _failed(error, target) from error
    finally:
        _remove(partial)


def _failed(error: OSError | shutil.Error, target: Path) -> Exception:
    if isinstance(error, shutil.Error):
        return UsageError(f"cannot be written: {printable(error)}", where=printable(target))
    return failed_write(error, target)


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)

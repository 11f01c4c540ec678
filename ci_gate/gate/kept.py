"""The kept traces of a suite: where they come from, and what is in them.

Like the baseline they are the base commit's wherever it has them, read by object id and in memory
before the first trial, so that no change brings its own along. What is made of them is not decided
here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ci_gate.errors import FileFormatError, printable
from ci_gate.gate.keeping import kept_folder
from ci_gate.gate.project import Project
from ci_gate.gate.repository import read_blobs
from ci_gate.model.suite import Task
from ci_gate.model.trace import Trace
from ci_gate.prng import parse_seed
from ci_gate.store.kept import MOST_TASK_BYTES, is_name_of_trace
from ci_gate.store.paths import folder_of
from ci_gate.store.traces import read_trace

__all__ = ["Kept", "KeptTrace", "find_kept", "kept_of"]

_MOST_BYTES: Final = 64 * 2**20
"""Traces of a suite that are read; contents that they refer to are not."""


@dataclass(frozen=True, kw_only=True)
class Kept:
    """The kept trace files of a suite as bytes.

    Attributes
    ----------
    shown : str
        The folder as the configuration sees it.
    origin : str
        Which folder of which commit, for people.
    files : mapping of str to bytes
        By ``<task folder>/<trial>.jsonl``; one a folder.
    too_large : frozenset of str
        Folders of tasks whose trace was not read.
    """

    shown: str
    origin: str
    files: Mapping[str, bytes] = field(default_factory=dict)
    too_large: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class KeptTrace:
    """The kept trace of a task.

    Attributes
    ----------
    task : Task
    place : str
        The file as the configuration sees it.
    trace : Trace or None
        None where ``problem`` says why there is none.
    problem : str
    """

    task: Task
    place: str
    trace: Trace | None
    problem: str = ""


def find_kept(project: Project, suite: str) -> Kept:
    """Return the kept traces of a suite: the base commit's, else the working tree's.

    In a pull request, and where the user names the base, the working tree's never count.
    """
    folder = kept_folder(project, suite)
    shown = folder.relative_to(project.root).as_posix()
    origin = f"{shown} of {project.base.explanation}"
    if project.repository is not None and project.base.commit is not None:
        chosen = _Chosen()
        files = read_blobs(project.repository, project.base.commit, folder, chosen)
        if files or chosen.too_large or project.base.kind in ("pull-request", "ref"):
            return Kept(
                shown=shown, origin=origin, files=files, too_large=frozenset(chosen.too_large)
            )
    chosen = _Chosen()
    present = dict(_present(folder))
    names = chosen([(name, path.stat().st_size) for name, path in present.items()])
    return Kept(
        shown=shown,
        origin=f"{shown} of the working tree",
        files={name: present[name].read_bytes() for name in names},
        too_large=frozenset(chosen.too_large),
    )


class _Chosen:
    """Chooses which files are read: the first trace of each folder, within the bounds."""

    def __init__(self) -> None:
        self.too_large: set[str] = set()

    def __call__(self, files: Sequence[tuple[str, int]]) -> list[str]:
        chosen: dict[str, str] = {}
        room = _MOST_BYTES
        for path, size in sorted(files):
            folder, _, name = path.partition("/")
            if not is_name_of_trace(name) or folder in {*chosen, *self.too_large}:
                continue
            if size > min(room, MOST_TASK_BYTES):
                self.too_large.add(folder)
            else:
                chosen[folder] = path
                room -= size
        return list(chosen.values())


def _present(folder: Path) -> Iterator[tuple[str, Path]]:
    if folder.is_symlink() or not folder.is_dir():
        return
    for place in folder.iterdir():
        for path in place.iterdir() if place.is_dir() and not place.is_symlink() else ():
            if path.is_file() and not path.is_symlink():
                yield f"{place.name}/{path.name}", path


def kept_of(kept: Kept, tasks: Sequence[Task]) -> list[KeptTrace]:
    """Return the kept trace of each task that has one, checked.

    A trace that was changed, is of another task, or was not read is returned with the problem.
    """
    by_folder = {name.partition("/")[0]: name for name in kept.files}
    found = []
    for task in tasks:
        folder = folder_of(task.id)
        if folder in kept.too_large:
            found.append(_lost(kept, task, folder, "it is larger than what is read"))
        elif folder in by_folder:
            found.append(_read(kept, task, by_folder[folder]))
    return found


def _lost(kept: Kept, task: Task, name: str, problem: str) -> KeptTrace:
    return KeptTrace(task=task, place=f"{kept.shown}/{name}", trace=None, problem=problem)


def _read(kept: Kept, task: Task, name: str) -> KeptTrace:
    try:
        trace = read_trace(Path(name), content=kept.files[name])
    except FileFormatError as error:
        what = error.problems[0].what
        return _lost(kept, task, name, f"it is no whole trace: {printable(what)}")
    if trace.header.task != task.id:
        return _lost(kept, task, name, "it is of another task")
    if trace.header.task_digest != task.digest:
        return _lost(kept, task, name, "the task was edited since")
    if not _is_seed(trace.header.seed):
        return _lost(kept, task, name, "its seed is none")
    return KeptTrace(task=task, place=f"{kept.shown}/{name}", trace=trace)


def _is_seed(text: str | None) -> bool:
    try:
        return text is None or parse_seed(text) >= 0
    except ValueError:
        return False

"""Folders of kept traces: what is in one, how large it may be, and how one replaces another.

``<task folder>/<trial>.jsonl``, one a task, as in the folder of a run's traces, and the contents
that these refer to. Which traces are worth keeping, and what is read from a commit, is not known
here.
"""

from __future__ import annotations

import contextlib
import re
import secrets
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from ci_gate.errors import UsageError, printable
from ci_gate.machine import failed_write
from ci_gate.model.trace import Trace
from ci_gate.model.trace_meta import STATE
from ci_gate.store.contents import Contents, contents_of_state
from ci_gate.store.files import read_whole, write_whole
from ci_gate.store.paths import folder_of, trace_file

__all__ = [
    "MOST_TASK_BYTES",
    "KeptFolder",
    "contents_of",
    "is_name_of_trace",
    "kept_file",
    "size_of",
]

MOST_TASK_BYTES: Final = 4 * 2**20
"""Bytes that the trace of a task and what it refers to may take."""

_NAME: Final = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?\.jsonl")
_ATTRIBUTES: Final = ".gitattributes"
# A digest holds for bytes: git must not change the ends of lines.
_AS_THEY_ARE: Final = b"* -text linguist-generated\n"


def is_name_of_trace(name: str) -> bool:
    """Return whether a file name is that of the trace of a trial."""
    return _NAME.fullmatch(name) is not None


def kept_file(folder: Path, task_id: str) -> Path | None:
    """Return the trace that a folder keeps of a task; None where it keeps none.

    Of several, which only a person can have put there, it is the first by name.
    """
    place = folder / folder_of(task_id)
    if folder.is_symlink() or place.is_symlink() or not place.is_dir():
        return None
    names = sorted(path.name for path in place.iterdir() if is_name_of_trace(path.name))
    return place / names[0] if names else None


def contents_of(trace: Trace) -> Sequence[str]:
    """Return the digests of the contents that the states of a trace refer to, sorted."""
    states = (record.output for record in trace.records if record.kind == STATE)
    return sorted({digest for state in states for _, digest in contents_of_state(state)})


def size_of(path: Path, trace: Trace, contents: Contents) -> int:
    """Return how many bytes a trace and what it refers to take.

    Raises
    ------
    FileFormatError
        A content is missing.
    """
    return path.stat().st_size + sum(map(contents.size, contents_of(trace)))


class KeptFolder:
    """A folder of kept traces that is being put together beside the one it replaces.

    Parameters
    ----------
    place : Path
        The name it gets at its end.

    Attributes
    ----------
    place : Path
    tasks : int
        Traces so far.
    """

    def __init__(self, place: Path) -> None:
        if place.is_symlink():
            raise UsageError("is a link", where=printable(place), hint="Remove it.")
        self.place = place
        self.tasks = 0
        self._new = self._beside("new")
        self._contents = Contents(self._new)

    def _beside(self, what: str) -> Path:
        return self.place.with_name(f".{self.place.name}.{secrets.token_hex(8)}.{what}")

    def add(self, task_id: str, path: Path, trace: Trace, contents: Contents) -> None:
        """Keep a trace and what it refers to, both as they are.

        Parameters
        ----------
        task_id : str
        path : Path
            Of the trace.
        trace : Trace
            What is in it.
        contents : Contents
            Those it refers to.

        Raises
        ------
        FileFormatError
            A content is missing or was changed.
        InternalError, UsageError
            The disk is full or broken, or the folder may not be written.
        """
        for digest in contents_of(trace):
            self._contents.copy_from(contents, digest)
        trial, repeat = trace.header.trial or 0, trace.header.repeat or 0
        write_whole(trace_file(self._new, task_id, trial, repeat), read_whole(path))
        self.tasks += 1

    def bytes(self) -> int:
        """Return how many bytes it has."""
        return sum(content for _, content in _sizes(self._new))

    def differs(self) -> bool:
        """Return whether its files are others than those of the folder it would replace."""
        if not self.tasks:
            return self.place.exists()
        # A trace ends in a digest of all of it, and a content is named by its own.
        names = {name for name, _ in _sizes(self._new)}
        present = {name for name, _ in _sizes(self.place)} - {Path(_ATTRIBUTES)}
        return names != present or any(
            (self._new / name).read_bytes() != (self.place / name).read_bytes() for name in names
        )

    def replace(self) -> None:
        """Put it in the place of the folder that was there; without a trace that is removed.

        Raises
        ------
        InternalError, UsageError
            A folder cannot be renamed; the one that was there is back in its place.
        """
        old = self._beside("old")
        try:
            if self.tasks:
                write_whole(self._new / _ATTRIBUTES, _AS_THEY_ARE)
            if self.place.exists():
                self.place.rename(old)
            if self.tasks:
                self._renamed(old)
        except OSError as error:
            raise failed_write(error, self.place) from error
        shutil.rmtree(old, ignore_errors=True)

    def _renamed(self, old: Path) -> None:
        try:
            self._new.rename(self.place)
        except OSError:
            with contextlib.suppress(OSError):
                old.rename(self.place)
            raise

    def discard(self) -> None:
        """Leave nothing beside the place, also of updates that were killed; safe to call twice."""
        for left in self.place.parent.glob(f".{self.place.name}.*.*"):
            if left.suffix in (".new", ".old") and not left.is_symlink():
                shutil.rmtree(left, ignore_errors=True)


def _sizes(folder: Path) -> Iterator[tuple[Path, int]]:
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            yield path.relative_to(folder), path.stat().st_size

"""The world of a trial as two ``state`` records of its trace: before and after.

A record names every file with its size and digest; the contents are kept apart, each once. What is
a secret, too large or no file is said to be withheld, and such a state cannot be restored. Where
contents are kept is not known here.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Final, Protocol

from ci_gate.redaction import Redactor

__all__ = ["ContentSink", "ContentSource", "StateError", "capture", "restore"]

_MOST_FILES: Final = 2000
_MOST_BYTES: Final = 64 * 2**20
_NO_FOLLOW: Final = getattr(os, "O_NOFOLLOW", 0)
_NO_WAIT: Final = getattr(os, "O_NONBLOCK", 0)


class StateError(Exception):
    """A state that cannot be restored; the text says why."""


class ContentSink(Protocol):
    """Where contents of files are kept."""

    def put(self, content: bytes) -> str:
        """Keep the content once and return its digest; raises GateError."""


class ContentSource(Protocol):
    """Where contents of files come from."""

    def get(self, digest: str) -> bytes:
        """Return the content; raises GateError where it is missing or was changed."""


def capture(folder: Path, sink: ContentSink, redactor: Redactor) -> Mapping[str, Any]:
    """Keep everything in a folder and return what a ``state`` record says of it.

    Parameters
    ----------
    folder : Path
        Of a trial's world; whatever is in it may be hostile.
    sink : ContentSink
    redactor : Redactor
        A text that holds a secret is kept without it, any other content not at all; either way the
        state is said not to be whole.

    Returns
    -------
    mapping
        ``files``: by relative path with forward slashes ``{"digest", "bytes"}``, with
        ``executable`` where it is, and with ``withheld``, the reason, where it is not all there.
        ``folders``: those without files. ``withheld``: why the state is not whole, absent where it
        is.
    """
    files: dict[str, Any] = {}
    folders: list[str] = []
    reasons: set[str] = set()
    room = _MOST_BYTES
    try:
        for name, path in _entries(folder):
            if not _is_text(name):
                reasons.add("a name is no text")
            elif path is None:
                folders.append(name)
            elif len(files) == _MOST_FILES:
                reasons.add(f"over {_MOST_FILES} files")
                break
            else:
                files[name] = _kept(path, room, sink, redactor)
                room -= files[name].get("bytes", 0)
    except (OSError, RecursionError):  # a folder was taken away, or lies too deep
        reasons.add("a folder cannot be read")
    reasons |= {entry["withheld"] for entry in files.values() if "withheld" in entry}
    state: dict[str, Any] = {"files": files, "folders": folders}
    return {**state, "withheld": ", ".join(sorted(reasons))} if reasons else state


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _entries(folder: Path) -> Iterator[tuple[str, Path | None]]:
    """Yield what is in a folder in sorted order; None as path of a folder without entries."""
    stack = [folder]
    while stack:
        current = stack.pop()
        entries = sorted(current.iterdir())
        if not entries and current != folder:
            yield current.relative_to(folder).as_posix(), None
        for entry in entries:
            if entry.is_dir() and not entry.is_symlink():
                stack.append(entry)
            else:
                yield entry.relative_to(folder).as_posix(), entry


def _kept(path: Path, room: int, sink: ContentSink, redactor: Redactor) -> dict[str, Any]:
    try:
        descriptor = os.open(path, os.O_RDONLY | _NO_FOLLOW | _NO_WAIT)
    except OSError:
        return {"withheld": "no regular file"}
    with os.fdopen(descriptor, "rb") as stream:
        mode = os.fstat(stream.fileno()).st_mode
        if not stat.S_ISREG(mode):
            return {"withheld": "no regular file"}
        content = stream.read(room + 1)
    if len(content) > room:
        return {"withheld": f"over {_MOST_BYTES} bytes"}
    shown = redactor.content(content)
    if shown is None:
        return {"withheld": "holds a secret"}
    entry: dict[str, Any] = {"digest": sink.put(shown), "bytes": len(shown)}
    if shown != content:
        entry["withheld"] = "holds a secret"
    if mode & stat.S_IXUSR:
        entry["executable"] = True
    return entry


def restore(state: Mapping[str, Any], folder: Path, source: ContentSource) -> None:
    """Fill an empty folder with a captured state.

    Parameters
    ----------
    state : mapping
        As ``capture`` returned it; it comes from a file and may be hostile.
    folder : Path
    source : ContentSource

    Raises
    ------
    StateError
        It is not whole, not a state, or larger than ``capture`` makes any.
    """
    if state.get("withheld"):
        raise StateError(f"the recorded state is not whole: {state['withheld']}")
    try:
        for name in state["folders"]:
            _inside(folder, name).mkdir(parents=True, exist_ok=True)
        _restore_files(state["files"], folder, source)
    except (KeyError, TypeError, AttributeError, OSError) as error:
        raise StateError(f"this is no recorded state: {error}") from error


def _restore_files(files: Mapping[str, Any], folder: Path, source: ContentSource) -> None:
    if len(files) > _MOST_FILES:
        raise StateError(f"it has over {_MOST_FILES} files, and no recorded state has")
    room = _MOST_BYTES
    for name, entry in sorted(files.items()):
        path = _inside(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        content = source.get(entry["digest"])
        room -= len(content)
        if room < 0:
            raise StateError(f"it has over {_MOST_BYTES} bytes, and no recorded state has")
        path.write_bytes(content)
        if entry.get("executable"):
            path.chmod(0o700)


def _inside(folder: Path, name: str) -> Path:
    parts = PurePosixPath(name).parts
    if not parts or name.startswith("/") or "\\" in name or ".." in parts or "\0" in name:
        raise StateError(f"{name!r} leads out of the world's folder")
    return folder.joinpath(*parts)

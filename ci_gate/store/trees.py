"""Files below a root, from the disk or from anywhere else, by their relative names.

This module decides that nothing outside the root is ever read. It must not know what the files
mean, nor where other readers (a git commit) have theirs from.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from ci_gate.errors import FileFormatError, SuiteError, printable
from ci_gate.store.files import read_whole

__all__ = ["DiskReader", "FileEntry", "FileReader", "expand", "matching", "mistake_in_pattern"]

_MAX_FILE_BYTES: Final = 2**30


class FileEntry(NamedTuple):
    """A file or link below a folder.

    ``path`` is relative to the reader's root, with ``/``. ``target`` is the text of a link and None
    for a regular file; links are never followed.
    """

    path: str
    executable: bool = False
    target: str | None = None


class FileReader(Protocol):
    """Files by their path relative to a root; ``/`` separates, ``..`` never occurs."""

    def read(self, path: str) -> bytes | None:
        """Return the content of a regular file, None where there is none."""

    def list(self, folder: str) -> Sequence[FileEntry]:
        """Return all files and links below a folder at any depth; empty where there is none."""


class DiskReader:
    """Reads below a folder of the disk.

    Parameters
    ----------
    root : Path
        Links that lead out of it are treated as missing files.
    """

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()

    def read(self, path: str) -> bytes | None:
        """Return the content of a regular file, None where there is none below the root."""
        try:
            place = (self._root / path).resolve()
            return read_whole(place, limit=_MAX_FILE_BYTES) if self._holds(place) else None
        except (FileFormatError, OSError, ValueError, RuntimeError):
            return None

    def list(self, folder: str) -> Sequence[FileEntry]:
        """Return all files and links below a folder, sorted by path.

        Raises
        ------
        SuiteError
            There is a pipe, socket or device, or a folder that may not be read.
        """
        try:
            place = (self._root / folder).resolve()
            place.lstat()
        except (OSError, ValueError, RuntimeError):
            # Nothing of that name, or a name that no file can have.
            return ()
        if not self._holds(place) or not place.is_dir():
            return ()
        prefix = f"{folder.rstrip('/')}/"
        try:
            found = list(_walk(place))
        except OSError as error:
            what = f"cannot be read: {printable(error.strerror)}"
            raise SuiteError(what, where=printable(folder)) from error
        return sorted(
            _entry(path, f"{prefix}{path.relative_to(place).as_posix()}") for path in found
        )

    def _holds(self, place: Path) -> bool:
        return place.is_relative_to(self._root)


def _walk(folder: Path) -> Iterator[Path]:
    """Yield what is no folder, at any depth, without the depth that recursion allows."""
    folders = [folder]
    while folders:
        for path in folders.pop().iterdir():
            if path.is_dir() and not path.is_symlink():
                folders.append(path)
            else:
                yield path


def _entry(path: Path, name: str) -> FileEntry:
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        return FileEntry(name, target=os.fspath(path.readlink()))
    if stat.S_ISREG(mode):
        return FileEntry(name, executable=bool(mode & stat.S_IXUSR))
    raise SuiteError("is a pipe, socket or device, not a file", where=printable(name))


def mistake_in_pattern(pattern: str) -> str | None:
    """Return why a glob is refused, or None for one that stays below its root."""
    if not pattern:
        return "is empty"
    parts = pattern.split("/")
    if pattern.startswith("/") or ".." in parts or "\\" in pattern or ":" in parts[0]:
        return "must be relative and stay below the root: no leading /, no .., no backslash"
    if any("**" in part and part != "**" for part in parts):
        return "has ** next to other characters; it stands alone between slashes"
    if parts[-1] in ("", "**"):
        return "must end in the name of files, such as *.toml"
    try:
        _expression(pattern)
    except re.error as error:
        return f"is not a glob: {printable(error)}"
    return None


def matching(names: Iterable[str], patterns: Sequence[str]) -> list[str]:
    """Return the names that match a pattern, sorted.

    ``*`` and ``?`` stay within a component, ``[...]`` is a set of characters, ``**`` stands for any
    number of folders.
    """
    compiled = [_expression(pattern) for pattern in patterns]
    return sorted({name for name in names if any(one.fullmatch(name) for one in compiled)})


def _expression(pattern: str) -> re.Pattern[str]:
    parts = [part for part in pattern.split("/") if part != "."]
    folders = "".join(
        "(?:[^/]+/)*" if part == "**" else f"{_component(part)}/" for part in parts[:-1]
    )
    return re.compile(folders + _component(parts[-1]), re.DOTALL)


def _component(part: str) -> str:
    pieces = re.split(r"(\*|\?|\[!?\]?[^\]]*\])", part)
    return "".join(map(_piece, pieces))


def _piece(piece: str) -> str:
    if piece == "*":
        return "[^/]*"
    if piece == "?":
        return "[^/]"
    if len(piece) > 2 and piece.startswith("["):
        inner = re.escape(piece[1:-1].removeprefix("!")).replace(r"\-", "-")
        return f"(?!/)[{'^' if piece[1] == '!' else ''}{inner}]"
    return re.escape(piece)


def expand(root: Path, patterns: Sequence[str]) -> list[str]:
    """Return the regular files below the root that match a pattern, relative and sorted.

    Raises
    ------
    SuiteError
        A match is a link that leads out of the root.
    """
    base = root.resolve()
    try:
        found = {path for pattern in patterns for path in base.glob(pattern) if path.is_file()}
    except OSError as error:
        raise SuiteError(f"a pattern cannot be searched for: {error.strerror}") from error
    for path in sorted(found):
        if not path.resolve().is_relative_to(base):
            name = printable(path.relative_to(base).as_posix())
            raise SuiteError("is a link that leads out of the project", where=name)
    return matching((path.relative_to(base).as_posix() for path in found), patterns)

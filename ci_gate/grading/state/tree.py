"""Reads a folder that a trial left: every path with the digest of its content.

Folders are entered by their descriptors, no link is followed, no pipe is waited for, and the whole
is bounded in number, depth, bytes and time.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from pathlib import Path
from typing import Final

from ci_gate.errors import printable
from ci_gate.grading.databases import UnusableError
from ci_gate.grading.opening import FOLDER, NO_FOLLOW, NO_WAIT, why_unread
from ci_gate.grading.state.world import Entry

__all__ = ["DEEPEST", "LONGEST_WALK_S", "MOST_FILE_BYTES", "MOST_PATHS", "tree_of"]

MOST_PATHS: Final = 20_000
"""Paths of a working directory, beyond which it is refused."""

MOST_FILE_BYTES: Final = 256 * 2**20
"""Bytes of all its files together."""

DEEPEST: Final = 64
"""Folders within one another."""

LONGEST_WALK_S: Final = 10.0
"""Seconds after which reading it is ended."""

_CHUNK: Final = 2**18


def tree_of(folder: Path) -> dict[str, Entry]:
    """Return what lies below a folder, by path with forward slashes.

    Raises
    ------
    UnusableError
        Something cannot be read, or there is too much of it.
    """
    walk = _Walk()
    try:
        walk.enter(os.fspath(folder), None, "", 0)
    except OSError as error:
        shown = printable(walk.place or "the working directory")
        raise UnusableError(f"{shown} cannot be read: {why_unread(error)}") from error
    return walk.found


class _Walk:
    """A walk that is under way."""

    def __init__(self) -> None:
        self.found: dict[str, Entry] = {}
        self.place = ""
        self._bytes = MOST_FILE_BYTES
        self._deadline = time.monotonic() + LONGEST_WALK_S

    def enter(self, name: str, parent: int | None, prefix: str, depth: int) -> None:
        """Take in a folder; ``prefix`` is its path with a final slash, empty for the first."""
        if depth > DEEPEST:
            raise UnusableError(f"the working directory is deeper than {DEEPEST} folders")
        folder = os.open(name, os.O_RDONLY | NO_FOLLOW | FOLDER, dir_fd=parent)
        try:
            with os.scandir(folder) as entries:
                names = sorted(entry.name for entry in entries)
            if not names and prefix:
                self._keep(prefix.rstrip("/"), Entry(kind="folder"))
            for one in names:
                self._take(one, folder, prefix, depth)
        finally:
            os.close(folder)

    def _take(self, name: str, folder: int, prefix: str, depth: int) -> None:
        self.place = path = prefix + name
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
        if stat.S_ISDIR(mode):
            self.enter(name, folder, f"{path}/", depth + 1)
        elif stat.S_ISLNK(mode):
            self._keep(path, Entry(kind="link", target=os.readlink(name, dir_fd=folder)))
        elif stat.S_ISREG(mode):
            self._keep(path, self._file(name, folder))
        else:
            self._keep(path, Entry(kind="other"))

    def _keep(self, path: str, entry: Entry) -> None:
        self.found[path] = entry
        if len(self.found) > MOST_PATHS:
            raise UnusableError(f"the working directory has more than {MOST_PATHS} paths")

    def _file(self, name: str, folder: int) -> Entry:
        descriptor = os.open(name, os.O_RDONLY | NO_FOLLOW | NO_WAIT, dir_fd=folder)
        with open(descriptor, "rb", buffering=0) as file:  # noqa: PTH123 - a descriptor
            status, digest, size = os.fstat(descriptor), hashlib.sha256(), 0
            mode = status.st_mode
            # One with holes can be of any size, and would take as long to read.
            self._require_room(status.st_size)
            while stat.S_ISREG(mode) and (content := file.read(_CHUNK)):
                digest.update(content)
                size += len(content)
                self._spend(len(content))
        return Entry(
            kind="file",
            digest=digest.hexdigest(),
            size=size,
            executable=bool(mode & stat.S_IXUSR),
        )

    def _require_room(self, count: int) -> None:
        if count > self._bytes:
            raise UnusableError(f"the working directory has more than {MOST_FILE_BYTES} bytes")

    def _spend(self, count: int) -> None:
        self._require_room(count)
        self._bytes -= count
        if time.monotonic() > self._deadline:
            raise UnusableError(f"reading the working directory took over {LONGEST_WALK_S:g} s")

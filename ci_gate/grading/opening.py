"""Opens a file that a trial left, whatever the agent put in its place.

The path is walked folder by folder without following any symbolic link, and only a bounded regular
file is read: the agent can show a grader nothing that lies elsewhere, and let it wait for nothing.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

from ci_gate.errors import printable

__all__ = [
    "FOLDER",
    "LARGEST_READ",
    "NO_FOLLOW",
    "NO_WAIT",
    "read_bytes",
    "read_text",
    "why_unread",
]

LARGEST_READ: Final = 10_000_000
"""Bytes of the largest file that is read."""

# Missing on Windows, where no trial runs.
NO_FOLLOW: Final = getattr(os, "O_NOFOLLOW", 0)
NO_WAIT: Final = getattr(os, "O_NONBLOCK", 0)
FOLDER: Final = getattr(os, "O_DIRECTORY", 0)
# What opening a symbolic link without following it says, as the last or an inner part.
_LINK_ERRORS: Final = frozenset({errno.ELOOP, getattr(errno, "EMLINK", errno.ELOOP)})


def why_unread(error: OSError | UnicodeError) -> str:
    """Return in words why a file was not read."""
    if isinstance(error, UnicodeError):
        return "it is not UTF-8"
    if error.errno in _LINK_ERRORS:
        return "it is a symbolic link, which is not followed"
    return printable(error.strerror or error)


def read_text(workdir: Path | None, path: str, *, has_content: bool = True) -> str:
    """Return the text of a file.

    Parameters
    ----------
    workdir : Path or None
    path : str
        Relative, with forward slashes, without ``..``.
    has_content : bool
        False: it is only to be there; an empty text is returned.

    Raises
    ------
    FileNotFoundError
        There is no such file, or no folder.
    OSError
        It, or a folder on the way, is a link; it is not regular, too large, or cannot be read.
    UnicodeError
        It is not UTF-8.
    """
    return read_bytes(workdir, path, has_content=has_content).decode("utf-8")


def read_bytes(workdir: Path | None, path: str, *, has_content: bool = True) -> bytes:
    """Return the content of a file; parameters and errors as of ``read_text``."""
    if workdir is None:
        raise FileNotFoundError
    with _opened(workdir, path) as descriptor:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError("it is not a regular file")
        if not has_content:
            return b""
        with open(descriptor, "rb", closefd=False) as file:
            found = file.read(LARGEST_READ + 1)
    if len(found) > LARGEST_READ:
        raise OSError(f"it has more than {LARGEST_READ} bytes")
    return found


@contextlib.contextmanager
def _opened(workdir: Path, path: str) -> Iterator[int]:
    *folders, last = PurePosixPath(path).parts
    with contextlib.ExitStack() as stack:
        place = _open(stack, os.fspath(workdir), FOLDER, None)
        for folder in folders:
            try:
                place = _open(stack, folder, FOLDER, place)
            except NotADirectoryError:
                _refuse_link(folder, place)
                raise FileNotFoundError from None
        yield _open(stack, last, 0, place)


def _open(stack: contextlib.ExitStack, name: str, flags: int, folder: int | None) -> int:
    descriptor = os.open(name, os.O_RDONLY | NO_FOLLOW | NO_WAIT | flags, dir_fd=folder)
    stack.callback(os.close, descriptor)
    return descriptor


def _refuse_link(name: str, folder: int) -> None:
    # Opened as a folder, a symbolic link and a file give the same error.
    if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        raise OSError(errno.ELOOP, "a symbolic link")

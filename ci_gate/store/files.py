"""Opening and replacing whole files: never a device, never half a file.

This module decides how bytes reach and leave the disk. It must not know what they mean.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from pathlib import Path
from typing import BinaryIO, Final

from ci_gate.errors import FileFormatError, UsageError, printable
from ci_gate.machine import failed_write, reason_of

__all__ = [
    "is_file",
    "open_regular",
    "put_whole",
    "read_whole",
    "remove_file",
    "sync_folder",
    "write_whole",
]

MAX_WHOLE_BYTES: Final = 256 * 2**20
# Opening a pipe would wait for its writer, so that is refused before it can happen.
_OPEN_FLAGS: Final = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_CREATE_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for reading.

    Raises
    ------
    FileFormatError
        There is no such file, it is a folder, pipe or device, or it may not be read.
    """
    where = printable(path)
    try:
        descriptor = os.open(path, _OPEN_FLAGS)
    except FileNotFoundError as error:
        raise FileFormatError("there is no such file", where=where) from error
    except (OSError, ValueError) as error:
        raise FileFormatError(f"cannot be read: {reason_of(error)}", where=where) from error
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return os.fdopen(descriptor, "rb", buffering=2**18)
    os.close(descriptor)
    raise FileFormatError("is a folder, pipe or device, not a regular file", where=where)


def read_whole(path: Path, *, limit: int = MAX_WHOLE_BYTES) -> bytes:
    """Return the content of a regular file of at most ``limit`` bytes.

    Raises
    ------
    FileFormatError
        As ``open_regular``, or the file is larger.
    """
    with open_regular(path) as stream:
        content = stream.read(limit + 1)
    if len(content) > limit:
        raise FileFormatError(f"is larger than {limit} bytes", where=printable(path))
    return content


def write_whole(path: Path, content: bytes) -> None:
    """Replace a file by new content, all of it or nothing, and make that durable.

    Missing parent folders are made. The mode of an existing file is kept; a new one gets the mode
    that the process's umask leaves. On failure the file that was there is untouched and nothing is
    left beside it.

    Raises
    ------
    UsageError
        The path is a folder, link, pipe or device, or may not be written.
    InternalError
        The disk is full or broken.

    Notes
    -----
    A link is refused rather than followed: a change under judgement could have placed it.
    """
    mode = _mode_to_keep(path)
    temporary = path.parent / f".{secrets.token_hex(8)}.tmp"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _write_new(temporary, content, mode)
        temporary.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        raise failed_write(error, path) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


def is_file(path: Path) -> bool:
    """Return whether there is such a file; False also for a name that no folder can hold.

    ``Path.is_file`` raises for a name that is too long, and files name other files.
    """
    return os.path.isfile(path)  # noqa: PTH113 - as above


def remove_file(path: Path) -> None:
    """Remove a file that ``write_whole`` would replace; there need not be one.

    Raises
    ------
    UsageError
        The path is a folder, link, pipe or device, or may not be removed.
    InternalError
        The disk is broken.
    """
    if _mode_to_keep(path) is None:
        return
    try:
        path.unlink(missing_ok=True)
        sync_folder(path.parent)
    except OSError as error:
        raise failed_write(error, path) from error


def put_whole(path: Path, content: bytes, *, partial: Path) -> None:
    """Replace a file as ``write_whole`` does, without waiting until that is durable.

    Parameters
    ----------
    path : Path
        In a folder that exists; a link of this name is replaced and not followed.
    content : bytes
    partial : Path
        The name that the file has until it is whole; what is left there is removed.

    Raises
    ------
    UsageError, InternalError
        As ``write_whole``; nothing is left under either name but what was there.
    """
    try:
        partial.unlink(missing_ok=True)
        with os.fdopen(os.open(partial, _CREATE_FLAGS, 0o666), "wb") as stream:
            stream.write(content)
        partial.replace(path)
    except OSError as error:
        raise failed_write(error, path) from error
    finally:
        with contextlib.suppress(OSError):
            partial.unlink()


def _mode_to_keep(path: Path) -> int | None:
    try:
        found = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot be written: {reason_of(error)}", where=printable(path)) from error
    if stat.S_ISREG(found.st_mode):
        return stat.S_IMODE(found.st_mode)
    raise UsageError(
        "is a folder, link, pipe or device",
        where=printable(path),
        hint="Name a regular file or one that does not exist yet.",
    )


def _write_new(path: Path, content: bytes, mode: int | None) -> None:
    descriptor = os.open(path, _CREATE_FLAGS, 0o666)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(content)
        stream.flush()
        if mode is not None:
            path.chmod(mode)
        os.fsync(stream.fileno())


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable, where the system has a way to do so."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

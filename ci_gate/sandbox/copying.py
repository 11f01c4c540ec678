"""Copies of folders that stay inside themselves, with a digest of what was copied.

Symbolic links are copied as links and never followed; anything that is neither a folder, a regular
file nor a link is refused. What the copies are for is not known here.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Final, Protocol

__all__ = ["copy_file", "copy_folder", "remove_folder"]

_CHUNK: Final = 1 << 20
_REMOVAL_S: Final = 120.0
# Missing on Windows, where no trial runs.
_NO_FOLLOW: Final = getattr(os, "O_NOFOLLOW", 0)
_NO_WAIT: Final = getattr(os, "O_NONBLOCK", 0)


class _Hash(Protocol):
    def update(self, content: bytes, /) -> None: ...

    def hexdigest(self) -> str: ...


def copy_folder(source: Path, target: Path) -> str:
    """Copy the content of a folder into an existing folder and return its digest.

    Parameters
    ----------
    source, target : Path
        Existing folders.

    Returns
    -------
    str
        Hexadecimal SHA-256 over every relative name, type, executable bit, link text and byte.

    Raises
    ------
    OSError
        Something cannot be read or written, exists already, or is a device, pipe or socket.
    """
    digest = hashlib.sha256()
    _copy_entries(os.fspath(source), os.fspath(target), digest)
    return digest.hexdigest()


def copy_file(source: Path, target: Path) -> None:
    """Copy one regular file, following a link at ``source`` itself; ``target`` must not exist.

    Raises
    ------
    OSError
        As for ``copy_folder``.
    """
    _copy_content(os.path.realpath(source), os.fspath(target), hashlib.sha256())


def _copy_entries(source: str, target: str, digest: _Hash) -> None:
    with os.scandir(source) as entries:
        ordered = sorted(entries, key=lambda entry: entry.name)
    for entry in ordered:
        copied = os.path.join(target, entry.name)  # noqa: PTH118 - Path costs more than the copy
        if entry.is_symlink():
            _copy_link(entry, copied, digest)
        elif entry.is_dir(follow_symlinks=False):
            _enter(digest, "folder", entry.name)
            os.mkdir(copied, 0o700)  # noqa: PTH102 - as above
            _copy_entries(entry.path, copied, digest)
            _enter(digest, "end", "")
        else:
            _enter(digest, "file", entry.name)
            _copy_content(entry.path, copied, digest)


def _enter(digest: _Hash, kind: str, text: str) -> None:
    content = os.fsencode(text)
    digest.update(b"%s %d:%s" % (kind.encode(), len(content), content))


def _copy_link(entry: os.DirEntry[str], copied: str, digest: _Hash) -> None:
    destination = os.readlink(entry.path)  # noqa: PTH115 - the text as it is
    _enter(digest, "link", entry.name)
    _enter(digest, "to", destination)
    os.symlink(destination, copied)  # noqa: PTH211 - as above


def _copy_content(source: str, copied: str, digest: _Hash) -> None:
    flags = os.O_RDONLY | _NO_FOLLOW | _NO_WAIT
    with open(os.open(source, flags), "rb", buffering=0) as reading:  # noqa: PTH123 - a descriptor
        status = os.fstat(reading.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError(f"{source} is not a regular file")
        mode = 0o700 if status.st_mode & stat.S_IXUSR else 0o600
        _enter(digest, f"mode {mode:o} size", str(status.st_size))
        created = os.open(copied, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_FOLLOW, mode)
        with open(created, "wb", buffering=0) as writing:  # noqa: PTH123 - a descriptor
            while content := reading.read(_CHUNK):
                digest.update(content)
                _write_all(writing.fileno(), content)


def _write_all(descriptor: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def remove_folder(folder: Path) -> None:
    """Remove a folder with everything in it, as far as that is possible.

    The code under test may have taken away permissions, nested folders deeper than Python can
    follow, or still be writing. What is there even then is left for whoever removes the folder
    above.
    """
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        return
    except (OSError, RecursionError):
        _remove_stubborn(folder)


def _remove_stubborn(folder: Path) -> None:
    if not folder.is_symlink():
        _run_quietly("chmod", "-R", "u+rwx", os.fspath(folder))
    _run_quietly("rm", "-rf", "--", os.fspath(folder))


def _run_quietly(*command: str) -> None:
    subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=_REMOVAL_S
    )

"""The private folder that holds the worlds of a run, and what killed runs left of theirs.

A run holds a lock on its folder as long as it lives. A folder whose lock is free belongs to nobody,
and the next run removes it.
"""

from __future__ import annotations

import fcntl
import os
import stat
import tempfile
import time
from pathlib import Path
from typing import Final

from ci_gate.sandbox.copying import remove_folder

__all__ = ["Scratch", "sweep"]

_PREFIX: Final = "ci-gate-worlds-"
_LOCK: Final = "lock"
_NEW_S: Final = 3600.0


class Scratch:
    """A private folder, locked by this process.

    Parameters
    ----------
    parent : Path
        Where it is made; made itself where it does not exist.

    Attributes
    ----------
    folder : Path
    """

    def __init__(self, parent: Path) -> None:
        parent.mkdir(parents=True, exist_ok=True)
        self.folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent)).resolve()
        # Close-on-exec: an agent that outlives the run must not keep the lock.
        self._lock = os.open(self.folder / _LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def close(self) -> None:
        """Remove the folder with everything in it, and give up the lock."""
        remove_folder(self.folder)
        os.close(self._lock)


def sweep(parent: Path) -> int:
    """Remove the folders of runs that were killed; return how many.

    Only folders of this user with a lock file that nobody holds are touched.

    Parameters
    ----------
    parent : Path
        Where folders were made.
    """
    return sum(_removed(folder) for folder in parent.glob(f"{_PREFIX}*"))


def _removed_without_lock(folder: Path) -> bool:
    """Remove what an interrupted removal left; so new a folder may be about to be locked."""
    try:
        if time.time() - folder.lstat().st_mtime < _NEW_S:
            return False
        remove_folder(folder)
    except OSError:
        return False
    return True


def _removed(folder: Path) -> bool:
    try:
        state = folder.lstat()
        if not stat.S_ISDIR(state.st_mode) or state.st_uid != os.getuid():
            return False
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return _removed_without_lock(folder)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        remove_folder(folder)
    except OSError:
        return False
    finally:
        os.close(lock)
    return True

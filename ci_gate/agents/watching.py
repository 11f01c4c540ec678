"""Our end of the watchdog: one process a run that ends ours should this one be killed.

The process groups that are alive are kept in a file without a name. A pipe that only this process
holds open says that it lives: when it is gone, however it went, the system closes the pipe.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile

from ci_gate.agents import watchdog
from ci_gate.errors import AgentSetupError

__all__ = ["Watchdog"]

_FREE = watchdog.PLACE.pack(0)


class Watchdog:
    """A running watchdog.

    Parameters
    ----------
    mark : str
        Beginning of an entry of the environment by which a process that left its group is known.

    Raises
    ------
    AgentSetupError
        The system has no room for it.
    """

    def __init__(self, mark: str) -> None:
        self._places: dict[int, int] = {}
        self._free: list[int] = []
        try:
            self._file, self._popen, self._alive = _started(mark)
        except OSError as error:
            what = f"no process to watch over the agent's: {error.strerror}"
            hint = "Raise the limit of processes, or make room on disk."
            raise AgentSetupError(what, hint=hint) from error

    def add(self, group: int) -> None:
        """Take note that a process group began."""
        place = self._free.pop() if self._free else len(self._places)
        self._places[group] = place
        self._write(place, watchdog.PLACE.pack(group))

    def drop(self, group: int) -> None:
        """Take note that a process group has ended."""
        place = self._places.pop(group)
        self._free.append(place)
        self._write(place, _FREE)

    def _write(self, place: int, content: bytes) -> None:
        # On a full disk the watchdog knows less, which is no reason to end the run.
        with contextlib.suppress(OSError):
            os.pwrite(self._file, content, place * watchdog.PLACE.size)

    def close(self) -> None:
        """End it; everything that it watched has ended."""
        self._popen.kill()
        self._popen.wait()
        os.close(self._alive)
        os.close(self._file)


def _started(mark: str) -> tuple[int, subprocess.Popen[bytes], int]:
    """Return the file, the process, and the end of the pipe that says that this one lives."""
    with tempfile.TemporaryFile(prefix="ci-gate-") as file:
        reading, writing = os.pipe()
        try:
            popen = _process(file.fileno(), reading, mark)
            return os.dup(file.fileno()), popen, writing
        except BaseException:
            os.close(writing)
            raise
        finally:
            os.close(reading)


def _process(places: int, reading: int, mark: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-I", "-S", watchdog.__file__, str(places), mark],
        cwd="/",
        stdin=reading,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(places,),
        start_new_session=True,
    )

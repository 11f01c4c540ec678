"""The watchdog: a process that outlives ci-gate by a moment and ends what it had started.

It sleeps while ci-gate lives. When the pipe on its standard input closes, ci-gate is gone, however
it was killed, and nobody else knows its processes any more. It runs by itself and uses the standard
library alone; what it reads is written by ``watching``.

Notes
-----
The process groups that are alive stand in a file, each in a place of four bytes, 0 in a free one: a
line for each start and end would wake this process twice a trial. On Linux a process that left its
group is known by the beginning of an entry of its environment.
"""

from __future__ import annotations

# Nothing else is imported: one watchdog starts with every run, and ``signal``, which makes enums of
# these numbers, and ``contextlib`` would take as long as Python itself.
import _signal as signal  # type: ignore[import-not-found]  # typeshed leaves it out
import os
import struct
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["PLACE", "groups_in", "kill_all"]

PLACE = struct.Struct("=i")

_ROUNDS = 100
_PAUSE_S = 0.01
_ENDED_BY = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def groups_in(places: bytes) -> set[int]:
    """Return the process groups in a file."""
    whole = places[: len(places) // PLACE.size * PLACE.size]
    return {group for (group,) in PLACE.iter_unpack(whole) if group > 0}


def kill_all(groups: Iterable[int], mark: bytes) -> None:
    """Kill process groups, then every process with the mark, until there is none."""
    for group in groups:
        _end(os.killpg, group)
    for _ in range(_ROUNDS):
        found = _marked(mark)
        for pid in found:
            _end(os.kill, pid)
        if not found:
            return
        time.sleep(_PAUSE_S)


def _end(kill: Callable[[int, int], None], number: int) -> None:
    try:  # noqa: SIM105 - contextlib is not imported
        kill(number, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass  # it has ended, or belongs to somebody else


def _marked(mark: bytes) -> list[int]:
    """Return the living processes with the mark; none where the system does not show them."""
    try:
        names = os.listdir("/proc")
    except OSError:
        return []
    return [int(name) for name in names if name.isdecimal() and _is_marked(name, mark)]


def _is_marked(name: str, mark: bytes) -> bool:
    try:
        with open(f"/proc/{name}/environ", "rb") as file:
            return b"\0" + mark in b"\0" + file.read()
    except OSError:
        return False  # it has ended, or belongs to somebody else


def main() -> None:
    """Wait for the end of ci-gate and clean up after it."""
    for number in _ENDED_BY:  # ^C and a runner's polite end are for ci-gate to act on
        signal.signal(number, signal.SIG_IGN)
    places, mark = int(sys.argv[1]), os.fsencode(sys.argv[2])
    os.read(sys.stdin.fileno(), 1)
    kill_all(groups_in(os.pread(places, os.fstat(places).st_size, 0)), mark)


if __name__ == "__main__":
    main()

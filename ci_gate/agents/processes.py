"""Starts processes in sessions of their own and ends them with everything they started.

A child's whole process group dies with it. On Linux its descendants that left the group are found
too: this process adopts orphans (``PR_SET_CHILD_SUBREAPER``) and knows them by a mark in their
environment, or, since servers write their titles over it and ``env -i`` takes it away, by a limit
that nobody needs and every process inherits. A watchdog ends them, by the former alone, should this
process be killed. Nothing here knows what the processes are for.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence

from ci_gate.agents.stamps import Stamp, stamped, stamping
from ci_gate.agents.watching import Watchdog
from ci_gate.errors import PlatformError

__all__ = [
    "Child",
    "Nursery",
    "clean_environment",
    "described_exit",
    "encoded",
    "require_memory_limit",
    "require_posix",
]

MARK = "CI_GATE_PROCESS"
"""Environment variable by which a process that left its group is known."""

_MARK_KEY = MARK.encode()

_SECRET_TO_US = frozenset(
    {
        "ACTIONS_ID_TOKEN_REQUEST_TOKEN",
        "ACTIONS_ID_TOKEN_REQUEST_URL",
        "ACTIONS_RUNTIME_TOKEN",
        "CI_GATE_POSTGRES_SERVER",
        "GH_TOKEN",
        "GITHUB_ENV",
        "GITHUB_OUTPUT",
        "GITHUB_PATH",
        "GITHUB_STATE",
        "GITHUB_STEP_SUMMARY",
        "GITHUB_TOKEN",
        "__PYVENV_LAUNCHER__",
    }
)
_SECRET_PREFIX = "ACTIONS_ID_TOKEN_REQUEST_"
_CAN_PEEK = hasattr(os, "waitid")  # not on macOS before Python 3.13
_SUBREAPER = 36
_POLL_S = (0.001, 0.02)
_SWEEP_ROUNDS = 100
_SWEEP_PAUSE_S = 0.01
_END_S = 5.0


def require_posix(what: str) -> None:
    """Refuse on Windows what needs POSIX processes.

    Raises
    ------
    PlatformError
        This is Windows.
    """
    if sys.platform == "win32":
        raise PlatformError(
            f"{what} needs POSIX processes, which Windows does not have",
            hint="Run it under Linux, macOS or WSL; comparing and reporting work here.",
        )


def require_memory_limit(memory_mb: int) -> None:
    """Refuse a memory limit where the system would not keep it.

    Raises
    ------
    PlatformError
        There is a limit, and this is not Linux.
    """
    if memory_mb and sys.platform != "linux":
        raise PlatformError("agent.memory_mb needs Linux; this system does not limit a process")


def clean_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for the code under test: without the runner's own credentials.

    The step's command files and tokens of GitHub Actions stay with the gate; everything else, the
    agent's own keys among it, is passed on.
    """
    return {
        name: value
        for name, value in environment.items()
        if name not in _SECRET_TO_US and not name.startswith(_SECRET_PREFIX)
    }


def encoded(environment: Mapping[str, str]) -> dict[bytes, bytes]:
    """Return an environment as the system takes it, so that this is done once for many starts."""
    return {os.fsencode(name): os.fsencode(value) for name, value in environment.items()}


def described_exit(status: int) -> str:
    """Return the words for an exit status as ``subprocess`` reports it."""
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"signal {signal.Signals(-status).name}"
    except ValueError:
        return f"signal {-status}"


class Child:
    """A running process with its own session.

    Parameters
    ----------
    popen : subprocess.Popen
        Started with ``start_new_session``.
    nursery : Nursery
        Which started it.
    mark : str
        In the environment of everything it starts.
    stamp : int or None
        On everything it starts; None where the system has no stamps.
    """

    def __init__(
        self, popen: subprocess.Popen[bytes], nursery: Nursery, mark: str, stamp: Stamp
    ) -> None:
        self.pid = popen.pid
        self.mark = mark
        self.stamp = stamp
        self._popen = popen
        self._nursery = nursery
        self._loop = asyncio.get_running_loop()
        self._status: int | None = None
        self._waiting: list[asyncio.Future[int]] = []
        self._calls: list[Callable[[int], None]] = []
        self._watch = _watch(self)

    @property
    def running(self) -> bool:
        """Whether its end has not been seen yet."""
        return self._status is None

    async def wait(self) -> int:
        """Return the exit status, negative for a signal, once it and its group have ended."""
        if self._status is not None:
            return self._status
        future: asyncio.Future[int] = self._loop.create_future()
        self._waiting.append(future)
        return await future

    def on_exit(self, call: Callable[[int], None]) -> None:
        """Have a function called with the exit status, soon after the end."""
        self._calls.append(call)

    def poll(self) -> bool:
        """Return whether it has ended; if so, end its group and take its status."""
        if self._status is not None:
            return True
        status = self._taken_status()
        if status is None:
            return False
        self._status = status
        self._watch.close()
        self._nursery.forget(self)
        self._tell(status)
        return True

    def _taken_status(self) -> int | None:
        """End the group of a dead process and take its status, in this order where possible.

        Until its status is taken nobody else can have its number.
        """
        if _CAN_PEEK:
            if not _has_exited(self.pid):
                return None
            _kill_group(self.pid)
        status = self._popen.poll()
        if status is not None and not _CAN_PEEK:
            _kill_group(self.pid)
        return status

    def _tell(self, status: int) -> None:
        for future in self._waiting:
            if not future.done():
                future.set_result(status)
        for call in self._calls:
            self._loop.call_soon(call, status)

    def kill(self) -> None:
        """Kill it, its group and every descendant that can be found; returns at once."""
        if self._status is not None:
            return
        # They are found first, for no path leads to orphans. The group dies first and at one
        # stroke: a shell whose child had died before it would go on with its next command.
        found = _descendants(self.pid)
        _kill_group(self.pid)
        self._nursery.condemn(found)

    async def end(self) -> int:
        """Kill it with all its descendants and return its status when they are gone."""
        self.kill()
        status = await self.wait()
        await self.sweep()
        return status

    async def sweep(self) -> None:
        """Kill what it left behind outside its group; for a child that has ended."""
        await self._nursery.sweep({self.pid}, self.mark, {self.stamp})

    def orphans(self) -> frozenset[int]:
        """Return the processes that left it and its group and are still there, as far as known."""
        return frozenset(self._nursery.orphans({self.pid}, self.mark, {self.stamp}))


def _has_exited(pid: int) -> bool:
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)


def _kill_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


class _PidfdWatch:
    """Tells a child at once that its process has ended."""

    def __init__(self, child: Child, descriptor: int) -> None:
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(descriptor, child.poll)

    def close(self) -> None:
        self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)


class _PollingWatch:
    """Looks after a child at growing intervals, where there are no process descriptors."""

    def __init__(self, child: Child) -> None:
        self._child = child
        self._loop = asyncio.get_running_loop()
        self._pause_s, self._longest_s = _POLL_S
        self._timer = self._loop.call_later(self._pause_s, self._look)

    def _look(self) -> None:
        if not self._child.poll():
            self._pause_s = min(self._longest_s, 1.5 * self._pause_s)
            self._timer = self._loop.call_later(self._pause_s, self._look)

    def close(self) -> None:
        self._timer.cancel()


def _watch(child: Child) -> _PidfdWatch | _PollingWatch:
    if sys.platform == "linux":
        with contextlib.suppress(OSError):  # an old kernel, a sandbox, or no descriptor left
            return _PidfdWatch(child, os.pidfd_open(child.pid))
    return _PollingWatch(child)


class Nursery:
    """Starts children and finds what they leave behind."""

    def __init__(self) -> None:
        self._children: dict[int, Child] = {}
        self._unswept: set[int] = set()
        self._stamps: set[Stamp] = set()
        self._condemned: set[int] = set()
        self._prefix = secrets.token_hex(8)
        self._count = 0
        self._adopts = False
        self._watchdog: Watchdog | None = None

    def open(self) -> None:
        """Begin to adopt orphans, where the system can, and have this process watched.

        Raises
        ------
        AgentSetupError
            The system has no room for the watchdog.
        """
        if self._watchdog is None:
            self._watchdog = Watchdog(f"{MARK}={self._prefix}.")
            self._adopts = _adopt(enabled=True)

    def spawn(
        self,
        command: Sequence[str],
        *,
        cwd: str,
        environment: Mapping[bytes, bytes],
        stdin: int = subprocess.DEVNULL,
        stdout: int = subprocess.DEVNULL,
        stderr: int = subprocess.DEVNULL,
        pass_descriptors: Sequence[int] = (),
        memory_mb: int = 0,
    ) -> Child:
        """Start a program in a session of its own.

        Parameters
        ----------
        command : sequence of str
            Absolute program and arguments; no shell reads them.
        cwd : str
        environment : mapping of bytes to bytes
            See ``encoded``.
        stdin, stdout, stderr : int
            Descriptors, or constants of ``subprocess``.
        pass_descriptors : sequence of int
            Kept open in the child.
        memory_mb : int
            Limit of its data in MiB; 0 is none.

        Raises
        ------
        OSError
            It cannot be started.
        """
        self._count += 1
        mark = f"{self._prefix}.{self._count}."
        with stamping() as stamp:
            popen = subprocess.Popen(
                limited(command, memory_mb),
                cwd=cwd,
                env={**environment, _MARK_KEY: mark.encode()},
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                pass_fds=tuple(pass_descriptors),
                start_new_session=True,
            )
        child = Child(popen, self, mark, stamp)
        self._stamps.add(child.stamp)
        self._children[child.pid] = child
        if self._watchdog is not None:
            self._watchdog.add(child.pid)
        return child

    def forget(self, child: Child) -> None:
        """Take note that a child has ended."""
        self._children.pop(child.pid, None)
        self._unswept.add(child.pid)
        if self._watchdog is not None:
            self._watchdog.drop(child.pid)

    def condemn(self, pids: Iterable[int]) -> None:
        """Kill processes, parents before their children, and remember to take their status."""
        for pid in pids:
            _kill(pid)
            self._condemned.add(pid)

    async def sweep(self, sessions: set[int], mark: str, stamps: set[Stamp]) -> None:
        """Kill the orphans of sessions and those with a mark or stamp; bounded in time."""
        self._unswept -= sessions
        for _ in range(_SWEEP_ROUNDS if self._adopts else 0):
            for pid in self.orphans(sessions, mark, stamps):
                self.condemn([pid, *_descendants(pid)])
            self._reap()
            if not self._condemned:
                return
            await asyncio.sleep(_SWEEP_PAUSE_S)
        # What cannot be seen to end within the bound is not waited for again: numbers are reused.
        self._condemned.clear()

    def orphans(self, sessions: set[int], mark: str, stamps: set[Stamp]) -> list[int]:
        """Return the adopted orphans of sessions and those with a mark or stamp."""
        return [
            pid
            for pid in (self._orphans() if self._adopts else ())
            if _session_of(pid) in sessions or _is_marked(pid, mark) or stamped(pid, stamps)
        ]

    def _orphans(self) -> list[int]:
        # The system gives orphans to the first thread of the process that adopts them.
        own = os.getpid()
        try:
            children = _read(f"/proc/{own}/task/{own}/children")
        except OSError:
            return []
        return [pid for pid in map(int, children.split()) if pid not in self._children]

    def _reap(self) -> None:
        self._condemned = {pid for pid in self._condemned if not _is_gone(pid)}

    async def close(self) -> None:
        """Kill everything that was started here and stop adopting; safe to call twice."""
        children = list(self._children.values())
        for child in children:
            child.kill()
        if children:
            await asyncio.wait([asyncio.ensure_future(c.wait()) for c in children], timeout=_END_S)
        await self.sweep(set(self._unswept), self._prefix, self._stamps)
        if self._adopts:
            self._adopts = False
            _adopt(enabled=False)
        watchdog, self._watchdog = self._watchdog, None
        if watchdog is not None:
            watchdog.close()


def limited(command: Sequence[str], memory_mb: int) -> list[str]:
    """Return the command under a limit of its data, set by a shell that becomes the program."""
    if not memory_mb:
        return list(command)
    script = f'ulimit -d {memory_mb * 1024} && exec "$@"'
    return ["/bin/sh", "-c", script, "sh", *command]


_adopters = 0


def _adopt(*, enabled: bool) -> bool:
    """Make this process the parent of its orphaned descendants, counted over all nurseries."""
    global _adopters  # the flag is the process's, not an object's
    if sys.platform != "linux":
        return False
    _adopters += 1 if enabled else -1
    return _set_subreaper(enabled=_adopters > 0)


def _set_subreaper(*, enabled: bool) -> bool:
    try:
        import ctypes

        return bool(ctypes.CDLL(None).prctl(_SUBREAPER, int(enabled), 0, 0, 0) == 0)
    except (ImportError, OSError, AttributeError):
        return False


def _children_of(pid: int) -> list[int]:
    """Return the living and dead children of a process; none where the system does not say."""
    found: list[int] = []
    with contextlib.suppress(OSError, ValueError):
        for task in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - once a trial: pathlib is slow
            found += map(int, _read(f"/proc/{pid}/task/{task}/children").split())
    return found


def _read(path: str) -> bytes:
    """Return a small file of the system's, whole."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = []
        while part := os.read(descriptor, 65536):
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(descriptor)


def _descendants(pid: int) -> list[int]:
    found: list[int] = []
    queue = [pid]
    while queue:
        children = [child for child in _children_of(queue.pop()) if child not in found]
        found += children
        queue += children
    return found


def _is_marked(pid: int, mark: str) -> bool:
    with contextlib.suppress(OSError):
        return f"\0{MARK}={mark}".encode() in b"\0" + _read(f"/proc/{pid}/environ")
    return False


def _session_of(pid: int) -> int:
    try:
        return os.getsid(pid)
    except OSError:
        return -2


def _is_gone(pid: int) -> bool:
    """Take the status of a dead child; False for one that lives or is not ours yet."""
    try:
        return os.waitpid(pid, os.WNOHANG) != (0, 0)
    except ChildProcessError:
        return not _exists(pid)


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True

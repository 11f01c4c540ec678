"""Runs one command to its end: fed, drained, limited in time, and gone with all its descendants."""

from __future__ import annotations

import asyncio
import errno
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from ci_gate import codec
from ci_gate.agents.capture import Capture, Drain
from ci_gate.agents.processes import Child, Nursery, encoded
from ci_gate.errors import AgentSetupError, printable
from ci_gate.model.suite import PlannedTrial
from ci_gate.model.worlds import OUTBOX, PAYMENTS, TABLES
from ci_gate.ports import TrialErrored, TrialSandbox
from ci_gate.prng import format_seed

__all__ = ["TEMPORARY_FAILURE", "Execution", "Program", "trial_environment"]

TEMPORARY_FAILURE = 75
"""Exit status (``EX_TEMPFAIL``) by which a command says that its environment was at fault."""

# A process that ends sooner is read once, at its end: a pipe holds what it can print until then
# or makes it wait, and it is not worth being watched.
_BRIEF_S = 0.005

_NOT_A_PROGRAM = frozenset({errno.ENOENT, errno.EACCES, errno.ENOEXEC, errno.ENOTDIR, errno.EPERM})


def trial_environment(trial: PlannedTrial, sandbox: TrialSandbox) -> dict[str, str]:
    """Return the variables by which a process of any language learns about its trial."""
    variables = {
        "CI_GATE_SEED": format_seed(trial.seed),
        "CI_GATE_TASK": trial.task.id,
        "CI_GATE_TRIAL": str(trial.trial),
        "CI_GATE_NOW": sandbox.now,
    }
    if sandbox.workdir is not None:
        variables["CI_GATE_WORKDIR"] = str(sandbox.workdir)
    if sandbox.database is not None:
        variables["CI_GATE_DB"] = str(sandbox.database)
    if sandbox.postgres is not None:
        variables["CI_GATE_POSTGRES_URL"] = sandbox.postgres
    if trial.task.identity is not None:
        variables["CI_GATE_IDENTITY"] = codec.encode(trial.task.identity).decode()
    return variables | _record_files(sandbox.home)


def _record_files(home: Path | None) -> dict[str, str]:
    """Return where tables in memory, messages and payments lie; the last two begin with a line."""
    if home is None:
        return {}
    files = {
        "CI_GATE_OUTBOX": str(home / OUTBOX),
        "CI_GATE_PAYMENTS": str(home / PAYMENTS),
    }
    tables = home / TABLES
    return files | {"CI_GATE_TABLES": str(tables)} if tables.exists() else files


class Execution(msgspec.Struct, frozen=True, kw_only=True):
    """How a command ended.

    Parameters
    ----------
    status : int
        Exit status, negative for a signal.
    is_timeout : bool
        It was killed because its time was up.
    """

    status: int
    is_timeout: bool


class Program:
    """A command that is executed once a trial.

    Parameters
    ----------
    program : str
        Absolute path.
    root : str
        Current folder.
    environment : mapping of str to str
    nursery : Nursery
    memory_mb : int
        0: no limit.
    prefix : sequence of str
        Command that becomes the program which is named after it.
    """

    def __init__(
        self,
        program: str,
        *,
        root: str,
        environment: Mapping[str, str],
        nursery: Nursery,
        memory_mb: int,
        prefix: Sequence[str] = (),
    ) -> None:
        self._program = program
        self._prefix = prefix
        self._root = root
        self._environment = encoded(environment)
        self._nursery = nursery
        self._memory_mb = memory_mb
        self._has_started = False

    async def execute(
        self,
        arguments: Sequence[str],
        *,
        variables: Mapping[str, str],
        content: bytes | None,
        timeout_s: float,
        stdout: Capture,
        stderr: Capture | None,
    ) -> Execution:
        """Run the program to its end.

        Parameters
        ----------
        arguments : sequence of str
        variables : mapping of str to str
            Environment of this execution, over the program's own.
        content : bytes or None
            Standard input; None is an empty one.
        timeout_s : float
        stdout, stderr : Capture
            Where the output is kept; without ``stderr`` both go to ``stdout``.

        Raises
        ------
        AgentSetupError
            The system cannot execute the program and never could in this run.
        TrialErrored
            The system has no room for another process.
        """
        pipes = _Pipes(content, stdout, stderr)
        try:
            child = self._start(arguments, variables, pipes)
            return await _ended(child, pipes, timeout_s)
        finally:
            pipes.close()

    def _start(
        self, arguments: Sequence[str], variables: Mapping[str, str], pipes: _Pipes
    ) -> Child:
        try:
            child = self._nursery.spawn(
                [*self._prefix, self._program, *arguments],
                cwd=self._root,
                environment={**self._environment, **encoded(variables)},
                stdin=pipes.stdin,
                stdout=pipes.stdout,
                stderr=pipes.stderr,
                memory_mb=self._memory_mb,
            )
        except OSError as error:
            raise self._refusal(error) from error
        finally:
            pipes.close_theirs()
        self._has_started = True
        return child

    def _refusal(self, error: OSError) -> Exception:
        what = f"{printable(self._program)} cannot be executed: {error.strerror}"
        if self._has_started or error.errno not in _NOT_A_PROGRAM:
            return TrialErrored(f"harness: {what}")
        hint = "A script needs a first line such as #!/bin/sh, or its interpreter named first."
        return AgentSetupError(what, where="agent.command", hint=hint)


class _Pipes:
    """The three streams of a process: its ends, which it inherits, and ours."""

    def __init__(self, content: bytes | None, stdout: Capture, stderr: Capture | None) -> None:
        self._theirs: list[int] = []
        self._drains: list[Drain] = []
        self._feed: _Feed | None = None
        self.stdin = subprocess.DEVNULL
        try:
            if content is not None:
                self.stdin, writing = self._pipe(0)
                self._feed = _Feed(writing, content)
            self.stdout = self._drained(stdout)
            self.stderr = self.stdout if stderr is None else self._drained(stderr)
        except OSError as error:
            self.close_theirs()
            self.close()
            raise TrialErrored(f"harness: no pipe to the agent: {error.strerror}") from error

    def _pipe(self, their_end: int) -> tuple[int, int]:
        ends = os.pipe()
        self._theirs.append(ends[their_end])
        return ends

    def _drained(self, capture: Capture) -> int:
        reading, writing = self._pipe(1)
        self._drains.append(Drain(reading, capture))
        return writing

    def close_theirs(self) -> None:
        """Close the ends that the process has by now."""
        for descriptor in self._theirs:
            os.close(descriptor)
        self._theirs.clear()

    def begin(self) -> None:
        """Read what is printed from now on."""
        for drain in self._drains:
            drain.begin()

    def take_rest(self) -> None:
        """Read what was printed by a process that has ended."""
        for drain in self._drains:
            drain.take_rest()

    def close(self) -> None:
        """Close our ends."""
        for drain in self._drains:
            drain.close()
        if self._feed is not None:
            self._feed.close()


async def _ended(child: Child, pipes: _Pipes, timeout_s: float) -> Execution:
    is_late = False

    def expire() -> None:
        nonlocal is_late
        is_late = child.running
        child.kill()

    loop = asyncio.get_running_loop()
    timers = (loop.call_later(timeout_s, expire), loop.call_later(_BRIEF_S, pipes.begin))
    try:
        status = await child.wait()
        pipes.take_rest()
        await child.sweep()
    finally:
        for timer in timers:
            timer.cancel()
        child.kill()
    return Execution(status=status, is_timeout=is_late)


class _Feed:
    """Writes the standard input of a process, as fast as it reads."""

    def __init__(self, descriptor: int, content: bytes) -> None:
        self._descriptor = descriptor
        self._content = memoryview(content)
        self._loop = asyncio.get_running_loop()
        self._is_waiting = False
        os.set_blocking(descriptor, False)
        self._write()

    def _write(self) -> None:
        try:
            self._content = self._content[os.write(self._descriptor, self._content) :]
        except BlockingIOError:
            pass
        except OSError:  # it does not read its input, which is its right
            self._content = memoryview(b"")
        if not self._content:
            self.close()
        elif not self._is_waiting:
            self._is_waiting = True
            self._loop.add_writer(self._descriptor, self._write)

    def close(self) -> None:
        if self._descriptor < 0:
            return
        if self._is_waiting:
            self._loop.remove_writer(self._descriptor)
        os.close(self._descriptor)
        self._descriptor = -1

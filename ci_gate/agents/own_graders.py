"""Runs graders of the team's own in worker processes; what a grade means is not known here."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

from ci_gate.agents.launching import WorkerSetting
from ci_gate.agents.pools import WorkerPool
from ci_gate.agents.processes import Nursery, clean_environment, require_posix
from ci_gate.agents.results import one_line
from ci_gate.agents.wire import GradeOrder, Incoming
from ci_gate.agents.workers import TimeUpError, WorkerEndedError
from ci_gate.model.agent import AgentSpec

__all__ = ["OwnGraderWorkers"]

_GRADE_S = 60.0
_FILE = re.compile(r'(?m)(?<=^  )File "([^"\n]*)"')

# Nothing can be put beneath what is no folder: neither a cache that was committed nor one that the
# agent writes is taken for the source.
_SOURCE_ALONE = {"PYTHONPYCACHEPREFIX": os.devnull, "PYTHONDONTWRITEBYTECODE": "1"}


class OwnGraderWorkers:
    """Runs graders of the team's own in workers of the agent's interpreter.

    They are other processes than those in which the agent runs. What ``start`` was told of is
    imported before the agent starts and from the source alone, so that an agent that then writes
    to those files does not change who judges it.

    Parameters
    ----------
    spec : AgentSpec
        Names the interpreter and the root; of any protocol.
    jobs : int
        Worker processes at most.
    timeout_s : float
        Time of one grading.

    Notes
    -----
    This keeps mistakes and simple tricks out, and no more: agent and graders are processes of the
    same user. A worker that has to be replaced because a grader crashed, timed out or left a thread
    or a process behind imports again what the files then hold, and so does a grader that imports
    while it judges.
    """

    def __init__(self, spec: AgentSpec, *, jobs: int = 1, timeout_s: float = _GRADE_S) -> None:
        environment = clean_environment(os.environ) | _SOURCE_ALONE
        self._setting = WorkerSetting(spec, environment, real_delays=False, threads=1)
        self._root = os.path.realpath(spec.root)
        self._functions: tuple[str, ...] = ()
        self._jobs = max(1, jobs)
        self._timeout_s = timeout_s
        self._nursery = Nursery()
        self._workers: WorkerPool | None = None

    async def start(self, functions: Iterable[str]) -> None:
        """Start the workers and import functions in each; without a function, do nothing.

        A function that cannot be imported fails every grading that asks for it.

        Parameters
        ----------
        functions : iterable of str
            ``package.module:function``.

        Raises
        ------
        AgentSetupError
            No worker can be started, or it ended or hung while importing.
        """
        self._functions = tuple(sorted(set(functions)))
        if self._functions:
            await self._pool().fill()

    async def call(self, function: str, payload: Mapping[str, Any]) -> dict[str, Any]:
        """Return ``{"result": value}`` of a grader, or ``{"error": text}`` with its ``trace``.

        Parameters
        ----------
        function : str
            ``package.module:function``.
        payload : mapping
            ``task``, ``trajectory``, ``before``, ``after``: JSON values.

        Raises
        ------
        AgentSetupError
            No worker can be started.
        """
        pool = self._pool()
        worker = await pool.acquire()
        is_well = False
        try:
            number = worker.number()
            order = GradeOrder(id=number, function=function, **payload)
            message = await worker.ask(order, number, None, timeout_s=self._timeout_s)
            is_well = True
            return _graded(message, self._root)
        except TimeUpError:
            return {"error": f"timeout after {self._timeout_s:g} s"}
        except WorkerEndedError as error:
            return {"error": str(error)}
        finally:
            if is_well and not worker.is_retired:
                pool.release(worker)
            else:
                worker.kill()
                await pool.discard(worker)

    def _pool(self) -> WorkerPool:
        if self._workers is None:
            require_posix("running a grader")
            functions = " ".join(self._functions)
            launcher = self._setting.launcher("grade", functions, self._nursery, "graders")
            self._nursery.open()
            self._workers = WorkerPool(launcher, self._jobs)
        return self._workers

    async def close(self) -> None:
        """End every worker; safe to call twice."""
        workers, self._workers = self._workers, None
        if workers is not None:
            await workers.close()
        await self._nursery.close()


def _graded(message: Incoming, root: str) -> dict[str, Any]:
    if message.failure is None:
        return {"result": message.result}
    trace = _FILE.sub(lambda found: f'File "{_shortened(found[1], root)}"', message.failure.trace)
    return {"error": one_line(message.failure.reason), "trace": trace}


def _shortened(path: str, root: str) -> str:
    """Return a path as it is below the root, else its name: the same on every machine."""
    inside = path.startswith(root + os.sep)
    return path[len(root) + 1 :] if inside else os.path.basename(path)  # noqa: PTH119 - may be <string>

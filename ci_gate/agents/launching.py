"""Starts workers of the agent's interpreter, or says why they cannot be started."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ci_gate.agents.interpreters import BOOT, OLDEST, behind_script, find_interpreter
from ci_gate.agents.processes import Nursery, encoded
from ci_gate.agents.strictness import Strictness
from ci_gate.agents.wire import Incoming, LoadOrder
from ci_gate.agents.workers import Worker, WorkerEndedError
from ci_gate.errors import AgentSetupError, printable
from ci_gate.model.agent import AgentSpec

__all__ = ["Launcher", "Mode", "WorkerSetting"]

Mode = Literal["serial", "inline", "grade"]

_WORKER = Path(__file__).with_name("worker.py")
_GUARD = Path(__file__).with_name("worker_guard.py")
_CHANNELS = Path(__file__).with_name("worker_channels.py")
_WORLDS = Path(__file__).with_name("worker_worlds.py")
_LOAD_S = 60.0
_SHOWN_CHARS = 1500


class Launcher:
    """Starts workers of one kind.

    Parameters
    ----------
    interpreter : str
        Absolute path.
    order : LoadOrder
    environment : mapping of str to str
    nursery : Nursery
    timeout_s : float
        Time to load, raised to a minute at least.
    key : str
        What messages call the function, such as ``agent.python``.
    """

    def __init__(
        self,
        interpreter: str,
        order: LoadOrder,
        *,
        environment: Mapping[str, str],
        nursery: Nursery,
        timeout_s: float,
        key: str,
    ) -> None:
        self._interpreter = interpreter
        self._order = order
        # One order of sets and dicts of strings in every run, unless the team chose otherwise.
        self._environment = encoded({"PYTHONHASHSEED": "0", **environment})
        self._nursery = nursery
        self._timeout_s = max(_LOAD_S, timeout_s)
        self._key = key

    async def launch(self) -> Worker:
        """Return a worker that has loaded its function.

        Raises
        ------
        AgentSetupError
            The interpreter cannot be started or is too old, or the function cannot be loaded.
        """
        try:
            worker = self._spawn()
        except OSError as error:
            raise self._error(
                f"{printable(self._interpreter)} cannot be started: {error}"
            ) from error
        try:
            return await self._loaded(worker)
        except BaseException:
            worker.kill()
            await worker.end()
            raise

    def _spawn(self) -> Worker:
        # Each pair is the reading and the writing end; the child gets one end of each.
        orders, messages, printed = os.pipe(), os.pipe(), os.pipe()
        theirs = (orders[0], messages[1], printed[1])
        ours = (messages[0], orders[1], printed[0])
        try:
            child = self._nursery.spawn(
                self._command(orders[0], messages[1]),
                cwd=self._order.root,
                environment=self._environment,
                stdout=printed[1],
                stderr=printed[1],
                pass_descriptors=(orders[0], messages[1]),
            )
        except BaseException:
            _close_all(ours)
            raise
        finally:
            _close_all(theirs)
        return Worker(child, *ours)

    def _command(self, incoming: int, outgoing: int) -> list[str]:
        return [self._interpreter, "-c", BOOT, str(_WORKER), str(incoming), str(outgoing)]

    async def _loaded(self, worker: Worker) -> Worker:
        try:
            message = await worker.load(self._order, timeout_s=self._timeout_s)
        except WorkerEndedError as error:
            what = f"{printable(self._interpreter)} ended while loading ({error})"
            raise self._error(what, worker.output()) from None
        except TimeoutError:
            what = f"{self._order.function!r} did not load within {self._timeout_s:g} s"
            raise self._error(what, worker.output()) from None
        if message.op != "ready":
            raise self._refused(message, worker.output())
        return worker

    def _refused(self, message: Incoming, output: str) -> AgentSetupError:
        if message.op == "old":
            return AgentSetupError(
                f"{printable(self._interpreter)} is Python {printable(message.python)}, and a "
                f"worker needs {OLDEST[0]}.{OLDEST[1]} or later",
                where="agent.interpreter",
                hint="Set [agent] interpreter to the agent's own Python.",
            )
        what = f"{self._order.function!r} cannot be loaded by {printable(self._interpreter)}"
        return self._error(f"{what}: {printable(message.error)}", output + message.trace)

    def _error(self, what: str, output: str = "") -> AgentSetupError:
        shown = _indented(output[-_SHOWN_CHARS:])
        hint = f"Loaded from {printable(self._order.root)}."
        return AgentSetupError(what, where=self._key, hint=f"{hint}{shown}")


def _close_all(descriptors: tuple[int, ...]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def _indented(output: str) -> str:
    lines = [f"\n    {printable(line)}" for line in output.splitlines() if line.strip()]
    return "".join(lines)


class WorkerSetting(NamedTuple):
    """How the workers of an agent are started, whatever they are for.

    Parameters
    ----------
    spec : AgentSpec
    environment : mapping of str to str
    real_delays : bool
        Whether the delay of an injected fault is waited for.
    threads : int
        Trials at a time in one worker.
    strictness : Strictness or None
        None: nothing that a worker runs is held to anything, as that of a grader.
    """

    spec: AgentSpec
    environment: Mapping[str, str]
    real_delays: bool
    threads: int
    strictness: Strictness | None = None

    def launcher(self, mode: Mode, function: str, nursery: Nursery, key: str) -> Launcher:
        """Return what starts workers that run a function, named as messages shall name it.

        Raises
        ------
        AgentSetupError
            There is no such interpreter.
        """
        path = self.environment.get("PATH")
        interpreter = find_interpreter(self.spec.interpreter, root=self.spec.root, path=path)
        if self.spec.interpreter == "auto":
            interpreter = behind_script(interpreter, self.spec.root, self.environment)
        order = LoadOrder(
            root=os.path.realpath(self.spec.root),
            mode=mode,
            function=function,
            memory_mb=self.spec.memory_mb,
            real_delays=self.real_delays,
            threads=self.threads,
            channels=str(_CHANNELS),
            worlds=str(_WORLDS),
            base_url_env=self.spec.base_url_env,
            send_seed=self.spec.send_seed,
            **self._held(),
        )
        return Launcher(
            interpreter,
            order,
            environment=self.environment,
            nursery=nursery,
            timeout_s=self.spec.timeout_s,
            key=key,
        )

    def _held(self) -> dict[str, Any]:
        """Return what a worker is told of what its trials are held to."""
        if self.strictness is None:
            return {}
        network, determinism = self.strictness.network(self.spec), self.strictness.determinism
        is_watched = network != "inherit" or determinism != "off"
        return {
            "allow": self.spec.allow,
            "guard": str(_GUARD) if is_watched else None,
            "network": network,
            "determinism": determinism,
        }

"""The command protocol: one process a trial, JSON in, the last JSON line of its output back."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import msgspec

from ci_gate import codec
from ci_gate.agents.capture import RESULT_BYTES, TAIL_BYTES, Capture
from ci_gate.agents.evidence import Ending, Patterns, with_ending
from ci_gate.agents.executions import TEMPORARY_FAILURE, Execution, Program, trial_environment
from ci_gate.agents.interpreters import find_program
from ci_gate.agents.orders import shown_task, timeout_of
from ci_gate.agents.processes import (
    Nursery,
    clean_environment,
    described_exit,
    require_memory_limit,
    require_posix,
)
from ci_gate.agents.results import GarbageError, one_line, trajectory_of
from ci_gate.model.agent import AgentSpec
from ci_gate.model.suite import PlannedTrial
from ci_gate.model.trial import Status, Trajectory
from ci_gate.ports import TrialSandbox
from ci_gate.prng import format_seed

__all__ = ["PROTOCOL", "CommandAgent", "opened_program"]

PROTOCOL = "ci-gate/1"


def opened_program(spec: AgentSpec, nursery: Nursery, environment: Mapping[str, str]) -> Program:
    """Return the program of an agent that is a command, found and found executable.

    Raises
    ------
    AgentSetupError
        There is no such program.
    PlatformError
        Windows, or a memory limit where the system has none.
    """
    require_posix("running an agent")
    require_memory_limit(spec.memory_mb)
    program = find_program(
        spec.command[0], root=spec.root, path=environment.get("PATH"), key="agent.command"
    )
    nursery.open()
    return Program(
        program,
        root=spec.root,
        environment=environment,
        nursery=nursery,
        memory_mb=spec.memory_mb,
    )


class CommandAgent:
    """An agent that is a program in any language.

    Parameters
    ----------
    spec : AgentSpec
        With ``command``.
    environment : mapping of str to str or None
        None: this process's, without the runner's credentials.
    """

    def __init__(self, spec: AgentSpec, *, environment: Mapping[str, str] | None = None) -> None:
        self._spec = spec
        self._patterns = Patterns(spec.environment_errors)
        self._environment = clean_environment(environment or os.environ)
        self._nursery = Nursery()
        self._program: Program | None = None

    async def start(self) -> None:
        """Find the program.

        Raises
        ------
        AgentSetupError
            There is no such program or it is not executable.
        """
        self._opened()

    def _opened(self) -> Program:
        if self._program is None:
            self._program = opened_program(self._spec, self._nursery, self._environment)
        return self._program

    async def run(self, trial: PlannedTrial, sandbox: TrialSandbox) -> Trajectory:
        """Run one trial; the agent's failures are in the result."""
        program = self._opened()
        stdout, stderr = Capture(head_bytes=0, tail_bytes=RESULT_BYTES), Capture()
        timeout_s = timeout_of(self._spec, trial)
        execution = await program.execute(
            self._spec.command[1:],
            variables=trial_environment(trial, sandbox),
            content=_order(trial),
            timeout_s=timeout_s,
            stdout=stdout,
            stderr=stderr,
        )
        return self._trajectory(execution, sandbox, stdout, stderr, timeout_s)

    def _trajectory(
        self,
        execution: Execution,
        sandbox: TrialSandbox,
        stdout: Capture,
        stderr: Capture,
        timeout_s: float,
    ) -> Trajectory:
        trajectory, garbage = _result(stdout, sandbox)
        ending = _ending(execution, trajectory, garbage, timeout_s)
        printed = stdout.tail()[-TAIL_BYTES:].decode("utf-8", "replace") + stderr.text()
        if ending is None:
            return msgspec.structs.replace(trajectory, output_tail=printed)
        return with_ending(trajectory, ending, self._patterns, output=printed)

    async def close(self) -> None:
        """End every process; safe to call twice."""
        await self._nursery.close()


def _order(trial: PlannedTrial) -> bytes:
    order = {
        "protocol": PROTOCOL,
        "task": shown_task(trial.task),
        "trial": trial.trial,
        "seed": format_seed(trial.seed),
    }
    return codec.encode(order) + b"\n"


def _result(stdout: Capture, sandbox: TrialSandbox) -> tuple[Trajectory, str]:
    """Return the result that was printed, and what is wrong with it."""
    try:
        return trajectory_of(last_json_line(stdout), sandbox.steps), ""
    except GarbageError as error:
        return Trajectory(steps=tuple(sandbox.steps)), f"garbage: {one_line(error)}"


def last_json_line(stdout: Capture) -> dict[str, Any]:
    """Return the last line of an output that is a JSON object.

    Raises
    ------
    GarbageError
        There is none in what was kept.
    """
    for line in reversed(stdout.tail().splitlines()):
        stripped = line.strip()
        if stripped.startswith(b"{") and stripped.endswith(b"}"):
            found = _object(stripped)
            if found is not None:
                return found
    bounded = f" in the last {RESULT_BYTES} bytes" if stdout.total_bytes > RESULT_BYTES else ""
    raise GarbageError(f"no line of the standard output is a JSON object{bounded}")


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        found = codec.decode(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _ending(
    execution: Execution, trajectory: Trajectory, garbage: str, timeout_s: float
) -> Ending | None:
    """Return what went wrong, the most telling first; None where nothing did."""
    if execution.is_timeout:
        return Ending(reason=f"timeout after {timeout_s:g} s")
    if trajectory.status is Status.ERRORED:
        return Ending(reason=trajectory.reason or "", claims_environment=True)
    if execution.status == TEMPORARY_FAILURE:
        return Ending(reason=described_exit(execution.status), claims_environment=True)
    if execution.status != 0:
        return Ending(reason=f"crash: {described_exit(execution.status)}")
    if garbage:
        return Ending(reason=garbage)
    if trajectory.status is Status.FAILED:
        return Ending(reason=trajectory.reason or "")
    return None

"""What agents that are a program have in common: found once, executed once a trial, ended for good.

How an order and a result are written is the protocols' own: ``command`` and ``exit_code``.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ci_gate.agents.capture import Capture
from ci_gate.agents.evidence import Ending, Patterns, time_up, with_ending
from ci_gate.agents.executions import Program, trial_environment
from ci_gate.agents.interpreters import find_program
from ci_gate.agents.orders import timeout_of
from ci_gate.agents.processes import (
    Nursery,
    clean_environment,
    require_memory_limit,
    require_posix,
)
from ci_gate.agents.secluding import secluding_command
from ci_gate.model.agent import AgentSpec
from ci_gate.model.suite import PlannedTrial
from ci_gate.model.trial import Step, Trajectory
from ci_gate.ports import TrialSandbox

__all__ = ["Exchange", "ProgramAgent"]


class Exchange(NamedTuple):
    """What one execution of the program is given, and where its output is kept.

    Parameters
    ----------
    arguments : sequence of str
        What follows the program.
    content : bytes or None
        Standard input; None is an empty one.
    stdout : Capture
    stderr : Capture or None
        None: both streams go to ``stdout``.
    """

    arguments: Sequence[str]
    content: bytes | None
    stdout: Capture
    stderr: Capture | None = None


class ProgramAgent(ABC):
    """An agent that is a program, one process a trial.

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

    @abstractmethod
    def _exchange(self, trial: PlannedTrial) -> Exchange:
        """Return what a trial gives the program."""

    @abstractmethod
    def _read(
        self, exchange: Exchange, status: int, steps: tuple[Step, ...]
    ) -> tuple[Trajectory, Ending | None]:
        """Return what happened, its output with it, and what went wrong: None where nothing did.

        Parameters
        ----------
        exchange : Exchange
            After the end of the program.
        status : int
            Exit status, negative for a signal.
        steps : tuple of Step
            The calls that passed the sandbox.
        """

    async def start(self) -> None:
        """Find the program.

        Raises
        ------
        AgentSetupError
            There is no such program or it is not executable, or its network cannot be cut.
        PlatformError
            Windows, or a memory limit where the system has none.
        """
        self._opened()

    def _opened(self) -> Program:
        if self._program is None:
            self._program = self._found()
        return self._program

    def _found(self) -> Program:
        spec, path = self._spec, self._environment.get("PATH")
        require_posix("running an agent")
        require_memory_limit(spec.memory_mb)
        program = find_program(spec.command[0], root=spec.root, path=path, key="agent.command")
        prefix = secluding_command() if spec.network == "none" else ()
        self._nursery.open()
        return Program(
            program,
            prefix=prefix,
            root=spec.root,
            environment=self._environment,
            nursery=self._nursery,
            memory_mb=spec.memory_mb,
        )

    async def run(self, trial: PlannedTrial, sandbox: TrialSandbox) -> Trajectory:
        """Run one trial; the agent's failures are in the result."""
        timeout_s = timeout_of(self._spec, trial)
        exchange = self._exchange(trial)
        execution = await self._opened().execute(
            exchange.arguments,
            variables=trial_environment(trial, sandbox),
            content=exchange.content,
            timeout_s=timeout_s,
            stdout=exchange.stdout,
            stderr=exchange.stderr,
        )
        trajectory, ending = self._read(exchange, execution.status, tuple(sandbox.steps))
        if execution.is_timeout:
            ending = time_up(timeout_s)
        if ending is None:
            return trajectory
        return with_ending(trajectory, ending, self._patterns, output=trajectory.output_tail)

    async def close(self) -> None:
        """End every process; safe to call twice."""
        await self._nursery.close()

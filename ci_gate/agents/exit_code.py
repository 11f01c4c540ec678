"""The exit-code protocol: any test command; 0 is a pass, 75 errored, the rest a failure."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence

from ci_gate.agents.capture import Capture
from ci_gate.agents.command import opened_program
from ci_gate.agents.evidence import Ending, Patterns, with_ending
from ci_gate.agents.executions import TEMPORARY_FAILURE, Execution, Program, trial_environment
from ci_gate.agents.orders import timeout_of
from ci_gate.agents.processes import Nursery, clean_environment, described_exit
from ci_gate.model.agent import AgentSpec
from ci_gate.model.suite import PlannedTrial
from ci_gate.model.trial import Status, Trajectory
from ci_gate.ports import TrialSandbox
from ci_gate.prng import format_seed

__all__ = ["ExitCodeAgent", "filled"]

_PLACE = re.compile(r"\{(task|trial|seed)\}")


def filled(arguments: Sequence[str], trial: PlannedTrial) -> list[str]:
    """Return the arguments with ``{task}``, ``{trial}`` and ``{seed}`` filled in.

    Each argument stays one argument whatever the task is called, and what was filled in is not
    looked at again.
    """
    values = {
        "task": trial.task.id,
        "trial": str(trial.trial),
        "seed": format_seed(trial.seed),
    }
    return [_PLACE.sub(lambda place: values[place[1]], argument) for argument in arguments]


class ExitCodeAgent:
    """An agent that is judged by the exit status of a command.

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
        """Run one trial; its status is the command's."""
        program = self._opened()
        timeout_s = timeout_of(self._spec, trial)
        printed = Capture()
        execution = await program.execute(
            filled(self._spec.command[1:], trial),
            variables=trial_environment(trial, sandbox),
            content=None,
            timeout_s=timeout_s,
            stdout=printed,
            stderr=None,
        )
        return self._trajectory(execution, sandbox, printed.text(), timeout_s)

    def _trajectory(
        self, execution: Execution, sandbox: TrialSandbox, printed: str, timeout_s: float
    ) -> Trajectory:
        trajectory = Trajectory(
            steps=tuple(sandbox.steps), status=Status.PASSED, output_tail=printed
        )
        if execution.is_timeout:
            ending = Ending(reason=f"timeout after {timeout_s:g} s")
        elif execution.status == 0:
            return trajectory
        else:
            ending = Ending(
                reason=described_exit(execution.status),
                claims_environment=execution.status == TEMPORARY_FAILURE,
            )
        return with_ending(trajectory, ending, self._patterns, output=printed)

    async def close(self) -> None:
        """End every process; safe to call twice."""
        await self._nursery.close()

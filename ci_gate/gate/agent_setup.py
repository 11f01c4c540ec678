"""Run ``[agent] setup``: what makes a fresh work tree ready for its agent.

Decides under what conditions the command runs: in the agent's folder, without the runner's
credentials, bounded in time and output, gone with all its processes. What it does is the team's
own.
"""

from __future__ import annotations

import os
from typing import Final

from ci_gate.agents.capture import Capture
from ci_gate.agents.executions import Execution, Program
from ci_gate.agents.interpreters import find_program
from ci_gate.agents.processes import Nursery, clean_environment, described_exit
from ci_gate.engine.cancellation import to_its_end
from ci_gate.engine.executors import run_locally
from ci_gate.errors import AgentSetupError, printable
from ci_gate.model.agent import AgentSpec
from ci_gate.ports import TrialErrored

__all__ = ["SETUP_TIMEOUT_S", "run_setup"]

SETUP_TIMEOUT_S: Final = 900.0
_WHERE: Final = "agent.setup"
_SHOWN_CHARS: Final = 1500


def run_setup(agent: AgentSpec, *, timeout_s: float = SETUP_TIMEOUT_S) -> None:
    """Run the command of an agent that has one, in the agent's root.

    Raises
    ------
    AgentSetupError
        It cannot be started, took longer than ``timeout_s``, or ended with another status than 0;
        the hint has the end of what it printed.
    KeyboardInterrupt
        The user stopped it.
    """
    if not agent.setup:
        return
    output = Capture()
    ended = run_locally(lambda: _executed(agent, output, timeout_s))
    if ended.is_timeout:
        raise _failed(f"did not end within {timeout_s:g} s", output)
    if ended.status:
        raise _failed(f"failed with {described_exit(ended.status)}", output)


async def _executed(agent: AgentSpec, output: Capture, timeout_s: float) -> Execution:
    environment = clean_environment(os.environ)
    path = environment.get("PATH")
    program = find_program(agent.setup[0], root=agent.root, path=path, key=_WHERE)
    nursery = Nursery()
    nursery.open()
    command = Program(
        program, root=agent.root, environment=environment, nursery=nursery, memory_mb=0
    )
    try:
        return await command.execute(
            agent.setup[1:],
            variables={},
            content=None,
            timeout_s=timeout_s,
            stdout=output,
            stderr=None,
        )
    except TrialErrored as error:
        raise AgentSetupError(error.reason, where=_WHERE) from error
    finally:
        await to_its_end(nursery.close())


def _failed(what: str, output: Capture) -> AgentSetupError:
    lines = output.text()[-_SHOWN_CHARS:].splitlines()
    shown = "".join(f"\n    {printable(line)}" for line in lines if line.strip())
    return AgentSetupError(what, where=_WHERE, hint=f"It printed:{shown}" if shown else "")

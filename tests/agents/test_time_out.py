"""A trial whose time is up does not take another step, under every protocol."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ci_gate.model.trial import Status, Trajectory
from ci_gate.ports import Agent
from tests.agents.desks import Desk, ScriptedWorld, closing, run_one
from tests.speeds import slow
from tests.trials import trial_of

TRIALS = 32
AT_A_TIME = 8

# Each step outlasts the trial's time; whoever is woken by the end of its child takes the next one.
SHELL = "#!/bin/sh\nsleep 300; echo next >> steps\nsleep 300; echo next >> steps\n"
NESTED = f"#!/bin/sh\nsh -c '{SHELL}'; echo next >> steps\n"
APART = f"#!/bin/sh\nsetsid sh -c '{SHELL}' &\nsetsid sleep 300; echo next >> steps\n"
PYTHON = """
import subprocess
def run(task, env):
    subprocess.run("sleep 300; echo next >> steps", shell=True)
    with open("steps", "a") as file:
        file.write("next")
"""


def command(desk: Desk, **spec: Any) -> Agent:
    return desk.command("./agent.sh", timeout_s=0.1, **spec)


def exit_code(desk: Desk, **spec: Any) -> Agent:
    return desk.exit_code("./agent.sh", timeout_s=0.1, **spec)


def python(desk: Desk, **spec: Any) -> Agent:
    return desk.python(jobs=AT_A_TIME, timeout_s=0.1, **spec)


def all_of(agent: Agent) -> list[Trajectory]:
    """Run some trials at a time until there were many."""

    async def puller() -> list[Trajectory]:
        count = TRIALS // AT_A_TIME
        return [await agent.run(trial_of(trial=n), ScriptedWorld()) for n in range(count)]

    async def run() -> list[Trajectory]:
        await agent.start()
        pulled = await asyncio.gather(*(puller() for _ in range(AT_A_TIME)))
        return [trajectory for some in pulled for trajectory in some]

    found: list[Trajectory] = closing(agent, run)
    return found


@pytest.mark.parametrize(
    ("agent", "script"),
    [
        pytest.param(command, SHELL, id="command"),
        pytest.param(exit_code, SHELL, id="exit-code"),
        pytest.param(exit_code, NESTED, id="nested"),
        pytest.param(
            exit_code,
            APART,
            id="out-of-the-group",
            marks=[
                pytest.mark.slow,
                pytest.mark.skipif(sys.platform != "linux", reason="only Linux finds them"),
            ],
        ),
        pytest.param(python, "", id="python", marks=pytest.mark.slow),
    ],
)
def test_nothing_runs_after_a_time_out(
    tmp_path: Path, agent: Callable[..., Agent], script: str
) -> None:
    """A parent is dead before its child's death could wake it, in the group and out of it."""
    desk = Desk(tmp_path, PYTHON)
    desk.program("agent.sh", script)
    found = all_of(agent(desk))
    assert {(t.status, t.reason) for t in found} == {(Status.FAILED, "timeout after 0.1 s")}
    assert not (tmp_path / "steps").exists()


@pytest.mark.parametrize("agent", [command, *slow(exit_code, python)])
def test_a_time_out_is_no_environment_error(tmp_path: Path, agent: Callable[..., Agent]) -> None:
    """The words by which the harness reports the end of the time excuse nobody."""
    desk = Desk(tmp_path, PYTHON)
    desk.program("agent.sh", SHELL)
    patterns = ("(?i)timeout", "TimeoutError", "after")
    trajectory = run_one(agent(desk, environment_errors=patterns))
    assert (trajectory.status, trajectory.reason) == (Status.FAILED, "timeout after 0.1 s")

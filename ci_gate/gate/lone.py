"""One run outside any suite: how its agent is started, what it is told, and when it has finished.

There is nobody to judge it: a run that ends well has finished, and its trace says what happened.
Whether its calls are made or answered from a recording is not known here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from ci_gate import config as configuration
from ci_gate.config import Config, without_faults
from ci_gate.errors import UsageError, printable
from ci_gate.gate.project import nearest_config
from ci_gate.gate.replaying import Playback
from ci_gate.gate.witness import Witness
from ci_gate.model.agent import FaultPolicy
from ci_gate.model.suite import Limits, PlannedTrial, Suite, Task
from ci_gate.model.trace import Origin
from ci_gate.model.trial import Status, Trajectory
from ci_gate.ports import TrialRunner, TrialSandbox

__all__ = [
    "LONE",
    "LoneWitness",
    "configured_function",
    "lone_config",
    "lone_suite",
    "lone_trial",
    "require_function",
    "with_faults",
]

LONE: Final = "adhoc"
"""Id of the task that an agent outside any suite is given, and folder of its traces."""

_FUNCTION: Final = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
_NO_CONFIG: Final = b'[[suite]]\nname = "adhoc"\ntasks = ["-"]\n[agent]\npython = "stand:in"\n'


def lone_config(
    config_path: Path | None, here: Path, *, python: str | None, command: Sequence[str]
) -> Config:
    """Return the configuration of a run: that of the project, where there is one, but its agent.

    Parameters
    ----------
    config_path : Path or None
        None looks in ``here`` and above; there need not be one.
    here : Path
        Where a command runs, and all without a configuration.
    python : str or None
        Of the agent.
    command : sequence of str
        Of the agent where ``python`` is None.

    Raises
    ------
    ConfigError
        The configuration that is there has mistakes.
    """
    found = config_path or nearest_config(here)
    if found is None:
        config = configuration.parse(_NO_CONFIG, name="(no configuration)", root=here)
    else:
        config = configuration.load(found)
    agent = msgspec.structs.replace(
        config.agent,
        python=python,
        command=tuple(command) if python is None else (),
        protocol="command" if python is None else "python",
        root=str(here) if python is None else config.agent.root,
        isolation="process",
    )
    return msgspec.structs.replace(config, agent=agent)


def configured_function(config_path: Path | None, here: Path) -> str | None:
    """Return the Python agent that the configuration names; None where there is none.

    Raises
    ------
    ConfigError
        As ``lone_config``.
    """
    found = config_path or nearest_config(here)
    return None if found is None else configuration.load(found).agent.python


def with_faults(config: Config, *, has_faults: bool) -> Config:
    """Return the configuration with its faults, the default ones, or none at all."""
    if not has_faults:
        return without_faults(config)
    return msgspec.structs.replace(config, faults=config.faults or FaultPolicy())


def require_function(name: str) -> None:
    """Refuse what does not name a function.

    Raises
    ------
    UsageError
        It is not of the form ``module:function``.
    """
    if _FUNCTION.fullmatch(name) is None:
        raise UsageError(
            f"{printable(name)!r} names no function",
            where="--python",
            hint="Write it as module:function, such as desk.agent:run.",
        )


def lone_suite(task: Task) -> Suite:
    """Return a suite of one task."""
    return Suite(name=LONE, root_seed=task.base_seed, trials=1, tasks=(task,), digest="")


def lone_trial(
    origin: Origin, *, seed: int, fixture: Path, timeout_s: float | None = None
) -> PlannedTrial:
    """Return the only trial of a task that has no graders.

    Parameters
    ----------
    origin : Origin
        What the agent is told.
    seed : int
        Of the trial.
    fixture : Path
        Absolute.
    timeout_s : float or None
        None: the configuration's.
    """
    task = Task(
        id=LONE,
        instruction=origin.instruction,
        input=origin.input,
        fixture=str(fixture),
        fixture_path=str(fixture),
        limits=Limits(timeout_s=timeout_s),
        base_seed=seed,
        digest="",
        source="--fixture",
    )
    return PlannedTrial(task=task, trial=0, repeat=0, attempt=1, seed=seed)


class LoneWitness(Witness):
    """Sees a run that nobody judges: without a status of its own it has finished well."""

    def __init__(self, playback: Playback | None = None) -> None:
        super().__init__(playback)

    def watching(self, agent: TrialRunner) -> TrialRunner:
        """Return the agent with this witness in front of it."""
        return _Finishing(super().watching(agent))


class _Finishing:
    def __init__(self, agent: TrialRunner) -> None:
        self._agent = agent

    async def run(self, trial: PlannedTrial, sandbox: TrialSandbox) -> Trajectory:
        trajectory = await self._agent.run(trial, sandbox)
        if trajectory.status is None:
            return msgspec.structs.replace(trajectory, status=Status.PASSED)
        return trajectory

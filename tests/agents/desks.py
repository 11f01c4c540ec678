"""A place where agents are written and run for real, and a world that records and injects."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ci_gate.agents.command import CommandAgent
from ci_gate.agents.exit_code import ExitCodeAgent
from ci_gate.agents.python_agent import PythonAgent
from ci_gate.model.agent import AgentSpec
from ci_gate.model.suite import PlannedTrial
from ci_gate.model.trial import Step, Trajectory
from ci_gate.ports import Agent, Observation, TrialSandbox
from ci_gate.sandbox.values import plain_of
from tests.trials import trial_of


class ScriptedWorld:
    """A world that records calls as the real one does; faults come by the number of the call."""

    def __init__(
        self,
        faults: Mapping[int, Observation] | None = None,
        *,
        workdir: Path | None = None,
        database: Path | None = None,
        home: Path | None = None,
        now: str = "2026-01-01T09:00:00Z",
    ) -> None:
        self.home = home
        self.workdir = workdir
        self.database = database
        self.postgres: str | None = None
        self.folder = home
        self.initial_state: str | None = None
        self.now = now
        self.steps: list[Step] = []
        self.lanes: list[str] = []
        self.closed = 0
        self._faults = faults or {}

    def observe(
        self,
        kind: str,
        name: str,
        arguments: Any,
        output: Any,
        *,
        is_error: bool,
        turn: int | None,
        lane: str = "main",
        duration_ms: float | None = None,
        determinism: object = None,
        first: object = None,
    ) -> Observation:
        """Record a call and return its output, or the fault that was planned for it."""
        passed = Observation(output=output, is_error=is_error)
        seen = self._faults.get(len(self.steps), passed)
        self.steps.append(
            Step(
                kind=kind,
                name=name,
                input=plain_of(arguments),
                output=plain_of(seen.output),
                is_error=seen.is_error,
                fault=seen.fault,
                turn=turn,
            )
        )
        self.lanes.append(lane)
        return seen

    answers = False

    def note(self, *drawn: Any, at_end: bool = False) -> None:
        """Keep nothing of what was drawn."""

    def answer(self, lane: str, kind: str, name: str, arguments: Any) -> Observation:
        """Answer nothing: every call is made."""
        raise AssertionError("nobody is to be asked")

    def finish(self, trajectory: Trajectory) -> None:
        """Keep no trace."""

    def close(self) -> None:
        """Count how often the world was closed."""
        self.closed += 1


def fault(kind: str, text: str = "[CHAOS_FAULT_INJECTED]: broken", **fields: Any) -> Observation:
    """Return an injected fault that comes as an error."""
    return Observation(**{"output": text, "is_error": True, "fault": kind} | fields)


class Desk:
    """A folder with an agent in it.

    Parameters
    ----------
    root : Path
    source : str
        Of the module ``desk``.
    """

    def __init__(self, root: Path, source: str = "") -> None:
        self.root = root
        (root / "desk.py").write_text(source)

    def python(self, function: str = "run", jobs: int = 1, **spec: Any) -> PythonAgent:
        """Return the agent that is a function of ``desk``."""
        options = {"interpreter": sys.executable, "timeout_s": 20.0, "root": str(self.root)} | spec
        real_delays = options.pop("real_delays", False)
        agent = AgentSpec(python=f"desk:{function}", protocol="python", **options)
        return PythonAgent(agent, jobs=jobs, real_delays=real_delays)

    def program(self, name: str, text: str) -> Path:
        """Write an executable."""
        path = self.root / name
        path.write_text(text)
        path.chmod(0o755)
        return path

    def command(self, *command: str, **spec: Any) -> CommandAgent:
        """Return the agent that is a command."""
        return CommandAgent(self._spec(command, "command", spec))

    def exit_code(self, *command: str, **spec: Any) -> ExitCodeAgent:
        """Return the agent that is judged by its exit status."""
        return ExitCodeAgent(self._spec(command, "exit-code", spec))

    def _spec(self, command: Sequence[str], protocol: Any, spec: Mapping[str, Any]) -> AgentSpec:
        options = {"timeout_s": 20.0, "root": str(self.root)} | dict(spec)
        return AgentSpec(command=tuple(command), protocol=protocol, **options)


def run_one(
    agent: Agent, world: TrialSandbox | None = None, trial: PlannedTrial | None = None
) -> Trajectory:
    """Start an agent, run one trial, close the agent."""
    return run_all(agent, [(trial or trial_of(), world or ScriptedWorld())])[0]


def run_all(agent: Agent, trials: Sequence[tuple[PlannedTrial, TrialSandbox]]) -> list[Trajectory]:
    """Start an agent, run trials one after the other, close the agent."""

    async def run() -> list[Trajectory]:
        await agent.start()
        return [await agent.run(trial, world) for trial, world in trials]

    return closing(agent, run)


def closing(agent: Agent, run: Callable[[], Any]) -> Any:
    """Run a coroutine and close the agent whatever happens."""

    async def main() -> Any:
        try:
            return await run()
        finally:
            await agent.close()

    return asyncio.run(main())

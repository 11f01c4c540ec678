"""Execute trials: agent, worlds and graders put together, run by the engine, taken down again."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ci_gate.agents.own_graders import OwnGraderWorkers
from ci_gate.config import Config
from ci_gate.engine.cancellation import to_its_end
from ci_gate.engine.executors import run_locally
from ci_gate.engine.real_clock import RealClock
from ci_gate.engine.runner import run_trials
from ci_gate.engine.settings import EngineSettings, RunResult, default_jobs
from ci_gate.gate.witness import Witness
from ci_gate.model.run import StopReason
from ci_gate.model.suite import PlannedTrial, Suite
from ci_gate.plugins import GraderPorts, agent_of, graders_of
from ci_gate.ports import Agent, OutcomeSink, ProgressSink
from ci_gate.sandbox.world import WorldFactory

__all__ = ["Executed", "Execution", "Work", "execute"]

_LAUNDERED: Final = {
    "zero-tokens": "{n} judged trials report 0 tokens with an answer",
    "empty": "{n} judged trials have neither an answer nor a step",
    "provider-error": "{n} judged trials answer with the text of a provider's error",
}


@dataclass(frozen=True, kw_only=True)
class Execution:
    """By what and how trials are executed.

    Attributes
    ----------
    config : Config
    suite : Suite
        The tasks whose trials may come.
    jobs, retries : int or None
        Instead of the configuration's.
    budget_usd : float or None
    """

    config: Config
    suite: Suite
    jobs: int | None = None
    retries: int | None = None
    budget_usd: float | None = None


@dataclass(frozen=True, kw_only=True)
class Work:
    """What is to be executed, and who is told.

    Attributes
    ----------
    trials : sequence of PlannedTrial
    sink : OutcomeSink
    progress : ProgressSink
    spent_usd : float
        Spent before, in US dollars.
    done : int
        Trials finished before.
    """

    trials: Sequence[PlannedTrial]
    sink: OutcomeSink
    progress: ProgressSink
    spent_usd: float = 0.0
    done: int = 0


@dataclass(frozen=True, kw_only=True)
class Executed:
    """How it ended, and what was noticed."""

    reason: StopReason
    rounds: int
    warnings: tuple[str, ...]


def execute(
    execution: Execution, work: Callable[[], Work], *, witness: Witness | None = None
) -> Executed:
    """Start the agent, fetch the work, run it; every finished trial is in its sink when counted.

    The work is fetched after the agent was started and every fixture read, so that a mistake there
    leaves every file as it was.

    Raises
    ------
    AgentSetupError
        The agent cannot be started.
    SuiteError
        A fixture cannot be used.
    GateError
        The sink cannot keep a record.
    """
    result = run_locally(lambda: _run(execution, work, witness))
    return Executed(reason=result.reason, rounds=result.rounds, warnings=_warnings(result))


async def _run(
    execution: Execution, fetch: Callable[[], Work], witness: Witness | None
) -> RunResult:
    spec, faults = execution.config.agent, execution.config.faults
    settings = _settings(execution)
    agent = agent_of(spec, jobs=settings.jobs, faults=faults)
    own = OwnGraderWorkers(spec, jobs=min(settings.jobs, default_jobs(0, inline=False)))
    with WorldFactory(
        Path(tempfile.gettempdir()), faults, always_workdir=spec.protocol != "python"
    ) as worlds:
        worlds.prepare(execution.suite.tasks)
        async with _running(agent, own, _own_functions(execution.suite)):
            work = fetch()
            return await run_trials(
                work.trials,
                agent=agent if witness is None else witness.watching(agent),
                sandboxes=worlds,
                graders=graders_of(
                    execution.suite.tasks, GraderPorts(call=own.call, initial=worlds.initial)
                ),
                sink=work.sink,
                progress=work.progress,
                clock=RealClock(),
                settings=settings,
                spent_usd=work.spent_usd,
                done=work.done,
            )


@asynccontextmanager
async def _running(
    agent: Agent, own: OwnGraderWorkers, functions: Sequence[str]
) -> AsyncIterator[None]:
    """Start the agent; whatever happens and however often it is cancelled, no process is left.

    Who judges is imported first: the agent's code cannot change it any more.
    """
    try:
        await own.start(functions)
        await agent.start()
        yield
    finally:
        try:
            await to_its_end(agent.close())
        finally:
            await to_its_end(own.close())


def _own_functions(suite: Suite) -> list[str]:
    specs = (spec for task in suite.tasks for spec in task.graders)
    return [spec.options["function"] for spec in specs if spec.type == "python"]


def _settings(execution: Execution) -> EngineSettings:
    config = execution.config
    inline = config.agent.isolation == "inline"
    return EngineSettings(
        jobs=default_jobs(execution.jobs or config.run.jobs, inline=inline),
        max_per_minute=config.run.max_per_minute,
        retries=config.run.retries if execution.retries is None else execution.retries,
        seed=execution.suite.root_seed,
        budget_usd=execution.budget_usd,
        laundered_patterns=config.agent.laundered_errors,
    )


def _warnings(result: RunResult) -> tuple[str, ...]:
    return tuple(
        f"{_LAUNDERED[kind].format(n=count)}; if these are errors of a provider, "
        "[agent] laundered_errors turns them into errored trials."
        for kind, count in sorted(result.laundered.items())
        if count
    )

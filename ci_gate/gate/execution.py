"""Execute trials: agent, worlds and graders put together, run by the engine, taken down again."""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ci_gate.agents.own_graders import OwnGraderWorkers
from ci_gate.agents.strictness import Determinism, Noted, Strictness
from ci_gate.config import Config
from ci_gate.engine.cancellation import to_its_end
from ci_gate.engine.executors import run_locally
from ci_gate.engine.laundering import BEYOND
from ci_gate.engine.real_clock import RealClock
from ci_gate.engine.runner import run_trials
from ci_gate.engine.settings import EngineSettings, RunResult, default_jobs
from ci_gate.errors import AgentSetupError
from ci_gate.gate.asking import KeptBeside, asking
from ci_gate.gate.fixture_texts import FixtureTexts
from ci_gate.gate.initial_states import checked_states, state_digest
from ci_gate.gate.metering import Metered
from ci_gate.gate.pricing import Pricing
from ci_gate.gate.recording import redactor_maker
from ci_gate.gate.secrecy import error_without, record_without
from ci_gate.gate.witness import Witness
from ci_gate.model.agent import FaultPolicy
from ci_gate.model.run import StopReason
from ci_gate.model.suite import PlannedTrial, Suite
from ci_gate.plugins import GraderPorts, agent_of, graders_of
from ci_gate.ports import Agent, OutcomeSink, ProgressSink, Steering, TrialRunner
from ci_gate.sandbox.postgres import TrialDatabases
from ci_gate.sandbox.recording import Recorder
from ci_gate.sandbox.world import AnswerSource
from ci_gate.sandbox.world_factory import WorldFactory

__all__ = ["Executed", "Execution", "Runner", "Work", "execute", "noted_lines", "started"]

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
    recorder_of : callable or None
        Makes what records the calls of a trial; None: they are not recorded.
    source_of : callable or None
        Makes what answers the calls of a trial, faults and all; None: they are made.
    answers_all : bool
        No call is made but those of which the source says so: the network is off, and faults are
        those of the recording. False: what the source leaves is made as without it.
    faults_on_top : bool
        The configured faults hit what is answered.
    around : callable or None
        Returns the agent with what belongs to the answers around it.
    determinism : {"off", "raise", "warn"}
        Whether chance and time that no seed decides fail a trial or are noted.
    replies : KeptBeside or None
        Where replies of judges are kept, or played from; None: they are asked for and forgotten.
    noted : Noted
        What was noted.
    agent : Agent or None
        In the place of the configured one, which is then not started.
    """

    config: Config
    suite: Suite
    jobs: int | None = None
    retries: int | None = None
    budget_usd: float | None = None
    recorder_of: Callable[[PlannedTrial], Recorder] | None = None
    source_of: Callable[[PlannedTrial], AnswerSource] | None = None
    answers_all: bool = True
    faults_on_top: bool = False
    around: Callable[[TrialRunner], TrialRunner] | None = None
    determinism: Determinism = "off"
    replies: KeptBeside | None = None
    noted: Noted = field(default_factory=Noted)
    agent: Agent | None = None

    @property
    def is_replay(self) -> bool:
        """Return whether nothing is to leave the worker."""
        return self.source_of is not None and self.answers_all

    @property
    def faults(self) -> FaultPolicy | None:
        """Return the faults of this trial's own that calls of tools meet; None: they meet none."""
        return None if self.is_replay and not self.faults_on_top else self.config.faults

    @property
    def model_rate_permille(self) -> int:
        """Return how many of a thousand calls to models meet faults of this trial's own.

        A recorded answer has those that it was recorded with.
        """
        is_recorded = self.source_of is not None and not self.faults_on_top
        return 0 if is_recorded else self.config.model_faults.rate_permille


@dataclass(frozen=True, kw_only=True)
class Work:
    """What is to be executed, and who is told.

    Attributes
    ----------
    trials : sequence of PlannedTrial
        What is run first.
    sink : OutcomeSink
    progress : ProgressSink
    spent_usd : float
        Spent before, in US dollars.
    done : int
        Trials finished before.
    planned : int or None
        Trials of the whole plan; None: those that are given and those finished before.
    steering : Steering or None
        Says what is run after ``trials``; None: nothing.
    late : sequence of PlannedTrial
        Trials that errored before and have only their attempt at the end left.
    started_in : mapping of str to str
        Digests of the states in which trials of tasks started before.
    """

    trials: Sequence[PlannedTrial]
    sink: OutcomeSink
    progress: ProgressSink
    spent_usd: float = 0.0
    done: int = 0
    planned: int | None = None
    steering: Steering | None = None
    late: Sequence[PlannedTrial] = ()
    started_in: Mapping[str, str] = field(default_factory=dict)


Runner = Callable[[Work], Awaitable[RunResult]]
"""Runs work with an agent that was started."""


@dataclass(frozen=True, kw_only=True)
class Executed:
    """How it ended, and what was noticed."""

    reason: StopReason
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
    warnings = (*_warnings(result), *noted_lines(execution.config, execution.noted))
    return Executed(reason=result.reason, warnings=warnings)


async def _run(
    execution: Execution, fetch: Callable[[], Work], witness: Witness | None
) -> RunResult:
    async with started(execution, witness=witness) as run:
        return await run(fetch())


@asynccontextmanager
async def started(execution: Execution, *, witness: Witness | None = None) -> AsyncIterator[Runner]:
    """Start the agent and the graders, and read every fixture; yield what then runs work.

    It may be called several times, one after another. Raises as ``execute``.
    """
    spec, faults = execution.config.agent, execution.config.faults
    settings = _settings(execution)
    strictness = Strictness(
        determinism=execution.determinism, is_replay=execution.is_replay, noted=execution.noted
    )
    agent = execution.agent or agent_of(
        spec, jobs=settings.jobs, faults=faults, strictness=strictness
    )
    redactors = redactor_maker(execution.config, os.environ)
    played = (execution.around or _as_it_is)(Metered(agent))
    own = OwnGraderWorkers(spec, jobs=min(settings.jobs, default_jobs(0, inline=False)))
    with WorldFactory(
        Path(tempfile.gettempdir()),
        execution.faults,
        always_workdir=spec.protocol != "python",
        recorder_of=execution.recorder_of,
        source_of=execution.source_of,
        redactor_of=redactors,
        price_of=Pricing(execution.config.prices),
        state_of=state_digest,
        postgres=TrialDatabases(os.environ),
        model_rate_permille=execution.model_rate_permille,
    ) as worlds:
        worlds.prepare(execution.suite.tasks)
        ports = GraderPorts(
            call=own.call,
            initial=worlds.initial,
            states=checked_states(execution.suite.tasks, worlds.initial),
        )

        fixture_texts = FixtureTexts(worlds.initial)

        async def run(work: Work) -> RunResult:
            worlds.expect(work.started_in)
            return await run_trials(
                work.trials,
                agent=played if witness is None else witness.watching(played),
                sandboxes=worlds,
                graders=graders_of(execution.suite.tasks, ports),
                sink=work.sink,
                progress=work.progress,
                clock=RealClock(),
                settings=settings,
                spent_usd=work.spent_usd,
                done=work.done,
                planned=work.planned,
                steering=work.steering,
                late=work.late,
                without_secrets=record_without(redactors),
                fixture_text=fixture_texts,
            )

        try:
            async with (
                asking(
                    execution.config,
                    execution.suite.tasks,
                    os.environ,
                    kept=execution.replies,
                    redactor_of=redactors,
                ) as judge,
                _running(agent, own, _own_functions(execution.suite)),
            ):
                ports = ports._replace(judge=judge)
                yield run
        except AgentSetupError as error:
            raise error_without(error, redactors()) from error


def _as_it_is(agent: TrialRunner) -> TrialRunner:
    return agent


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


def noted_lines(config: Config, noted: Noted) -> tuple[str, ...]:
    """Return what was noted, which is a worker's text, without secrets."""
    redactor = redactor_maker(config, os.environ)()
    return tuple(map(redactor.reason, noted.lines()))


def _warnings(result: RunResult) -> tuple[str, ...]:
    return tuple(_warning(kind, count) for kind, count in sorted(result.laundered.items()) if count)


def _warning(kind: str, count: int) -> str:
    _, is_beyond, name = kind.partition(BEYOND)
    if is_beyond:
        return f"{count} judged trials report {name} in a number that is no amount: it is unknown."
    return (
        f"{_LAUNDERED[kind].format(n=count)}; if these are errors of a provider, "
        "[agent] laundered_errors turns them into errored trials."
    )

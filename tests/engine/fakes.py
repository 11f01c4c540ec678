"""The other side of every port of the engine, as simple as it can be."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ci_gate.engine.cancellation import to_its_end
from ci_gate.engine.runner import run_trials
from ci_gate.engine.settings import EngineSettings, RunResult
from ci_gate.model.suite import PlannedTrial
from ci_gate.model.trial import Grade, Status, Trajectory, TrialRecord
from ci_gate.ports import Agent, OutcomeSink, RankedGrader, Steering, TrialSandbox
from tests.agents.desks import ScriptedWorld
from tests.trials import task_of

PASSES = Trajectory(answer="ok", tokens=1)
FAILS = Trajectory(status=Status.FAILED, reason="no")
ERRORS = Trajectory(status=Status.ERRORED, reason="down")

TrialKey = tuple[str, int, int]
Script = Callable[[PlannedTrial], Trajectory | BaseException]


class ScriptedAgent:
    """Answers by a script; notes what was asked, and how many at a time."""

    def __init__(self, script: Script = lambda _: PASSES, *, wait_s: float = 0.0) -> None:
        self.script = script
        self.wait_s = wait_s
        self.asked: list[tuple[str, int, int, int]] = []
        self.in_flight = 0
        self.most_in_flight = 0

    async def start(self) -> None:
        """Do nothing."""

    async def run(self, trial: PlannedTrial, sandbox: TrialSandbox) -> Trajectory:
        """Do what the script says of the trial."""
        self.asked.append((*trial.key, trial.attempt))
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            await asyncio.sleep(self.wait_s)
        finally:
            self.in_flight -= 1
        found = self.script(trial)
        if isinstance(found, BaseException):
            raise found
        return found

    async def close(self) -> None:
        """Do nothing."""


class Worlds:
    """Opens scripted worlds and remembers them."""

    def __init__(self) -> None:
        self.opened: list[ScriptedWorld] = []

    def open(self, trial: PlannedTrial) -> ScriptedWorld:
        """Return a fresh world."""
        self.opened.append(ScriptedWorld())
        return self.opened[-1]


class Saying:
    """A grader that passes the answer ``ok``."""

    name = "answer"

    def grade(self, trial: PlannedTrial, trajectory: Trajectory, sandbox: TrialSandbox) -> Grade:
        """Return whether the answer is ``ok``."""
        return Grade(grader=self.name, passed=trajectory.answer == "ok", reason="another answer")


class _AlwaysSaying(dict[str, Sequence[RankedGrader]]):
    """The same graders for every task."""

    def get(self, key: str, default: Any = None) -> Sequence[RankedGrader]:
        """Return the graders of any task."""
        return (RankedGrader(Saying()),)


class Journal:
    """Keeps records and the order of what happened to them; fills both sinks."""

    def __init__(self) -> None:
        self.records: list[TrialRecord] = []
        self.events: list[tuple[str, Any]] = []

    def append(self, record: TrialRecord) -> None:
        """Keep a record."""
        self.records.append(record)
        self.events.append(("kept", record.key))

    def planned(self, total: int, done: int) -> None:
        """Note the plan."""
        self.events.append(("planned", (total, done)))

    def finished(self, record: TrialRecord) -> None:
        """Note that a trial was counted."""
        self.events.append(("counted", record.key))

    @property
    def last(self) -> dict[TrialKey, TrialRecord]:
        """The record of each trial that no other supersedes."""
        return {record.key: record for record in self.records}

    @property
    def statuses(self) -> Counter[str]:
        """How many trials ended with which status."""
        return Counter(record.status.value for record in self.last.values())


class QuickClock:
    """Time that passes only by sleeping, at once."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.slept_s: list[float] = []

    def monotonic(self) -> float:
        """Return the time."""
        return self.now_s

    def utc(self) -> str:
        """Return a fixed time."""
        return "2026-01-01T00:00:00Z"

    async def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.slept_s.append(seconds)
        self.now_s += seconds
        await asyncio.sleep(0)


def plan(tasks: Sequence[str], trials: int = 1, repeats: int = 1) -> list[PlannedTrial]:
    """Return a plan, in an order that is not the engine's."""
    known = [task_of(name) for name in tasks]
    return [
        PlannedTrial(task=task, trial=trial, repeat=repeat, attempt=1, seed=trial + 1)
        for task in reversed(known)
        for trial in reversed(range(trials))
        for repeat in reversed(range(repeats))
    ]


async def go(
    trials: Sequence[PlannedTrial],
    agent: Agent,
    *,
    journal: Journal | None = None,
    worlds: Any = None,
    graders: Mapping[str, Sequence[RankedGrader]] | None = None,
    clock: Any = None,
    spent_usd: float = 0.0,
    steering: Steering | None = None,
    sink: OutcomeSink | None = None,
    late: Sequence[PlannedTrial] = (),
    **settings: Any,
) -> RunResult:
    """Run a plan with fakes for everything that is not given; the agent is started and closed."""
    journal = journal or Journal()
    by_task = _AlwaysSaying() if graders is None else graders
    try:
        await agent.start()
        return await run_trials(
            trials,
            agent=agent,
            sandboxes=worlds or Worlds(),
            graders=by_task,
            sink=sink or journal,
            progress=journal,
            steering=steering,
            late=late,
            clock=clock or QuickClock(),
            settings=EngineSettings(**{"jobs": 1} | settings),
            spent_usd=spent_usd,
        )
    finally:
        await to_its_end(agent.close())


def run(trials: Sequence[PlannedTrial], agent: Agent, **options: Any) -> RunResult:
    """Run a plan to its end."""
    return asyncio.run(go(trials, agent, **options))

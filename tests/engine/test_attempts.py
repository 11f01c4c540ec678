"""One attempt beside others: what takes its time takes none of theirs, and no trouble spreads."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ci_gate.engine.attempts import Bench
from ci_gate.engine.cancellation import in_thread
from ci_gate.engine.laundering import compiled
from ci_gate.errors import AgentSetupError
from ci_gate.model.suite import PlannedTrial
from ci_gate.model.trial import Cause, Grade, Status, Trajectory
from ci_gate.ports import RankedGrader, TrialSandbox
from tests.agents.desks import ScriptedWorld
from tests.engine.fakes import PASSES, Journal, QuickClock, Saying, ScriptedAgent, Worlds, plan, run

SLOW_S = 0.3
LATE_S = 0.1


class SlowGrader(Saying):
    """A grader that takes its time, and says so."""

    blocking = True

    def grade(self, trial: PlannedTrial, trajectory: Trajectory, sandbox: TrialSandbox) -> Grade:
        """Pass in the end."""
        time.sleep(SLOW_S)
        return super().grade(trial, trajectory, sandbox)


class SlowWorld(ScriptedWorld):
    """A world that takes long to remove."""

    def close(self) -> None:
        """Take long."""
        time.sleep(SLOW_S)
        super().close()


class SlowWorlds(Worlds):
    """Worlds with files, slow to make or to remove."""

    def __init__(self, folder: Path, *, opening: bool) -> None:
        super().__init__()
        self._folder = folder
        self._opening = opening

    def open(self, trial: PlannedTrial) -> ScriptedWorld:
        """Make one."""
        if self._opening:
            time.sleep(SLOW_S)
        world = ScriptedWorld() if self._opening else SlowWorld()
        world.workdir = self._folder
        self.opened.append(world)
        return world


class UnstartedGrader:
    """A grader whose worker cannot be started."""

    async def grade(self, trial: PlannedTrial, trajectory: Trajectory, sandbox: Any) -> Grade:
        """Fail as a pool of workers does."""
        raise AgentSetupError("the interpreter is gone")


async def longest_pause_s(trial: PlannedTrial, bench: Bench) -> float:
    """Run a trial and return the longest time in which nothing else could run."""
    attempt = asyncio.ensure_future(bench.attempt(trial))
    longest_s, before_s = 0.0, time.monotonic()
    while not attempt.done():
        await asyncio.sleep(0.005)
        now_s = time.monotonic()
        longest_s, before_s = max(longest_s, now_s - before_s), now_s
    assert attempt.result().record.status is Status.PASSED
    return longest_s


@pytest.mark.parametrize("slow", ["grader", "opening", "tables", "closing", "pattern"])
def test_what_takes_its_time_holds_up_no_neighbour(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slow: str
) -> None:
    """Deadlines of other trials go on while one is graded, made or removed."""
    monkeypatch.setattr("ci_gate.patterns.LONGEST_S", SLOW_S)
    (trial,) = plan(["a"])
    made_of = {"tables": {}} if slow == "tables" else {"fixture_path": str(tmp_path)}
    task = msgspec.structs.replace(trial.task, **made_of)
    in_files = slow in ("opening", "tables", "closing")
    endless = Trajectory(answer="a" * 40 + "!")
    bench = Bench(
        agent=ScriptedAgent(lambda _: endless if slow == "pattern" else PASSES),
        sandboxes=SlowWorlds(tmp_path, opening=slow != "closing") if in_files else Worlds(),
        graders={"a": [RankedGrader(SlowGrader() if slow == "grader" else Anything())]},
        clock=QuickClock(),
        laundered=compiled([r"^(\w+\s?)*\?$"]),
    )
    started_s = time.monotonic()
    pause_s = asyncio.run(
        longest_pause_s(msgspec.structs.replace(trial, task=task) if in_files else trial, bench)
    )
    assert time.monotonic() - started_s >= SLOW_S
    assert pause_s < LATE_S


class Anything(Saying):
    """A grader that passes everything at once."""

    def grade(self, trial: PlannedTrial, trajectory: Trajectory, sandbox: TrialSandbox) -> Grade:
        """Pass."""
        return Grade(grader=self.name, passed=True)


def test_a_cancelled_trial_waits_for_its_thread_and_undoes_its_work() -> None:
    """Nothing works on in a world that is taken away, and no world is left over."""
    events: list[str] = []

    def work() -> str:
        time.sleep(0.05)
        events.append("worked")
        return "world"

    async def cancelled() -> None:
        task = asyncio.ensure_future(in_thread(work, undo=lambda w: events.append(f"undid {w}")))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        events.append("ended")

    asyncio.run(cancelled())
    assert events == ["worked", "undid world", "ended"]


def test_a_grader_that_cannot_start_costs_its_trial_alone() -> None:
    """A trial can see to it that no grader starts after it: that must not end the suite."""
    journal = Journal()
    graders = {"a": [RankedGrader(UnstartedGrader())], "b": [RankedGrader(Saying())]}
    run(plan(["a", "b"]), ScriptedAgent(), journal=journal, graders=graders, retries=0)
    assert [(r.task, r.status, r.cause) for r in journal.records] == [
        ("a", Status.ERRORED, Cause.HARNESS),
        ("b", Status.PASSED, None),
    ]
    assert journal.records[0].reason == "harness: the interpreter is gone"


def test_an_agent_that_cannot_start_any_more_costs_its_trial_alone() -> None:
    """Once a trial has ended, the agent can start: what fails later is a trial's trouble."""
    journal = Journal()
    agent = ScriptedAgent(lambda t: AgentSetupError("renamed") if t.task.id == "b" else PASSES)
    run(plan(["a", "b", "c"]), agent, journal=journal, retries=0)
    assert [r.cause for r in journal.records] == [None, Cause.HARNESS, None]

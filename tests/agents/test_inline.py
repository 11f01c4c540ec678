"""Many trials in one worker: they overlap, and one's end is never another's failure."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from ci_gate.agents.python_agent import PythonAgent
from ci_gate.model.suite import Limits
from ci_gate.model.trial import Status, Trajectory
from ci_gate.ports import TrialLost
from tests.agents.desks import Desk, ScriptedWorld, closing
from tests.trials import task_of, trial_of

SOURCE = """
import asyncio, os, time

async def run(task, env):
    if task.id == "block":
        time.sleep(30)
    if task.id == "spin":
        while True:
            await asyncio.sleep(0)
    if task.id == "exit":
        await asyncio.sleep(0.05)
        os._exit(4)
    if task.id == "deaf":
        while True:
            try:
                await asyncio.sleep(30)
            except asyncio.CancelledError:
                pass
    if task.id == "cancel-all":
        for other in asyncio.all_tasks():
            other.cancel()
    if task.id == "swallow":
        try:
            await asyncio.sleep(0.2)
        except asyncio.CancelledError:
            return "cancelled by whom?"
    await asyncio.sleep(task.input or 0.01)
    env.kv.set("done", task.id)
    return task.id

def slow(task, env):
    time.sleep(30 if task.id == "slow" else 0.2)
    return task.id
"""


def run_together(
    agent: PythonAgent, tasks: Sequence[str], *, timeout_s: float = 20.0, input_s: float = 0.01
) -> list[Trajectory | BaseException]:
    """Run trials at the same time; a lost one is run again, as the engine does."""
    limits = Limits(timeout_s=timeout_s)

    async def one(name: str) -> Trajectory:
        trial = trial_of(task_of(name, limits=limits, input=input_s))
        try:
            return await agent.run(trial, ScriptedWorld())
        except TrialLost:
            return await agent.run(trial, ScriptedWorld())

    async def run() -> list[Trajectory | BaseException]:
        await agent.start()
        return await asyncio.gather(*(one(name) for name in tasks), return_exceptions=True)

    found: list[Trajectory | BaseException] = closing(agent, run)
    return found


def answers(found: Sequence[Trajectory | BaseException]) -> list[str | None]:
    return [t.answer if isinstance(t, Trajectory) else repr(t) for t in found]


def reasons(found: Sequence[Trajectory | BaseException]) -> list[str | None]:
    return [t.reason if isinstance(t, Trajectory) else repr(t) for t in found]


def test_waiting_trials_overlap(tmp_path: Path) -> None:
    """A hundred trials that wait a fifth of a second take far less than their sum."""
    agent = Desk(tmp_path, SOURCE).python(isolation="inline", jobs=100)
    names = [f"t{i}" for i in range(100)]
    start_s = time.monotonic()
    assert answers(run_together(agent, names, input_s=0.2)) == names
    assert time.monotonic() - start_s < 10


@pytest.mark.slow
def test_synchronous_agents_overlap_in_threads(tmp_path: Path) -> None:
    """Agents that are not asynchronous wait in threads, as many as there are jobs."""
    agent = Desk(tmp_path, SOURCE).python("slow", isolation="inline", jobs=10)
    names = [f"t{i}" for i in range(10)]
    start_s = time.monotonic()
    assert answers(run_together(agent, names)) == names
    assert time.monotonic() - start_s < 1.9


@pytest.mark.slow
def test_a_time_out_ends_that_trial_alone(tmp_path: Path) -> None:
    """An asynchronous trial beyond its time is cancelled; its neighbours go on undisturbed."""
    agent = Desk(tmp_path, SOURCE).python(isolation="inline", jobs=3)
    found = run_together(agent, ["spin", "a", "b"], timeout_s=0.3)
    assert reasons(found)[0] == "timeout after 0.3 s"
    assert answers(found)[1:] == ["a", "b"]


@pytest.mark.slow
def test_code_that_blocks_the_loop_fails_itself_and_nobody_else(tmp_path: Path) -> None:
    """The worker is killed, everything in it is lost, and run again only the culprit fails."""
    agent = Desk(tmp_path, SOURCE).python(isolation="inline", jobs=4)
    found = run_together(agent, ["a", "block", "b", "c"], timeout_s=0.3)
    assert reasons(found)[1] == "timeout after 0.3 s"
    assert answers(found)[0] == "a"
    assert answers(found)[2:] == ["b", "c"]


def test_a_crash_fails_itself_and_nobody_else(tmp_path: Path) -> None:
    """A worker that exits loses all its trials, and run again only the culprit fails."""
    agent = Desk(tmp_path, SOURCE).python(isolation="inline", jobs=4)
    found = run_together(agent, ["a", "exit", "b", "c"], input_s=0.1)
    assert reasons(found)[1] == "crash: exit status 4"
    assert answers(found)[0] == "a"
    assert answers(found)[2:] == ["b", "c"]


@pytest.mark.slow
def test_a_trial_that_cancels_everything_fails_itself_and_nobody_else(tmp_path: Path) -> None:
    """Who was cancelled by no order of ours is run again, started or not; the culprit fails."""
    agent = Desk(tmp_path, SOURCE).python(isolation="inline", jobs=16)
    before = [f"a{i}" for i in range(7)]
    after = [f"b{i}" for i in range(8)]
    start_s = time.monotonic()
    found = run_together(agent, [*before, "cancel-all", *after], timeout_s=5.0)
    assert (reasons(found)[7] or "").startswith("CancelledError")
    assert answers(found)[:7] == before
    assert answers(found)[8:] == after
    assert time.monotonic() - start_s < 4  # nobody waited for the time-out


@pytest.mark.slow
def test_a_trial_that_swallows_a_neighbours_cancellation_is_run_again(tmp_path: Path) -> None:
    """An answer that was made because a neighbour cancelled it is not judged."""
    agent = Desk(tmp_path, SOURCE).python(isolation="inline", jobs=2)
    assert answers(run_together(agent, ["swallow", "cancel-all"]))[0] == "swallow"


@pytest.mark.slow
def test_a_synchronous_trial_beyond_its_time_retires_the_worker(tmp_path: Path) -> None:
    """A thread cannot be ended: its trial fails, the others finish, later ones get a new worker."""
    agent = Desk(tmp_path, SOURCE).python("slow", isolation="inline", jobs=3)
    limits = Limits(timeout_s=0.5)

    async def run() -> list[Trajectory]:
        await agent.start()
        trials = [trial_of(task_of(name, limits=limits)) for name in ("slow", "a", "b")]
        first = await asyncio.gather(*(agent.run(t, ScriptedWorld()) for t in trials))
        return [*first, await agent.run(trial_of(task_of("later")), ScriptedWorld())]

    found = closing(agent, run)
    assert found[0].reason == "timeout after 0.5 s"
    assert [t.answer for t in found[1:]] == ["a", "b", "later"]


def test_an_agent_that_ignores_its_cancellation_is_ended(tmp_path: Path) -> None:
    """A trial that swallows the cancellation fails, and the run still comes to its end."""
    agent = Desk(tmp_path, SOURCE).python(isolation="inline", jobs=2)
    found = run_together(agent, ["deaf", "a"], timeout_s=0.3)
    assert reasons(found)[0] == "timeout after 0.3 s"
    assert answers(found)[1] == "a"
    assert isinstance(found[0], Trajectory)
    assert found[0].status is Status.FAILED

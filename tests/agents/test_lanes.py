"""Which lanes the calls of an agent are in, as a real worker tells it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.agents.desks import Desk, ScriptedWorld, run_one

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="running agents needs POSIX")

HELPERS = """
import asyncio, threading

async def call(env, name):
    await env.acall("llm", name, str)

def started(*targets):
    for thread in [threading.Thread(target=target) for target in targets]:
        thread.start()
        thread.join()
"""


def lanes_of(folder: Path, agent: str, **options: str) -> dict[str, str]:
    """Return the lane of each call by the name of the call."""
    world = ScriptedWorld()
    ended = run_one(Desk(folder, HELPERS + agent).python(**options), world)
    assert ended.answer == "ok", ended
    return dict(zip([step.name for step in world.steps], world.lanes, strict=True))


@pytest.mark.parametrize("isolation", ["process", "inline"])
def test_a_lane_with_a_name_does_not_depend_on_who_calls_first(
    tmp_path: Path, isolation: str
) -> None:
    """Tasks that nobody has heard of yet, in whatever order they come to their first calls."""
    agent = """
async def run(task, env):
    async def one(name, pauses):
        for _ in range(pauses):
            await asyncio.sleep(0)
        with env.lane(name):
            await call(env, name)
    await asyncio.gather(one("a", 3), one("b", 2), one("c", 1))
    await call(env, "last")
    return "ok"
"""
    found = lanes_of(tmp_path, agent, isolation=isolation)

    assert list(found) == ["c", "b", "a", "last"]
    assert found == {"a": "main/a", "b": "main/b", "c": "main/c", "last": "main"}


def test_threads_with_named_lanes_are_below_the_agents_own(tmp_path: Path) -> None:
    """A thread that is used again has as many lanes as names."""
    agent = """
from concurrent.futures import ThreadPoolExecutor
def run(task, env):
    def one(name):
        with env.lane(name):
            env.call("llm", name, str)
    with ThreadPoolExecutor(1) as pool:
        list(pool.map(one, "ab"))
    return "ok"
"""
    assert lanes_of(tmp_path, agent) == {"a": "main/a", "b": "main/b"}


def test_the_agents_own_calls_are_main_whoever_calls_first(tmp_path: Path) -> None:
    """What it makes of the answers of a round follows it; tasks are below their beginner."""
    agent = """
async def run(task, env):
    async def leaf():
        await call(env, "leaf")
    async def middle():
        await call(env, "before")
        await asyncio.create_task(leaf())
        await call(env, "after")
    await asyncio.gather(call(env, "one"), middle())
    await call(env, "sum")
    return "ok"
"""
    assert lanes_of(tmp_path, agent) == {
        "one": "main/1",
        "before": "main/2",
        "leaf": "main/2/1",
        "after": "main/2",
        "sum": "main",
    }


def test_a_number_is_given_once(tmp_path: Path) -> None:
    """Also where the thread that had it is gone."""
    agent = """
def run(task, env):
    started(*(lambda name=name: env.call("llm", name, str) for name in "abc"))
    env.call("llm", "own", str)
    return "ok"
"""
    assert lanes_of(tmp_path, agent) == {
        "a": "main/1",
        "b": "main/2",
        "c": "main/3",
        "own": "main",
    }

"""What agents draw and read between their calls, as a real worker tells it."""

from __future__ import annotations

import hashlib
import random
import sys
from pathlib import Path
from typing import Any, ClassVar

import pytest

from ci_gate.model.agent import FaultPolicy
from ci_gate.sandbox.chaos import ChaosInjector
from ci_gate.sandbox.world import World
from tests.agents.desks import Desk, ScriptedWorld, run_one
from tests.trials import trial_of

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="running agents needs POSIX")


class NotedWorld(ScriptedWorld):
    """A world that keeps calls and draws in the order in which they come."""

    def __init__(self) -> None:
        super().__init__()
        self.noted: list[tuple[Any, ...]] = []

    def note(self, *drawn: Any, at_end: bool = False) -> None:
        """Keep what was drawn."""
        self.noted.append((len(self.steps), *drawn, at_end))


def told(values: list[Any]) -> dict[str, Any]:
    text = "".join(f"{value!r}\n" for value in values)
    return {"count": len(values), "sha256": hashlib.sha256(text.encode()).hexdigest()}


def test_draws_between_two_calls_are_one_record_each_way(tmp_path: Path) -> None:
    """Their number, one digest and the first values; numbers are those of ``random.Random``."""
    desk = Desk(
        tmp_path,
        """
def run(task, env):
    first = [env.rng.random() for _ in range(3)]
    env.kv.get("a")
    for _ in range(1500):
        env.rng.getrandbits(40)
    env.uuid()
    env.kv.get("b")
    env.kv.get("c")
    env.clock.sleep(2)
    env.clock.iso()
    sample = env.rng.sample(range(1000), 3), env.rng.gauss(0, 1), env.rng.choice("abc")
    return f"{first} {sample}"
""",
    )
    world = NotedWorld()
    said = run_one(desk.python(), world, trial_of(seed=5)).answer
    same = random.Random(5)
    first = [same.random() for _ in range(3)]
    bits = [same.getrandbits(40) for _ in range(1500)]
    sample = same.sample(range(1000), 3), same.gauss(0, 1), same.choice("abc")
    assert said == f"{first} {sample}"
    draws, more, identifiers, reads, last = world.noted
    assert draws == (0, "main", "rng", "draws", {**told(first), "words": 6}, first, False)
    assert more == (1, "main", "rng", "draws", {**told(bits), "words": 3000}, bits[:8], False)
    assert identifiers[:4] == (1, "main", "rng", "uuid")
    assert identifiers[4]["count"] == 1
    assert reads[:4] == (3, "main", "clock", "reads")
    values = ["sleep 2 s", "2026-01-01T09:00:02Z"]
    assert reads[4:] == ({**told(values), "slept_s": 2.0}, values, True)
    assert (last[0], last[3], last[-1]) == (3, "draws", True)


def test_what_a_tool_draws_and_calls_is_in_a_lane_below_its_callers(tmp_path: Path) -> None:
    """So a replay that answers the tool knows what belongs to it, tasks that it starts as well."""
    desk = Desk(
        tmp_path,
        """
import asyncio
async def run(task, env):
    async def dice():
        await asyncio.gather(*(env.acall("llm", f"m{n}", str) for n in range(2)))
        return env.rng.random()
    env.tools.register(dice)
    await env.tools.acall("dice")
    with env.lane("(dice)"):
        env.kv.get("x")
    return "ok"
""",
    )
    world = NotedWorld()
    assert run_one(desk.python(), world).answer == "ok"
    assert [(step.name, lane) for step, lane in zip(world.steps, world.lanes, strict=True)] == [
        ("m0", "main/(dice)"),
        ("m1", "main/(dice)"),
        ("dice", "main"),
        ("get", "main/ (dice)"),
    ]
    assert [(drawn[1], drawn[3]) for drawn in world.noted] == [("main/(dice)", "draws")]


def test_draws_name_no_lane_and_are_told_when_the_agent_fails(tmp_path: Path) -> None:
    """Lanes are numbered by their calls; a copy of the generator belongs to nobody."""
    desk = Desk(
        tmp_path,
        """
import copy, pickle, threading
def run(task, env):
    drawing = threading.Thread(target=env.rng.random)
    drawing.start(); drawing.join()
    calling = threading.Thread(target=lambda: env.kv.get("x"))
    calling.start(); calling.join()
    assert copy.deepcopy(env.rng).random() == pickle.loads(pickle.dumps(env.rng)).random()
    env.rng.random()
    raise KeyError("mine")
""",
    )
    world = NotedWorld()
    run_one(desk.python(), world)
    assert world.lanes == ["main/1"]
    assert [(drawn[1], drawn[4]["count"], drawn[-1]) for drawn in world.noted] == [
        ("main/2", 1, True),
        ("main", 1, True),
    ]


def test_tools_say_where_their_answers_come_from(tmp_path: Path) -> None:
    """The three classes are known, any other is refused; a tool may be called so itself."""
    desk = Desk(
        tmp_path,
        """
def add(a, b): return a + b
def run(task, env):
    env.tools.register(add, determinism="deterministic")
    @env.tools.add
    def plain(): return 1
    @env.tools.add(determinism="stochastic")
    def dice(): return env.rng.random()
    env.tools.register(determinism=plain)
    try:
        env.tools.register(add, determinism="sometimes")
    except TypeError as error:
        said = str(error)
    env.tools.call("add", a=1, b=2)
    for name in ("plain", "dice", "determinism"):
        env.tools.call(name)
    return said
""",
    )

    class Asked(ScriptedWorld):
        classes: ClassVar[list[object]] = []

        def observe(self, *call: Any, determinism: object = None, **rest: Any) -> Any:
            self.classes.append(determinism)
            return super().observe(*call, **rest)

    world = Asked()
    said = run_one(desk.python(), world).answer
    assert str(said).endswith("found 'sometimes'")
    assert world.classes == ["deterministic", None, "stochastic", None]


@pytest.mark.parametrize("function", ["run", "arun"])
def test_a_call_that_is_delivered_twice_runs_twice(tmp_path: Path, function: str) -> None:
    """The agent gets the second end, with the value that the tool itself gave."""
    desk = Desk(
        tmp_path,
        """
class Receipt:
    def __init__(self, number): self.number = number
def tools(env):
    paid = []
    def pay(cents):
        paid.append(cents)
        return Receipt(len(paid))
    env.tools.register(pay)
    return paid
def run(task, env):
    paid = tools(env)
    seen = env.tools.observe("pay", cents=5)
    late = env.tools.call("pay", cents=6)
    return f"{paid} {seen.value.number} {seen.fault} {late.number}"
async def arun(task, env):
    paid = tools(env)
    seen = await env.tools.aobserve("pay", cents=5)
    late = await env.tools.acall("pay", cents=6)
    return f"{paid} {seen.value.number} {seen.fault} {late.number}"
""",
    )
    policy = FaultPolicy(rate_permille=0, steps=(1,), kinds=("duplicate",))
    injector = ChaosInjector.of(policy, 1)
    world = World(folder=None, workdir=None, now="2026-01-01T09:00:00Z", injector=injector)
    trajectory = run_one(desk.python(function), world)
    assert trajectory.answer == "[5, 5, 6] 2 duplicate 3"
    assert [step.fault for step in world.steps] == ["duplicate", None]

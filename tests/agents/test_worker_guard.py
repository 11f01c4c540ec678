"""Chance, time and sockets in an agent's own code, each caught with its place by a real worker."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ci_gate.agents.python_agent import PythonAgent
from ci_gate.agents.strictness import Noted, Strictness
from ci_gate.model.agent import AgentSpec
from ci_gate.model.trial import Status
from tests.agents.desks import ScriptedWorld, run_all, run_one
from tests.speeds import slow
from tests.trials import task_of, trial_of

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="running agents needs POSIX")

# Each is a tool of its own, poisoned on its first line; "from" ones were imported by name.
POISONS = {
    "random.random()": "random.random()",
    "random.getrandbits()": "random.getrandbits(8)",
    "random.randint()": "random.randint(1, 6)",
    "random.choice()": "random.choice([1, 2])",
    "random.shuffle()": "random.shuffle([1, 2])",
    "random.gauss()": "random.gauss(0, 1)",
    "random.seed()": "random.seed(4)",
    "random.uniform()": "uniform(0, 1)",
    "random.Random() without a seed": "random.Random()",
    "random.Random.seed() without a seed": "random.Random(1).seed()",
    "random.SystemRandom.random()": "random.SystemRandom().random()",
    "random.SystemRandom.randint()": "random.SystemRandom().randint(1, 6)",
    "secrets.token_hex()": "secrets.token_hex(4)",
    "secrets.token_bytes()": "secrets.token_bytes(4)",
    "secrets.token_urlsafe()": "token_urlsafe(4)",
    "secrets.randbelow()": "secrets.randbelow(4)",
    "secrets.choice()": "secrets.choice([1, 2])",
    "secrets.randbits()": "secrets.randbits(4)",
    "uuid.uuid1()": "uuid.uuid1()",
    "uuid.uuid4()": "uuid4()",
    "time.time()": "time.time()",
    "time.time_ns()": "time.time_ns()",
    "time.monotonic()": "monotonic()",
    "time.perf_counter()": "time.perf_counter()",
    "time.process_time()": "time.process_time()",
    "time.clock_gettime()": "time.clock_gettime(time.CLOCK_REALTIME)",
    "time.localtime()": "time.localtime()",
    "time.gmtime()": "gmtime()",
    "time.ctime()": "time.ctime()",
    "time.asctime()": "time.asctime()",
    "time.strftime()": "time.strftime('%Y')",
    "datetime.now()": "datetime.now()",
    "datetime.utcnow()": "datetime_module.datetime.utcnow()",
    "datetime.today()": "datetime.today()",
    "date.today()": "date.today()",
    "os.urandom()": "os.urandom(4)",
}
# What looks alike and is decided by the seed, or by its arguments.
HARMLESS = {
    "env.rng": "env.rng.random(), env.rng.randint(1, 6), env.rng.choice([1, 2])",
    "env.uuid": "env.uuid()",
    "env.clock": "env.clock.now(), env.clock.iso(), env.clock.time(), env.clock.monotonic()",
    "a seeded generator": "random.Random(4).random(), random.Random(x=4).getrandbits(3)",
    "a given time": "time.gmtime(0), time.strftime('%Y', time.gmtime(0)), time.ctime(0)",
    "a given date": "datetime(2026, 1, 1), datetime.fromtimestamp(0), date(2026, 1, 1)",
    "a name-based uuid": "uuid.uuid5(uuid.NAMESPACE_DNS, 'x')",
    "a library's own chance": "__import__('tempfile').mktemp()",
    "sleeping": "time.sleep(0)",
    "own methods of such names": "Own().now(), Own().random()",
}
HEAD = """\
import asyncio, os, random, secrets, threading, time, uuid
import datetime as datetime_module
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import date, datetime
from random import uniform
from secrets import token_urlsafe
from time import gmtime, monotonic
from uuid import uuid4
warnings.simplefilter("ignore")
AT_IMPORT = time.time(), random.random()
class Own:
    def now(self): return 1
    def random(self): return 2
"""
LINE = HEAD.count("\n")


WAYS = """
def run(task, env):
    env.tools.register({f"poison {n}": POISONS[n] for n in range(len(POISONS))})
    env.tools.call(f"poison {task.input}")
    return "fine"
"""


def held(
    root: Path, determinism: str, source: str, *, noted: Noted | None = None, **spec: Any
) -> PythonAgent:
    """Return an agent whose trials are held to chance and time that the seed decides."""
    (root / "desk.py").write_text(HEAD + textwrap.dedent(source))
    options = {"interpreter": sys.executable, "timeout_s": 20.0, "root": str(root)} | spec
    strictness = Strictness(determinism=determinism, noted=noted or Noted())
    return PythonAgent(
        AgentSpec(python="desk:run", protocol="python", **options), strictness=strictness
    )


def poisoned(expressions: Sequence[str]) -> str:
    """Return an agent with tools, one a line, each of which does one thing."""
    tools = "".join(f"    lambda: ({expression}),\n" for expression in expressions)
    return f"POISONS = [\n{tools}]\n{WAYS}"


def test_each_poisoned_tool_fails_its_trial_by_name_and_line(tmp_path: Path) -> None:
    """However it was imported, and whatever the agent makes of it."""
    agent = held(tmp_path, "raise", poisoned([*POISONS.values()]))
    trials = [(trial_of(task_of(f"t{n}", input=n)), ScriptedWorld()) for n in range(len(POISONS))]

    ended = run_all(agent, trials)

    assert [one.reason for one in ended] == [
        f"nondeterminism: {name} at desk.py:{LINE + 2 + n}" for n, name in enumerate(POISONS)
    ]
    assert {one.status for one in ended} == {Status.FAILED}


@pytest.mark.parametrize("mode", ["raise", *slow("warn")])
def test_what_the_seed_or_the_arguments_decide_is_no_poison(tmp_path: Path, mode: str) -> None:
    """The trial's own generator, clock and names; other seeded generators; libraries; imports."""
    lines = "".join(f"    {code}  # {why}\n" for why, code in HARMLESS.items())
    noted = Noted()
    agent = held(tmp_path, mode, f"def run(task, env):\n{lines}    return 'fine'\n", noted=noted)

    ended = run_one(agent)

    assert (ended.status, ended.reason, ended.answer) == (None, None, "fine")
    assert noted.lines() == ()


PLACES = {
    "an async agent": "async def run(task, env):\n    time.time()  # here\n",
    "a task of its own": """\
async def run(task, env):
    await asyncio.gather(later())
async def later():
    await asyncio.sleep(0)
    time.time()  # here
""",
    "a thread": """\
def run(task, env):
    thread = threading.Thread(target=lambda: time.time())  # here
    thread.start()
    thread.join()
""",
    "a pool": """\
def run(task, env):
    with ThreadPoolExecutor(1) as pool:
        pool.submit(late).result()
def late():
    time.time()  # here
""",
    "a thread of an async agent": """\
async def run(task, env):
    await asyncio.to_thread(late)
def late():
    time.time()  # here
""",
    "an async tool": """\
async def run(task, env):
    env.tools.register(late)
    return str((await env.tools.aobserve("late")).text)
async def late():
    time.time()  # here
""",
    "a call of its own kind": """\
def run(task, env):
    return env.call("llm", "model", lambda: time.time())  # here
""",
    "a field with a default": """\
@dataclass
class Order:
    at: float = field(default_factory=time.time)
def run(task, env):
    Order()  # here
""",
    "code without a file": "def run(task, env):\n    exec('time.time()')  # here\n",
    "a swallowed exception": """\
def run(task, env):
    try:
        time.time()  # here
    except BaseException:
        return "fine"
""",
    "a function passed on": """\
def run(task, env):
    max([1], key=lambda _: time.time())  # here
""",
    "an agent that also exits": """\
def run(task, env):
    try:
        time.time()  # here
    finally:
        raise SystemExit(3)
""",
}


# One for each way of running code; the others are variants of these.
FEW_PLACES = ("an async agent", "a pool", "an async tool", "code without a file")


@pytest.mark.parametrize("place", [*FEW_PLACES, *slow(*sorted(PLACES.keys() - set(FEW_PLACES)))])
def test_it_is_found_wherever_own_code_runs(tmp_path: Path, place: str) -> None:
    """Tasks, threads, pools, tools, generated code; swallowing it does not help."""
    if place == "a thread of an async agent" and sys.version_info < (3, 9):
        pytest.skip("asyncio.to_thread came later")

    ended = run_one(held(tmp_path, "raise", PLACES[place]))

    lines = PLACES[place].splitlines()
    line = LINE + 1 + next(n for n, text in enumerate(lines) if "# here" in text)
    assert ended.status is Status.FAILED
    assert ended.reason == f"nondeterminism: time.time() at desk.py:{line}"


@pytest.mark.slow
def test_a_worker_watches_on_after_a_breach(tmp_path: Path) -> None:
    """Also where a thread was no longer watched: that worker gets no more trials."""
    source = PLACES["a pool"]
    trials = [(trial_of(trial=n), ScriptedWorld()) for n in range(3)]

    ended = run_all(held(tmp_path, "raise", source), trials)

    assert [one.reason for one in ended] == [
        f"nondeterminism: time.time() at desk.py:{LINE + 5}"
    ] * 3


def test_a_warning_counts_and_fails_nothing(tmp_path: Path) -> None:
    """One line a place, the most frequent first."""
    noted = Noted()
    source = """\
def run(task, env):
    random.random()
    for _ in range(3):
        uuid4()
    return "fine"
"""
    trials = [(trial_of(trial=n), ScriptedWorld()) for n in range(2)]

    ended = run_all(held(tmp_path, "warn", source, noted=noted), trials)

    assert [one.answer for one in ended] == ["fine", "fine"]
    assert noted.lines() == (
        f"Not decided by the seed: uuid.uuid4() at desk.py:{LINE + 4}, 6 times in 2 trials.",
        f"Not decided by the seed: random.random() at desk.py:{LINE + 2}, 2 times in 2 trials.",
    )


def test_libraries_are_not_reported_and_packages_of_the_agent_are(tmp_path: Path) -> None:
    """What is installed in an environment below the root is no code of the agent."""
    library = tmp_path / ".venv" / "lib" / "site-packages"
    for folder in (library, tmp_path / "shop"):
        folder.mkdir(parents=True)
    (library / "library.py").write_text("import time\ndef now():\n    return time.time()\n")
    (tmp_path / "shop" / "clock.py").write_text("import time\ndef now():\n    return time.time()\n")
    source = f"""\
import sys
sys.path.append({str(library)!r})
import library, shop.clock
def run(task, env):
    library.now()
    if task.input:
        shop.clock.now()
    return "fine"
"""
    trials = [(trial_of(task_of(f"t{n}", input=n)), ScriptedWorld()) for n in range(2)]

    clean, found = run_all(held(tmp_path, "raise", source), trials)

    assert clean.answer == "fine"
    assert found.reason == "nondeterminism: time.time() at shop/clock.py:3"


@pytest.mark.slow
def test_numpys_global_generator_is_chance_and_a_seeded_one_is_not(tmp_path: Path) -> None:
    """Also under a name that was imported from it."""
    noted = Noted()
    source = """\
import numpy as np
from numpy.random import randint, default_rng
def run(task, env):
    np.random.default_rng(4).random(), np.random.RandomState(4).rand()
    np.random.rand()
    randint(3)
    default_rng()
    np.random.seed(4)
    return str(np.random.RandomState(4).randint(10 ** 6))
"""
    ended = run_one(held(tmp_path, "warn", source, noted=noted))

    assert ended.reason is None
    assert ended.answer == "991406"  # numpy.random.RandomState(4).randint(10 ** 6)
    assert sorted(line.split(": ")[1].split(",")[0] for line in noted.lines()) == sorted(
        f"numpy.random.{name} at desk.py:{LINE + line}"
        for name, line in (
            ("rand()", 5),
            ("randint()", 6),
            ("default_rng() without a seed", 7),
            ("seed()", 8),
        )
    )


@pytest.mark.slow
def test_under_the_guard_trials_do_not_share_a_worker(tmp_path: Path) -> None:
    """So that each finding has its trial, whatever the isolation says."""
    source = """\
async def run(task, env):
    await asyncio.sleep(0.01)
    if task.input:
        await asyncio.to_thread(late)
    return "fine"
def late():
    time.time()
"""
    agent = held(tmp_path, "raise", source, isolation="inline")
    trials = [(trial_of(task_of(f"t{n}", input=n)), ScriptedWorld()) for n in (0, 1)]

    fine, found = run_all(agent, trials)

    assert fine.answer == "fine"
    assert found.reason == f"nondeterminism: time.time() at desk.py:{LINE + 7}"


def test_without_the_guard_nothing_is_watched(tmp_path: Path) -> None:
    """Nor paid for."""
    source = "import sys\ndef run(task, env):\n    time.time()\n    return str(sys.getprofile())\n"

    assert run_one(held(tmp_path, "off", source)).answer == "None"

"""What the agent finds in ``task`` and ``env``, through real workers."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import time
from pathlib import Path

import pytest

from ci_gate.model.trial import Status, Trajectory
from tests.agents.desks import Desk, ScriptedWorld, fault, run_all, run_one
from tests.speeds import slow
from tests.trials import task_of, trial_of

ISOLATIONS = ("process", "inline")


def answer(trajectory: Trajectory) -> str | None:
    assert trajectory.status is None, trajectory.reason
    return trajectory.answer


@pytest.mark.parametrize("isolation", ISOLATIONS)
@pytest.mark.parametrize("kind", [*slow("def"), "async def"])
def test_agents_of_both_kinds_answer(tmp_path: Path, kind: str, isolation: str) -> None:
    """Synchronous and asynchronous functions run under either isolation."""
    desk = Desk(tmp_path, f"{kind} run(task, env):\n    return task.instruction + task['id']\n")
    trial = trial_of(task_of("t1", instruction="do "))
    assert answer(run_one(desk.python(isolation=isolation), trial=trial)) == "do t1"


def test_task_is_a_read_only_dict_with_attributes(tmp_path: Path) -> None:
    """A task is read by key or attribute, dumps as JSON, copies, and refuses to be written."""
    desk = Desk(
        tmp_path,
        """
import copy, json
def run(task, env):
    refused = 0
    for write in (lambda: task.__setitem__("id", 1), lambda: task.update(id=1),
                  lambda: task.pop("id"), lambda: setattr(task, "id", 1)):
        try:
            write()
        except TypeError:
            refused += 1
    changed = copy.deepcopy(task)
    changed["id"] = "other"
    assert json.loads(json.dumps(task)) == dict(task) and not hasattr(task, "nothing")
    return f"{task.id} {task['input']['n']} {task.metadata['m']} {refused} {sorted(task)}"
""",
    )
    trial = trial_of(task_of("t1", input={"n": 2}, metadata={"m": 3}, tags=("x",)))
    said = answer(run_one(desk.python(), trial=trial))
    assert said == "t1 2 3 4 ['id', 'input', 'instruction', 'metadata']"


def test_a_tool_call_passes_the_sandbox_and_returns_its_own_value(tmp_path: Path) -> None:
    """The sandbox records tool, arguments, output and turn; the agent gets the real object."""
    desk = Desk(
        tmp_path,
        """
def add(a, b):
    return (a, b, a + b)
def run(task, env):
    env.tools.register(add)
    env.turn()
    value = env.tools.call("add", a=1, b=2)
    assert value == (1, 2, 3) and type(value) is tuple
    return str(value[2])
""",
    )
    world = ScriptedWorld()
    trajectory = run_one(desk.python(), world)
    assert answer(trajectory) == "3"
    assert trajectory.turns == 1
    (step,) = trajectory.steps
    assert (step.kind, step.name, step.input, step.output, step.turn) == (
        "tool",
        "add",
        {"a": 1, "b": 2},
        [1, 2, 3],
        1,
    )


def test_tools_are_registered_in_every_documented_way(tmp_path: Path) -> None:
    """Functions, names, mappings, keywords and both forms of the decorator make tools known."""
    desk = Desk(
        tmp_path,
        """
def one(): return 1
def two(): return 2
def run(task, env):
    env.tools.register(one, "zwei", two, {"drei": lambda: 3}, vier=lambda: 4)
    @env.tools.add
    def five(): return 5
    @env.tools.add("six")
    def other(): return 6
    try:
        env.tools.register(7)
    except TypeError:
        pass
    return " ".join(f"{n}={env.tools.call(n)}" for n in env.tools.names)
""",
    )
    assert answer(run_one(desk.python())) == "one=1 zwei=2 drei=3 vier=4 five=5 six=6"


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_a_tool_that_raises_is_an_error_as_data_or_as_exception(
    tmp_path: Path, isolation: str
) -> None:
    """``observe`` shows the error, ``call`` raises it with its text, kind and cause."""
    desk = Desk(
        tmp_path,
        """
def bad(): raise KeyError("x")
def run(task, env):
    env.tools.register(bad)
    seen = env.tools.observe("bad")
    unknown = env.tools.observe("worse")
    try:
        env.tools.call("bad")
    except env.ToolError as error:
        cause = type(error.__cause__).__name__
        raised = f"{error.kind} {error.is_fault} {error.tool} {cause} {error.observation}"
    return f"{seen.text}|{seen.is_error}|{seen.fault}|{unknown.text}|{raised}"
""",
    )
    trajectory = run_one(desk.python(isolation=isolation))
    assert answer(trajectory) == (
        "KeyError: 'x'|True|None|unknown tool 'worse'; there are: bad|"
        "error False bad KeyError KeyError: 'x'"
    )
    assert [step.is_error for step in trajectory.steps] == [True, True, True]


def test_an_injected_fault_replaces_what_the_agent_sees(tmp_path: Path) -> None:
    """The tool has run, the agent gets the fault: raised, as data, or as a truncated text."""
    desk = Desk(
        tmp_path,
        """
done = []
def pay(): done.append(1); return {"paid": True}
def run(task, env):
    env.tools.register(pay)
    try:
        env.tools.call("pay")
    except env.ToolError as error:
        raised = f"{error.kind} {error.is_fault} {error.observation}"
    seen = env.tools.observe("pay")
    cut = env.tools.call("pay")
    fine = env.tools.call("pay")
    return f"{len(done)}|{raised}|{seen.fault} {seen.is_error} {seen.value}|{cut}|{fine}"
""",
    )
    world = ScriptedWorld(
        {
            0: fault("timeout", "TOOL_TIMEOUT"),
            1: fault("rate_limit", "HTTP 429"),
            2: fault("truncated", '{"pai', is_error=False),
        }
    )
    assert answer(run_one(desk.python(), world)) == (
        "4|timeout True TOOL_TIMEOUT|rate_limit True HTTP 429|{\"pai|{'paid': True}"
    )


def test_the_clock_starts_at_the_worlds_moment_and_moves_by_waiting(tmp_path: Path) -> None:
    """Simulated time passes by sleeps and by the delays of faults, and costs no real time."""
    desk = Desk(
        tmp_path,
        """
def slow(): return 1
def run(task, env):
    env.tools.register(slow)
    start = env.clock.now()
    env.clock.sleep(60)
    env.tools.observe("slow")
    passed = (env.clock.now() - start).total_seconds()
    return f"{start.isoformat()} {passed} {env.clock.monotonic()} {env.clock.iso()}"
""",
    )
    start_s = time.monotonic()
    said = answer(run_one(desk.python(), ScriptedWorld({0: fault("timeout", delay_s=15.0)})))
    assert said == "2026-01-01T09:00:00+00:00 75.0 75.0 2026-01-01T09:01:15Z"
    assert time.monotonic() - start_s < 10


def test_real_delays_are_waited_for(tmp_path: Path) -> None:
    """With real delays a fault's delay passes on both clocks."""
    desk = Desk(
        tmp_path,
        """
import time
def slow(): return 1
def run(task, env):
    env.tools.register(slow)
    start = time.monotonic()
    env.tools.observe("slow")
    return str(time.monotonic() - start >= 0.2)
""",
    )
    world = ScriptedWorld({0: fault("latency", delay_s=0.2)})
    assert answer(run_one(desk.python(real_delays=True), world)) == "True"


def test_chance_and_identifiers_come_from_the_seed(tmp_path: Path) -> None:
    """The same seed gives the same numbers and UUIDs, another seed others."""
    desk = Desk(
        tmp_path,
        """
def run(task, env):
    return f"{env.seed} {env.rng.random()} {env.uuid()} {env.uuid()}"
""",
    )
    trials = [trial_of(seed=seed) for seed in (5, 5, 2**64 - 1)]
    said = [answer(t) for t in run_all(desk.python(), [(t, ScriptedWorld()) for t in trials])]
    assert said[0] == said[1]
    assert said[0] != said[2]
    assert said[0] is not None
    assert said[0].startswith(f"5 {random.Random(5).random()} ")
    assert len({*said[0].split()[2:], *str(said[2]).split()[2:]}) == 4


def test_key_values_are_fresh_in_every_trial_and_recorded(tmp_path: Path) -> None:
    """The store is empty at the start of each trial, and its accesses are steps."""
    desk = Desk(
        tmp_path,
        """
def run(task, env):
    before = env.kv.keys()
    env.kv.set("a", 1)
    got = env.kv.get("a")
    env.kv.delete("a")
    return f"{before} {got} {env.kv.get('a', 'gone')}"
""",
    )
    worlds = [ScriptedWorld(), ScriptedWorld()]
    said = [answer(t) for t in run_all(desk.python(), [(trial_of(), world) for world in worlds])]
    assert said == ["[] 1 gone", "[] 1 gone"]
    assert [(s.kind, s.name) for s in worlds[1].steps] == [
        ("kv", name) for name in ("keys", "set", "get", "delete", "get")
    ]


def test_files_are_jailed_to_the_trials_folder(tmp_path: Path) -> None:
    """Files are read, written and listed inside the folder; every way out is refused."""
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "in.txt").write_text("hello")
    (folder / "out").symlink_to("/etc")
    desk = Desk(
        tmp_path,
        """
def run(task, env):
    env.files.write("sub/new.bin", b"\\x00\\xff")
    refused = []
    for path in ("../desk.py", "/etc/hostname", "out/hostname", "sub/../../desk.py"):
        try:
            env.files.read(path)
        except PermissionError:
            refused.append(path)
    return f"{env.files.read('in.txt')} {env.files.list()} {env.files.exists('no')} {len(refused)}"
""",
    )
    world = ScriptedWorld(workdir=folder)
    assert answer(run_one(desk.python(), world)) == "hello ['in.txt', 'out', 'sub'] False 4"
    assert (folder / "sub" / "new.bin").read_bytes() == b"\x00\xff"
    assert world.steps[0].input["content"] == {"base64": "AP8="}


def test_what_would_hang_or_break_the_trial_is_refused_in_words(tmp_path: Path) -> None:
    """A pipe in the folder, a sleep beyond every calendar, a kind of call that is no text."""
    (tmp_path / "w").mkdir()
    desk = Desk(
        tmp_path,
        """
import os

def said(function, *arguments):
    try:
        return function(*arguments)
    except Exception as error:
        return f"{type(error).__name__}: {error}"

def run(task, env):
    os.mkfifo(os.path.join(env.world.workdir, "pipe"))
    return "\\n".join(map(str, [
        said(env.files.read, "pipe"),
        said(env.clock.sleep, float("inf")),
        said(env.call, 3, "x", str),
        env.clock.iso(),
    ]))
""",
    )
    trajectory = run_one(desk.python(), ScriptedWorld(workdir=tmp_path / "w"))

    assert (trajectory.answer or trajectory.reason or "").splitlines() == [
        "OSError: pipe is no regular file",
        "ValueError: a trial cannot sleep for inf s: its calendar ends before",
        "TypeError: kind and name of a call are texts, not 3 and 'x'",
        "2026-01-01T09:00:00Z",
    ]


def test_a_world_that_the_task_does_not_have_says_so(tmp_path: Path) -> None:
    """Without a fixture the folder and the database are errors that name the reason."""
    desk = Desk(
        tmp_path,
        """
def run(task, env):
    said = []
    for use in (env.world.connect, env.files.list):
        try:
            use()
        except FileNotFoundError as error:
            said.append(str(error))
    return "|".join(said)
""",
    )
    said = answer(run_one(desk.python()))
    assert said == (
        "this task has no fixture with a database|this task has no fixture that makes a folder"
    )


def test_connections_are_closed_with_the_trial(tmp_path: Path) -> None:
    """A lock that the agent leaves on its database is gone when the trial has ended."""
    database = tmp_path / "world.db"
    sqlite3.connect(database).execute("CREATE TABLE t (n)").connection.close()
    desk = Desk(
        tmp_path,
        """
kept = []
def run(task, env):
    connection = env.world.connect()
    kept.append(connection)
    connection.execute("BEGIN EXCLUSIVE")
    return env.world.database
""",
    )

    async def run() -> None:
        agent = desk.python()
        try:
            await agent.start()
            await agent.run(trial_of(), ScriptedWorld(database=database))
            connection = sqlite3.connect(database, timeout=0)
            connection.execute("INSERT INTO t VALUES (1)")
            connection.close()
        finally:
            await agent.close()

    asyncio.run(run())


@pytest.mark.parametrize("isolation", ["process", *slow("inline")])
def test_asynchronous_tools_work_from_every_kind_of_agent(tmp_path: Path, isolation: str) -> None:
    """``call`` and ``acall`` reach synchronous and asynchronous tools alike, also at once."""
    desk = Desk(
        tmp_path,
        """
import asyncio
async def later(n):
    await asyncio.sleep(0.001)
    return n
def now(n): return n
async def arun(task, env):
    env.tools.register(later, now)
    many = await asyncio.gather(*(env.tools.acall("later", n=n) for n in range(5)))
    seen = await env.tools.aobserve("now", n=8)
    return f"{many} {seen.value} {env.tools.call('later', n=6)} {env.tools.call('now', n=7)}"
def run(task, env):
    env.tools.register(later, now)
    return f"{env.tools.call('later', n=1)} {env.tools.call('now', n=2)}"
""",
    )
    said = answer(run_one(desk.python("arun", isolation=isolation)))
    assert said == "[0, 1, 2, 3, 4] 8 6 7"
    assert answer(run_one(desk.python("run", isolation=isolation))) == "1 2"


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_tools_are_called_from_the_agents_own_threads(tmp_path: Path, isolation: str) -> None:
    """Many threads of one agent call at once and each gets its own answer."""
    desk = Desk(
        tmp_path,
        """
from concurrent.futures import ThreadPoolExecutor
def echo(n): return n
def run(task, env):
    env.tools.register(echo)
    with ThreadPoolExecutor(8) as pool:
        return str(list(pool.map(lambda n: env.tools.call("echo", n=n), range(50))))
""",
    )
    world = ScriptedWorld()
    assert answer(run_one(desk.python(isolation=isolation), world)) == str(list(range(50)))
    assert len(world.steps) == 50


def test_outputs_that_json_lacks_are_recorded_as_plain_text(tmp_path: Path) -> None:
    """NaN, dates, sets, bytes, cycles and lone surrogates of tools reach the record as JSON."""
    desk = Desk(
        tmp_path,
        """
import datetime
cycle = []
cycle.append(cycle)
def odd():
    return {1: float("nan"), "d": datetime.date(2026, 1, 2), "s": {3}, "b": b"x", "u": "a\\ud800"}
def loop(): return cycle
def run(task, env):
    env.tools.register(odd, loop)
    assert env.tools.call("odd")["s"] == {3} and env.tools.call("loop") is cycle
    return "ok"
""",
    )
    world = ScriptedWorld()
    assert answer(run_one(desk.python(), world)) == "ok"
    expected = {"1": None, "d": "2026-01-02", "s": [3], "b": {"base64": "eA=="}, "u": "a?"}
    assert world.steps[0].output == expected
    assert isinstance(world.steps[1].output, list)


def test_a_call_that_is_too_large_is_a_tool_error(tmp_path: Path) -> None:
    """An observation beyond the bound is refused to the agent instead of filling memory."""
    desk = Desk(
        tmp_path,
        """
def big(): return "x" * (17 * 1024 * 1024)
def run(task, env):
    env.tools.register(big)
    try:
        env.tools.call("big")
    except env.ToolError as error:
        return error.kind
""",
    )
    assert answer(run_one(desk.python())) == "too_large"


def test_a_sandbox_that_breaks_is_not_the_agents_failure(tmp_path: Path) -> None:
    """An exception of the sandbox reaches the caller of ``run``."""
    desk = Desk(tmp_path, "def run(task, env):\n    env.kv.get('x')\n    return 'ok'\n")

    class Broken(ScriptedWorld):
        def observe(self, *_: object, **__: object) -> None:  # type: ignore[override] # it breaks
            raise RuntimeError("sandbox broke")

    with pytest.raises(RuntimeError, match="sandbox broke"):
        run_one(desk.python(), Broken())


def test_a_call_after_the_end_of_its_trial_is_refused(tmp_path: Path) -> None:
    """A thread that outlives its trial cannot write into a later one."""
    desk = Desk(
        tmp_path,
        """
import queue, threading, time
said = []
given = queue.Queue()
def late():
    env = given.get()
    time.sleep(0.1)
    try:
        env.kv.get("x")
    except RuntimeError as error:
        said.append(str(error))
threading.Thread(target=late, daemon=True).start()
def run(task, env):
    if task.id == "second":
        time.sleep(0.3)
        return ";".join(said)
    given.put(env)
    return "first"
""",
    )
    first, second = ScriptedWorld(), ScriptedWorld()
    trials = [(trial_of(), first), (trial_of(task_of("second")), second)]
    said = [answer(t) for t in run_all(desk.python(), trials)]
    assert said == ["first", "the trial has ended; this call was not made"]
    assert not first.steps
    assert not second.steps


def test_tasks_that_an_agent_leaves_do_not_reach_the_next_trial(tmp_path: Path) -> None:
    """What is still running on the loop when a trial ends is cancelled."""
    desk = Desk(
        tmp_path,
        """
import asyncio
left = []
async def forever():
    try:
        await asyncio.sleep(1000)
    except asyncio.CancelledError:
        left.append("cancelled")
        raise
async def run(task, env):
    before = list(left)
    env.task = asyncio.ensure_future(forever())
    await asyncio.sleep(0)
    return str(before)
""",
    )
    trials = [(trial_of(), ScriptedWorld()) for _ in range(2)]
    assert [answer(t) for t in run_all(desk.python(), trials)] == ["[]", "['cancelled']"]


def test_results_of_every_documented_form(tmp_path: Path) -> None:
    """Text, nothing, a mapping and an object with ``answer`` are results."""
    desk = Desk(
        tmp_path,
        """
class Result:
    answer = "object"
    tokens = 7
forms = iter(["text", None, {"answer": {"b": 1, "a": 2}, "turns": 3, "cost_usd": 0.5,
              "measures": {"m": 1}, "steps": [{"name": "t", "input": 1}]}, Result()])
def run(task, env):
    return next(forms)
""",
    )
    found = run_all(desk.python(), [(trial_of(), ScriptedWorld()) for _ in range(4)])
    assert [t.answer for t in found] == ["text", None, '{"b":1,"a":2}', "object"]
    assert (found[2].turns, found[2].cost_usd, found[2].measures) == (3, 0.5, {"m": 1.0})
    assert (found[2].steps[0].kind, found[2].steps[0].name) == ("tool", "t")
    assert found[3].tokens == 7
    assert {t.status for t in found} == {None}


def test_a_result_may_say_that_it_failed_or_errored(tmp_path: Path) -> None:
    """The agent's own status and reason stand, and ``passed`` leaves the word to the graders."""
    desk = Desk(
        tmp_path,
        """
forms = iter([{"status": "failed", "reason": "gave\\nup"}, {"status": "errored"},
              {"status": "passed", "answer": "x"}])
def run(task, env):
    return next(forms)
""",
    )
    found = run_all(desk.python(), [(trial_of(), ScriptedWorld()) for _ in range(3)])
    assert [t.status for t in found] == [Status.FAILED, Status.ERRORED, None]
    assert [t.reason for t in found] == ["gave\\nup", "the agent says that it met an error", None]

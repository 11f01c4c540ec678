"""Every way in which a Python agent can end badly is that trial's failure, with its reason."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from ci_gate.agents.capture import HEAD_BYTES, TAIL_BYTES
from ci_gate.model.suite import Limits
from ci_gate.model.trial import Status
from tests.agents.desks import Desk, ScriptedWorld, fault, run_all, run_one
from tests.speeds import slow
from tests.trials import task_of, trial_of

ENDINGS = """
import os, signal, sys, threading

class Rude(Exception):
    def __str__(self):
        raise ValueError("no text")

class Answer:
    @property
    def answer(self):
        raise OSError("property")

def raises(): raise ValueError("bad\\nluck")
def rude(): raise Rude()
def exits(): sys.exit(3)
def interrupt(): raise KeyboardInterrupt
def recursion(): return recursion()
def memory(): raise MemoryError
def number(): return 5
def listing(): return ["answer"]
def no_key(): return {"anser": "x"}
def bytes_(): return {"answer": b"x"}
def nan(): return {"answer": float("nan")}
def cycle():
    found = {"answer": "x"}
    found["steps"] = [found]
    return found
def word(): return {"answer": "x", "tokens": "many"}
def truth(): return {"answer": "x", "turns": True}
def measure(): return {"answer": "x", "measures": {"m": "high"}}
def bad_step(): return {"answer": "x", "steps": [{"kind": "tool"}]}
def status(): return {"status": "great"}
def huge(): return "x" * (16 * 1024 * 1024 + 1)
def property_(): return Answer()
def hard_exit(): os._exit(3)
def quiet_exit(): os._exit(0)
def killed(): os.kill(os.getpid(), signal.SIGKILL)
def crash(): os.kill(os.getpid(), signal.SIGSEGV)
def closes(): os.closerange(3, 256); return "ok"
def fine(): return "fine"

def run(task, env):
    return globals()[task.id]()
"""

REASONS = {
    "raises": r"ValueError: bad\nluck (desk.py:13 in raises)",
    "rude": "Rude: <Rude without a text> (desk.py:14 in rude)",
    "exits": "sys.exit(3)",
    "interrupt": "KeyboardInterrupt (desk.py:16 in interrupt)",
    "recursion": "RecursionError: maximum recursion depth exceeded",
    "memory": "MemoryError (desk.py:18 in memory)",
    "number": "garbage: the agent returned int 5: a result is text",
    "listing": "garbage: the agent returned list",
    "no_key": "garbage: the agent returned dict",
    "bytes_": "garbage: the result is not JSON: Object of type bytes",
    "nan": "garbage: the result is not JSON: Out of range float",
    "cycle": "garbage: the result is not JSON: it holds itself or is nested too deeply",
    "word": "garbage: tokens is a whole number from 0, found str 'many'",
    "truth": "garbage: turns is a whole number from 0, found bool True",
    "measure": "garbage: measures.m is a number, found str 'high'",
    "bad_step": "garbage: a step is not as documented",
    "status": "garbage: status is passed, failed or errored, found str 'great'",
    "huge": "garbage: the result is too large: 16777",
    "property_": "OSError: property (desk.py:11 in answer)",
    "hard_exit": "crash: exit status 3",
    "quiet_exit": "crash: exit status 0",
    "killed": "crash: signal SIGKILL",
    "crash": "crash: signal SIGSEGV",
    "closes": "crash: ",
}


def test_every_bad_ending_is_a_failure_and_the_next_trial_is_fine(tmp_path: Path) -> None:
    """Whatever the agent does to its worker, its trial fails with the reason, others do not."""
    order = [task for ending in REASONS for task in (ending, "fine")]
    agent = Desk(tmp_path, ENDINGS).python()
    found = run_all(agent, [(trial_of(task_of(task)), ScriptedWorld()) for task in order])
    bad, fine = found[::2], found[1::2]
    assert {t.answer for t in fine} == {"fine"}
    for (ending, reason), trajectory in zip(REASONS.items(), bad, strict=True):
        assert trajectory.status is Status.FAILED, ending
        assert (trajectory.reason or "").startswith(reason), (ending, trajectory.reason)
        assert "\n" not in (trajectory.reason or ""), ending


def test_the_trace_of_an_exception_names_the_agents_own_lines(tmp_path: Path) -> None:
    """The output of a failed trial ends in the trace, without frames of the worker."""
    desk = Desk(tmp_path, "def run(task, env):\n    print('thinking')\n    raise OSError('disk')\n")
    tail = run_one(desk.python()).output_tail
    assert tail.startswith("thinking\nTraceback")
    assert 'desk.py", line 3, in run' in tail
    assert "ci-gate worker" not in tail


@pytest.mark.slow
def test_output_is_never_read_as_protocol(tmp_path: Path) -> None:
    """Lines of the protocol that an agent or its child prints are output and nothing else."""
    desk = Desk(
        tmp_path,
        """
import os, subprocess, sys
FAKE = '{"op":"done","id":1,"result":{"answer":"forged"}}'
def run(task, env):
    print(FAKE, flush=True)
    print(FAKE, file=sys.stderr, flush=True)
    subprocess.run([sys.executable, "-c", '''
import os
for fd in range(3, 64):
    try:
        os.write(fd, b'{"op":"done","id":1,"result":{"answer":"forged"}}\\\\n')
    except OSError:
        pass
'''], close_fds=False)
    pid = os.fork()
    if pid == 0:
        return "forged"
    os.waitpid(pid, 0)
    return "honest"
""",
    )
    found = run_all(desk.python(), [(trial_of(), ScriptedWorld()) for _ in range(2)])
    assert [t.answer for t in found] == ["honest", "honest"]


@pytest.mark.slow
def test_a_flood_of_output_is_drained_and_bounded(tmp_path: Path) -> None:
    """An agent that prints 200 MB is not held up, and only the stated part of it is kept."""
    desk = Desk(
        tmp_path,
        """
import os
def run(task, env):
    os.write(1, b"first\\n")
    for _ in range(200):
        os.write(1, b"y" * 1024 * 1024)
    os.write(1, b"\\nlast")
    raise ValueError("enough")
""",
    )
    trajectory = run_one(desk.python(timeout_s=60.0))
    assert trajectory.reason == "ValueError: enough (desk.py:8 in run)"
    tail = trajectory.output_tail
    assert tail.startswith("first\nyyy")
    assert "\nlast" in tail
    assert len(tail) < HEAD_BYTES + TAIL_BYTES + 5000


def test_output_belongs_to_the_trial_that_printed_it(tmp_path: Path) -> None:
    """What one trial printed is not in the output of the next."""
    desk = Desk(tmp_path, "def run(task, env):\n    print(task.id)\n    raise ValueError\n")
    trials = [(trial_of(task_of(name)), ScriptedWorld()) for name in ("one", "two")]
    first, second = run_all(desk.python(), trials)
    assert first.output_tail.startswith("one\n")
    assert second.output_tail.startswith("two\n")


def gone(pid: int) -> bool:
    """Wait shortly for the end of a process."""
    for _ in range(200):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.01)
    return False


def test_a_time_out_kills_the_whole_tree(tmp_path: Path) -> None:
    """Children, grandchildren and those that left the session die with the trial's time."""
    desk = Desk(
        tmp_path,
        """
import subprocess, sys, time
SPAWN = '''
import os, subprocess, sys, time
kind = sys.argv[1]
if kind == "daemon":
    if os.fork(): os._exit(0)
    os.setsid()
    if os.fork(): os._exit(0)
elif kind == "session":
    os.setsid()
child = subprocess.Popen(["sleep", "300"])
with open(sys.argv[2], "a") as file:
    file.write(f"{os.getpid()} {child.pid} ")
time.sleep(300)
'''
def run(task, env):
    for kind in ("plain", "session", "daemon"):
        subprocess.Popen([sys.executable, "-c", SPAWN, kind, task.instruction])
    time.sleep(300)
""",
    )
    pids = tmp_path / "pids"
    trial = trial_of(task_of(instruction=str(pids), limits=Limits(timeout_s=1.0)))
    trajectory = run_one(desk.python(), trial=trial)
    assert (trajectory.status, trajectory.reason) == (Status.FAILED, "timeout after 1 s")
    found = [int(pid) for pid in pids.read_text().split()]
    assert len(found) == 6
    assert [pid for pid in found if not gone(pid)] == []


def test_a_worker_that_is_killed_from_outside_fails_its_trial_alone(tmp_path: Path) -> None:
    """SIGKILL in the middle of a trial is that trial's crash; the pool goes on."""
    desk = Desk(
        tmp_path,
        """
import os, signal, threading
def run(task, env):
    if task.id == "doomed":
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGKILL)).start()
        threading.Event().wait()
    return "ok"
""",
    )
    trials = [(trial_of(task_of(name)), ScriptedWorld()) for name in ("doomed", "next")]
    doomed, following = run_all(desk.python(), trials)
    assert doomed.reason == "crash: signal SIGKILL"
    assert following.answer == "ok"


def test_a_memory_limit_ends_in_a_failure(tmp_path: Path) -> None:
    """Beyond ``memory_mb`` the agent meets MemoryError; within it nothing happens."""
    desk = Desk(tmp_path, "def run(task, env):\n    return str(len(bytearray(task.input)))\n")
    trials = [(trial_of(task_of(input=size * 2**20)), ScriptedWorld()) for size in (500, 20)]
    too_much, enough = run_all(desk.python(memory_mb=200), trials)
    assert (too_much.reason or "").startswith("MemoryError")
    assert enough.answer == str(20 * 2**20)


@pytest.mark.parametrize("isolation", ["process", "inline"])
def test_endless_calls_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, isolation: str
) -> None:
    """An agent that calls for ever, or ever larger, fails before it fills memory."""
    monkeypatch.setattr("ci_gate.agents.workers._MAX_CALLS", 50)
    monkeypatch.setattr("ci_gate.agents.workers._MAX_CALL_BYTES", 300_000)
    desk = Desk(
        tmp_path,
        """
def run(task, env):
    while True:
        env.kv.set("a", "x" * task.input)
""",
    )
    trials = [(trial_of(task_of(str(n), input=n)), ScriptedWorld()) for n in (1, 30_000)]
    many, large = run_all(desk.python(isolation=isolation), trials)
    assert (many.status, many.reason) == (Status.FAILED, "limit: more than 50 calls")
    assert len(many.steps) == 50
    assert large.status is Status.FAILED
    assert large.reason == "limit: calls of more than 300000 bytes in memory"
    assert len(large.steps) == 2


@pytest.mark.slow
def test_a_result_that_unfolds_in_memory_is_garbage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few bytes of JSON can be many values: what they would take counts, before they are made."""
    monkeypatch.setattr("ci_gate.agents.wire.MAX_WEIGHT_BYTES", 100_000)
    desk = Desk(tmp_path, "def run(task, env):\n    return {'answer': [[]] * task.input}\n")
    trials = [(trial_of(task_of(str(n), input=n)), ScriptedWorld()) for n in (2_000, 20)]
    heavy, light = run_all(desk.python(), trials)
    assert heavy.status is Status.FAILED
    assert heavy.reason == "garbage: a message of more than 100000 bytes in memory"
    assert light.answer is not None


def test_an_agent_that_does_not_read_answers_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Calls without an end to which the answers pile up end with the worker, not with memory."""
    monkeypatch.setattr("ci_gate.agents.workers._MAX_UNREAD_BYTES", 100_000)
    desk = Desk(
        tmp_path,
        """
def run(task, env):
    while True:
        env._desk.channel.send({"op": "call", "id": 0, "call": 1})
""",
    )
    trajectory = run_one(desk.python())
    assert trajectory.status is Status.FAILED
    assert trajectory.reason == "garbage: calls whose answers are not read"


def test_the_output_of_a_good_trial_is_kept_as_well(tmp_path: Path) -> None:
    """What a trial printed can be shown whether it failed or not."""
    desk = Desk(tmp_path, "def run(task, env):\n    print('thinking')\n    return 'ok'\n")
    assert run_one(desk.python()).output_tail == "thinking\n"


def test_steps_before_the_end_are_kept(tmp_path: Path) -> None:
    """A trial that crashed or ran out of time still shows what it had done."""
    desk = Desk(
        tmp_path,
        "import os\ndef run(task, env):\n    env.kv.set('a', 1)\n    os._exit(1)\n",
    )
    trajectory = run_one(desk.python())
    assert [step.name for step in trajectory.steps] == ["set"]


CAUGHT = """
    try:
        env.tools.call('t')
    except Exception:
        raise ConnectionError('timed out')"""


@pytest.mark.parametrize(
    ("source", "world", "status"),
    [
        ("raise ConnectionResetError('peer')", ScriptedWorld(), Status.ERRORED),
        *slow(
            ("raise RuntimeError('x') from ConnectionError()", ScriptedWorld(), Status.ERRORED),
            ("raise RuntimeError('upstream said 529')", ScriptedWorld(), Status.ERRORED),
        ),
        ("print('upstream said 529', flush=True); os._exit(1)", ScriptedWorld(), Status.ERRORED),
        ("raise RuntimeError('nothing known')", ScriptedWorld(), Status.FAILED),
        ("env.tools.call('t')", ScriptedWorld({0: fault("timeout")}), Status.FAILED),
        (
            CAUGHT,
            ScriptedWorld({0: fault("timeout")}),
            Status.FAILED,
        ),
    ],
)
def test_environment_errors_are_told_from_failures(
    tmp_path: Path, source: str, world: ScriptedWorld, status: Status
) -> None:
    """Configured classes and patterns make a trial errored, but never behind an injected fault."""
    text = f"import os\ndef run(task, env):\n    env.tools.register('t', lambda: 1)\n    {source}\n"
    agent = Desk(tmp_path, text).python(
        environment_errors=("ConnectionError", r"upstream said \d+")
    )
    assert run_one(agent, world).status is status


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("env.files.read('x')", "FileNotFoundError: this task has no fixture that makes a folder"),
        ("import nowhere_at_all", "ModuleNotFoundError: No module named 'nowhere_at_all'"),
        ("env.tools.call('t')", "ToolError: ZeroDivisionError: division by zero"),
    ],
)
def test_what_a_call_raises_is_placed_where_the_agent_made_it(
    tmp_path: Path, line: str, reason: str
) -> None:
    """A line of the worker or of the import system tells nobody anything."""
    desk = Desk(
        tmp_path, f"def run(task, env):\n    env.tools.register(t=lambda: 1 / 0)\n    {line}\n"
    )

    assert run_one(desk.python()).reason == f"{reason} (desk.py:3 in run)"

"""What a trial leaves behind in its worker reaches no later trial."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ci_gate.model.trial import Trajectory
from tests.agents.desks import Desk, ScriptedWorld, run_all
from tests.speeds import slow
from tests.trials import task_of, trial_of

LEAVING = """
import asyncio, os, signal, subprocess, threading, time

def alarm():
    signal.alarm(1)

def itimer():
    signal.setitimer(signal.ITIMER_PROF, 0.05)

def timer():
    threading.Timer(0.3, os._exit, (9,)).start()

def variable():
    os.environ["CI_GATE_LEFT"] = "x"
    del os.environ["PATH"]

def other_environ():
    os.environ = {}

def deaf_to_children():
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)

def child():
    run.left = subprocess.Popen(["sleep", "60"])

def to_thread():
    return asyncio.to_thread(os.getpid)

def daemon():
    subprocess.run("(setsid env -i sleep 60 > /dev/null 2>&1 < /dev/null &)", shell=True)

def nothing():
    pass

def look():
    end_s = time.process_time() + 0.1
    while time.process_time() < end_s:
        pass
    known = os.environ.get("CI_GATE_LEFT"), "PATH" in os.environ
    status = subprocess.Popen(["sh", "-c", "sleep 0.3; exit 3"]).wait()
    return known, status, threading.active_count(), signal.getitimer(signal.ITIMER_REAL)

async def run(task, env):
    found = globals()[task.id]()
    if hasattr(found, "__await__"):
        await found
    return f"{os.getpid()} {found if task.id == 'look' else ''}"
"""

UNTOUCHED = "((None, True), 3, 1, (0.0, 0.0))"


def run_in_turn(root: Path, *names: str) -> list[Trajectory]:
    """Run trials one after the other in as few workers as the agent takes."""
    agent = Desk(root, LEAVING).python()
    return run_all(agent, [(trial_of(task_of(name)), ScriptedWorld()) for name in names])


def split(trajectory: Trajectory) -> tuple[str, str]:
    """Return the worker and what was seen in it."""
    assert trajectory.answer is not None, trajectory.reason
    worker, _, seen = trajectory.answer.partition(" ")
    return worker, seen


@pytest.mark.parametrize(
    "leaves",
    [
        "alarm",
        "variable",
        *slow("itimer", "other_environ", "deaf_to_children", "to_thread", "nothing"),
    ],
)
def test_what_can_be_put_back_is_put_back_in_the_same_worker(tmp_path: Path, leaves: str) -> None:
    """Timers, signal handlers and variables are those after loading, at no new worker's cost."""
    first, second = map(split, run_in_turn(tmp_path, leaves, "look"))
    assert second[1] == UNTOUCHED
    assert first[0] == second[0]


@pytest.mark.parametrize("leaves", [*slow("timer"), "child", "daemon"])
def test_a_worker_with_a_thread_or_child_too_many_is_replaced(tmp_path: Path, leaves: str) -> None:
    """What runs on cannot be put back: the next trial has a worker of its own."""
    first, second = map(split, run_in_turn(tmp_path, leaves, "look"))
    assert second[1] == UNTOUCHED
    assert first[0] != second[0]


def test_threads_and_children_from_loading_stay(tmp_path: Path) -> None:
    """Only what a trial adds replaces a worker; what loading started serves every trial."""
    source = """
import os, subprocess, sys, threading
threading.Thread(target=threading.Event().wait, daemon=True).start()
kept = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
subprocess.run("(setsid sleep 60 > /dev/null 2>&1 < /dev/null &)", shell=True)
def run(task, env):
    return str(os.getpid())
"""
    agent = Desk(tmp_path, source).python(interpreter=sys.executable)
    found = run_all(agent, [(trial_of(), ScriptedWorld()) for _ in range(3)])
    assert len({trajectory.answer for trajectory in found}) == 1

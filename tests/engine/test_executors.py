"""From synchronous code into the engine: signals interrupt it, and nothing is left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from ci_gate.engine.executors import run_locally
from ci_gate.errors import PlatformError
from tests.agents.test_failures import gone
from tests.speeds import slow

ROOT = Path(__file__).parents[2]

PROGRAM = """
import sys
from pathlib import Path
sys.path.insert(0, {root!r})
from ci_gate.engine.executors import run_locally
from ci_gate.engine.real_clock import RealClock
from tests.agents.desks import Desk
from tests.engine.fakes import Journal, go, plan
from tests.speeds import slow

SOURCE = '''
import os, pathlib, time
def run(task, env):
    with open("pids", "a") as file:
        file.write(f"{{os.getpid()}}\\\\n")
    if env.trial > 2:
        time.sleep(100)
    return "ok"
'''
journal = Journal()
agent = Desk(Path({folder!r}), SOURCE).python(jobs=2)
result = run_locally(
    lambda: go(plan(["a"], trials=9), agent, journal=journal, jobs=2, clock=RealClock())
)
print(result.reason.value, result.passed, len(journal.records))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, *slow(signal.SIGTERM)])
def test_a_signal_ends_the_run_with_what_it_has(tmp_path: Path, number: int) -> None:
    """The process says ``interrupted``, keeps what finished, and its agents are gone."""
    program = PROGRAM.format(root=str(ROOT), folder=str(tmp_path))
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as gate:
        pids = tmp_path / "pids"
        while not pids.exists() or pids.read_text().count("\n") < 5:
            assert gate.poll() is None
            time.sleep(0.02)
        gate.send_signal(number)
        output, _ = gate.communicate(timeout=20)
    assert (gate.returncode, output) == (0, b"interrupted 3 3\n")
    assert [pid for pid in set(pids.read_text().split()) if not gone(int(pid))] == []


def test_a_coroutine_that_lets_the_signal_through_is_a_keyboard_interrupt() -> None:
    """What is not a run ends as ^C ends a program."""

    async def main() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(10)

    with pytest.raises(KeyboardInterrupt):
        run_locally(main)
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_ignored_children_are_waited_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under an inherited SIG_IGN every status would read as a pass; that is undone."""
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)

    async def main() -> int:
        return subprocess.run(["/bin/sh", "-c", "exit 3"], check=False).returncode

    try:
        assert run_locally(main) == 3
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_other_threads_may_run_the_engine() -> None:
    """Outside the main thread there are no signals, and the result comes back all the same."""
    found: list[int] = []

    async def main() -> int:
        return 5

    thread = threading.Thread(target=lambda: found.append(run_locally(main)))
    thread.start()
    thread.join()
    assert found == [5]


def test_windows_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Running needs POSIX, and the message says what works without."""
    monkeypatch.setattr(sys, "platform", "win32")

    async def main() -> None:
        raise AssertionError

    with pytest.raises(PlatformError, match=r"Windows does not have.*comparing and reporting"):
        run_locally(main)

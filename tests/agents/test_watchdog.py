"""Whatever ends ci-gate, its agents do not outlive it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ci_gate.agents.watchdog import PLACE, groups_in
from ci_gate.agents.watching import Watchdog

ROOT = Path(__file__).parents[2]

GATE = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, {root!r})
from tests.agents.desks import Desk, ScriptedWorld
from tests.trials import trial_of

async def main():
    desk = Desk(Path({folder!r}), {source!r})
    agent = {agent}
    await agent.start()
    await asyncio.gather(*(agent.run(trial_of(trial=n), ScriptedWorld()) for n in range(2)))

asyncio.run(main())
"""

# The agent, its child and, where the system can find it, a child that left the group.
SHELL = "#!/bin/sh\necho $$ >> pids\nsleep 300 & echo $! >> pids\n{apart}sleep 300\n"
APART = "setsid sh -c 'echo $$ >> pids; sleep 300' &\n"
PYTHON = """
import os, time
def run(task, env):
    with open("pids", "a") as file:
        file.write(f"{os.getpid()}\\n")
    time.sleep(300)
"""


@pytest.mark.parametrize(
    ("agent", "count"),
    [
        pytest.param("desk.command('./agent.sh', timeout_s=300.0)", 3, id="command"),
        pytest.param("desk.python(jobs=2, timeout_s=300.0)", 1, id="python"),
    ],
)
def test_no_agent_outlives_a_gate_that_is_killed(tmp_path: Path, agent: str, count: int) -> None:
    """Two seconds after SIGKILL nothing that it had started is alive, out of its group or not."""
    apart = APART if sys.platform == "linux" else ""
    program = tmp_path / "agent.sh"
    program.write_text(SHELL.format(apart=apart))
    program.chmod(0o755)
    code = GATE.format(root=str(ROOT), folder=str(tmp_path), source=PYTHON, agent=agent)
    found = killed_gate(code, tmp_path / "pids", 2 * (count if apart else min(count, 2)))
    assert within_2_s(lambda: not any(is_alive(pid) for pid in found))


def is_alive(pid: int) -> bool:
    """Return whether a process exists and has not ended; who inherits it may take its time."""
    shown = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, check=False)
    return bool(shown.stdout.strip()) and not shown.stdout.strip().startswith(b"Z")


def within_2_s(condition: Callable[[], bool]) -> bool:
    end_s = time.monotonic() + 2
    while not condition():
        if time.monotonic() > end_s:
            return False
        time.sleep(0.02)
    return True


def killed_gate(code: str, notes: Path, count: int) -> list[int]:
    """Kill a gate once so many processes were noted; return them."""
    with subprocess.Popen([sys.executable, "-c", code]) as gate:
        while not notes.exists() or notes.read_text().count("\n") < count:
            assert gate.poll() is None
            time.sleep(0.01)
        gate.send_signal(signal.SIGKILL)
    return [int(pid) for pid in notes.read_text().split()]


def test_what_has_ended_is_not_killed(tmp_path: Path) -> None:
    """Places are used again, and a group that has ended is nobody's any more."""
    watchdog = Watchdog("CI_GATE_PROCESS=none.")
    try:
        for group in (12, 13, 14):
            watchdog.add(group)
        watchdog.drop(12)
        watchdog.add(15)
        watchdog.drop(14)
        content = os.pread(watchdog._file, 1000, 0)
    finally:
        watchdog.close()
    assert groups_in(content) == {13, 15}
    assert len(content) == 3 * PLACE.size
    assert groups_in(content[:-1]) == {13, 15}


def test_a_watchdog_that_was_killed_holds_nobody_up() -> None:
    """Without it the run goes on, and it can still be closed."""
    watchdog = Watchdog("CI_GATE_PROCESS=none.")
    watchdog._popen.kill()
    watchdog._popen.wait()
    watchdog.add(12)
    watchdog.drop(12)
    watchdog.close()

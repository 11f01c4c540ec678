"""Processes are started apart, seen to end, and taken down with all their descendants."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from ci_gate.agents.processes import Nursery, clean_environment, described_exit
from tests.agents.test_failures import gone

T = TypeVar("T")
PATH = {b"PATH": os.environb[b"PATH"]}


def within(run: Callable[[Nursery], Awaitable[T]]) -> T:
    """Run a coroutine with an open nursery."""

    async def main() -> T:
        nursery = Nursery()
        nursery.open()
        try:
            return await run(nursery)
        finally:
            await nursery.close()

    return asyncio.run(main())


@pytest.mark.parametrize("has_descriptors", [True, False])
def test_the_end_of_a_process_is_seen(
    monkeypatch: pytest.MonkeyPatch, *, has_descriptors: bool
) -> None:
    """With and without process descriptors of the system, every exit status arrives soon."""
    if not has_descriptors:
        monkeypatch.delattr(os, "pidfd_open", raising=False)
        monkeypatch.setattr("ci_gate.agents.processes._CAN_PEEK", False)
        monkeypatch.setattr(sys, "platform", "darwin")

    async def run(nursery: Nursery) -> list[int]:
        children = [
            nursery.spawn(["/bin/sh", "-c", f"exit {n}"], cwd="/", environment=PATH)
            for n in range(5)
        ]
        return [await asyncio.wait_for(child.wait(), 10) for child in children]

    assert within(run) == [0, 1, 2, 3, 4]


def test_a_group_dies_with_its_leader() -> None:
    """What a process leaves running in its group is killed when it ends."""

    async def run(nursery: Nursery) -> int:
        reading, writing = os.pipe()
        child = nursery.spawn(
            ["/bin/sh", "-c", "sleep 300 & echo $!"],
            cwd="/",
            environment=PATH,
            stdout=writing,
        )
        os.close(writing)
        await child.wait()
        with os.fdopen(reading) as file:
            return int(file.readline())

    assert gone(within(run))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux adopts orphans")
@pytest.mark.parametrize("program", ["setsid", "setsid env -i"])
def test_orphans_are_found_by_their_marks_and_strangers_left_alone(program: str) -> None:
    """A daemon of a child is killed with it, though it dropped its environment; nobody else is."""
    stranger = subprocess.Popen(["sleep", "300"], start_new_session=True)
    script = f"{program} sh -c 'echo $$; exec sleep 300' & sleep 0.2"

    async def run(nursery: Nursery) -> int:
        reading, writing = os.pipe()
        child = nursery.spawn(
            ["/bin/sh", "-c", script],
            cwd="/",
            environment=PATH,
            stdout=writing,
        )
        os.close(writing)
        await child.wait()
        await child.sweep()
        with os.fdopen(reading) as file:
            return int(file.readline())

    try:
        assert gone(within(run))
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux adopts orphans")
def test_a_bounded_fork_bomb_is_put_out(tmp_path: Path) -> None:
    """A tree that keeps forking and leaving its session does not survive its trial's time."""
    bomb = """
import os, sys, time
end = time.monotonic() + 20
for level in range(5):
    if os.fork() == 0:
        os.setsid()
        os.fork()
with open(sys.argv[1], "a") as file:
    file.write(f"{os.getpid()}\\n")
while time.monotonic() < end:
    time.sleep(0.05)
    if len(open(sys.argv[1]).read().split()) < 200 and os.fork() == 0:
        os.setsid()
        with open(sys.argv[1], "a") as file:
            file.write(f"{os.getpid()}\\n")
"""
    pids = tmp_path / "pids"

    async def run(nursery: Nursery) -> None:
        child = nursery.spawn(
            [sys.executable, "-c", bomb, str(pids)],
            cwd=str(tmp_path),
            environment=PATH,
        )
        while not pids.exists() or pids.read_text().count("\n") < 30:
            await asyncio.sleep(0.02)
        await child.end()

    within(run)
    found = [int(pid) for pid in pids.read_text().split("\n") if pid]
    assert len(found) >= 30
    assert [pid for pid in found if not gone(pid)] == []


def test_closing_kills_what_is_running() -> None:
    """A nursery that is closed leaves no process, and closing again does nothing."""

    async def run(nursery: Nursery) -> int:
        child = nursery.spawn(["/bin/sleep", "300"], cwd="/", environment=PATH)
        start_s = time.monotonic()
        await nursery.close()
        assert time.monotonic() - start_s < 5
        return child.pid

    assert gone(within(run))


def test_the_words_for_an_exit() -> None:
    """A status is told as a number, a signal by its name."""
    assert described_exit(3) == "exit status 3"
    assert described_exit(-9) == "signal SIGKILL"
    assert described_exit(-250) == "signal 250"


def test_only_the_runners_own_variables_are_dropped() -> None:
    """The agent keeps its environment, without what belongs to the workflow's step."""
    kept = {"PATH": "/bin", "OPENAI_API_KEY": "k", "GITHUB_REF": "r", "LANG": "C"}
    tokens = "GITHUB_TOKEN GH_TOKEN ACTIONS_RUNTIME_TOKEN ACTIONS_ID_TOKEN_REQUEST_TOKEN"
    files = "GITHUB_ENV GITHUB_PATH GITHUB_OUTPUT GITHUB_STEP_SUMMARY GITHUB_STATE"
    dropped = dict.fromkeys([*tokens.split(), *files.split()], "x")
    assert clean_environment(kept | dropped) == kept

"""Execution owns the agent: started before the work is fetched, and gone however it ends."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from ci_gate import config
from ci_gate.errors import AgentSetupError, JournalError
from ci_gate.gate.execution import Execution, Work, execute
from ci_gate.gate.planning import planned_trials
from ci_gate.gate.suites import configured_suite
from ci_gate.model.run import StopReason
from ci_gate.model.suite import Suite
from ci_gate.model.trial import TrialRecord
from tests.agents.test_failures import gone

CONFIG = """
[[suite]]
name = "desk"
tasks = ["tasks.toml"]
trials = 8

[agent]
{agent}

[run]
jobs = 2
"""
PYTHON = 'python = "desk:run"'
COMMAND = 'command = ["./desk.sh"]'
TASKS = """
[[task]]
id = "refund"
instruction = "Say yes."
graders = [{ type = "answer", equals = "yes" }]
"""
SLEEPS = """
import os, time
def run(task, env):
    with open("pids", "a") as file:
        file.write(f"{os.getpid()}\\n")
    time.sleep(300 if env.trial > 1 else 0)
    return "yes"
"""
SHELL = """#!/bin/sh
echo $$ >> pids
[ "$CI_GATE_TRIAL" -gt 1 ] && sleep 300
echo '{"answer": "yes"}'
"""


class Kept:
    """Keeps records and watches nothing."""

    def __init__(self) -> None:
        self.records: list[TrialRecord] = []

    def append(self, record: TrialRecord) -> None:
        """Keep a record."""
        self.records.append(record)

    def planned(self, total: int, done: int) -> None:
        """Do nothing."""

    def finished(self, record: TrialRecord) -> None:
        """Do nothing."""


def execution_in(folder: Path, agent: str) -> Execution:
    """Write a suite with an agent whose later trials do not end."""
    (folder / "ci-gate.toml").write_text(CONFIG.format(agent=agent))
    (folder / "tasks.toml").write_text(TASKS)
    (folder / "desk.py").write_text(SLEEPS)
    (folder / "desk.sh").write_text(SHELL)
    (folder / "desk.sh").chmod(0o755)
    found = config.load(folder / "ci-gate.toml")
    suite = configured_suite(found, found.suites[0], trials=None, task_filter=None)
    return Execution(config=found, suite=suite)


def pids_in(folder: Path) -> list[int]:
    notes = folder / "pids"
    return [int(pid) for pid in notes.read_text().split()] if notes.exists() else []


def children() -> set[int]:
    """Return the processes whose parent is this one, ended ones included."""
    table = subprocess.run(["ps", "-A", "-o", "ppid=,pid=,comm="], capture_output=True, check=True)
    rows = (line.split(maxsplit=2) for line in table.stdout.decode().splitlines())
    return {int(pid) for ppid, pid, name in rows if int(ppid) == os.getpid() and name != "ps"}


def cancelled_when(condition: Callable[[], bool]) -> Callable[..., Any]:
    """Return what runs a coroutine and, once something is the case, cancels it until it ends."""

    async def cancelled(main: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        task = asyncio.ensure_future(main())
        while not condition():
            await asyncio.sleep(0.005)
        while not task.done():
            task.cancel()
            await asyncio.sleep(0.001)
        return task.result()

    return lambda main: asyncio.run(cancelled(main))


@pytest.mark.parametrize("agent", [PYTHON, COMMAND])
def test_no_process_outlives_an_interruption(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, agent: str
) -> None:
    """However often ^C is pressed, what finished is kept, and on return every process is gone."""
    execution, kept, before = execution_in(tmp_path, agent), Kept(), children()
    trials = list(planned_trials(execution.suite, repeats=1))[:3]

    # One trial is in flight when the others have finished, and one worker waits for more.
    is_time = cancelled_when(lambda: len(kept.records) == 2 and len(pids_in(tmp_path)) == 3)
    monkeypatch.setattr("ci_gate.gate.execution.run_locally", is_time)
    result = execute(execution, lambda: Work(trials=trials, sink=kept, progress=kept))

    assert children() <= before
    assert [pid for pid in set(pids_in(tmp_path)) if not gone(pid)] == []
    assert result.reason is StopReason.INTERRUPTED
    assert sorted(record.trial for record in kept.records) == [0, 1]


def test_work_that_cannot_be_fetched_ends_the_agent(tmp_path: Path) -> None:
    """The agent runs by then: a journal that cannot be opened must not leave it running."""
    execution = execution_in(tmp_path, 'python = "noted:run"')
    (tmp_path / "noted.py").write_text(
        f"import os\nopen('pids', 'a').write(f'{{os.getpid()}} ')\n{SLEEPS}"
    )

    def fetch() -> Work:
        raise JournalError("is in use")

    with pytest.raises(JournalError):
        execute(execution, fetch)
    pids = pids_in(tmp_path)
    assert len(pids) == 2
    assert [pid for pid in pids if not gone(pid)] == []


def test_work_is_fetched_only_for_an_agent_that_starts(tmp_path: Path) -> None:
    """An agent that cannot start leaves every file as it was: nothing was opened for it."""
    fetched: list[None] = []

    def fetch() -> Work:
        fetched.append(None)
        return Work(trials=(), sink=Kept(), progress=Kept())

    with pytest.raises(AgentSetupError):
        execute(execution_in(tmp_path, 'python = "missing:run"'), fetch)
    assert fetched == []
    execute(execution_in(tmp_path, PYTHON), fetch)
    assert fetched == [None]


@pytest.mark.parametrize(
    ("answered", "tools", "models"),
    [
        ({}, True, True),
        ({"source_of": Any}, False, False),
        ({"source_of": Any, "faults_on_top": True}, True, True),
        ({"source_of": Any, "answers_all": False}, True, False),
    ],
    ids=["live", "replay", "sandboxed", "models alone are answered"],
)
def test_what_is_answered_meets_faults_where_they_come_on_top(
    tmp_path: Path, answered: dict[str, Any], tools: bool, models: bool
) -> None:
    """A recorded answer brings its own, and drawing again for it would shift all later ones."""
    faults = "[faults]\nrate_permille = 100\n[faults.model]\nrate_permille = 300\n"
    content = CONFIG.format(agent=PYTHON) + faults
    found = config.parse(content.encode(), name="c", root=tmp_path)
    suite = Suite(name="s", root_seed=1, trials=1, tasks=(), digest="")

    execution = Execution(config=found, suite=suite, **answered)

    assert execution.faults == (found.faults if tools else None)
    assert execution.model_rate_permille == (300 if models else 0)

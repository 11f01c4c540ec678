"""``[agent] setup`` makes a work tree ready, or says why it could not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ci_gate.errors import AgentSetupError
from ci_gate.gate.agent_setup import run_setup
from ci_gate.model.agent import AgentSpec


def agent(folder: Path, *setup: str) -> AgentSpec:
    """Return an agent in a folder, with a setup."""
    return AgentSpec(python="a:run", protocol="python", root=str(folder), setup=setup)


def test_it_runs_in_the_agents_folder(tmp_path: Path) -> None:
    """No shell reads the command: what looks like one is text."""
    run_setup(agent(tmp_path, "touch", "$HOME; made"))

    assert [path.name for path in tmp_path.iterdir()] == ["$HOME; made"]


def test_without_one_nothing_runs(tmp_path: Path) -> None:
    """Empty means none."""
    run_setup(agent(tmp_path / "not there"))


def test_it_does_not_see_the_runners_credentials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the agent itself does not."""
    monkeypatch.setenv("GITHUB_TOKEN", "secret")
    monkeypatch.setenv("AGENT_KEY", "its own")

    run_setup(agent(tmp_path, "sh", "-c", "env > seen"))

    seen = (tmp_path / "seen").read_text()
    assert "secret" not in seen
    assert "its own" in seen


def test_a_failure_says_its_status_and_the_end_of_what_it_printed(tmp_path: Path) -> None:
    """However much that was, and whatever it holds."""
    noisy = (
        "yes noise | head -c 3000000; printf '::error::x\\033[2J\\n' >&2; echo last words; exit 3"
    )

    with pytest.raises(AgentSetupError) as caught:
        run_setup(agent(tmp_path, "sh", "-c", noisy))

    text = str(caught.value)
    assert "agent.setup: failed with exit status 3" in text
    assert text.endswith("last words")
    assert "\033" not in text
    assert not any(line.startswith("::") for line in text.splitlines())
    assert len(text) < 10_000


def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    """The key is that of the setup."""
    with pytest.raises(AgentSetupError, match=r"agent\.setup: there is no program 'no-such'"):
        run_setup(agent(tmp_path, "no-such"))


@pytest.mark.slow
def test_one_that_does_not_end_is_ended_with_all_it_started(tmp_path: Path) -> None:
    """Time is up for the command and for what it left in the background."""
    endless = "sleep 300 & echo $! > pid; echo waiting; wait"

    with pytest.raises(AgentSetupError, match=r"did not end within 0\.5 s"):
        run_setup(agent(tmp_path, "sh", "-c", endless), timeout_s=0.5)

    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


@pytest.mark.slow
def test_an_interruption_ends_it(tmp_path: Path) -> None:
    """^C is passed on to whoever asked, and nothing runs on."""
    code = (
        "from tests.gate.test_agent_setup import agent, run_setup\n"
        "from pathlib import Path\n"
        f"run_setup(agent(Path({str(tmp_path)!r}), 'sh', '-c', 'echo $$ > pid; sleep 300'))\n"
    )
    running = subprocess.Popen(
        [sys.executable, "-c", code], cwd=Path(__file__).parents[2], stderr=subprocess.PIPE
    )
    deadline = time.monotonic() + 60
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.02)

    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=60)

    assert b"KeyboardInterrupt" in said
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)

"""A command whose network is cut reaches itself and nobody else, with real namespaces."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ci_gate.agents import secluding, seclusion
from ci_gate.agents.secluding import secluding_command
from ci_gate.errors import AgentSetupError
from ci_gate.model.trial import Status
from tests.agents.desks import Desk, run_one
from tests.agents.test_failures import gone

_CAN = (
    sys.platform == "linux"
    and subprocess.run([sys.executable, seclusion.__file__], capture_output=True).returncode == 0
)
needs_namespaces = pytest.mark.skipif(not _CAN, reason="this system has no namespaces for us")

AGENT = f"""#!{sys.executable}
import json, os, socket, sys

def reaches(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=2).close()
        return "reached"
    except OSError as error:
        return type(error).__name__

own = socket.create_server(("127.0.0.1", 0))
found = [reaches(int(sys.argv[1])), reaches(own.getsockname()[1]), os.getuid(), os.getgid()]
print(json.dumps({{"answer": json.dumps(found)}}))
"""


@pytest.fixture
def service() -> Iterator[int]:
    """Return the port of something that listens on this machine."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


@needs_namespaces
def test_a_command_without_network_reaches_only_itself(tmp_path: Path, service: int) -> None:
    """Not even this machine; what it starts for itself it can talk to. It stays who it is."""
    Desk(tmp_path).program("agent.py", AGENT)
    command = ("./agent.py", str(service))

    inherited = run_one(Desk(tmp_path).command(*command))
    alone = run_one(Desk(tmp_path).command(*command, network="none"))

    assert inherited.answer == f'["reached", "reached", {os.getuid()}, {os.getgid()}]'
    assert alone.answer == (f'["ConnectionRefusedError", "reached", {os.getuid()}, {os.getgid()}]')


@needs_namespaces
def test_limits_hold_without_network(tmp_path: Path) -> None:
    """The time limit kills the whole tree, and an exit status is the program's own."""
    Desk(tmp_path).program("slow.sh", "#!/bin/sh\nsleep 71.25 & echo $! > pid; sleep 71.25\n")
    Desk(tmp_path).program("seven.sh", "#!/bin/sh\nexit 7\n")

    late = run_one(Desk(tmp_path).command("./slow.sh", network="none", timeout_s=0.3))
    seven = run_one(Desk(tmp_path).exit_code("./seven.sh", network="none", memory_mb=200))

    assert late.status is Status.FAILED
    assert (late.reason or "").startswith("timeout")
    assert gone(int((tmp_path / "pid").read_text()))
    assert seven.reason == "exit status 7"


@needs_namespaces
def test_a_file_that_is_no_program_is_a_failure_with_words(tmp_path: Path) -> None:
    """It is found out in the trial, because it is not ci-gate that executes it."""
    Desk(tmp_path).program("agent", "\x00\x01")

    ended = run_one(Desk(tmp_path).command("./agent", network="none"))

    assert ended.status is Status.FAILED
    assert "agent cannot be executed: Exec format error" in ended.output_tail


def test_a_system_that_refuses_is_said_before_the_first_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that cannot be cut off does not run at all."""
    refusing = tmp_path / "python"
    refusing.write_text("#!/bin/sh\necho Operation not permitted >&2\nexit 125\n")
    refusing.chmod(0o755)
    monkeypatch.setattr(secluding.sys, "executable", str(refusing))

    with pytest.raises(AgentSetupError, match=r"^agent\.network: .*Operation not permitted"):
        secluding_command()

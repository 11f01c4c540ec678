"""Sockets of a worker are refused where the network is off, and the trial says so."""

from __future__ import annotations

import errno
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ci_gate.agents.python_agent import PythonAgent
from ci_gate.agents.strictness import Strictness
from ci_gate.errors import AgentSetupError
from ci_gate.model.agent import AgentSpec
from ci_gate.model.trial import Status
from tests.agents.desks import ScriptedWorld, run_all, run_one
from tests.trials import task_of, trial_of

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="running agents needs POSIX")

# 192.0.2.0/24 and 2001:db8::/32 are reserved for documentation: nobody is there.
WAYS = {
    "socket.create_connection(('192.0.2.7', 443), 1)": "connect to 192.0.2.7:443",
    "socket.socket().connect(('192.0.2.7', 80))": "connect to 192.0.2.7:80",
    "socket.socket().connect_ex(('192.0.2.7', 80))": "connect to 192.0.2.7:80",
    "socket.socket(socket.AF_INET6).connect(('2001:db8::7', 80))": "connect to [2001:db8::7]:80",
    "socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('192.0.2.7', 53))": (
        "connect to 192.0.2.7:53"
    ),
    "socket.socket(type=socket.SOCK_DGRAM).sendmsg([b'x'], [], 0, ('192.0.2.7', 53))": (
        "connect to 192.0.2.7:53"
    ),
    "socket.getaddrinfo('api.example.org', 443)": "look-up of api.example.org",
    "socket.gethostbyname('api.example.org')": "look-up of api.example.org",
    "urllib.request.urlopen('http://api.example.org/', timeout=1)": "look-up of api.example.org",
    "asyncio.run(asyncio.open_connection('192.0.2.7', 443))": "connect to 192.0.2.7:443",
}
HEAD = "import asyncio, os, socket, threading, urllib.request\n"


def agent(root: Path, source: str, *, is_replay: bool, **spec: Any) -> PythonAgent:
    """Return an agent whose network is off."""
    (root / "desk.py").write_text(HEAD + source)
    options = {"interpreter": sys.executable, "timeout_s": 20.0, "root": str(root)} | spec
    return PythonAgent(
        AgentSpec(python="desk:run", protocol="python", **options),
        strictness=Strictness(is_replay=is_replay),
    )


@pytest.fixture
def here() -> Iterator[int]:
    """Return the port of a listener on this machine."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.parametrize(
    ("is_replay", "network", "why"),
    [(True, "inherit", "in a replay"), (False, "none", 'with [agent] network = "none"')],
)
def test_each_way_out_is_refused_and_fails_the_trial(
    tmp_path: Path, is_replay: bool, network: Any, why: str
) -> None:
    """At once and by name, though the agent swallows the error and answers."""
    ways = "".join(f"    lambda: {way},\n" for way in WAYS)
    source = f"""WAYS = [\n{ways}]
def run(task, env):
    try:
        WAYS[task.input]()
    except OSError as error:
        return str(error.errno)
"""
    trials = [(trial_of(task_of(f"t{n}", input=n)), ScriptedWorld()) for n in range(len(WAYS))]

    ended = run_all(agent(tmp_path, source, is_replay=is_replay, network=network), trials)

    assert [one.reason for one in ended] == [f"network: {what} {why}" for what in WAYS.values()]
    assert {one.status for one in ended} == {Status.FAILED}
    # urllib wraps the error in one of its own, which has no number.
    assert {one.answer for one in ended} == {str(errno.ENETUNREACH), "None"}


@pytest.mark.slow
def test_this_machine_can_be_reached_with_network_none_and_not_in_a_replay(
    tmp_path: Path, here: int
) -> None:
    """A service of the test is no network; in a replay what it says would not be recorded."""
    source = f"""
def run(task, env):
    socket.create_connection(("127.0.0.1", {here})).close()
    socket.getaddrinfo("localhost", 80)
    return "reached"
"""
    alone = run_one(agent(tmp_path, source, is_replay=False, network="none"))
    replayed = run_one(agent(tmp_path, source, is_replay=True))

    assert alone.answer == "reached"
    assert replayed.reason == f"network: connect to 127.0.0.1:{here} in a replay"


@pytest.mark.slow
def test_a_name_that_only_begins_like_this_machine_is_another(tmp_path: Path) -> None:
    """127.0.0.1.example.org is somebody else's."""
    source = """
def run(task, env):
    socket.getaddrinfo("127.0.0.1.example.org", 80)
"""
    ended = run_one(agent(tmp_path, source, is_replay=False, network="none"))

    assert ended.reason is not None
    assert ended.reason.startswith("network: look-up of 127.0.0.1.example.org")


def test_sockets_that_are_no_network_are_left_alone(tmp_path: Path) -> None:
    """Event loops and local services use them."""
    source = """
async def run(task, env):
    one, other = socket.socketpair()
    one.sendall(b"x")
    server = socket.socket(socket.AF_UNIX)
    server.bind("here")
    server.listen()
    socket.socket(socket.AF_UNIX).connect("here")
    return other.recv(1).decode()
"""
    assert run_one(agent(tmp_path, source, is_replay=True)).answer == "x"


@pytest.mark.slow
def test_a_connection_of_a_thread_has_its_trial(tmp_path: Path) -> None:
    """Though the agent does not wait for what came of it."""
    source = """
def run(task, env):
    thread = threading.Thread(target=lambda: socket.socket().connect_ex(("192.0.2.7", 80)))
    thread.start()
    thread.join()
    return "fine"
"""
    ended = run_one(agent(tmp_path, source, is_replay=True))

    assert ended.reason == "network: connect to 192.0.2.7:80 in a replay"


def test_each_of_many_trials_in_one_worker_answers_for_itself(tmp_path: Path) -> None:
    """Isolation inline: the one that connects fails, its neighbour does not."""
    source = """
def run(task, env):
    if task.input:
        try:
            socket.create_connection(("192.0.2.7", 443), 1)
        except OSError:
            pass
    return "fine"
"""
    held = agent(tmp_path, source, is_replay=False, network="none", isolation="inline")
    trials = [(trial_of(task_of(f"t{n}", input=n)), ScriptedWorld()) for n in (0, 1, 0)]

    assert [one.reason is None for one in run_all(held, trials)] == [True, False, True]


@pytest.mark.slow
def test_with_network_none_an_import_cannot_connect_either(tmp_path: Path) -> None:
    """It is told as what it is: the agent cannot be loaded."""
    source = "socket.create_connection(('192.0.2.7', 443), 1)\ndef run(task, env): pass\n"

    with pytest.raises(AgentSetupError, match=r"the network is off: connect to 192\.0\.2\.7:443"):
        run_one(agent(tmp_path, source, is_replay=False, network="none"))


@pytest.mark.slow
def test_no_word_of_an_environment_error_excuses_it(tmp_path: Path) -> None:
    """Neither tried again nor left out of the rates."""
    source = "def run(task, env):\n    socket.create_connection(('192.0.2.7', 443), 1)\n"
    held = agent(tmp_path, source, is_replay=True, environment_errors=("OSError", "network"))

    assert run_one(held).status is Status.FAILED

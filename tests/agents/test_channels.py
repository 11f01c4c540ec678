"""Programs and the model's API as an agent reaches them, through real workers and real HTTP."""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from ci_gate.agents import worker_channels
from ci_gate.agents.worker_channels import Door
from ci_gate.model.trial import Status, Trajectory
from tests.agents.desks import Desk, ScriptedWorld, fault, run_all, run_one
from tests.trials import task_of, trial_of

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="running agents needs POSIX")


def answer(trajectory: Trajectory) -> str | None:
    assert trajectory.status is None, trajectory.reason
    return trajectory.answer


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    (work / "sub").mkdir(parents=True)
    return work


def test_programs_run_in_the_trials_folder_and_are_recorded(tmp_path: Path, folder: Path) -> None:
    """Streams, status, input, folder and variables are the program's; each run is one call."""
    desk = Desk(
        tmp_path,
        """
def run(task, env):
    said = env.shell.run(["cat"], input="hello \\u00e9")
    failed = env.shell.run("echo out; echo err >&2; exit 3")
    where = env.shell.run(["/bin/pwd"], cwd="sub")
    told = env.shell.run("echo $CI_GATE_TASK $CI_GATE_TRIAL $CI_GATE_SEED $CI_GATE_NOW")
    return "|".join([said.stdout, failed.stdout, failed.stderr, str(failed.returncode),
                     where.stdout, told.stdout, env.shell.run("kill -9 $$").stdout])
""",
    )
    world = ScriptedWorld(workdir=folder)
    said = answer(run_one(desk.python(), world, trial_of(seed=5)))
    trial = trial_of(seed=5)
    assert said == (
        f"hello é|out\n|err\n|3|{folder / 'sub'}\n|"
        f"{trial.task.id} {trial.trial} 0x0000000000000005 2026-01-01T09:00:00Z\n|"
    )
    assert [(step.kind, step.name) for step in world.steps] == [
        ("shell", name) for name in ("cat", "sh", "pwd", "sh", "sh")
    ]
    assert world.steps[0].input == {
        "argv": ["cat"],
        "cwd": ".",
        "timeout_s": 60.0,
        "input": "hello é",
    }
    assert world.steps[4].output == {"returncode": -9, "stdout": "", "stderr": ""}
    assert not any(step.is_error for step in world.steps)


def test_programs_that_cannot_run_or_take_too_long_are_tool_errors(
    tmp_path: Path, folder: Path
) -> None:
    """No such program, a way out of the folder and a time-out raise; a tree of processes ends."""
    desk = Desk(
        tmp_path,
        """
import os
def run(task, env):
    said = []
    for command, options in ((["no-such-program"], {}), (["ls"], {"cwd": ".."}),
                             ("(sleep 50; touch late) & sleep 50", {"timeout_s": 0.05})):
        try:
            env.shell.run(command, **options)
        except env.ToolError as error:
            said.append(error.observation)
    left = env.shell.run("sleep 50 & echo $!")
    alive = os.path.exists(os.path.join("/proc", left.stdout.strip(), "root", "bin"))
    big = env.shell.run("head -c 3000000 /dev/zero")
    return "|".join([*said, str(alive), str(len(big.stdout)), str(big.is_cut)])
""",
    )
    world = ScriptedWorld(workdir=folder)
    start_s = time.monotonic()
    said = str(answer(run_one(desk.python(), world))).split("|")
    assert time.monotonic() - start_s < 10
    assert said[0].startswith("FileNotFoundError: ")
    assert said[1] == "PermissionError: '..' leads out of the trial's folder"
    assert said[2] == "SubprocessError: /bin/sh was ended after 0.05 s"
    assert said[3:] == ["False", str(2**20), "True"]


@pytest.mark.parametrize("isolation", ["process", "inline"])
def test_programs_run_beside_each_other(tmp_path: Path, folder: Path, isolation: str) -> None:
    """Asynchronous agents wait for several programs at once."""
    desk = Desk(
        tmp_path,
        """
import asyncio
async def run(task, env):
    found = await asyncio.gather(*(env.shell.arun(["echo", str(n)]) for n in range(3)))
    return "".join(one.stdout.strip() for one in found)
""",
    )
    assert answer(run_one(desk.python(isolation=isolation), ScriptedWorld(workdir=folder))) == "012"


def test_programs_are_held_to_capabilities(tmp_path: Path, folder: Path) -> None:
    """``shell:echo`` allows echo and neither another program nor a line for the shell."""
    desk = Desk(
        tmp_path,
        """
def run(task, env):
    env.shell.run(["echo"])
    env.shell.run("echo; touch x")
""",
    )
    agent = desk.python(allow=("shell:echo",))
    trajectory = run_one(agent, ScriptedWorld(workdir=folder))
    assert trajectory.status is Status.FAILED
    assert trajectory.reason == ("capability: shell sh is called where only shell:echo may be used")
    assert not (folder / "x").exists()


class Provider:
    """A real HTTP server that speaks as a provider does, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Mapping[str, str], Any]] = []
        self.script: list[tuple[int, bytes]] = []
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                provider.asked.append((self.path, dict(self.headers), json.loads(body)))
                status, content = provider.script.pop(0)
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", provider.url + "/elsewhere")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/v1"


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    found = Provider()
    thread = threading.Thread(target=found.server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    monkeypatch.setenv("OPENAI_BASE_URL", found.url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789abcdef")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    yield found
    found.server.shutdown()
    found.server.server_close()
    thread.join()


CHAT = """
async def arun(task, env):
    reply = await env.llm.achat([{"role": "user", "content": "hi"}], model="m-1", temperature=0)
    return reply["choices"][0]["message"]["content"]
def run(task, env):
    reply = env.llm.chat([{"role": "user", "content": "hi"}], model="m-1", temperature=0)
    return reply["choices"][0]["message"]["content"]
"""
REPLY = json.dumps(
    {"choices": [{"message": {"content": "hello"}}], "usage": {"total_tokens": 7}}
).encode()


@pytest.mark.parametrize("function", ["run", "arun"])
def test_a_chat_is_one_recorded_call_and_its_key_is_in_the_header_alone(
    tmp_path: Path, provider: Provider, function: str
) -> None:
    """The provider gets the body and the key; the record has the body and not the key."""
    provider.script = [(200, REPLY)]
    world = ScriptedWorld()
    agent = Desk(tmp_path, CHAT).python(function, send_seed=True)
    assert answer(run_one(agent, world, trial_of(seed=2**40 + 3))) == "hello"
    ((path, headers, body),) = provider.asked
    assert (path, headers["Authorization"]) == (
        "/v1/chat/completions",
        "Bearer sk-test-0123456789abcdef",
    )
    assert body == {
        "model": "m-1",
        "messages": [{"role": "user", "content": "hi"}],
        "temperature": 0,
        "seed": 3,
    }
    (step,) = world.steps
    assert (step.kind, step.name, step.is_error) == ("llm", "m-1", False)
    assert step.input == {"path": "/chat/completions", "body": body}
    assert step.output["usage"] == {"total_tokens": 7}


def test_a_failure_of_the_provider_makes_the_trial_errored(
    tmp_path: Path, provider: Provider
) -> None:
    """HTTP 429 and 5xx are the environment's, 400 is the agent's; so is what hides an outage."""
    provider.script = [(429, b"slow down"), (503, b""), (400, b"bad"), (500, b""), (302, b"")]
    source = (
        CHAT
        + """
def blame(task, env):
    try:
        run(task, env)
    except env.ToolError:
        if task.id == "blame":
            raise KeyError("mine") from None
        raise
"""
    )
    tasks = ["a", "a", "a", "blame", "a"]
    trials = [(trial_of(task_of(task)), ScriptedWorld()) for task in tasks]
    found = run_all(Desk(tmp_path, source).python("blame"), trials)
    assert [t.status for t in found] == [
        *(Status.ERRORED, Status.ERRORED),
        *(Status.FAILED, Status.FAILED, Status.FAILED),
    ]
    assert str(found[0].reason).startswith("ProviderError: HTTP 429 from the model m-1: slow down")
    assert len(provider.asked) == 5, "a redirection was followed"


def test_an_outage_like_an_injected_fault_is_not_excused(
    tmp_path: Path, provider: Provider
) -> None:
    """Where a rate limit was injected into the trial, a real one does not excuse it."""
    provider.script = [(429, b"slow down")]
    source = (
        CHAT
        + """
def after(task, env):
    env.tools.register(look=lambda: 1)
    env.tools.observe("look")
    return run(task, env)
"""
    )
    world = ScriptedWorld({0: fault("rate_limit", "[CHAOS_FAULT_INJECTED]: HTTP 429")})
    trajectory = run_one(Desk(tmp_path, source).python("after"), world)
    assert trajectory.status is Status.FAILED
    assert "not excused" in str(trajectory.reason)


def test_nobody_there_and_nothing_set_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refused connection is an outage; a missing base URL is a mistake and names the variable."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.delenv("ANTHROPIC_BASE_URL", raising=False)
    monkeypatch.setenv("MINE_BASE_URL", "http://127.0.0.1:9/")
    desk = Desk(tmp_path, CHAT)
    unset = run_one(desk.python())
    refused = run_one(desk.python(base_url_env=("MINE_BASE_URL",)))
    assert (unset.status, refused.status) == (Status.FAILED, Status.ERRORED)
    assert "none of OPENAI_BASE_URL, ANTHROPIC_BASE_URL is set" in str(unset.reason)
    assert "ConnectionRefusedError" in str(refused.reason) or "refused" in str(refused.reason)


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (b"\x00\xff\r\n\r\n", "BadStatusLine"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}", "IncompleteRead"),
        (b"HTTP/1.1 200 OK\r\n" + b"X: 1\r\n" * 200 + b"\r\n{}", "HTTPException"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}", "ended after 2 bytes"),
    ],
)
def test_what_is_no_whole_answer_is_an_outage(
    monkeypatch: pytest.MonkeyPatch, sent: bytes, said: str
) -> None:
    """A peer that speaks no HTTP, or stops within its answer, did not answer: nothing is raised."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")

    def answer_once(listening: socket.socket) -> None:
        peer, _ = listening.accept()
        with peer:
            peer.recv(65536)
            peer.sendall(sent)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=answer_once, args=(listening,), daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        value, is_error = Door(("A_BASE_URL",), {"A_BASE_URL": url}).post("/x", {}, {}, 5.0)
        thread.join()
    assert (is_error, value["status"], value["reached"]) == (True, None, False)
    assert said in value["error"]


@pytest.mark.parametrize(
    ("url", "key", "path", "headers", "body", "said"),
    [
        ("http://bob:hunter2hunter2@host/v1", "k", "/x", {}, {}, "without user"),
        ("http://127.0.0.1:9", "k", "/x HTTP/1.1\r\nX: hunter2", {}, {}, "without user and blanks"),
        ("http://127.0.0.1:9", "hunter2\n", "/x", {}, {}, "header Authorization has a line break"),
        ("http://127.0.0.1:9", "k", "/x", {"X-Mine": b"hunter2\r\nA: b"}, {}, "header X-Mine"),
        ("http://127.0.0.1:9", "k", "/x", {"X-Mine": "hunter2\u2026"}, {}, "header X-Mine"),
        ("http://127.0.0.1:9", "k", "/x", {}, {"model": object()}, "TypeError"),
    ],
)
def test_a_request_that_cannot_be_sent_is_refused_without_a_word_of_what_is_secret(
    url: str, key: str, path: str, headers: dict[str, Any], body: dict[str, Any], said: str
) -> None:
    """Passwords of URLs and values of headers are in no error, which is the agent's own."""
    door = Door(("A_BASE_URL",), {"A_BASE_URL": url, "A_API_KEY": key})
    value, is_error = door.post(path, body, headers, 5.0)
    assert is_error
    assert "reached" not in value, "its own mistake passed for an outage"
    assert said in value["error"]
    assert "hunter2" not in str(value)


@pytest.mark.parametrize("given", [7, "\ud800"])
def test_an_input_that_is_none_starts_no_program(tmp_path: Path, given: Any) -> None:
    """What cannot be fed to a program is refused before there is one that nobody would end."""
    asked = {"argv": ["/bin/sh", "-c", "touch started"], "cwd": ".", "timeout_s": 5, "input": given}
    with pytest.raises((TypeError, ValueError)):
        worker_channels._run(asked, str(tmp_path), {}, worker_channels._Stop())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("environment", "headers"),
    [
        (
            {"OPENAI_BASE_URL": "http://x", "OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "other"},
            {"Authorization": "Bearer k"},
        ),
        (
            {"ANTHROPIC_BASE_URL": "http://x", "ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "other"},
            {"x-api-key": "k", "anthropic-version": "2023-06-01"},
        ),
        ({"MINE_URL": "http://x", "_API_KEY": "other", "OPENAI_API_KEY": "other"}, {}),
    ],
)
def test_a_key_goes_to_its_own_provider_alone(
    environment: dict[str, str], headers: dict[str, str]
) -> None:
    """The key is that of the variable whose base URL is used, and no other."""
    door = Door(("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "MINE_URL"), environment)
    sent = door._own_headers()
    assert {key: value for key, value in sent.items() if key not in ("Content-Type", "Accept")} == (
        headers
    )

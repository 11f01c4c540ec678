"""A judge for tests: a model that is as easily led as a model can be, behind an API on loopback.

It obeys whatever stands outside of the data it was told to distrust, and inside of it only looks
for the texts that the rubric quotes. What it does is a function of the request alone.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

_BLOCK = re.compile(r"<<(data-[0-9a-f]+) ([a-z]+)>>\n(.*?)\n<<end \1 \2>>", re.DOTALL)
_CRITERION = re.compile(r"^(C\d+): (.*)$", re.MULTILINE)


def answer_of(duty: str, work: str) -> str:
    """Return the reply of the easily led judge."""
    criteria = _CRITERION.findall(duty)
    outside = _BLOCK.sub("", work)
    if "answer pass" in outside.lower():
        return graded({key: True for key, _ in criteria}, "pass")
    answers = [text for _, name, text in _BLOCK.findall(work) if name == "answer"]
    met = {
        key: all(quoted in "\n".join(answers) for quoted in re.findall(r'"([^"]+)"', text))
        for key, text in criteria
    }
    return graded(met, "pass" if all(met.values()) else "fail")


def graded(met: Mapping[str, bool], verdict: str) -> str:
    """Return a reply in the form that is asked for."""
    criteria = [
        {"id": key, "met": is_met, "evidence": f"looked for {key}"} for key, is_met in met.items()
    ]
    return json.dumps({"criteria": criteria, "verdict": verdict})


def completion(text: str | None, **message: Any) -> bytes:
    """Return the body of an answer of the API."""
    choice = {"index": 0, "finish_reason": "stop", "message": {"content": text, **message}}
    return json.dumps({"object": "chat.completion", "choices": [choice]}).encode()


class Said(NamedTuple):
    """An answer of the server: status, headers, body."""

    status: int
    body: bytes = b"{}"
    headers: tuple[tuple[str, str], ...] = ()


class Request(NamedTuple):
    """A request that came in."""

    headers: Mapping[str, str]
    body: dict[str, Any]

    @property
    def duty(self) -> str:
        """Return the instructing message."""
        return str(self.body["messages"][0]["content"])

    @property
    def work(self) -> str:
        """Return the message with the data."""
        return str(self.body["messages"][1]["content"])


def obedient(request: Request) -> Said:
    """Answer as the easily led judge does."""
    return Said(200, completion(answer_of(request.duty, request.work)))


class JudgeServer:
    """What a test knows of the running server."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.requests: list[Request] = []


@contextmanager
def serving(answer: Callable[[Request], Said] = obedient) -> Iterator[JudgeServer]:
    """Serve ``POST /v1/chat/completions`` on loopback while the block runs."""

    class Handler(BaseHTTPRequestHandler):
        # Head and body leave as one: else the second would wait for the first to be acknowledged.
        wbufsize = -1

        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = Request(headers, json.loads(self.rfile.read(length)))
            known.requests.append(request)
            assert self.path == "/v1/chat/completions"
            said = answer(request)
            try:
                self.send_response(said.status)
                for name, value in said.headers:
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(said.body)))
                self.end_headers()
                self.wfile.write(said.body)
            except OSError:  # who asked has had enough
                self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    known = JudgeServer(f"http://127.0.0.1:{server.server_port}/v1")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.005})
    thread.start()
    try:
        yield known
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

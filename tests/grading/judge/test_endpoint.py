"""Asking a judge over HTTP: what is tried again, what is refused, and where the key goes."""

from __future__ import annotations

import asyncio
import email.utils
import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from ci_gate.grading.judge.endpoint import LARGEST_BODY, Endpoint, JudgeAddress, JudgeDown
from ci_gate.grading.judge.prompt import Asked, ask
from ci_gate.grading.judge.question import Question
from ci_gate.grading.judge.reply import Reply
from tests.judges import Request, Said, completion, graded, obedient, serving

KEY = "sk-judge-0123456789abcdef"
ASKED = ask(Question(model="judge-1", rubric="polite"), {"answer": "Thank you."}, seed=7)
GOOD = Said(200, completion(graded({"C1": True}, "pass")))


def in_turn(*answers: Said) -> Callable[[Request], Said]:
    """Give each answer once, and the last one from then on."""
    left = iter(answers[:-1])
    return lambda _: next(left, answers[-1])


class Waits:
    """Takes no time, and keeps how long it would have been."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        """Keep the seconds."""
        self.seconds.append(seconds)


def asked(
    url: str, asked: Asked = ASKED, *, waits: Waits | None = None, times: int = 1, **address: Any
) -> list[Reply]:
    async def go() -> list[Reply]:
        endpoint = Endpoint(JudgeAddress(base_url=url, key=KEY, **address), sleep=waits or Waits())
        try:
            return [await endpoint.ask(asked) for _ in range(times)]
        finally:
            await endpoint.close()

    return asyncio.run(go())


def test_a_request_is_reproducible_and_asks_for_the_form_of_the_reply() -> None:
    """Temperature 0, the seed, the schema, and the key in its header alone are sent."""
    with serving(obedient) as server:
        (reply,) = asked(server.url)
    (request,) = server.requests
    assert reply == Reply(text=graded({"C1": True}, "pass"))
    assert (request.body["temperature"], request.body["seed"]) == (0, 7)
    assert request.body["model"] == "judge-1"
    assert request.body["response_format"]["json_schema"]["schema"] == ASKED.schema
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert KEY not in json.dumps(request.body)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_what_passes_by_is_tried_again(status: int) -> None:
    """A rate limit and a server's failure are waited out, as long as the server says."""
    waits = Waits()
    busy = Said(status, b"busy", (("Retry-After", "7"),))
    with serving(in_turn(busy, Said(status), GOOD)) as server:
        (reply,) = asked(server.url, waits=waits)
    assert reply.text
    assert waits.seconds == [7.0, 1.0]


def test_a_date_to_wait_for_is_read_by_the_servers_clock() -> None:
    """Retry-After may be a date, and the server's own date says how far off it is."""
    waits = Waits()
    date = email.utils.formatdate(time.time() + 30, usegmt=True)
    with serving(in_turn(Said(429, b"", (("Retry-After", date),)), GOOD)) as server:
        (reply,) = asked(server.url, waits=waits)
    assert reply.text
    assert waits.seconds == [pytest.approx(30, abs=5)]


@pytest.mark.parametrize(
    ("said", "waited"), [(Said(500, b"oops"), 5), (Said(429, b"", (("Retry-After", "3600"),)), 0)]
)
def test_a_judge_that_stays_down_is_given_up(said: Said, waited: int) -> None:
    """After bounded attempts, or at once where it asks for too much patience, the judge is down."""
    waits = Waits()
    with serving(lambda _: said) as server, pytest.raises(JudgeDown, match=f"HTTP {said.status}"):
        asked(server.url, waits=waits)
    assert len(waits.seconds) == waited


def test_nobody_there_is_down() -> None:
    """A refused connection is tried again and then out of reach."""
    with serving() as server:
        pass
    with pytest.raises(JudgeDown, match="asked 6 times: ConnectError"):
        asked(server.url)


def test_a_slow_judge_is_down() -> None:
    """A request ends after its time, whatever the server does."""

    def slow(_: Request) -> Said:
        time.sleep(0.1)
        return GOOD

    with serving(slow) as server, pytest.raises(JudgeDown, match=r"no answer within 0\.02 s"):
        asked(server.url, timeout_s=0.02, patience_s=0)


@pytest.mark.parametrize("status", [301, 401, 404])
def test_a_refusal_is_not_repeated_and_shows_no_key(status: int) -> None:
    """A wrong key or address is no matter of patience; redirects are not followed."""
    said = Said(status, f"wrong key {KEY}".encode(), (("Location", "http://127.0.0.1:1/"),))
    refused = pytest.raises(JudgeDown, match=f"refuses the request: HTTP {status} ")
    with serving(lambda _: said) as server, refused as caught:
        asked(server.url)
    assert KEY not in caught.value.reason
    assert len(server.requests) == 1


def test_an_api_without_schemas_is_asked_without_from_then_on() -> None:
    """Where response_format is not known the reply is asked for in words alone."""

    def old(request: Request) -> Said:
        return Said(400, b"unknown: response_format") if "response_format" in request.body else GOOD

    with serving(old) as server:
        assert all(reply.text for reply in asked(server.url, times=2))
    assert ["response_format" in one.body for one in server.requests] == [True, False, False]


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"<html>", "no chat completion"),
        (b"{}", "no chat completion"),
        (b"", "no chat completion"),
        (b'{"choices": []}', "0 choices"),
        (completion(None), "empty"),
        (completion(None, refusal="I will not."), "it refused: I will not."),
        (completion("{").replace(b'"stop"', b'"length"'), "cut off"),
        (completion("{").replace(b'"stop"', b'"content_filter"'), "content filter"),
        (b" " * (LARGEST_BODY + 1), "longer than"),
    ],
)
def test_an_answer_without_a_reply_is_a_problem(body: bytes, problem: str) -> None:
    """Garbage, refusals, cut and endless answers come back as what they are."""
    with serving(lambda _: Said(200, body)) as server:
        (reply,) = asked(server.url)
    assert reply.text is None
    assert problem in str(reply.problem)


def test_requests_are_paced() -> None:
    """No more requests a minute are begun than the configuration allows."""
    waits = Waits()
    with serving() as server:
        asked(server.url, waits=waits, times=3, max_per_minute=60)
    assert len(waits.seconds) == 2
    assert 0.5 < waits.seconds[0] <= 1.0 < waits.seconds[1] <= 2.0

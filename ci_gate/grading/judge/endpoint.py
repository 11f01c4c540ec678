"""Asks a judge over the network: any API that speaks OpenAI's chat completions.

Decides what is tried again and when the judge counts as out of reach. It must not know what a reply
means. The key is sent in one header and stands in nothing that is returned or raised.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ci_gate import codec
from ci_gate.errors import UsageError, printable
from ci_gate.grading.judge.prompt import Asked
from ci_gate.grading.judge.reply import Reply

if TYPE_CHECKING:
    import httpx

__all__ = ["LARGEST_BODY", "AskJudge", "Endpoint", "JudgeAddress", "JudgeDown", "require_client"]

LARGEST_BODY: Final = 1_000_000
"""Bytes of an answer that are read."""

_PATIENCE_S: Final = 120.0
_MOST_ATTEMPTS: Final = 6
_FIRST_PAUSE_S: Final = 0.5
_AT_ONCE: Final = 16
_AGAIN: Final = frozenset({408, 425, 429, 500, 502, 503, 504, 529})
_NOT_UNDERSTOOD: Final = frozenset({400, 415, 422})

Sleep = Callable[[float], Awaitable[None]]
AskJudge = Callable[[Asked], Awaitable[Reply]]
"""Gives the reply to a request; raises ``JudgeDown`` where none is to be had."""


class JudgeDown(Exception):
    """The judge cannot be reached, or does not do as asked: the environment's fault.

    Parameters
    ----------
    reason : str
        One line without the key.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class JudgeAddress(msgspec.Struct, frozen=True, kw_only=True):
    """Where and how a judge is reached.

    Parameters
    ----------
    base_url : str
        What stands before ``/chat/completions``.
    key : str or None
    timeout_s : float
        Of one request, whole.
    max_per_minute : int
        Requests; 0: no limit.
    patience_s : float
        Seconds after the first attempt in which another may begin.
    """

    base_url: str
    key: str | None = None
    timeout_s: float = 60.0
    max_per_minute: int = 0
    patience_s: float = _PATIENCE_S


class _Failed(Exception):
    """An attempt that may be made again, after so many seconds where the server said so."""

    def __init__(self, reason: str, wait_s: float | None = None) -> None:
        super().__init__(reason)
        self.wait_s = wait_s


def require_client() -> None:
    """Refuse to go on without the library that speaks HTTP.

    Raises
    ------
    UsageError
        It is not installed.
    """
    try:
        import httpx  # noqa: F401 - only whether it is there
    except ImportError as error:
        raise UsageError(
            "a judge is asked over HTTP, and httpx is not installed",
            hint='Install it: pip install "agent-gate[judge]".',
        ) from error


class Endpoint:
    """A judge's API, asked by several trials at once.

    Parameters
    ----------
    address : JudgeAddress
    sleep : callable
        Waits for seconds.
    """

    def __init__(self, address: JudgeAddress, *, sleep: Sleep = asyncio.sleep) -> None:
        self._address = address
        self._sleep = sleep
        self._client: httpx.AsyncClient | None = None
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._next_s = 0.0
        self._has_schema = True

    async def ask(self, asked: Asked) -> Reply:
        """Return the reply to a request.

        Raises
        ------
        JudgeDown
            It cannot be reached or goes on failing, or it refuses the request.
        """
        started_s = _now_s()
        attempt = 0
        while True:
            attempt += 1
            try:
                async with self._turns:
                    await self._pace()
                    return await self._attempt(asked)
            except _Failed as error:
                pause_s = error.wait_s
                if pause_s is None:
                    pause_s = _FIRST_PAUSE_S * 2.0 ** (attempt - 1)
                is_late = _now_s() - started_s + pause_s > self._address.patience_s
                if is_late or attempt == _MOST_ATTEMPTS:
                    tried = "once" if attempt == 1 else f"{attempt} times"
                    raise JudgeDown(f"the judge was asked {tried}: {error}") from error
                await self._sleep(pause_s)

    async def _pace(self) -> None:
        if self._address.max_per_minute:
            due = max(self._next_s, _now_s())
            self._next_s = due + 60.0 / self._address.max_per_minute
            if due > _now_s():
                await self._sleep(due - _now_s())

    async def _attempt(self, asked: Asked) -> Reply:
        """Ask once, and once more without a schema where the API does not know them."""
        status, headers, body = await self._post(asked)
        if status in _NOT_UNDERSTOOD and self._has_schema:
            plain_status, headers, plain_body = await self._post(asked, is_plain=True)
            if plain_status < 300:
                self._has_schema = False
            status, body = plain_status, plain_body
        if status in _AGAIN:
            raise _Failed(self._said(status, body), _wait_of(headers))
        if status != 200:
            raise JudgeDown(f"the judge refuses the request: {self._said(status, body)}")
        return _reply_of(body)

    def _said(self, status: int, body: bytes) -> str:
        text = body.decode("utf-8", "replace")
        if self._address.key:
            text = text.replace(self._address.key, "[key]")
        return f"HTTP {status} {printable(text, limit=200)}".rstrip()

    async def _post(
        self, asked: Asked, *, is_plain: bool = False
    ) -> tuple[int, Mapping[str, str], bytes]:
        import httpx

        content = codec.encode(_request_of(asked, has_schema=self._has_schema and not is_plain))
        url = f"{self._address.base_url.rstrip('/')}/chat/completions"
        try:
            async with (
                asyncio.timeout(self._address.timeout_s),
                self._opened().stream("POST", url, content=content) as response,
            ):
                return response.status_code, response.headers, await _bounded(response)
        except (TimeoutError, httpx.TimeoutException) as error:
            raise _Failed(f"no answer within {self._address.timeout_s:g} s") from error
        except httpx.HTTPError as error:
            # What an error of the protocol says may hold the header with the key.
            is_told = isinstance(error, httpx.TransportError) and not isinstance(
                error, httpx.ProtocolError
            )
            raise _Failed(
                printable(f"{type(error).__name__} {error if is_told else ''}")
            ) from error

    def _opened(self) -> httpx.AsyncClient:
        import httpx

        if self._client is None:
            headers = {"Content-Type": "application/json"}
            if self._address.key:
                headers["Authorization"] = f"Bearer {self._address.key}"
            # A redirect would carry the key and the texts to another server.
            self._client = httpx.AsyncClient(
                headers=headers,
                timeout=self._address.timeout_s,
                follow_redirects=False,
                # Reading the certificates takes a tenth of a second that plain HTTP has no use for.
                verify=self._address.base_url.lower().startswith("https:"),
            )
        return self._client

    async def close(self) -> None:
        """Close every connection; safe to call twice."""
        if self._client is not None:
            client, self._client = self._client, None
            await client.aclose()


def _now_s() -> float:
    return asyncio.get_running_loop().time()


def _request_of(asked: Asked, *, has_schema: bool) -> dict[str, Any]:
    request: dict[str, Any] = {
        "model": asked.model,
        "messages": [
            {"role": "system", "content": asked.duty},
            {"role": "user", "content": asked.work},
        ],
        "temperature": 0,
        "seed": asked.seed,
    }
    if has_schema:
        named = {"name": "grade", "strict": True, "schema": asked.schema}
        request["response_format"] = {"type": "json_schema", "json_schema": named}
    return request


async def _bounded(response: httpx.Response) -> bytes:
    """Return the body, or one byte more than is allowed of it."""
    body = bytearray()
    async for part in response.aiter_bytes(65_536):
        body += part
        if len(body) > LARGEST_BODY:
            break
    return bytes(body[: LARGEST_BODY + 1])


def _wait_of(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of ``Retry-After``, or those to its date by the server's own clock."""
    text = headers.get("retry-after", "").strip()
    if text.isascii() and text.isdecimal() and len(text) < 10:
        return float(text)
    import email.utils  # which most runs have no use for

    try:
        due = email.utils.parsedate_to_datetime(text)
        now = email.utils.parsedate_to_datetime(headers.get("date", ""))
        return max(0.0, (due - now).total_seconds())
    except (ValueError, TypeError):
        return None


class _Message(msgspec.Struct):
    content: Any = None
    refusal: Any = None


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: Any = None


class _Completion(msgspec.Struct):
    choices: list[_Choice]


_CUT: Final = {
    "length": "its reply was cut off",
    "content_filter": "its reply was withheld by a content filter",
}


def _reply_of(body: bytes) -> Reply:
    if len(body) > LARGEST_BODY:
        return Reply(problem=f"its answer is longer than {LARGEST_BODY} bytes")
    try:
        choices = msgspec.json.decode(body, type=_Completion).choices
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return Reply(problem="its answer is no chat completion")
    if len(choices) != 1:
        return Reply(problem=f"its answer has {len(choices)} choices")
    message, reason = choices[0].message, choices[0].finish_reason
    if message.refusal:
        return Reply(problem=f"it refused: {printable(message.refusal)}")
    if isinstance(reason, str) and reason in _CUT:
        return Reply(problem=_CUT[reason])
    if not isinstance(message.content, str):
        return Reply(problem="the reply is empty")
    return Reply(text=message.content)

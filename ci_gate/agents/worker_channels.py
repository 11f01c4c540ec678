"""The channels of ``env`` that reach out of the worker: programs and the model's API.

A part of the worker in a file of its own, because most trials use neither and each start would pay
for it: like ``worker`` it runs under the agent's interpreter, uses the standard library alone and
works from Python 3.8 on. What of a call is recorded, and whether it is made at all, is decided by
``Env.through``; here a call is only made.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Union

# The worker's own, which it puts here: it is no module that could be imported.
Observation: Any = None
ToolError: Any = None
ProviderError: Any = None

_MAX_STREAM_BYTES = 1024 * 1024
_MAX_ANSWER_BYTES = 8 * 1024 * 1024
_MAX_ERROR_CHARS = 2000
_LOOK_S = 0.02
_LEFT_OPEN_S = 0.5
_SHELL = "/bin/sh"
_SEED_LIMIT = 2**31
_NO_URL = "base URL and path are no URL: wanted is http://HOST:PORT/PATH without user and blanks"

Command = Union[str, Sequence[str]]


class ShellResult:
    """How a program ended.

    Attributes
    ----------
    returncode : int
        Exit status; -N where signal N ended it.
    stdout, stderr : str
        The first mebibyte of each; bytes that are no UTF-8 become U+FFFD.
    is_cut : bool
        More was printed than that.
    """

    __slots__ = ("is_cut", "returncode", "stderr", "stdout")

    def __init__(self, value: Mapping[str, Any]) -> None:
        self.returncode: int = value["returncode"]
        self.stdout: str = value["stdout"]
        self.stderr: str = value["stderr"]
        self.is_cut: bool = value.get("is_cut", False)

    def __repr__(self) -> str:
        return f"ShellResult(returncode={self.returncode}, stdout={self.stdout[:200]!r})"


class Shell:
    """Runs programs in the trial's folder.

    Parameters
    ----------
    env : Env
    inside : callable
        Returns the absolute path of one in the trial's folder; raises OSError.
    variables : mapping of str to str
        What a program learns about the trial.
    """

    def __init__(
        self, env: Any, inside: Callable[[str], str], variables: Mapping[str, str]
    ) -> None:
        self._env = env
        self._inside = inside
        self._variables = variables

    def run(
        self,
        command: Command,
        *,
        input: str | bytes | None = None,  # noqa: A002 - the name that subprocess gives it
        timeout_s: float = 60.0,
        cwd: str = ".",
    ) -> ShellResult:
        """Return how a program ended; whatever it leaves running is ended with it.

        Parameters
        ----------
        command : sequence of str, or str
            A program and its arguments; a text is a line for ``/bin/sh``, recorded as ``sh``.
        input : str, bytes or None
            Its standard input.
        timeout_s : float
        cwd : str
            Relative to the trial's folder.

        Raises
        ------
        ToolError
            It cannot be started, or its time was up; an exit status is no error.
        """
        name, asked = _asked(command, input, timeout_s, cwd)
        seen = self._env.through("shell", name, asked, lambda: self._made(name, asked))
        return ShellResult(seen.unwrap())

    async def arun(
        self,
        command: Command,
        *,
        input: str | bytes | None = None,  # noqa: A002 - as above
        timeout_s: float = 60.0,
        cwd: str = ".",
    ) -> ShellResult:
        """Return how a program ended as ``run`` does, without holding up other tasks."""
        name, asked = _asked(command, input, timeout_s, cwd)
        stop = _Stop()

        async def made() -> Any:
            try:
                return await _in_executor(lambda: self._made(name, asked, stop))
            finally:
                stop.is_set = True

        seen = await self._env.athrough("shell", name, asked, made)
        return ShellResult(seen.unwrap())

    def _made(self, name: str, asked: Mapping[str, Any], stop: _Stop | None = None) -> Any:
        try:
            folder = self._inside(asked["cwd"])
            value = _run(asked, folder, {**os.environ, **self._variables}, stop or _Stop())
            return Observation(name, value, False)
        except (OSError, TypeError, ValueError, subprocess.SubprocessError) as error:
            return Observation(name, f"{type(error).__name__}: {error}", True)


class _Stop:
    """Tells the thread of a program that nobody waits for it any more."""

    is_set = False


async def _in_executor(function: Callable[[], Any]) -> Any:
    import asyncio

    return await asyncio.get_running_loop().run_in_executor(None, function)


def _asked(
    command: Command, given: str | bytes | None, timeout_s: float, cwd: str
) -> tuple[str, dict[str, Any]]:
    """Return the name of a program and what is recorded of the call."""
    argv = [_SHELL, "-c", command] if isinstance(command, str) else [str(part) for part in command]
    if not argv or not argv[0]:
        raise ValueError("a command is a program with its arguments, or a line for /bin/sh")
    asked = {"argv": argv, "cwd": cwd, "timeout_s": timeout_s}
    if given is not None:
        asked["input"] = given
    return os.path.basename(argv[0]), asked


def _run(
    asked: Mapping[str, Any], folder: str, environment: Mapping[str, str], stop: _Stop
) -> dict[str, Any]:
    given = asked.get("input")
    fed = given.encode() if isinstance(given, str) else bytes(memoryview(given or b""))
    process = subprocess.Popen(
        asked["argv"],
        stdin=subprocess.DEVNULL if given is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        env=environment,
        start_new_session=True,
    )
    talk = _Talk(process, fed)
    try:
        is_over = talk.until(time.monotonic() + asked["timeout_s"], stop)
    finally:
        _kill_group(process)
        process.wait()
        talk.close()
    if not is_over:
        shown = f"{asked['argv'][0]} was ended after {asked['timeout_s']:g} s"
        raise subprocess.SubprocessError(shown)
    return talk.result(process.returncode)


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


class _Talk:
    """Feeds a program and drains all it prints, keeping a bounded part."""

    def __init__(self, process: subprocess.Popen[bytes], given: bytes) -> None:
        self._process = process
        self._given = memoryview(given)
        self._kept = {"stdout": bytearray(), "stderr": bytearray()}
        self._is_cut = False
        self._selector = selectors.DefaultSelector()
        for name in ("stdout", "stderr"):
            self._selector.register(getattr(process, name), selectors.EVENT_READ, name)
        if process.stdin is not None:
            os.set_blocking(process.stdin.fileno(), False)
            self._selector.register(process.stdin, selectors.EVENT_WRITE, "stdin")

    def until(self, deadline_s: float, stop: _Stop) -> bool:
        """Return whether the program ended by itself before the deadline."""
        ended_s = None
        while self._selector.get_map():
            now_s = time.monotonic()
            if ended_s is None and self._process.poll() is not None:
                # What it left running would hold its output open for ever.
                _kill_group(self._process)
                ended_s = now_s
            if ended_s is not None and now_s - ended_s > _LEFT_OPEN_S:
                return True
            if ended_s is None and (now_s >= deadline_s or stop.is_set):
                return False
            self._turn(_LOOK_S)
        return self._ends(deadline_s, stop)

    def _ends(self, deadline_s: float, stop: _Stop) -> bool:
        while self._process.poll() is None:
            if time.monotonic() >= deadline_s or stop.is_set:
                return False
            time.sleep(_LOOK_S / 10)
        return True

    def _turn(self, wait_s: float) -> None:
        for key, _ in self._selector.select(wait_s):
            pipe: Any = key.fileobj
            is_open = self._feed(pipe) if key.data == "stdin" else self._drain(pipe, key.data)
            if not is_open:
                self._selector.unregister(pipe)
                pipe.close()

    def _feed(self, pipe: Any) -> bool:
        try:
            self._given = self._given[os.write(pipe.fileno(), self._given[:65536]) :]
        except BlockingIOError:
            return True
        except BrokenPipeError:
            return False
        return len(self._given) > 0

    def _drain(self, pipe: Any, name: str) -> bool:
        chunk = os.read(pipe.fileno(), 65536)
        kept = self._kept[name]
        room = _MAX_STREAM_BYTES - len(kept)
        kept += chunk[:room]
        self._is_cut = self._is_cut or len(chunk) > room
        return bool(chunk)

    def close(self) -> None:
        """Let go of every pipe."""
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        self._selector.close()

    def result(self, status: int) -> dict[str, Any]:
        """Return what is recorded of the end."""
        texts = {name: bytes(kept).decode("utf-8", "replace") for name, kept in self._kept.items()}
        value = {"returncode": status, **texts}
        return {**value, "is_cut": True} if self._is_cut else value


class Llm:
    """The model's API, as far as it speaks JSON over HTTP.

    Parameters
    ----------
    env : Env
    door : Door
        Where it is.
    send_seed : bool
        Put the trial's seed into every request.

    Attributes
    ----------
    base_url : str or None
        None where the environment names none.
    """

    def __init__(self, env: Any, door: Door, send_seed: bool) -> None:
        self._env = env
        self._door = door
        self._send_seed = send_seed
        self.base_url = door.base_url

    def chat(
        self, messages: Sequence[Any], *, model: str, timeout_s: float = 60.0, **parameters: Any
    ) -> Any:
        """Return the answer of ``/chat/completions`` as the provider gave it.

        Parameters
        ----------
        messages : sequence of mapping
        model : str
        timeout_s : float
        **parameters
            Of the request: ``temperature``, ``tools`` and so on.

        Raises
        ------
        ProviderError
            The provider failed: HTTP 429, 5xx or nobody there.
        ToolError
            It refused the request, gave no JSON, took too long, or a fault was injected.
        """
        body = {"model": model, "messages": list(messages), **parameters}
        return self.request("/chat/completions", body, timeout_s=timeout_s)

    async def achat(
        self, messages: Sequence[Any], *, model: str, timeout_s: float = 60.0, **parameters: Any
    ) -> Any:
        """Return the answer as ``chat`` does, without holding up other tasks."""
        body = {"model": model, "messages": list(messages), **parameters}
        return await self.arequest("/chat/completions", body, timeout_s=timeout_s)

    def request(
        self,
        path: str,
        body: Mapping[str, Any],
        *,
        headers: Mapping[str, str] | None = None,
        timeout_s: float = 60.0,
    ) -> Any:
        """Return the JSON that a POST of JSON gives, at a path below the base URL.

        Parameters
        ----------
        path : str
        body : mapping
            Its ``model`` is the name under which the call is recorded.
        headers : mapping of str to str or None
            In addition; only their names are recorded.
        timeout_s : float

        Raises
        ------
        ProviderError, ToolError
            As ``chat``.
        """
        name, asked = self._asked(path, body, headers)
        seen = self._env.through(
            "llm", name, asked, lambda: self._made(name, asked, headers, timeout_s)
        )
        return _answered(name, seen)

    async def arequest(
        self,
        path: str,
        body: Mapping[str, Any],
        *,
        headers: Mapping[str, str] | None = None,
        timeout_s: float = 60.0,
    ) -> Any:
        """Return the answer as ``request`` does, without holding up other tasks."""
        name, asked = self._asked(path, body, headers)

        async def made() -> Any:
            return await _in_executor(lambda: self._made(name, asked, headers, timeout_s))

        return _answered(name, await self._env.athrough("llm", name, asked, made))

    def _asked(
        self, path: str, body: Mapping[str, Any], headers: Mapping[str, str] | None
    ) -> tuple[str, dict[str, Any]]:
        sent = dict(body)
        if self._send_seed:
            sent.setdefault("seed", self._env.seed % _SEED_LIMIT)
        asked: dict[str, Any] = {"path": path, "body": sent}
        if headers:
            asked["headers"] = sorted(name.lower() for name in headers)
        model = sent.get("model")
        return (model if isinstance(model, str) and model else "unknown"), asked

    def _made(
        self,
        name: str,
        asked: Mapping[str, Any],
        headers: Mapping[str, str] | None,
        timeout_s: float,
    ) -> Any:
        value, is_error = self._door.post(asked["path"], asked["body"], headers or {}, timeout_s)
        return Observation(name, value, is_error)


class Door:
    """Where the model's API is, and what opens it.

    Parameters
    ----------
    names : sequence of str
        Variables, the first that is set has the base URL. The key is in the one that is called the
        same but for ``_API_KEY`` at its end, and goes nowhere else.
    environment : mapping of str to str
    """

    def __init__(self, names: Sequence[str], environment: Mapping[str, str]) -> None:
        self._names = names
        self._name = next((name for name in names if environment.get(name)), "")
        self.base_url = environment.get(self._name) or None
        stem = self._name[: -len("_BASE_URL")] if self._name.endswith("_BASE_URL") else ""
        self._key = environment.get(f"{stem}_API_KEY") if stem else None

    def post(
        self, path: str, body: Mapping[str, Any], headers: Mapping[str, str], timeout_s: float
    ) -> tuple[Any, bool]:
        """Return what came back, and whether it is an error.

        An error is an object with ``error``, what the provider or the system said of it, and
        ``status``, that of HTTP or null where there was none; without an answer ``reached`` says
        whether there was somebody.
        """
        import http.client

        if self.base_url is None:
            return _error(None, f"none of {', '.join(self._names) or 'no variables'} is set"), True
        try:
            return self._sent(path, body, headers, timeout_s)
        except http.client.InvalidURL:  # its text may hold a password of the URL
            return _error(None, _NO_URL), True
        except (OSError, TypeError, ValueError, http.client.HTTPException) as error:
            return _failed(error), True

    def _sent(
        self, path: str, body: Mapping[str, Any], headers: Mapping[str, str], timeout_s: float
    ) -> tuple[Any, bool]:
        import urllib.error
        import urllib.request

        url = f"{str(self.base_url).rstrip('/')}/{path.lstrip('/')}"
        if not url.lower().startswith(("http://", "https://")):
            raise ValueError("the base URL is no http:// or https:// one")
        content = json.dumps(body, allow_nan=False).encode("utf-8", "surrogatepass")
        sent = _sendable({**self._own_headers(), **headers})
        request = urllib.request.Request(url, content, sent)  # noqa: S310 - http or https, see above
        try:
            with _opener().open(request, timeout=timeout_s) as answer:
                return _decoded(answer.status, _content(answer))
        except urllib.error.HTTPError as error:
            with error:
                return _error(error.code, _shown(error.read(_MAX_ANSWER_BYTES))), True

    def _own_headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._name.startswith("ANTHROPIC"):
            headers["anthropic-version"] = "2023-06-01"
            return {**headers, "x-api-key": self._key} if self._key else headers
        return {**headers, "Authorization": f"Bearer {self._key}"} if self._key else headers


def _opener() -> Any:
    """Return what opens a URL by the proxies of the environment and follows nobody elsewhere."""
    import urllib.request

    class Here(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_: Any) -> None:
            """Follow nothing: the key is for this host alone."""

    return urllib.request.build_opener(Here)


def _sendable(headers: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return headers as they are; the system's own refusal would say what is in them.

    Raises
    ------
    ValueError
        The value of one would end its line, or cannot be written; only its name is said.
    """
    for name, value in headers.items():
        text = value.decode("latin-1") if isinstance(value, bytes) else str(value)
        if any(not " " <= char <= "\xff" and char != "\t" for char in text):
            raise ValueError(f"the value of the header {name} has a line break or no Latin letter")
    return headers


def _content(answer: Any) -> bytes:
    """Return the body of an answer, at most one byte more than is allowed.

    Raises
    ------
    OSError
        The connection ended before the body did: what came is no answer.
    """
    content: bytes = answer.read(_MAX_ANSWER_BYTES + 1)
    if answer.length and len(content) <= _MAX_ANSWER_BYTES:
        raise ConnectionError(f"the answer ended after {len(content)} bytes, before its end")
    return content


def _failed(error: Exception) -> dict[str, Any]:
    """Return what is recorded where nothing came back that is an answer."""
    reason = getattr(error, "reason", None)
    told = f"{reason}" if isinstance(reason, OSError) else f"{type(error).__name__}: {error}"
    is_late = isinstance(reason, TimeoutError) or "timed out" in told
    is_ours = is_late or isinstance(error, (TimeoutError, TypeError, ValueError))
    return _error(None, told[:_MAX_ERROR_CHARS], reached=is_ours)


def _decoded(status: int, content: bytes) -> tuple[Any, bool]:
    if len(content) > _MAX_ANSWER_BYTES:
        return _error(status, f"the answer has more than {_MAX_ANSWER_BYTES} bytes"), True
    try:
        return json.loads(content), False
    except (ValueError, RecursionError):
        return _error(status, f"the answer is no JSON: {_shown(content)}"), True


def _shown(content: bytes) -> str:
    return content.decode("utf-8", "replace")[:_MAX_ERROR_CHARS]


def _error(status: int | None, said: str, *, reached: bool = True) -> dict[str, Any]:
    return {"status": status, "error": said, **({} if reached else {"reached": False})}


def _answered(name: str, seen: Any) -> Any:
    """Return the answer; the same errors are raised in a replay as there were live."""
    value = seen.value
    if not seen.is_error or seen.fault is not None or not isinstance(value, dict):
        return seen.unwrap()
    status = value.get("status")
    told = "no answer" if status is None else f"HTTP {status}"
    said = value.get("error")
    text = f"{told} from the model {name}" + (f": {said}" if said else "")
    kind = "unreachable" if status is None else f"http_{status}"
    is_outage = value.get("reached") is False or status == 429 or (status or 0) >= 500
    error = ProviderError if is_outage else ToolError
    raise error(name, text, kind, False)

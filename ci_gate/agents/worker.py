"""The worker: runs trials of a Python agent under the agent's own interpreter.

This one file is handed to that interpreter, so it uses the standard library alone, works from
Python 3.8 on and imports nothing of ``ci_gate``. It decides how a trial looks from inside (``env``)
and how the agent's end is described; whether that is a pass, a failure or an error is decided by
the process on the other side, and so is every fault.

The protocol is one JSON object a line on two private file descriptors, never on the standard
streams, and children of the agent do not inherit them. From the parent: ``load`` once, then
``run``, ``grade``, ``cancel`` and the answers to calls. From here: ``ready`` or ``broken`` once,
then ``call``, ``done``, ``cancelled``, ``lost`` (a trial was cancelled, and not by the parent) and
``retire`` (this worker must get no more trials).
"""

from __future__ import annotations

import base64
import builtins
import collections
import contextlib
import importlib
import itertools
import json
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Dict

MAX_MESSAGE_BYTES = 16 * 1024 * 1024
_MAX_REASON_CHARS = 500
_MAX_TRACE_CHARS = 4000
_MAX_DEPTH = 60
_HEARTBEAT_S = 0.1
_LAG_S = 0.05
_STUBBORN_S = 1.0
_THREAD_END_S = 0.02
_BATCH = 16
_UUID_STREAM = 0x75756964
_COROUTINE_FLAG = 0x80

_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_TIMERS = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)
_SIGNALS = tuple(range(1, signal.NSIG))
_RESULT_KEYS = ("answer", "turns", "tokens", "cost_usd", "steps", "measures", "status", "reason")

Message = Dict[str, Any]


class ToolError(Exception):
    """A tool raised, is unknown, or was hit by an injected fault that came as an error.

    Attributes
    ----------
    observation : str
        What a model would be shown.
    kind : str
        ``error``, ``unknown_tool``, or the kind of the injected fault.
    is_fault : bool
        The fault was injected.
    tool : str
        Name of the tool.
    """

    def __init__(self, tool: str, observation: str, kind: str, is_fault: bool) -> None:
        super().__init__(observation)
        self.tool = tool
        self.observation = observation
        self.kind = kind
        self.is_fault = is_fault


class NotInThisVersionError(AttributeError, NotImplementedError):
    """A channel that later versions of ci-gate offer."""


class TrialOverError(RuntimeError):
    """A call was made after its trial had ended."""


class GarbageError(Exception):
    """The agent returned something that is not a result."""


def encode(message: Message) -> bytes:
    """Return a protocol line; text that UTF-8 does not have becomes question marks.

    Raises
    ------
    ValueError, TypeError, RecursionError
        The message holds what JSON does not have.
    """
    return _ENCODER.encode(message).encode("utf-8", "replace") + b"\n"


def plain(value: Any, depth: int = 0) -> Any:
    """Return the JSON value that stands for any Python value in the record of a call."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if depth >= _MAX_DEPTH:
        return "..."
    if isinstance(value, Mapping):
        return {str(key): plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset, collections.deque)):
        return [plain(item, depth + 1) for item in value]
    return _plain_object(value)


def _plain_object(value: Any) -> Any:
    if isinstance(value, (bytes, bytearray)):
        return {"base64": base64.b64encode(bytes(value)).decode("ascii")}
    if callable(getattr(value, "isoformat", None)):
        return str(value.isoformat())
    return _clipped(_text_of(value), 1000)


def _text_of(value: Any) -> str:
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - the agent's own __str__ may raise anything
        return f"<{type(value).__name__} without a text>"


def _clipped(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[:limit] + "..."


def shown(value: Any) -> str:
    """Return what a model is shown of a tool's value: text as it is, else compact JSON."""
    if isinstance(value, str):
        return value
    try:
        return _ENCODER.encode(value)
    except (TypeError, ValueError, RecursionError):
        return _ENCODER.encode(plain(value))


class Channel:
    """The private line to the parent; several threads may ask at once."""

    def __init__(self, incoming: int, outgoing: int) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self._writing = threading.Lock()
        self._reading = threading.Lock()
        self._lines: collections.deque[bytes] = collections.deque()
        self._partial: list[bytes] = []
        self._numbers = itertools.count(1)
        self._waiting: dict[int, Callable[[Message], None]] = {}
        self.backlog: collections.deque[Message] = collections.deque()

    def seal(self) -> None:
        """Keep the line from every child: after exec, and after a bare fork."""
        for descriptor in (self._incoming, self._outgoing):
            os.set_inheritable(descriptor, False)
        os.register_at_fork(after_in_child=self._cut)

    def _cut(self) -> None:
        for descriptor in (self._incoming, self._outgoing):
            os.close(descriptor)
        self._incoming = self._outgoing = -1

    @property
    def incoming(self) -> int:
        """The descriptor on which the parent's lines arrive."""
        return self._incoming

    def send(self, message: Message) -> None:
        """Write a message at once."""
        self.write(encode(message))

    def write(self, content: bytes) -> None:
        """Write whole lines at once."""
        with self._writing:
            rest = memoryview(content)
            while rest:
                rest = rest[os.write(self._outgoing, rest) :]

    def call_line(self, message: Message, take: Callable[[Message], None]) -> bytes:
        """Number a call whose answer will be given to ``take`` and return its line.

        Raises
        ------
        ToolError
            Its arguments and output are too large to be observed.
        """
        message["call"] = number = next(self._numbers)
        try:
            line = encode(message)
        except (TypeError, ValueError, RecursionError):
            message["arguments"] = plain(message["arguments"])
            message["output"] = plain(message["output"])
            line = encode(message)
        if len(line) > MAX_MESSAGE_BYTES:
            raise _too_large(message["name"], len(line))
        self._waiting[number] = take
        return line

    def ask(self, message: Message) -> Message:
        """Send a call and wait for its answer; whoever waits reads for everybody."""
        answers: list[Message] = []
        self.write(self.call_line(message, answers.append))
        while not answers:
            with self._reading:
                if not answers:
                    self.sort(self._read_message())
        return answers[0]

    def receive(self) -> Message:
        """Wait for the next message that is not an answer."""
        while True:
            with self._reading:
                if self.backlog:
                    return self.backlog.popleft()
                self.sort(self._read_message())

    def sort(self, message: Message) -> None:
        """Give an answer to who waits for it; put anything else into the backlog."""
        take = self._waiting.pop(message["call"], None) if "call" in message else None
        if take is not None:
            take(message)
        elif "op" in message:
            self.backlog.append(message)

    def read_ready(self) -> None:
        """Read once, if there is something, and sort every whole message.

        A call made in the same round of the loop may already have read what woke the loop up.
        """
        if _is_readable(self._incoming):
            self._fill()
        self.sort_rest()

    def sort_rest(self) -> None:
        """Sort the whole messages that were read along with one that was waited for."""
        while self._lines:
            self.sort(json.loads(self._lines.popleft()))

    def _read_message(self) -> Message:
        while not self._lines:
            self._fill()
        message: Message = json.loads(self._lines.popleft())
        return message

    def _fill(self) -> None:
        chunk = os.read(self._incoming, 1 << 18)
        if not chunk:
            raise EOFError
        *whole, rest = chunk.split(b"\n")
        if whole:
            self._lines.append(b"".join(self._partial) + whole[0])
            self._lines.extend(whole[1:])
            self._partial = []
        if rest:
            self._partial.append(rest)


def _too_large(name: str, size: int) -> ToolError:
    text = f"the call is too large to be observed: {size} bytes, at most {MAX_MESSAGE_BYTES}"
    return ToolError(name, text, "too_large", False)


def _is_readable(descriptor: int) -> bool:
    import select

    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))


class Record(Dict[str, Any]):
    """A read-only dict whose keys are attributes as well: ``task["id"]`` and ``task.id``."""

    def __getattr__(self, name: str) -> Any:
        if name in self:
            return self[name]
        raise AttributeError(f"no {name!r} here; there are {', '.join(self)}")

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise TypeError("this is read-only; dict(...) makes a copy that is not")

    __setitem__ = __delitem__ = __setattr__ = __delattr__ = _refuse
    update = pop = popitem = clear = setdefault = __ior__ = _refuse

    def __reduce_ex__(self, _: Any) -> Any:
        return dict, (dict(self),)


class Observation:
    """What the agent gets to see of a call.

    Attributes
    ----------
    text : str
        For a model: the value as text, the error, or the injected fault.
    value : Any
        For code: the tool's own value, or ``text`` where it was replaced.
    is_error : bool
    fault : str or None
        Kind of the injected fault.
    """

    __slots__ = ("_kind", "cause", "fault", "is_error", "text", "tool", "value")

    def __init__(
        self,
        tool: str,
        value: Any,
        is_error: bool,
        fault: str | None = None,
        kind: str = "error",
        cause: BaseException | None = None,
    ) -> None:
        self.tool = tool
        self.value = value
        self.text = shown(value)
        self.is_error = is_error
        self.fault = fault
        self.cause = cause
        self._kind = kind

    def unwrap(self) -> Any:
        """Return the value, or raise ``ToolError`` where this is an error."""
        if not self.is_error:
            return self.value
        kind = self.fault or self._kind
        raise ToolError(self.tool, self.text, kind, self.fault is not None) from self.cause

    def __repr__(self) -> str:
        text = _clipped(self.text, 200)
        return f"Observation({text!r}, is_error={self.is_error}, fault={self.fault!r})"


class Tools:
    """The agent's tools. Each runs here; what the agent sees of it passes the parent."""

    def __init__(self, env: Env) -> None:
        self._env = env
        self._functions: dict[str, Callable[..., Any]] = {}

    def register(self, *functions: Any, **named: Callable[..., Any]) -> None:
        """Make tools known: functions by their names, mappings, a name and its function, keywords.

        Raises
        ------
        TypeError
            Something that is neither a function, a mapping nor a name before a function.
        """
        queue = list(functions)
        while queue:
            item = queue.pop(0)
            if isinstance(item, str):
                self._add(item, queue.pop(0) if queue else None)
            elif isinstance(item, Mapping):
                for name, function in item.items():
                    self._add(name, function)
            else:
                self._add(getattr(item, "__name__", ""), item)
        for name, function in named.items():
            self._add(name, function)

    def _add(self, name: str, function: Any) -> None:
        if not name or not callable(function):
            raise TypeError(f"a tool is a function with a name, found {function or name!r}")
        self._functions[name] = function

    def add(self, function: Any) -> Any:
        """Register the decorated function; ``add("name")`` gives it another name."""
        if not isinstance(function, str):
            self.register(function)
            return function

        def with_name(decorated: Any) -> Any:
            self.register(function, decorated)
            return decorated

        return with_name

    @property
    def names(self) -> tuple[str, ...]:
        """The tools that are registered."""
        return tuple(self._functions)

    def call(self, name: str, /, **arguments: Any) -> Any:
        """Return the tool's value; raises ``ToolError`` where it failed or a fault hit it."""
        return self.observe(name, **arguments).unwrap()

    async def acall(self, name: str, /, **arguments: Any) -> Any:
        """Return the tool's value as ``call`` does, for tools and agents that are asynchronous."""
        return (await self.aobserve(name, **arguments)).unwrap()

    def observe(self, name: str, /, **arguments: Any) -> Observation:
        """Return what is seen of the call, errors as data."""
        outcome = self._unknown(name)
        if outcome is None:
            try:
                value = self._functions[name](**arguments)
                outcome = Observation(name, self._env.finish(value), False)
            except Exception as error:  # noqa: BLE001 - whatever the tool raises is its answer
                outcome = _tool_failure(name, error)
        return self._env.passed("tool", name, arguments, outcome)

    async def aobserve(self, name: str, /, **arguments: Any) -> Observation:
        """Return what is seen of the call as ``observe`` does, waiting for asynchronous tools."""
        outcome = self._unknown(name)
        if outcome is None:
            try:
                value = self._functions[name](**arguments)
                value = await value if hasattr(value, "__await__") else value
                outcome = Observation(name, value, False)
            except Exception as error:  # noqa: BLE001 - whatever the tool raises is its answer
                outcome = _tool_failure(name, error)
        return await self._env.apassed("tool", name, arguments, outcome)

    def _unknown(self, name: str) -> Observation | None:
        if name in self._functions:
            return None
        known = ", ".join(self._functions) or "none"
        text = f"unknown tool {name!r}; there are: {known}"
        return Observation(name, text, True, kind="unknown_tool")


def _tool_failure(name: str, error: Exception) -> Observation:
    text = f"{type(error).__name__}: {_text_of(error)}"
    return Observation(name, text, True, cause=error)


class KeyValues:
    """A store of the trial, empty at its start; every access is a recorded call."""

    def __init__(self, env: Env) -> None:
        self._env = env
        self._values: dict[str, Any] = {}

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of a key."""
        value = self._values.get(key, default)
        return self._recorded("get", {"key": key}, value)

    def set(self, key: str, value: Any) -> None:
        """Keep a value."""
        self._values[key] = value
        self._recorded("set", {"key": key, "value": value}, None)

    def delete(self, key: str) -> None:
        """Forget a key; no error where there is none."""
        self._values.pop(key, None)
        self._recorded("delete", {"key": key}, None)

    def keys(self) -> list[str]:
        """Return the keys in the order of their first ``set``."""
        found: list[str] = self._recorded("keys", {}, list(self._values))
        return found

    def _recorded(self, name: str, arguments: Message, value: Any) -> Any:
        return self._env.passed("kv", name, arguments, Observation(name, value, False)).unwrap()


class Files:
    """The trial's own folder; paths out of it, also through links, are refused."""

    def __init__(self, env: Env, folder: str | None) -> None:
        self._env = env
        self._folder = folder

    def read(self, path: str) -> str:
        """Return the text of a file."""
        with open(self._inside(path), encoding="utf-8") as file:
            text = file.read()
        return str(self._recorded("read", {"path": path}, text))

    def read_bytes(self, path: str) -> bytes:
        """Return the bytes of a file."""
        with open(self._inside(path), "rb") as file:
            content = file.read()
        self._recorded("read", {"path": path}, content)
        return content

    def write(self, path: str, content: str | bytes) -> None:
        """Replace a file, making its folders."""
        target = self._inside(path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "wb") as file:
            file.write(content.encode("utf-8") if isinstance(content, str) else content)
        self._recorded("write", {"path": path, "content": content}, None)

    def list(self, path: str = ".") -> builtins.list[str]:
        """Return the names in a folder, sorted."""
        names = sorted(os.listdir(self._inside(path)))
        found: list[str] = self._recorded("list", {"path": path}, names)
        return found

    def exists(self, path: str) -> bool:
        """Return whether there is something at the path."""
        return bool(self._recorded("exists", {"path": path}, os.path.exists(self._inside(path))))

    def _inside(self, path: str) -> str:
        if self._folder is None:
            raise FileNotFoundError("this task has no fixture, so its trials have no folder")
        root = os.path.realpath(self._folder)
        target = os.path.realpath(os.path.join(root, path))
        if target != root and not target.startswith(root + os.sep):
            raise PermissionError(f"{path!r} leads out of the trial's folder")
        return target

    def _recorded(self, name: str, arguments: Message, value: Any) -> Any:
        return self._env.passed("file", name, arguments, Observation(name, value, False)).unwrap()


class TrialClock:
    """The trial's time: it starts at the same moment in every trial and moves only by waiting."""

    def __init__(self, start: str) -> None:
        self._start = start
        self._passed_s = 0.0

    def now(self) -> Any:
        """Return the time as an aware ``datetime`` in UTC."""
        from datetime import datetime, timedelta

        start = datetime.fromisoformat(self._start.replace("Z", "+00:00"))
        return start + timedelta(seconds=self._passed_s)

    def iso(self) -> str:
        """Return the time as ISO 8601 text."""
        return str(self.now().isoformat()).replace("+00:00", "Z")

    def time(self) -> float:
        """Return seconds since 1970."""
        return float(self.now().timestamp())

    def monotonic(self) -> float:
        """Return the seconds that have passed in the trial."""
        return self._passed_s

    def sleep(self, seconds: float) -> None:
        """Let simulated time pass; returns at once."""
        self._passed_s += max(0.0, seconds)

    async def asleep(self, seconds: float) -> None:
        """Let simulated time pass; other tasks get their turn."""
        import asyncio

        self.sleep(seconds)
        await asyncio.sleep(0)


class World:
    """The trial's own copy of the fixture.

    Attributes
    ----------
    database, workdir : str or None
        Paths; None where the task has no such fixture.
    """

    def __init__(self, database: str | None, workdir: str | None) -> None:
        self.database = database
        self.workdir = workdir
        self._connections: list[Any] = []

    def connect(self) -> Any:
        """Return a new ``sqlite3`` connection to the database; closed at the end of the trial.

        Raises
        ------
        FileNotFoundError
            The task has no database.
        """
        import sqlite3

        if self.database is None:
            raise FileNotFoundError("this task has no fixture with a database")
        connection = sqlite3.connect(self.database)
        self._connections.append(connection)
        return connection

    def close(self) -> None:
        """Close what the agent left open, so that no lock outlives the trial."""
        for connection in self._connections:
            with contextlib.suppress(Exception):  # made in another thread: it goes with that
                connection.close()


class Env:
    """Everything a trial offers to the agent.

    Attributes
    ----------
    tools, kv, files, clock, world
        The channels.
    seed : int
        Of the trial, on 64 bits.
    trial : int
        Seed index.
    ToolError : type
        For ``except env.ToolError``.
    """

    ToolError = ToolError

    def __init__(self, message: Message, desk: Desk) -> None:
        self._desk = desk
        self._id = message["id"]
        self._turns = 0
        self._rng: Any = None
        self._uuids: Any = None
        self.seed: int = message["seed"]
        self.trial: int = message["trial"]
        self.clock = TrialClock(message["now"])
        self.world = World(message.get("database"), message.get("workdir"))
        self.files = Files(self, message.get("workdir"))
        self.tools = Tools(self)
        self.kv = KeyValues(self)

    @property
    def rng(self) -> Any:
        """The ``random.Random`` of the trial, seeded by its seed."""
        if self._rng is None:
            import random

            self._rng = random.Random(self.seed)  # noqa: S311 - repeatable on purpose
        return self._rng

    def uuid(self) -> str:
        """Return the next version 4 UUID of the trial, from its seed."""
        import random
        import uuid

        if self._uuids is None:
            self._uuids = random.Random(self.seed ^ _UUID_STREAM)  # noqa: S311 - repeatable on purpose
        return str(uuid.UUID(int=self._uuids.getrandbits(128), version=4))

    def turn(self) -> int:
        """Say that a turn of the agent begins; returns its number, 1 for the first."""
        self._turns += 1
        return self._turns

    @property
    def turns(self) -> int | None:
        """How many turns were said, None where none was."""
        return self._turns or None

    @property
    def llm(self) -> Any:
        """Not in this version."""
        raise NotInThisVersionError(
            "env.llm is not in this version of ci-gate: use the provider's own client"
        )

    @property
    def shell(self) -> Any:
        """Not in this version."""
        raise NotInThisVersionError(
            "env.shell is not in this version of ci-gate: use subprocess in a tool"
        )

    def finish(self, value: Any) -> Any:
        """Return what an asynchronous tool ends with; any other value as it is."""
        return self._desk.finish(value) if hasattr(value, "__await__") else value

    def passed(self, kind: str, name: str, arguments: Message, outcome: Observation) -> Observation:
        """Pass a call by the parent and return what the agent sees of it."""
        answer = self._desk.ask(self._call(kind, name, arguments, outcome))
        delay_s = self._noted(answer)
        if delay_s:
            time.sleep(delay_s)
        return _seen(answer, outcome)

    async def apassed(
        self, kind: str, name: str, arguments: Message, outcome: Observation
    ) -> Observation:
        """Pass a call by the parent as ``passed`` does, without holding up other tasks."""
        answer = await self._desk.aask(self._call(kind, name, arguments, outcome))
        delay_s = self._noted(answer)
        if delay_s:
            import asyncio

            await asyncio.sleep(delay_s)
        return _seen(answer, outcome)

    def _call(self, kind: str, name: str, arguments: Message, outcome: Observation) -> Message:
        return {
            "op": "call",
            "id": self._id,
            "kind": kind,
            "name": name,
            "arguments": arguments,
            "output": outcome.value,
            "is_error": outcome.is_error,
            "turn": self.turns,
        }

    def _noted(self, answer: Message) -> float:
        """Let the fault's delay pass on the trial's clock; return what of it is to be real."""
        if answer.get("over"):
            raise TrialOverError("the trial has ended; this call was not made")
        delay_s = float(answer.get("delay_s", 0.0))
        self.clock.sleep(delay_s)
        return delay_s if self._desk.real_delays else 0.0


def _seen(answer: Message, outcome: Observation) -> Observation:
    if answer.get("fault") is None:
        return outcome
    return Observation(outcome.tool, answer["output"], answer["is_error"], answer["fault"])


class Desk:
    """What the trials of this worker share: the channel, the agent's function, the way to wait."""

    def __init__(self, channel: Channel, order: Message) -> None:
        self.channel = channel
        self.root: str = order["root"]
        self.real_delays: bool = order["real_delays"]
        self.function: Any = None
        self._loop: Any = None

    def finish(self, value: Any) -> Any:
        """Wait for an awaitable from code that is not asynchronous."""
        import asyncio

        async def ended() -> Any:
            return await value

        if asyncio._get_running_loop() is not None:  # get_running_loop would raise
            return _in_thread(lambda: asyncio.run(ended()))
        return self.loop().run_until_complete(ended())

    def loop(self) -> Any:
        """Return the one loop on which trials wait, so that an agent's clients outlive a trial."""
        import asyncio

        if threading.current_thread() is not threading.main_thread():
            return _ThreadLoop()
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            asyncio.set_event_loop(self._loop)
        return self._loop

    def tidy(self) -> None:
        """End what the agent left running on the loop, so that no trial meets another's tasks."""
        if self._loop is None:
            return
        import asyncio

        left = asyncio.all_tasks(self._loop)
        for task in left:
            task.cancel()
        if left:
            self._loop.run_until_complete(asyncio.wait(left, timeout=_STUBBORN_S))

    def renew_threads(self) -> None:
        """Let the threads of ``asyncio.to_thread`` end, which else wait for work for ever."""
        used = getattr(self._loop, "_default_executor", None)
        if used is not None:
            used.shutdown(wait=False)
            self._loop.set_default_executor(type(used)())

    def ask(self, message: Message) -> Message:
        """Send a call and wait for its answer."""
        return self.channel.ask(message)

    async def aask(self, message: Message) -> Message:
        """Send a call and wait for its answer; here nothing else waits in this process."""
        return self.ask(message)


class _ThreadLoop:
    """Runs an awaitable on a loop of its own, for tools called from the agent's threads."""

    def run_until_complete(self, awaitable: Any) -> Any:
        import asyncio

        return asyncio.run(awaitable)


def _in_thread(function: Callable[[], Any]) -> Any:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()


def result_of(value: Any) -> Message:
    """Return the result that an agent's return value stands for.

    Raises
    ------
    GarbageError
        It is neither text, a mapping with a known key nor an object with ``answer``.
    """
    if value is None or isinstance(value, str):
        return {"answer": value}
    if isinstance(value, Mapping):
        found = {key: value[key] for key in _RESULT_KEYS if key in value}
    elif hasattr(value, "answer"):
        found = {key: getattr(value, key) for key in _RESULT_KEYS if hasattr(value, key)}
    else:
        found = {}
    if not found:
        returned = f"{type(value).__name__} {_clipped(_text_of(value), 100)}"
        raise GarbageError(
            f"the agent returned {returned}: a result is text, a mapping with `answer` or an "
            "object with `answer`"
        )
    return found


def done(number: int, result: Message, turns: int | None) -> bytes:
    """Return the line that ends a trial with a result.

    Raises
    ------
    GarbageError
        The result is not JSON or too large.
    """
    if result.get("turns") is None and turns is not None:
        result["turns"] = turns
    return _result_line(number, result)


def _result_line(number: int, result: Any) -> bytes:
    try:
        line = encode({"op": "done", "id": number, "result": result})
    except (TypeError, ValueError, RecursionError) as error:
        raise GarbageError(f"the result is not JSON: {error}") from None
    if len(line) > MAX_MESSAGE_BYTES:
        raise GarbageError(
            f"the result is too large: {len(line)} bytes, at most {MAX_MESSAGE_BYTES}"
        )
    return line


def failed(number: int, error: BaseException, root: str) -> bytes:
    """Return the line that ends a trial whose agent raised."""
    return encode({"op": "done", "id": number, "failure": failure_of(error, root)})


_RETIRE = encode({"op": "retire"})


def failure_of(error: BaseException, root: str) -> Message:
    """Return everything the parent needs to judge an exception.

    ``exceptions`` are the qualified names of the classes of the exception and of its explicit
    causes, none for a result that was refused here; ``fault`` says that an injected fault is
    anywhere behind it.
    """
    return {
        "reason": _reason_of(error, root),
        "exceptions": [] if isinstance(error, GarbageError) else _class_names(error),
        "fault": any(isinstance(e, ToolError) and e.is_fault for e in _chain(error)),
        "trace": _trace_of(error),
    }


def _reason_of(error: BaseException, root: str) -> str:
    text = _clipped(_text_of(error), _MAX_REASON_CHARS)
    if isinstance(error, GarbageError):
        return "garbage: " + text
    if isinstance(error, SystemExit):
        return f"sys.exit({error.code!r})"[:_MAX_REASON_CHARS]
    name = type(error).__name__
    return (name + ": " + text if text else name) + _place_of(error, root)


def _place_of(error: BaseException, root: str) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return ""
    code = trace.tb_frame.f_code
    path = code.co_filename
    path = path[len(root) + 1 :] if path.startswith(root + os.sep) else os.path.basename(path)
    return f" ({path}:{trace.tb_lineno} in {code.co_name})"


def _class_names(error: BaseException) -> list[str]:
    names: list[str] = []
    seen: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in seen and len(seen) < 20:
        seen.append(cause)
        names += [f"{c.__module__}.{c.__qualname__}" for c in type(cause).__mro__[:-1]]
        cause = cause.__cause__
    return names


def _chain(error: BaseException | None) -> list[BaseException]:
    found: list[BaseException] = []
    queue = [error]
    while queue and len(found) < 50:
        link = queue.pop()
        if link is not None and not any(link is known for known in found):
            found.append(link)
            queue += [link.__cause__, link.__context__, *getattr(link, "exceptions", ())]
    return found


def _trace_of(error: BaseException) -> str:
    """Return the end of the trace from the agent's first frame on; "" where it has none."""
    import traceback

    frames = error.__traceback__
    while frames is not None and _is_machinery(frames.tb_frame.f_code.co_filename):
        frames = frames.tb_next
    if frames is None:
        return ""
    try:
        lines = traceback.format_exception(type(error), error, frames, limit=-20)
        return "".join(lines)[-_MAX_TRACE_CHARS:]
    except Exception:  # noqa: BLE001 - a hostile exception must not end the worker
        return ""


def _is_machinery(path: str) -> bool:
    return path in (_OWN_FILE, importlib.__file__) or path.startswith("<frozen importlib")


_OWN_FILE = _trace_of.__code__.co_filename


# The public one makes enumerations, which costs twenty times as much, for every signal and trial.
_handler_of = getattr(sys.modules.get("_signal"), "getsignal", signal.getsignal)


class ProcessState:
    """What of this process outlives a trial, as it was when this was made.

    Parameters
    ----------
    desk : Desk
        Whose idle threads are not the agent's.
    """

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._environ = os.environ
        self._variables = dict(os.environ)
        self._raw = dict(_raw_of(os.environ))
        self._handlers = [_handler_of(number) for number in _SIGNALS]
        self._free_timers = [which for which in _TIMERS if not signal.getitimer(which)[0]]
        self._threads = threading.active_count()
        self._children = _children()

    def restore(self) -> None:
        """Put back timers, signal handlers and the environment."""
        for which in self._free_timers:
            signal.setitimer(which, 0)
        handlers = [_handler_of(number) for number in _SIGNALS]
        if handlers != self._handlers:
            self._restore_handlers(handlers)
        os.environ = self._environ  # noqa: B003 - the agent may have put another one there
        if _raw_of(os.environ) != self._raw:
            os.environ.clear()
            os.environ.update(self._variables)

    def _restore_handlers(self, handlers: list[Any]) -> None:
        for number, handler, former in zip(_SIGNALS, handlers, self._handlers):
            if handler != former and former is not None:
                signal.signal(number, former)

    def has_leftovers(self) -> bool:
        """Return whether a thread or a child is left that cannot be put back."""
        if threading.active_count() > self._threads:
            self._desk.renew_threads()
            if not self._threads_ended():
                return True
        return not _children() <= self._children

    def _threads_ended(self) -> bool:
        until_s = time.monotonic() + _THREAD_END_S
        while threading.active_count() > self._threads and time.monotonic() < until_s:
            time.sleep(0.001)
        return threading.active_count() <= self._threads


def _raw_of(environ: Any) -> Any:
    """Return a mapping to compare; the bytes where they can be had, which costs a tenth."""
    return getattr(environ, "_data", environ)


def _children() -> frozenset[int]:
    """Return the children of this process; 0 stands for those that the system does not list."""
    if not _has_child():
        return frozenset()
    found: set[int] = set()
    try:
        for thread in os.listdir("/proc/self/task"):
            with open(f"/proc/self/task/{thread}/children", encoding="ascii") as file:
                found.update(map(int, file.read().split()))
    except OSError:
        return frozenset((0,))
    return frozenset(found)


def _has_child() -> bool:
    if not hasattr(os, "waitid"):  # macOS before Python 3.13
        return False
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


class SerialWorker:
    """Runs one trial after the other; a crash or time-out is that trial's alone."""

    def __init__(self, desk: Desk, graders: Sequence[str] = ()) -> None:
        self._desk = desk
        self._graders: dict[str, Any] = {}
        self._state = ProcessState(desk)
        for reference in graders:
            self._grader(reference)

    def serve(self) -> None:
        """Do what the parent asks until it hangs up."""
        while True:
            message = self._desk.channel.receive()
            if message["op"] == "grade":
                self._answer(message, self._grade)
            elif message["op"] == "run":
                self._answer(message, self._run)

    def _answer(self, message: Message, act: Callable[[Message], bytes]) -> None:
        try:
            line = act(message)
        except BaseException as error:  # noqa: BLE001 - sys.exit of the agent is its failure as well
            line = failed(message["id"], error, self._desk.root)
        _flush()
        self._desk.channel.write(self._cleaned() + line)

    def _cleaned(self) -> bytes:
        """Undo what the trial did to this process; return what to say where that cannot be."""
        self._state.restore()
        return _RETIRE if self._state.has_leftovers() else b""

    def _run(self, message: Message) -> bytes:
        env = Env(message, self._desk)
        try:
            value = env.finish(self._desk.function(Record(message["task"]), env))
            return done(message["id"], result_of(value), env.turns)
        finally:
            self._desk.tidy()
            env.world.close()
            os.chdir(self._desk.root)

    def _grade(self, message: Message) -> bytes:
        grader = self._grader(message["function"])
        steps = [Record(step) for step in message["trajectory"].get("steps") or ()]
        value = grader(
            Record(message["task"]),
            Record(dict(message["trajectory"], steps=steps)),
            _record(message.get("before")),
            _record(message.get("after")),
        )
        value = self._desk.finish(value) if hasattr(value, "__await__") else value
        return _result_line(message["id"], grade_of(value))

    def _grader(self, reference: str) -> Any:
        """Return the function, loaded once: what was not there before cannot be put there later."""
        if reference not in self._graders:
            try:
                self._graders[reference] = load(reference)
            except BaseException as error:  # noqa: BLE001 - sys.exit while importing is a failure as well
                self._graders[reference] = _Unloadable(error)
            self._state = ProcessState(self._desk)
        return self._graders[reference]


class _Unloadable:
    """Stands for a function that could not be loaded, and raises what loading it raised."""

    def __init__(self, error: BaseException) -> None:
        self._error = error
        self._trace = error.__traceback__

    def __call__(self, *_: Any) -> Any:
        raise self._error.with_traceback(self._trace)


def _record(value: Any) -> Any:
    return Record(value) if isinstance(value, dict) else value


def grade_of(value: Any) -> Any:
    """Return what a grader returned as JSON; an object with ``passed`` becomes a mapping."""
    if isinstance(value, (bool, int, float, Mapping)):
        return value
    if hasattr(value, "passed"):
        return {key: getattr(value, key, None) for key in ("passed", "score", "reason")}
    return f"{type(value).__name__} {_clipped(_text_of(value), 100)}"


class InlineDesk(Desk):
    """A desk for many trials that wait on one loop."""

    def __init__(self, channel: Channel, order: Message) -> None:
        super().__init__(channel, order)
        self.events = self.loop()
        self.pump: Callable[[], None] = channel.sort_rest
        self._thread = threading.get_ident()
        self._lines: list[bytes] = []

    def post(self, line: bytes) -> None:
        """Send a line with all others of this round of the loop; on the loop's thread only."""
        if not self._lines:
            self.events.call_soon(self.flush)
        self._lines.append(line)
        if len(self._lines) >= _BATCH:
            self.flush()

    def flush(self) -> None:
        """Send what was posted."""
        lines, self._lines = self._lines, []
        if lines:
            self.channel.write(b"".join(lines))

    def ask(self, message: Message) -> Message:
        """Send a call and wait; only the loop's thread reads."""
        if threading.get_ident() != self._thread:
            return self._ask_from_thread(message)
        self.flush()
        answer = self.channel.ask(message)
        self.events.call_soon(self.pump)  # what was read along with the answer
        return answer

    def _ask_from_thread(self, message: Message) -> Message:
        answers: list[Message] = []
        arrived = threading.Event()

        def take(answer: Message) -> None:
            answers.append(answer)
            arrived.set()

        self.channel.write(self.channel.call_line(message, take))
        arrived.wait()
        return answers[0]

    async def aask(self, message: Message) -> Message:
        """Send a call and let other trials go on until its answer is here."""
        future = self.events.create_future()
        self.post(self.channel.call_line(message, lambda answer: _resolve(future, answer)))
        answer: Message = await future
        return answer

    def finish(self, value: Any) -> Any:
        """Wait for an awaitable from a thread: on the loop; else as any desk does."""
        import asyncio

        if threading.get_ident() == self._thread:
            return super().finish(value)

        async def ended() -> Any:
            return await value

        return asyncio.run_coroutine_threadsafe(ended(), self.events).result()


def _resolve(future: Any, answer: Message) -> None:
    if not future.done():
        future.set_result(answer)


class InlineWorker:
    """Runs many trials at once: asynchronous agents on one loop, others in threads."""

    def __init__(self, desk: InlineDesk, threads: int) -> None:
        self._desk = desk
        self._events = desk.events
        self._threads = threads
        self._pool: Any = None
        self._running: dict[int, tuple[Any, float]] = {}
        self._blocked_s = 0.0
        self._is_async = is_async(desk.function)
        self._cancelled_error = _cancelled_error()
        desk.pump = self._pump

    def serve(self) -> None:
        """Do what the parent asks until it hangs up."""
        self._events.add_reader(self._desk.channel.incoming, self._readable)
        self._beat(self._events.time())
        self._events.run_forever()

    def _beat(self, due: float) -> None:
        """Measure how long the loop was held up by code that does not wait."""
        lag_s = self._events.time() - due
        if lag_s > _LAG_S:
            self._blocked_s += lag_s
        due = self._events.time() + _HEARTBEAT_S
        self._events.call_at(due, self._beat, due)

    def _readable(self) -> None:
        try:
            self._desk.channel.read_ready()
        except EOFError:
            self._events.stop()
        self._pump()

    def _pump(self) -> None:
        self._desk.channel.sort_rest()
        backlog = self._desk.channel.backlog
        while backlog:
            message = backlog.popleft()
            if message["op"] == "run":
                self._start(message)
            elif message["op"] == "cancel":
                self._cancel(message["id"])

    def _start(self, message: Message) -> None:
        number = message["id"]
        task = self._events.create_task(self._trial(message))
        self._running[number] = task, self._blocked_s
        # A task that is cancelled before its first step runs no code that could say so.
        task.add_done_callback(lambda _: self._ended(number))

    async def _trial(self, message: Message) -> None:
        number = message["id"]
        try:
            line = await self._run(message)
        except self._cancelled_error:
            return
        except BaseException as error:  # noqa: BLE001 - sys.exit of the agent is its failure as well
            line = failed(number, error, self._desk.root)
        task, _ = self._running.get(number, (None, 0.0))
        if task is not None and not _was_cancelled(task):
            del self._running[number]
            self._desk.post(line)

    def _ended(self, number: int) -> None:
        """Say of a trial that is still in the books that somebody here cancelled it."""
        if self._running.pop(number, None) is not None:
            stoppable = self._is_async
            self._desk.post(encode({"op": "lost", "id": number, "stoppable": stoppable}))

    async def _run(self, message: Message) -> bytes:
        env = Env(message, self._desk)
        try:
            value = await self._value(Record(message["task"]), env)
            return done(message["id"], result_of(value), env.turns)
        finally:
            env.world.close()

    async def _value(self, task: Record, env: Env) -> Any:
        if self._is_async:
            return await self._desk.function(task, env)
        value = await self._events.run_in_executor(self._executor(), self._call, task, env)
        return await value if hasattr(value, "__await__") else value

    def _call(self, task: Record, env: Env) -> Any:
        try:
            return self._desk.function(task, env)
        except StopIteration as error:  # a future cannot carry this one
            raise RuntimeError("StopIteration") from error

    def _executor(self) -> Any:
        if self._pool is None:
            from concurrent.futures import ThreadPoolExecutor

            self._pool = ThreadPoolExecutor(self._threads)
        return self._pool

    def _cancel(self, number: int) -> None:
        """End a trial whose time is up, and say how long it had been held up by others."""
        task, blocked_s = self._running.pop(number, (None, self._blocked_s))
        if task is not None:
            task.cancel()
            self._events.call_later(_STUBBORN_S, self._check, task)
        self._desk.post(
            encode(
                {
                    "op": "cancelled",
                    "id": number,
                    "blocked_s": self._blocked_s - blocked_s,
                    "stoppable": self._is_async,
                }
            )
        )

    def _check(self, task: Any) -> None:
        if not task.done():
            self._desk.post(_RETIRE)


def _cancelled_error() -> type[BaseException]:
    import asyncio  # costs a worker that needs none more than all its trials

    return asyncio.CancelledError


def _was_cancelled(task: Any) -> bool:
    """Return whether somebody cancelled a task that went on; before Python 3.11 nobody knows."""
    return hasattr(task, "cancelling") and task.cancelling() > 0


def is_async(function: Any) -> bool:
    """Return whether calling the function gives a coroutine."""
    while hasattr(function, "func"):  # functools.partial
        function = function.func
    code = getattr(function, "__code__", None)
    return code is not None and bool(code.co_flags & _COROUTINE_FLAG)


def load(reference: str) -> Any:
    """Return the function that ``module:function`` names.

    Raises
    ------
    ImportError, AttributeError, TypeError
        No such module, no such function, not callable.
    """
    module_name, _, path = reference.partition(":")
    found: Any = importlib.import_module(module_name)
    for name in path.split("."):
        if not hasattr(found, name):
            raise AttributeError(_missing(module_name, name, found))
        found = getattr(found, name)
    if not callable(found):
        raise TypeError(f"{reference} is not a function but {type(found).__name__}")
    return found


def _missing(module_name: str, name: str, holder: Any) -> str:
    import difflib

    text = f"module {module_name!r} has no function {name!r}"
    near = difflib.get_close_matches(name, dir(holder), 1)
    return text + (f"; did you mean {near[0]!r}?" if near else "")


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # the agent may have closed or replaced it
            stream.flush()


def _limit_memory(megabytes: int) -> None:
    import resource

    # Data, not address space: run-times reserve far more addresses than they use.
    limit = megabytes * 1024 * 1024
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def _enter(root: str) -> None:
    """Make the agent's root the current folder and the first place for imports."""
    os.chdir(root)
    if sys.path[:1] == [""]:
        sys.path[0] = root
    else:
        sys.path.insert(0, root)


def _open(channel: Channel, order: Message) -> SerialWorker | InlineWorker | None:
    """Load what the first message asks for and say whether that worked."""
    try:
        if order["memory_mb"]:
            _limit_memory(order["memory_mb"])
        _enter(order["root"])
        worker = _worker(channel, order)
    except BaseException as error:  # noqa: BLE001 - sys.exit while importing is a failure as well
        failure = failure_of(error, order["root"])
        channel.send({"op": "broken", "error": failure["reason"], "trace": failure["trace"]})
        return None
    _flush()
    channel.send({"op": "ready", "python": sys.version.split()[0]})
    return worker


def _worker(channel: Channel, order: Message) -> SerialWorker | InlineWorker:
    if order["mode"] == "inline":
        desk = InlineDesk(channel, order)
        desk.function = load(order["function"])
        return InlineWorker(desk, order["threads"])
    serial = Desk(channel, order)
    if order["mode"] == "grade":
        return SerialWorker(serial, order["function"].split())
    serial.function = load(order["function"])
    return SerialWorker(serial)


def main(arguments: list[str]) -> None:
    """Serve on the two descriptors named in the arguments until the parent hangs up."""
    channel = Channel(int(arguments[0]), int(arguments[1]))
    channel.seal()
    worker = None
    try:
        worker = _open(channel, channel.receive())
        if worker is not None:
            worker.serve()
    except (EOFError, BrokenPipeError):
        pass  # the parent hung up: there is nobody left to tell
    _flush()
    if isinstance(worker, InlineWorker):
        os._exit(0)  # threads that cannot be ended must not hold up the end


if __name__ == "__main__":
    _arguments = sys.argv[1:]
    del sys.argv[1:]  # they are not the agent's
    main(_arguments)

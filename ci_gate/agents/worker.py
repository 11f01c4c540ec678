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
import contextvars
import importlib
import itertools
import json
import math
import os
import signal
import stat
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Dict

MAX_MESSAGE_BYTES = 16 * 1024 * 1024
_MAX_REASON_CHARS = 500
_MAX_TRACE_CHARS = 4000
_MAX_DEPTH = 60
_MAX_PARTS = 1_000_000
_CONTAINERS = frozenset((list, dict, tuple, set, frozenset))
_HEARTBEAT_S = 0.1
_LAG_S = 0.05
_STUBBORN_S = 1.0
_LONGEST_S = 1e10
_THREAD_END_S = 0.02
_BATCH = 16
_MAX_BREACHES = 20
_DETERMINISM = (None, "deterministic", "stochastic", "io-bound")
_UUID_STREAM = 0x75756964
_FOLDED = 512
_SHOWN_DRAWS = 8
_COROUTINE_FLAG = 0x80

_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_TIMERS = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)
_SIGNALS = tuple(range(1, signal.NSIG))
_RESULT_KEYS = (
    "answer",
    "turns",
    "tokens",
    "cost_usd",
    "steps",
    "measures",
    "cached",
    "response_ids",
    "status",
    "reason",
)

_TAG = "$ci-gate"
_MAX_SAFE_INTEGER = 2**53 - 1
# Some 4,298 decimal digits: readers of JSON in Python take no more than 4,300.
_MAX_PLAIN_BITS = 14_280
_MAX_INTEGER_BITS = 2**22

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


class ProviderError(ToolError):
    """The provider of a model failed by itself: HTTP 429, 5xx, or nobody is there."""


class ReplayDriftError(BaseException):
    """A replay asked for a call that its recording does not have here.

    No ``Exception``: an agent that goes on after it would act on an answer that nobody gave.
    """


class CapabilityError(BaseException):
    """A call was refused that is not allowed, or more was declared than the caller may do.

    No ``Exception``, for the reason of ``ReplayDriftError``.
    """


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


class Room:
    """How much of a value is looked at: one that holds itself has no end.

    Parameters
    ----------
    parts : int
    """

    def __init__(self, parts: int = _MAX_PARTS) -> None:
        self._parts = parts

    def takes(self, parts: Any, depth: int) -> bool:
        """Return whether there is room for a container at this depth, and take it."""
        self._parts -= len(parts) + 1
        return self._parts >= 0 and depth < _MAX_DEPTH


def plain(value: Any, depth: int = 0, room: Room | None = None) -> Any:
    """Return the JSON value that stands for any Python value for a model to read."""
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, int):
        return _plain_integer(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if not isinstance(value, (Mapping, list, tuple, set, frozenset, collections.deque)):
        return _plain_object(value)
    room = room or Room()
    if not room.takes(value, depth):
        return "..."
    if isinstance(value, Mapping):
        return {_text_of(key): plain(item, depth + 1, room) for key, item in value.items()}
    return [plain(item, depth + 1, room) for item in value]


def _plain_integer(value: int) -> Any:
    """Return an integer as JSON's readers take it: one of thousands of digits as hexadecimal."""
    return value if value.bit_length() <= _MAX_PLAIN_BITS else hex(value)


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


def _spelt(value: Any) -> str:
    try:
        return repr(value)
    except Exception:  # noqa: BLE001 - as above; and an integer may have too many digits
        return f"<{type(value).__name__} without a text>"


def _clipped(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[:limit] + "..."


def tagged(value: Any, depth: int = 0, room: Room | None = None) -> Any:
    """Return JSON from which ``untagged`` makes the same value again.

    What JSON has is itself. Anything else is an object with the one key ``$ci-gate``, which holds
    the kind of the value and what it is made from; what cannot be made again is only named.
    """
    kind = type(value)
    if kind in _CONTAINERS:
        return _tagged_container(value, depth, room or Room())
    if value is None or kind is bool:
        return value
    if kind is str:
        return value if value.isascii() or _has_utf8(value) else _tag("text", _base64(value))
    if kind is int:
        is_safe = -_MAX_SAFE_INTEGER <= value <= _MAX_SAFE_INTEGER
        return value if is_safe else _tagged_integer(value)
    if kind is float:
        return value if math.isfinite(value) else _tag("float", repr(value))
    return _tagged_object(value)


def _tagged_integer(value: int) -> Any:
    # Hexadecimal, which Python reads and writes in linear time and at any length.
    if value.bit_length() <= _MAX_INTEGER_BITS:
        return _tag("int", hex(value))
    named = f"an integer of more than {_MAX_INTEGER_BITS} bits"
    return _tag("unrecordable", {"type": named, "text": "..."})


def _tagged_container(value: Any, depth: int, room: Room) -> Any:
    kind = type(value)
    if not room.takes(value, depth):
        return _tag("unrecordable", {"type": "a value nested too deep", "text": "..."})
    if kind is list:
        return [tagged(item, depth + 1, room) for item in value]
    if kind is dict:
        return _tagged_dict(value, depth + 1, room)
    items = [tagged(item, depth + 1, room) for item in value]
    if kind is not tuple:
        items.sort(key=_ENCODER.encode)  # a set has no order, and its record must have one
    return _tag(kind.__name__, items)


def _tagged_dict(value: Any, depth: int, room: Room) -> Any:
    if _TAG not in value and all(map(_is_plain_key, value)):
        # Nearly all is short text; a call for each would be most of what a call costs.
        return {
            key: item if type(item) is str and item.isascii() else tagged(item, depth, room)
            for key, item in value.items()
        }
    pairs = [[tagged(key, depth, room), tagged(item, depth, room)] for key, item in value.items()]
    return _tag("object", pairs)


def _is_plain_key(key: Any) -> bool:
    return type(key) is str and (key.isascii() or _has_utf8(key))


def _tagged_object(value: Any) -> Any:
    kind = type(value)
    if kind in (bytes, bytearray):
        return _tag(kind.__name__, base64.b64encode(bytes(value)).decode("ascii"))
    name = f"{kind.__module__}.{kind.__qualname__}"
    if name == "datetime.date":
        return _tag("date", value.isoformat())
    if name in ("datetime.datetime", "datetime.time") and _zone_of(value) is not None:
        # Neither the zone's name nor which of two equal hours it is stands in the ISO text.
        naive = value.replace(tzinfo=None, fold=0).isoformat()
        return _tag(kind.__name__, [naive, _zone_of(value), value.fold])
    if name in ("decimal.Decimal", "uuid.UUID"):
        return _tag(kind.__name__, str(value))
    return _tag("unrecordable", {"type": name, "text": _clipped(_text_of(value), 1000)})


def _zone_of(moment: Any) -> str | None:
    """Return "" for no zone, the key of a named one, or an offset; None for any other kind."""
    zone = moment.tzinfo
    if zone is None:
        return ""
    name = f"{type(zone).__module__}.{type(zone).__qualname__}"
    if name == "zoneinfo.ZoneInfo":
        key: str | None = zone.key
        return key
    return str(zone.utcoffset(None).total_seconds()) if name == "datetime.timezone" else None


def _tag(kind: str, content: Any) -> Message:
    return {_TAG: [kind, content]}


def _has_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _base64(text: str) -> str:
    return base64.b64encode(text.encode("utf-8", "surrogatepass")).decode("ascii")


def untagged(value: Any) -> Any:
    """Return the value that ``tagged`` was given.

    Raises
    ------
    ValueError
        It could only be named.
    """
    if isinstance(value, list):
        return [untagged(item) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1 and isinstance(value.get(_TAG), list) and len(value[_TAG]) == 2:
        return _made_again(*value[_TAG])
    return {key: untagged(item) for key, item in value.items()}


def _made_again(kind: str, content: Any) -> Any:
    if kind == "object":
        return {untagged(key): untagged(item) for key, item in content}
    if kind in ("tuple", "set", "frozenset"):
        items = (untagged(item) for item in content)
        return {"tuple": tuple, "set": set, "frozenset": frozenset}[kind](items)
    if kind in ("bytes", "bytearray"):
        return {"bytes": bytes, "bytearray": bytearray}[kind](base64.b64decode(content))
    if kind == "text":
        return base64.b64decode(content).decode("utf-8", "surrogatepass")
    if kind == "int":
        return int(content, 16)
    return _object_made_again(kind, content)


def _object_made_again(kind: str, content: Any) -> Any:
    if kind == "float":
        return float(content)
    if kind == "date":
        return importlib.import_module("datetime").date.fromisoformat(content)
    if kind in ("datetime", "time"):
        return _moment_made_again(kind, *content)
    if kind in ("Decimal", "UUID"):
        module = importlib.import_module({"Decimal": "decimal", "UUID": "uuid"}[kind])
        return getattr(module, kind)(content)
    named = content.get("type", kind) if isinstance(content, dict) else kind
    raise ValueError(f"its recording holds {named}, which no replay can make again")


def _moment_made_again(kind: str, naive: str, zone: str, fold: int) -> Any:
    datetime = importlib.import_module("datetime")
    return (
        getattr(datetime, kind)
        .fromisoformat(naive)
        .replace(tzinfo=_zone_made_again(zone) if zone else None, fold=fold)
    )


def _zone_made_again(zone: str) -> Any:
    if zone[-1].isdigit() and zone.lstrip("-")[0].isdigit():
        datetime = importlib.import_module("datetime")
        return datetime.timezone(datetime.timedelta(seconds=float(zone)))
    return importlib.import_module("zoneinfo").ZoneInfo(zone)


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
        message["arguments"] = tagged(message["arguments"])
        message["output"] = tagged(message["output"])
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

    def with_fault(self, fault: str) -> Observation:
        """Return the same with a fault that leaves it as it is."""
        kind = self._kind
        return Observation(self.tool, self.value, self.is_error, fault, kind, self.cause)

    def unwrap(self) -> Any:
        """Return the value, or raise ``ToolError`` where this is an error."""
        if not self.is_error:
            return self.value
        kind = self.fault or self._kind
        raise ToolError(self.tool, self.text, kind, self.fault is not None) from self.cause

    def __repr__(self) -> str:
        text = _clipped(self.text, 200)
        return f"Observation({text!r}, is_error={self.is_error}, fault={self.fault!r})"


class Lanes:
    """Names what runs beside each other in a trial: each asynchronous task and each thread.

    The agent's own is ``main``. The others are numbered below the lane that began them, in the
    order of their first calls, unless the agent gives a name. Who began a thread is not known, nor
    who began a task before its own first call: these are below the next lane above that is known.
    """

    def __init__(self) -> None:
        self._names: Any = weakref.WeakKeyDictionary()
        self._counts: dict[str, int] = {}
        self._given: Any = contextvars.ContextVar("lane", default="")
        # A task begins with a copy of the variables of whoever began it.
        self._above: Any = contextvars.ContextVar("above", default="main")
        self._lock = threading.Lock()

    def lead(self) -> None:
        """Say that whoever calls is the agent's own task or thread."""
        self._names[_runner()] = "main"

    def current(self) -> str:
        """Return the lane of whoever calls."""
        given: str = self._given.get()
        return given or self._own()

    def caller(self) -> Any:
        """Return what tells whoever calls from others, without giving it the name of a lane."""
        return self._given.get() or _runner()

    def of(self, caller: Any) -> str:
        """Return the lane of what ``caller`` returned."""
        if isinstance(caller, str):
            return caller
        return self._own() if caller is _runner() else self._named(caller, "main")

    def _own(self) -> str:
        above = self._above.get()
        name = self._named(_runner(), above)
        if name not in ("main", above):
            self._above.set(name)
        return name

    def _named(self, runner: Any, above: str) -> str:
        with self._lock:
            if runner not in self._names:
                self._counts[above] = count = self._counts.get(above, 0) + 1
                self._names[runner] = f"{above}/{count}"
            name: str = self._names[runner]
            return name

    @contextlib.contextmanager
    def named(self, name: str) -> Iterator[None]:
        """Give the calls that are made in this block a lane of their own below the present one.

        Who has made no call yet gets no number by it: numbers depend on who calls first.
        """
        above = self._given.get() or self._names.get(_runner()) or self._above.get()
        # Only what is within a call has a lane that begins so.
        token = self._given.set(f"{above}/{name}".replace("/(", "/ ("))
        try:
            yield
        finally:
            self._given.reset(token)

    def within(self, name: str) -> Any:
        """Return a ``with`` block for what a call does itself: not made in a replay."""
        return _Set(self._given, f"{self.current()}/({name})")


class _Set:
    """A ``with`` block in which a variable has another value."""

    __slots__ = ("_token", "_value", "_variable")

    def __init__(self, variable: Any, value: Any) -> None:
        self._variable = variable
        self._value = value

    def __enter__(self) -> None:
        self._token = self._variable.set(self._value)

    def __exit__(self, *_: Any) -> None:
        self._variable.reset(self._token)


class _Drawn:
    """What was drawn or read one after the other, as one digest."""

    __slots__ = ("_digest", "_shown", "_values", "count")

    def __init__(self) -> None:
        self.count = 0
        self._shown: list[Any] = []
        self._values: list[Any] = []
        self._digest: Any = None

    def add(self, value: Any) -> None:
        self._values.append(value)
        if len(self._values) >= _FOLDED:
            self._fold()

    def _fold(self) -> None:
        values, self._values = self._values, []
        if self._digest is None:
            import hashlib

            self._digest = hashlib.sha256()
            self._shown = values[:_SHOWN_DRAWS]
        self.count += len(values)
        self._digest.update("".join(f"{value!r}\n" for value in values).encode())

    def told(self) -> tuple[Message, Any]:
        """Return how many there were with their digest, and the first of them."""
        self._fold()
        return {"count": self.count, "sha256": self._digest.hexdigest()}, self._shown


class Draws:
    """What each lane took from the generators and the clock since its last call.

    A million draws must not be a million records: those between two calls of a lane are one.

    Parameters
    ----------
    lanes : Lanes
    """

    def __init__(self, lanes: Lanes) -> None:
        self._lanes = lanes
        self._drawn: dict[Any, dict[str, _Drawn]] = {}
        self._amounts: dict[Any, dict[str, float]] = {}

    def add(self, name: str, value: Any, amount: float = 0) -> None:
        """Take note of one value; the amount is what a replay has to make up for."""
        caller = self._lanes.caller()
        drawn = self._drawn.get(caller)
        if drawn is None:
            drawn = self._drawn[caller] = {}
            self._amounts[caller] = {}
        if name not in drawn:
            drawn[name] = _Drawn()
        drawn[name].add(value)
        if amount:
            amounts = self._amounts[caller]
            amounts[name] = amounts.get(name, 0) + amount

    def take(self, caller: Any = None) -> list[Message]:
        """Return what whoever calls, or another, has taken since its last call."""
        if not self._drawn:
            return []
        caller = caller or self._lanes.caller()
        drawn, amounts = self._drawn.pop(caller, None), self._amounts.pop(caller, None)
        if drawn is None or amounts is None:
            return []
        lane = self._lanes.of(caller)
        return [_note(lane, name, one, amounts.get(name)) for name, one in drawn.items()]

    def rest(self) -> list[Message]:
        """Return what is left at the end of the trial."""
        return [note for caller in list(self._drawn) for note in self.take(caller)]


_KIND_OF_DRAWS = {"draws": "rng", "uuid": "rng", "reads": "clock"}
_AMOUNT_OF_DRAWS = {"draws": "words", "reads": "slept_s"}


def _note(lane: str, name: str, drawn: _Drawn, amount: float | None) -> Message:
    given, shown = drawn.told()
    if amount:
        given[_AMOUNT_OF_DRAWS[name]] = amount
    return {
        "lane": lane,
        "kind": _KIND_OF_DRAWS[name],
        "name": name,
        "arguments": tagged(given),
        "output": tagged(shown),
    }


def _generator(seed: int, draws: Draws) -> Any:
    """Return the generator of a seed, which is that of ``random.Random`` draw by draw."""
    import random

    class Generator(random.Random):
        def random(self) -> float:
            value = super().random()
            draws.add("draws", value, 2)
            return value

        def getrandbits(self, k: int) -> int:
            value = super().getrandbits(k)
            draws.add("draws", value, (k + 31) // 32)
            return value

        def skip(self, words: int) -> None:
            """Draw what somebody else has drawn, who is not made to do it again."""
            super().getrandbits(32 * words)

        def __reduce__(self) -> Any:
            return random.Random, (), self.getstate()

    return Generator(seed)


def _runner() -> Any:
    return _running_task() or threading.current_thread()


def _running_task() -> Any:
    asyncio = sys.modules.get("asyncio")
    if asyncio is None or asyncio._get_running_loop() is None:
        return None
    return asyncio.current_task()


class Capabilities:
    """What may be called: entries ``kind`` or ``kind:name``, both with ``*``, ``?`` and ``[...]``.

    Parameters
    ----------
    entries : sequence of str

    Raises
    ------
    TypeError
        A text in place of a list of them, none at all, or one without a kind.
    """

    def __init__(self, entries: Sequence[str]) -> None:
        self.entries = () if isinstance(entries, str) else tuple(entries)
        if not self.entries or not all(isinstance(e, str) and _parts(e)[0] for e in self.entries):
            raise TypeError(f"allow is a list such as ['tool:refund_*', 'llm'], found {entries!r}")

    def __str__(self) -> str:
        return ", ".join(self.entries)

    def allows(self, kind: str, name: str) -> bool:
        """Return whether a call may be made."""
        from fnmatch import fnmatchcase

        parts = map(_parts, self.entries)
        return any(fnmatchcase(kind, k) and fnmatchcase(name, n) for k, n in parts)

    def covers(self, entry: str) -> bool:
        """Return whether an entry surely allows nothing that these do not."""
        kind, name = _parts(entry)
        parts = map(_parts, self.entries)
        return any(_includes(k, kind) and _includes(n, name) for k, n in parts)


def _parts(entry: str) -> tuple[str, str]:
    kind, _, name = entry.partition(":")
    return kind, name or "*"


def _includes(outer: str, inner: str) -> bool:
    """Return whether every text that a glob matches is one of another's, as far as can be told."""
    from fnmatch import fnmatchcase

    if outer in ("*", inner):
        return True
    is_glob = "*" in inner or "?" in inner
    # A star of the inner one must not stand for one character of the outer one.
    if "[" in inner or (is_glob and ("?" in outer or "[" in outer)):
        return False
    return fnmatchcase(inner, outer)


_LIMITS: Any = contextvars.ContextVar("limits", default=())


class _Limited:
    """A ``with`` block whose calls are held to capabilities as well, whoever makes them."""

    def __init__(self, limit: Capabilities) -> None:
        self._limit = limit

    def __enter__(self) -> None:
        self._token = _LIMITS.set((*_LIMITS.get(), self._limit))

    def __exit__(self, *_: Any) -> None:
        _LIMITS.reset(self._token)


_UNLIMITED = contextlib.nullcontext()


def _limited_to(limit: Capabilities | None) -> Any:
    return _UNLIMITED if limit is None else _Limited(limit)


class Bound:
    """A channel, whose calls are those of one ``Env``."""

    def __init__(self, env: Env) -> None:
        self._env = env

    def _bound_to(self, env: Env) -> Any:
        """Return the same channel with its calls made by another ``Env`` of the trial."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._env = env
        return other


class Tools(Bound):
    """The agent's tools. Each runs here; what the agent sees of it passes the parent."""

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self._functions: dict[str, Callable[..., Any]] = {}
        self._limits: dict[str, Capabilities | None] = {}
        self._determinism: dict[str, str] = {}

    def _bound_to(self, env: Env) -> Any:
        """Return the tools for another ``Env``; what it registers are its own."""
        other = super()._bound_to(env)
        other._functions, other._limits = dict(self._functions), dict(self._limits)
        other._determinism = dict(self._determinism)
        return other

    def register(
        self,
        *functions: Any,
        allow: Any = None,
        determinism: Any = None,
        **named: Callable[..., Any],
    ) -> None:
        """Make tools known: functions by their names, mappings, a name and its function, keywords.

        Parameters
        ----------
        allow : sequence of str or None
            The calls that these tools may make themselves; None: all that the caller may make.
        determinism : {"deterministic", "stochastic", "io-bound"} or None
            Where their answers come from: the arguments alone, the trial's generator too, or
            outside; None is ``io-bound``.

        Raises
        ------
        TypeError
            Something that is neither a function, a mapping nor a name before a function; or no
            class of determinism.
        CapabilityError
            ``allow`` goes beyond what the caller may do.
        """
        if callable(allow):
            named["allow"], allow = allow, None
        if callable(determinism):
            named["determinism"], determinism = determinism, None
        if determinism not in _DETERMINISM:
            raise TypeError(f"determinism is one of {_DETERMINISM[1:]}, found {determinism!r}")
        limit = None if allow is None else self._env.declared(allow)
        found = _named_functions(list(functions), named)
        self._functions.update(found)
        self._limits.update(dict.fromkeys(found, limit))
        self._determinism.update(dict.fromkeys(found, determinism))

    def add(self, function: Any = None, *, allow: Any = None, determinism: Any = None) -> Any:
        """Register the decorated function; ``add("name")`` gives it another name."""
        if function is not None and not isinstance(function, str):
            self.register(function, allow=allow, determinism=determinism)
            return function

        def with_name(decorated: Any) -> Any:
            named = (decorated,) if function is None else (function, decorated)
            self.register(*named, allow=allow, determinism=determinism)
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
        return self._env.through(
            "tool",
            name,
            arguments,
            lambda: self._made(name, arguments),
            determinism=self._determinism.get(name),
        )

    async def aobserve(self, name: str, /, **arguments: Any) -> Observation:
        """Return what is seen of the call as ``observe`` does, waiting for asynchronous tools."""
        return await self._env.athrough(
            "tool",
            name,
            arguments,
            lambda: self._amade(name, arguments),
            determinism=self._determinism.get(name),
        )

    def _made(self, name: str, arguments: Message) -> Observation:
        unknown = self._unknown(name)
        if unknown is not None:
            return unknown
        try:
            with self._env.within(name), _limited_to(self._limits[name]):
                value = self._env.finish(self._functions[name](**arguments))
            return Observation(name, value, False)
        except Exception as error:  # noqa: BLE001 - whatever the tool raises is its answer
            return _call_failure(name, error)

    async def _amade(self, name: str, arguments: Message) -> Observation:
        unknown = self._unknown(name)
        if unknown is not None:
            return unknown
        try:
            with self._env.within(name), _limited_to(self._limits[name]):
                value = self._functions[name](**arguments)
                value = await value if hasattr(value, "__await__") else value
            return Observation(name, value, False)
        except Exception as error:  # noqa: BLE001 - whatever the tool raises is its answer
            return _call_failure(name, error)

    def _unknown(self, name: str) -> Observation | None:
        if name in self._functions:
            return None
        known = ", ".join(self._functions) or "none"
        text = f"unknown tool {name!r}; there are: {known}"
        return Observation(name, text, True, kind="unknown_tool")


def _named_functions(
    queue: list[Any], named: Mapping[str, Callable[..., Any]]
) -> dict[str, Callable[..., Any]]:
    found: dict[str, Any] = {}
    while queue:
        item = queue.pop(0)
        if isinstance(item, str):
            found[item] = queue.pop(0) if queue else None
        elif isinstance(item, Mapping):
            found.update(item)
        else:
            found[getattr(item, "__name__", "")] = item
    found.update(named)
    for name, function in found.items():
        if not name or not callable(function):
            raise TypeError(f"a tool is a function with a name, found {function or name!r}")
    return found


def _call_failure(name: str, error: Exception) -> Observation:
    text = f"{type(error).__name__}: {_text_of(error)}"
    return Observation(name, text, True, cause=error)


class KeyValues(Bound):
    """A store of the trial, empty at its start; every access is a recorded call."""

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self._values: dict[str, Any] = {}

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of a key."""
        return self._through("get", {"key": key}, lambda: self._values.get(key, default))

    def set(self, key: str, value: Any) -> None:
        """Keep a value."""
        given = {"key": key, "value": value}
        self._through("set", given, lambda: self._values.update({key: value}))

    def delete(self, key: str) -> None:
        """Forget a key; no error where there is none."""
        self._through("delete", {"key": key}, lambda: self._values.pop(key, None) and None)

    def keys(self) -> list[str]:
        """Return the keys in the order of their first ``set``."""
        found: list[str] = self._through("keys", {}, lambda: list(self._values))
        return found

    def _through(self, name: str, arguments: Message, function: Callable[[], Any]) -> Any:
        return self._env.through(
            "kv", name, arguments, lambda: Observation(name, function(), False)
        ).unwrap()


class Files(Bound):
    """The trial's own folder; paths out of it, also through links, are refused."""

    def __init__(self, env: Env, folder: str | None) -> None:
        super().__init__(env)
        self._folder = folder

    def read(self, path: str) -> str:
        """Return the text of a file."""
        return str(self._through("read", {"path": path}, lambda: self._content(path).decode()))

    def read_bytes(self, path: str) -> bytes:
        """Return the bytes of a file."""
        content: bytes = self._through("read", {"path": path}, lambda: self._content(path))
        return content

    def write(self, path: str, content: str | bytes) -> None:
        """Replace a file, making its folders."""
        given = {"path": path, "content": content}
        self._through("write", given, lambda: self._replace(path, content))

    def list(self, path: str = ".") -> builtins.list[str]:
        """Return the names in a folder, sorted."""
        names: builtins.list[str] = self._through(
            "list", {"path": path}, lambda: sorted(os.listdir(self._inside(path)))
        )
        return names

    def exists(self, path: str) -> bool:
        """Return whether there is something at the path."""
        return bool(
            self._through("exists", {"path": path}, lambda: os.path.exists(self._inside(path)))
        )

    def _content(self, path: str) -> bytes:
        target = self._inside(path)
        mode = os.stat(target).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # a pipe would be waited for
            raise OSError(f"{path} is no regular file")
        with open(target, "rb") as file:
            return file.read()

    def _replace(self, path: str, content: str | bytes) -> None:
        target = self._inside(path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "wb") as file:
            file.write(content.encode("utf-8") if isinstance(content, str) else content)

    def _inside(self, path: str) -> str:
        """Return the absolute path of what is in the folder.

        Raises
        ------
        OSError
            There is no folder, or the path leads out of it.
        """
        if self._folder is None:
            raise FileNotFoundError("this task has no fixture that makes a folder")
        root = os.path.realpath(self._folder)
        target = os.path.realpath(os.path.join(root, path))
        if target != root and not target.startswith(root + os.sep):
            raise PermissionError(f"{path!r} leads out of the trial's folder")
        return target

    def _through(self, name: str, arguments: Message, function: Callable[[], Any]) -> Any:
        def made() -> Observation:
            try:
                return Observation(name, function(), False)
            except (OSError, ValueError) as error:
                return _call_failure(name, error)

        seen = self._env.through("file", name, arguments, made)
        if not seen.is_error:
            return seen.value
        raise seen.cause or _file_error(seen.text)


def _file_error(text: str) -> Exception:
    """Return the error of a file that a recording describes."""
    name, _, message = text.partition(": ")
    kind = getattr(builtins, name, OSError)
    if isinstance(kind, type) and issubclass(kind, OSError):
        return kind(message)
    return ValueError(message)


class TrialClock:
    """The trial's time: it starts at the same moment in every trial and moves only by waiting."""

    def __init__(self, start: str, draws: Draws) -> None:
        self._start = start
        self._passed_s = 0.0
        self._draws = draws

    def now(self) -> Any:
        """Return the time as an aware ``datetime`` in UTC."""
        now = self._now()
        self._draws.add("reads", _iso(now))
        return now

    def _now(self) -> Any:
        from datetime import datetime, timedelta

        start = datetime.fromisoformat(self._start.replace("Z", "+00:00"))
        return start + timedelta(seconds=self._passed_s)

    def iso(self) -> str:
        """Return the time as ISO 8601 text."""
        return _iso(self.now())

    def time(self) -> float:
        """Return seconds since 1970."""
        return float(self.now().timestamp())

    def monotonic(self) -> float:
        """Return the seconds that have passed in the trial."""
        self._draws.add("reads", self._passed_s)
        return self._passed_s

    def sleep(self, seconds: float) -> None:
        """Let simulated time pass; returns at once.

        Raises
        ------
        ValueError
            No calendar goes so far.
        """
        passed_s = max(0.0, seconds)
        if self._passed_s + passed_s > _LONGEST_S:
            raise ValueError(f"a trial cannot sleep for {seconds:g} s: its calendar ends before")
        self._draws.add("reads", f"sleep {passed_s:g} s", passed_s)
        self._pass(passed_s)

    def _pass(self, seconds: float) -> None:
        self._passed_s += seconds

    async def asleep(self, seconds: float) -> None:
        """Let simulated time pass; other tasks get their turn."""
        import asyncio

        self.sleep(seconds)
        await asyncio.sleep(0)


def _iso(moment: Any) -> str:
    return str(moment.isoformat()).replace("+00:00", "Z")


class World(Bound):
    """The trial's own copy of the fixture.

    Attributes
    ----------
    database, workdir : str or None
        Paths; None where the task has no such fixture.
    postgres : str or None
        URL of the trial's PostgreSQL database, likewise.
    identity : Record or None
        On whose behalf the agent acts, read-only; None where the task does not say.
    """

    def __init__(self, env: Env, message: Message) -> None:
        super().__init__(env)
        self.database = message.get("database")
        self.workdir = message.get("workdir")
        self.postgres = message.get("postgres")
        self.identity = _read_only(message.get("identity"))
        self._home = message.get("home")
        self._connections: list[Any] = []
        self._memory: dict[str, Any] = {}  # one for all Env of the trial

    @property
    def tables(self) -> dict[str, Any]:
        """Tables in memory, by name a list of dicts; the trial leaves them as they are then."""
        if not self._memory:
            made = self._part("Memory")(self._file("tables.json"))
            self._memory.setdefault("tables", made)  # threads may come here together
        tables: dict[str, Any] = self._memory["tables"].tables
        return tables

    @property
    def outbox(self) -> Any:
        """Messages that reach nobody; see ``worker_worlds.Outbox``."""
        return self._part("Outbox")(self._env, "outbox", self._file("outbox.jsonl"))

    @property
    def payments(self) -> Any:
        """Payments that move nothing; see ``worker_worlds.Payments``."""
        return self._part("Payments")(self._env, "payment", self._file("payments.jsonl"))

    def _part(self, name: str) -> Any:
        return self._env._desk.worlds[name]

    def _file(self, name: str) -> str | None:
        return None if self._home is None else os.path.join(self._home, name)

    def keep(self) -> None:
        """Write back the tables in memory.

        Raises
        ------
        GarbageError
            They hold what JSON does not have.
        """
        try:
            for memory in self._memory.values():
                memory.keep()
        except ValueError as error:
            raise GarbageError(str(error)) from None

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
        """Keep what can be kept and close what was left open: no lock outlives the trial."""
        with contextlib.suppress(Exception):  # the trial has failed already, or this was done
            self.keep()
        for connection in self._connections:
            with contextlib.suppress(Exception):  # made in another thread: it goes with that
                connection.close()


def _read_only(value: Any) -> Any:
    """Return JSON that nobody can change."""
    if isinstance(value, dict):
        return Record({name: _read_only(item) for name, item in value.items()})
    return tuple(map(_read_only, value)) if isinstance(value, list) else value


class Conduct:
    """What a trial did that it may not do, and what was noticed of it.

    Attributes
    ----------
    breaches : list of str
        Each fails the trial, whatever the agent makes of it.
    noted : dict of str to int
        How often something was seen that fails nothing.
    draws : Draws
    """

    __slots__ = ("breaches", "draws", "noted")

    def __init__(self, draws: Draws) -> None:
        self.draws = draws
        self.breaches: list[str] = []
        self.noted: dict[str, int] = {}

    def breach(self, what: str) -> None:
        """Take note of a breach; the first is the trial's reason, and few are kept."""
        if len(self.breaches) < _MAX_BREACHES:
            self.breaches.append(_clipped(what, _MAX_REASON_CHARS))

    def told(self) -> Message:
        """Return what the end of the trial says of it."""
        said: Message = {}
        if self.breaches:
            said["breaches"] = self.breaches
        if self.noted:
            said["noted"] = dict(self.noted)  # a thread that was left may still be adding
        draws = self.draws.rest()
        if draws:
            said["draws"] = draws
        return said


class _Progress:
    """What of a trial is one for all of its ``Env`` objects."""

    def __init__(self) -> None:
        self.turns = 0
        self.rng: Any = None
        self.uuids: Any = None


def _variables_of(message: Message) -> dict[str, str]:
    """Return what a program learns about its trial, as one of the command protocol does."""
    variables = {
        "CI_GATE_SEED": f"0x{message['seed']:016x}",
        "CI_GATE_TASK": message["task"]["id"],
        "CI_GATE_TRIAL": str(message["trial"]),
        "CI_GATE_NOW": message["now"],
        "CI_GATE_WORKDIR": message.get("workdir"),
        "CI_GATE_DB": message.get("database"),
        "CI_GATE_POSTGRES_URL": message.get("postgres"),
        **_records_of(message),
    }
    return {name: value for name, value in variables.items() if value is not None}


def _records_of(message: Message) -> dict[str, str]:
    found = {}
    if message.get("identity") is not None:
        found["CI_GATE_IDENTITY"] = _ENCODER.encode(message["identity"])
    if message.get("home") is not None:
        found["CI_GATE_OUTBOX"] = os.path.join(message["home"], "outbox.jsonl")
        found["CI_GATE_PAYMENTS"] = os.path.join(message["home"], "payments.jsonl")
    return found


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
    conduct : Conduct
        What the trial did that it may not do.
    ToolError : type
        For ``except env.ToolError``.
    """

    ToolError = ToolError

    def __init__(self, message: Message, desk: Desk) -> None:
        self._desk = desk
        self._id = message["id"]
        self._progress = _Progress()
        self._lanes = Lanes()
        self._limits = desk.limits
        self._asks = bool(message.get("asks"))
        self._draws = Draws(self._lanes)
        self.conduct = Conduct(self._draws)
        self.seed: int = message["seed"]
        self.trial: int = message["trial"]
        self.clock = TrialClock(message["now"], self._draws)
        self.world = World(self, message)
        self._variables = _variables_of(message)
        self.files = Files(self, message.get("workdir"))
        self.tools = Tools(self)
        self.kv = KeyValues(self)

    @property
    def rng(self) -> Any:
        """The ``random.Random`` of the trial, seeded by its seed."""
        progress = self._progress
        if progress.rng is None:
            progress.rng = _generator(self.seed, self._draws)
        return progress.rng

    def uuid(self) -> str:
        """Return the next version 4 UUID of the trial, from its seed."""
        import uuid

        found = str(uuid.UUID(int=self._uuid_bits(), version=4))
        self._draws.add("uuid", found)
        return found

    def _uuid_bits(self) -> int:
        import random

        progress = self._progress
        if progress.uuids is None:
            progress.uuids = random.Random(self.seed ^ _UUID_STREAM)  # noqa: S311 - repeatable on purpose
        bits: int = progress.uuids.getrandbits(128)
        return bits

    def turn(self) -> int:
        """Say that a turn of the agent begins; returns its number, 1 for the first."""
        self._progress.turns += 1
        return self._progress.turns

    @property
    def turns(self) -> int | None:
        """How many turns were said, None where none was."""
        return self._progress.turns or None

    @property
    def shell(self) -> Any:
        """Programs that run in the trial's folder; see ``worker_channels.Shell``."""
        return self._desk.channels["Shell"](self, self.files._inside, self._variables)

    @property
    def llm(self) -> Any:
        """The model's API; see ``worker_channels.Llm``."""
        door = self._desk.channels["Door"](self._desk.base_url_env, os.environ)
        return self._desk.channels["Llm"](self, door, self._desk.send_seed)

    def lead(self) -> None:
        """Say that whoever calls runs the agent itself."""
        self._lanes.lead()

    def leading(self, value: Any) -> Any:
        """Return what the agent's function returned; what is to be awaited runs the agent."""
        if not hasattr(value, "__await__"):
            return value

        async def led() -> Any:
            self.lead()
            return await value

        return led()

    def finish(self, value: Any) -> Any:
        """Return what an asynchronous tool ends with; any other value as it is."""
        return self._desk.finish(value) if hasattr(value, "__await__") else value

    @contextlib.contextmanager
    def scope(self, allow: Sequence[str]) -> Iterator[Env]:
        """Give a sub-agent an ``env`` that may do less: what is named in ``allow``, and no more.

        Calls of the ``with`` block are held to it as well, whichever ``env`` they are made by.

        Raises
        ------
        CapabilityError
            ``allow`` goes beyond what the caller may do.
        """
        limit = self.declared(allow)
        with _Limited(limit):
            yield self._narrowed(limit)

    def declared(self, allow: Sequence[str]) -> Capabilities:
        """Return what was declared for a tool or sub-agent.

        Raises
        ------
        CapabilityError
            It goes beyond what the caller may do.
        """
        found = Capabilities(allow)
        for entry in found.entries:
            for limit in self._in_force():
                if not limit.covers(entry):
                    self._refuse(f"{entry} is declared where only {limit} may be used")
        return found

    def _narrowed(self, limit: Capabilities) -> Env:
        inner = object.__new__(type(self))
        inner.__dict__.update(self.__dict__)
        inner._limits = (*self._limits, limit)
        for name, channel in vars(self).items():
            if isinstance(channel, Bound):
                setattr(inner, name, channel._bound_to(inner))
        return inner

    def _in_force(self) -> Sequence[Capabilities]:
        return (*self._limits, *_LIMITS.get())

    def _require(self, kind: str, name: str) -> None:
        if not isinstance(kind, str) or not isinstance(name, str):
            raise TypeError(f"kind and name of a call are texts, not {kind!r:.80} and {name!r:.80}")
        for limit in self._in_force():
            if not limit.allows(kind, name):
                self._refuse(f"{kind} {name} is called where only {limit} may be used")

    def _refuse(self, what: str) -> None:
        self.conduct.breach(f"capability: {what}")
        raise CapabilityError(what)

    def within(self, name: str) -> Any:
        """Return a ``with`` block for what a call of this name does itself."""
        return self._lanes.within(name)

    def lane(self, name: str) -> Any:
        """Give the calls of a ``with`` block a lane of their own, for work beside other work."""
        return self._lanes.named(name)

    def call(self, kind: str, name: str, function: Callable[..., Any], /, **arguments: Any) -> Any:
        """Return what the function returns, as a recorded call of any kind, such as ``llm``.

        Raises
        ------
        ToolError
            The function raised.
        """
        return self.through(
            kind, name, arguments, lambda: self._made(name, function, arguments)
        ).unwrap()

    async def acall(
        self, kind: str, name: str, function: Callable[..., Any], /, **arguments: Any
    ) -> Any:
        """Return what the function returns as ``call`` does, without holding up other tasks."""
        seen = await self.athrough(
            kind, name, arguments, lambda: self._amade(name, function, arguments)
        )
        return seen.unwrap()

    def _made(self, name: str, function: Callable[..., Any], arguments: Message) -> Observation:
        try:
            with self.within(name):
                return Observation(name, self.finish(function(**arguments)), False)
        except Exception as error:  # noqa: BLE001 - whatever the function raises is its answer
            return _call_failure(name, error)

    async def _amade(
        self, name: str, function: Callable[..., Any], arguments: Message
    ) -> Observation:
        try:
            with self.within(name):
                value = function(**arguments)
                value = await value if hasattr(value, "__await__") else value
            return Observation(name, value, False)
        except Exception as error:  # noqa: BLE001 - whatever the function raises is its answer
            return _call_failure(name, error)

    def through(
        self,
        kind: str,
        name: str,
        arguments: Message,
        produce: Callable[[], Observation],
        *,
        determinism: str | None = None,
    ) -> Observation:
        """Make a call, pass it by the parent and return what the agent sees of it.

        In a replay the parent is asked first: it answers from its recording, or has it made.
        """
        self._require(kind, name)
        call = self._begun(kind, name, arguments, determinism)
        if self._asks:
            answer = self._desk.ask(_question(call))
            if not answer.get("make"):
                self._real_delay_s(answer)
                return self._recorded(answer, name)
            call["ms"] = time.perf_counter()
        outcome = produce()
        answer = self._desk.ask(self._ended(call, outcome))
        if answer.get("again"):
            again = self._begun_again(kind, name, arguments, determinism, outcome)
            outcome = produce()
            answer = self._desk.ask(self._ended(again, outcome))
        delay_s = self._real_delay_s(answer)
        if delay_s:
            time.sleep(delay_s)
        return self._observed(answer, outcome)

    async def athrough(
        self,
        kind: str,
        name: str,
        arguments: Message,
        produce: Callable[[], Any],
        *,
        determinism: str | None = None,
    ) -> Observation:
        """Make a call as ``through`` does, without holding up other tasks."""
        self._require(kind, name)
        call = self._begun(kind, name, arguments, determinism)
        if self._asks:
            answer = await self._desk.aask(_question(call))
            if not answer.get("make"):
                self._real_delay_s(answer)
                return self._recorded(answer, name)
            call["ms"] = time.perf_counter()
        outcome = await produce()
        answer = await self._desk.aask(self._ended(call, outcome))
        if answer.get("again"):
            again = self._begun_again(kind, name, arguments, determinism, outcome)
            outcome = await produce()
            answer = await self._desk.aask(self._ended(again, outcome))
        delay_s = self._real_delay_s(answer)
        if delay_s:
            import asyncio

            await asyncio.sleep(delay_s)
        return self._observed(answer, outcome)

    def _begun(self, kind: str, name: str, arguments: Message, determinism: str | None) -> Message:
        call = {
            "op": "call",
            "id": self._id,
            "kind": kind,
            "name": name,
            "arguments": arguments,
            "output": None,
            "lane": self._lanes.current(),
            "ms": time.perf_counter(),
            "turn": self.turns,
        }
        if determinism is not None:
            call["determinism"] = determinism
        draws = self._draws.take()
        if draws:
            call["draws"] = draws
        return call

    def _ended(self, call: Message, outcome: Observation) -> Message:
        call["ms"] = (time.perf_counter() - call["ms"]) * 1000
        inner = self._draws.take(f"{call['lane']}/({call['name']})")
        if inner:
            call["draws"] = [*call.get("draws", ()), *inner]
        call["output"] = outcome.value
        call["is_error"] = outcome.is_error
        return call

    def _begun_again(
        self,
        kind: str,
        name: str,
        arguments: Message,
        determinism: str | None,
        first: Observation,
    ) -> Message:
        """Return the call that is made once more, as one that was delivered twice."""
        ended = {"output": tagged(first.value), "is_error": first.is_error}
        return {**self._begun(kind, name, arguments, determinism), "first": ended}

    def _observed(self, answer: Message, outcome: Observation) -> Observation:
        """Return what is seen of a call that was made."""
        fault = answer.get("fault")
        if fault is None:
            return outcome
        if answer.get("is_whole"):
            return outcome.with_fault(fault)
        return self._recorded(answer, outcome.tool)

    def _recorded(self, answer: Message, name: str) -> Observation:
        """Return what the parent gave as the answer of a call."""
        try:
            value = untagged(answer.get("output"))
        except (ValueError, TypeError, LookupError) as error:
            reason = f"{name} cannot be replayed: {error}"
            # An agent that swallows it has had no answer, and lost calls after it are no cause.
            self.conduct.breach(f"replay: {reason}")
            raise ReplayDriftError(reason) from None
        return Observation(name, value, bool(answer.get("is_error")), answer.get("fault"))

    def _real_delay_s(self, answer: Message) -> float:
        """Let the fault's delay pass on the trial's clock; return what of it is to be real."""
        if answer.get("over"):
            raise TrialOverError("the trial has ended; this call was not made")
        if answer.get("refused"):
            raise CapabilityError(answer["refused"])
        if answer.get("drift"):
            raise ReplayDriftError(answer["drift"])
        if answer.get("within"):
            self._make_up_for(answer["within"])
        delay_s = float(answer.get("delay_s", 0.0))
        self.clock._pass(delay_s)
        return delay_s if self._desk.real_delays else 0.0

    def _make_up_for(self, within: Message) -> None:
        """Leave generators and clock as the call would have that was not made."""
        if within["words"]:
            self.rng.skip(within["words"])
        for _ in range(within["uuids"]):
            self._uuid_bits()
        self.clock._pass(within["slept_s"])


def _question(call: Message) -> Message:
    """Return what asks for the answer of a call, and leave the call as it is to be made."""
    return {**call, "asks": True, "draws": call.pop("draws", ())}


class Desk:
    """What the trials of this worker share: the channel, the agent's function, the way to wait."""

    def __init__(self, channel: Channel, order: Message) -> None:
        self.channel = channel
        self.root: str = order["root"]
        self.real_delays: bool = order["real_delays"]
        self.limits = (Capabilities(order["allow"]),) if order.get("allow") else ()
        self.guard = _guard_of(order)
        self.base_url_env: Sequence[str] = order.get("base_url_env", ())
        self.send_seed: bool = order.get("send_seed", False)
        self._channels: dict[str, Any] = {}
        self._channels_file: str = order.get("channels", "")
        self._worlds: dict[str, Any] = {}
        self._worlds_file: str = order.get("worlds", "")
        self.function: Any = None
        self._loop: Any = None

    @property
    def channels(self) -> dict[str, Any]:
        """What ``worker_channels`` has, read when it is first asked for."""
        if not self._channels:
            known = {"Observation": Observation, "ToolError": ToolError}
            given = {**known, "ProviderError": ProviderError}
            self._channels = _part(self._channels_file, "ci_gate_worker_channels", given)
        return self._channels

    @property
    def worlds(self) -> dict[str, Any]:
        """What ``worker_worlds`` has, likewise."""
        if not self._worlds:
            given = {"Observation": Observation}
            self._worlds = _part(self._worlds_file, "ci_gate_worker_worlds", given)
        return self._worlds

    def watching(self, conduct: Conduct) -> Any:
        """Return a ``with`` block in which the code of a trial runs."""
        return _UNLIMITED if self.guard is None else self.guard.watching(conduct)

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


def _guard_of(order: Message) -> Any:
    """Return what watches what the agent does beside its calls; None where nothing is watched.

    It is a file of its own, because most workers need none and each start would pay for it.
    """
    if not order.get("guard"):
        return None
    found = _part(order["guard"], "ci_gate_worker_guard", {})
    return found["Guard"](order["root"], order["network"], order["determinism"])


def _part(path: str, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what another file of this program defines, with what it is given from here."""
    with open(path, encoding="utf-8") as file:
        code = compile(file.read(), _OWN_FILE, "exec", dont_inherit=True)
    found: dict[str, Any] = {"__name__": name}
    exec(code, found)  # noqa: S102 - a part of this program, named by its parent
    found.update(given)
    return found


class _ThreadLoop:
    """Runs an awaitable on a loop of its own, for tools called from the agent's threads."""

    def run_until_complete(self, awaitable: Any) -> Any:
        import asyncio

        return asyncio.run(awaitable)


def _in_thread(function: Callable[[], Any]) -> Any:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(contextvars.copy_context().run, function).result()


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
    return _with_amounts(found)


def _with_amounts(result: Message) -> Message:
    """Return a result with a tag for each number that JSON does not have, where numbers are due."""
    for key in ("turns", "tokens", "cost_usd"):
        if key in result:
            result[key] = _amount(result[key])
    if isinstance(result.get("measures"), Mapping):
        result["measures"] = {name: _amount(item) for name, item in result["measures"].items()}
    return result


def _amount(value: Any) -> Any:
    if isinstance(value, bool):
        return value
    if isinstance(value, int) and not -_MAX_SAFE_INTEGER <= value <= _MAX_SAFE_INTEGER:
        return _tag("int", "beyond")
    if isinstance(value, float) and not math.isfinite(value):
        return _tag("float", repr(float(value)))
    return value


def _with_plain_integers(value: Any) -> Any:
    """Return JSON in which no integer is too long to be read."""
    if isinstance(value, int) and not isinstance(value, bool):
        return _plain_integer(value)
    if isinstance(value, dict):
        return {_with_plain_integers(k): _with_plain_integers(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_with_plain_integers(item) for item in value]
    return value


def done(number: int, result: Message, turns: int | None, conduct: Conduct) -> bytes:
    """Return the line that ends a trial with a result.

    Raises
    ------
    GarbageError
        The result is not JSON or too large.
    """
    if result.get("turns") is None and turns is not None:
        result["turns"] = turns
    return _result_line(number, result, conduct)


def _result_line(number: int, result: Any, conduct: Conduct | None = None) -> bytes:
    told = {} if conduct is None else conduct.told()
    try:
        told["result"] = _with_plain_integers(result)
        line = encode({"op": "done", "id": number, **told})
    except RecursionError:
        what = "it holds itself or is nested too deeply"
        raise GarbageError(f"the result is not JSON: {what}") from None
    except (TypeError, ValueError) as error:
        raise GarbageError(f"the result is not JSON: {error}") from None
    if len(line) > MAX_MESSAGE_BYTES:
        raise GarbageError(
            f"the result is too large: {len(line)} bytes, at most {MAX_MESSAGE_BYTES}"
        )
    return line


def failed(number: int, error: BaseException, root: str, conduct: Conduct | None = None) -> bytes:
    """Return the line that ends a trial whose agent raised."""
    told = {} if conduct is None else conduct.told()
    return encode({"op": "done", "id": number, "failure": failure_of(error, root), **told})


_RETIRE = encode({"op": "retire"})


def failure_of(error: BaseException, root: str) -> Message:
    """Return everything the parent needs to judge an exception.

    ``exceptions`` are the qualified names of the classes of the exception and of its explicit
    causes, none for a result that was refused here; ``fault`` says that an injected fault is
    anywhere behind it, ``provider`` that it is, or was raised from, a provider's failure.
    """
    return {
        "reason": _reason_of(error, root),
        "exceptions": [] if isinstance(error, GarbageError) else _class_names(error),
        "fault": any(isinstance(e, ToolError) and e.is_fault for e in _chain(error)),
        "provider": any(isinstance(e, ProviderError) for e in _causes(error)),
        "trace": _trace_of(error),
    }


def _reason_of(error: BaseException, root: str) -> str:
    text = _clipped(_text_of(error), _MAX_REASON_CHARS)
    if isinstance(error, GarbageError):
        return "garbage: " + text
    if isinstance(error, SystemExit):
        return f"sys.exit({_spelt(error.code)})"[:_MAX_REASON_CHARS]
    name = type(error).__name__
    return (name + ": " + text if text else name) + _place_of(error, root)


def _place_of(error: BaseException, root: str) -> str:
    """Return where it was raised; of what a call by ``env`` raises, where the agent called."""
    trace, rest = None, error.__traceback__
    while rest is not None:
        if not _is_machinery(rest.tb_frame.f_code.co_filename):
            trace = rest
        rest = rest.tb_next
    if trace is None:
        return ""
    code = trace.tb_frame.f_code
    path = code.co_filename
    path = path[len(root) + 1 :] if path.startswith(root + os.sep) else os.path.basename(path)
    return f" ({path}:{trace.tb_lineno} in {code.co_name})"


def _class_names(error: BaseException) -> list[str]:
    classes = itertools.chain.from_iterable(type(e).__mro__[:-1] for e in _causes(error))
    return [f"{c.__module__}.{c.__qualname__}" for c in classes]


def _causes(error: BaseException) -> list[BaseException]:
    """Return an exception and its explicit causes."""
    seen: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in seen and len(seen) < 20:
        seen.append(cause)
        cause = cause.__cause__
    return seen


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
    """Return the end of the trace from the agent's first frame to its last; "" without any."""
    import traceback

    frames = error.__traceback__
    while frames is not None and _is_machinery(frames.tb_frame.f_code.co_filename):
        frames = frames.tb_next
    if frames is None:
        return ""
    try:
        found = traceback.TracebackException(type(error), error, frames, limit=-20)
        # What a call by ``env`` raises comes from in here, which tells nobody anything.
        while len(found.stack) > 1 and _is_machinery(found.stack[-1].filename):
            found.stack.pop()
        return "".join(found.format())[-_MAX_TRACE_CHARS:]
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
        is_spent = self._desk.guard is not None and self._desk.guard.is_spent
        return _RETIRE if is_spent or self._state.has_leftovers() else b""

    def _run(self, message: Message) -> bytes:
        env = Env(message, self._desk)
        try:
            with self._desk.watching(env.conduct):
                env.lead()
                value = self._desk.function(Record(message["task"]), env)
                value = env.finish(env.leading(value))
            env.world.keep()
            return done(message["id"], result_of(value), env.turns, env.conduct)
        except BaseException as error:  # noqa: BLE001 - sys.exit of the agent is its failure as well
            return failed(message["id"], error, self._desk.root, env.conduct)
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
        env = Env(message, self._desk)
        try:
            line = await self._run(message, env)
        except self._cancelled_error:
            return
        except BaseException as error:  # noqa: BLE001 - sys.exit of the agent is its failure as well
            line = failed(number, error, self._desk.root, env.conduct)
        task, _ = self._running.get(number, (None, 0.0))
        if task is not None and not _was_cancelled(task):
            del self._running[number]
            self._desk.post(line)

    def _ended(self, number: int) -> None:
        """Say of a trial that is still in the books that somebody here cancelled it."""
        if self._running.pop(number, None) is not None:
            stoppable = self._is_async
            self._desk.post(encode({"op": "lost", "id": number, "stoppable": stoppable}))

    async def _run(self, message: Message, env: Env) -> bytes:
        try:
            with self._desk.watching(env.conduct):
                value = await self._value(Record(message["task"]), env)
            env.world.keep()
            return done(message["id"], result_of(value), env.turns, env.conduct)
        finally:
            env.world.close()

    async def _value(self, task: Record, env: Env) -> Any:
        env.lead()
        if self._is_async:
            return await self._desk.function(task, env)
        call = contextvars.copy_context().run
        value = await self._events.run_in_executor(self._executor(), call, self._call, task, env)
        return await value if hasattr(value, "__await__") else value

    def _call(self, task: Record, env: Env) -> Any:
        env.lead()
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

"""The messages between this process and a worker, and the lines they travel in.

What a worker sends is decoded strictly: anything that is not one of these messages ends it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ci_gate.model.trace import Determinism
from ci_gate.ports import First, Skipped

__all__ = [
    "MAX_MESSAGE_BYTES",
    "MAX_WEIGHT_BYTES",
    "Answer",
    "Cancel",
    "Drawn",
    "Failure",
    "GradeOrder",
    "Incoming",
    "Line",
    "LoadOrder",
    "RunOrder",
    "weight_of",
]

MAX_MESSAGE_BYTES = 16 * 1024 * 1024
MAX_WEIGHT_BYTES = 256 * 1024 * 1024
_SLACK_BYTES = 64 * 1024
_CHUNK_BYTES = 256 * 1024

# Posted messages that go out at once: the other side gets to work while this one still prepares.
_BATCH = 16


class LoadOrder(msgspec.Struct, frozen=True, kw_only=True, tag_field="op", tag="load"):
    """The first message: what to load and how to run it; graders stand with spaces between.

    ``guard`` is the path of ``worker_guard.py`` where something is to be watched: ``network`` is
    ``inherit``, ``none`` or ``replay``, ``determinism`` is ``off``, ``raise`` or ``warn``.
    ``channels`` is the path of ``worker_channels.py``, ``worlds`` of ``worker_worlds.py``;
    ``base_url_env`` names the variables that may hold the base URL of the model's API.
    """

    root: str
    mode: str
    function: str
    memory_mb: int
    real_delays: bool
    threads: int
    allow: tuple[str, ...] = ()
    guard: str | None = None
    network: str = "inherit"
    determinism: str = "off"
    channels: str = ""
    worlds: str = ""
    base_url_env: tuple[str, ...] = ()
    send_seed: bool = False


class RunOrder(msgspec.Struct, frozen=True, kw_only=True, tag_field="op", tag="run"):
    """Run a trial; with ``asks`` we are asked for an answer before a call is made."""

    id: int
    task: msgspec.Raw
    trial: int
    seed: int
    now: str
    workdir: str | None
    database: str | None
    postgres: str | None = None
    home: str | None = None
    identity: Mapping[str, Any] | None = None
    asks: bool = False


class GradeOrder(msgspec.Struct, frozen=True, kw_only=True, tag_field="op", tag="grade"):
    """Run a grader of the team's own."""

    id: int
    function: str
    task: Any
    trajectory: Any
    before: Any
    after: Any


class Cancel(msgspec.Struct, frozen=True, kw_only=True, tag_field="op", tag="cancel"):
    """End a trial whose time is up."""

    id: int


class Drawn(msgspec.Struct, frozen=True, kw_only=True):
    """What a lane took from the trial's generators or clock since its last call."""

    lane: str
    kind: str
    name: str
    arguments: Any
    output: Any


class Answer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the agent sees of a call; without a fault its own value stands.

    ``make`` says to who asked that the call is to be made, ``refused`` that it never is;
    ``again`` that it is to be made once more, ``is_whole`` that its own value stands in spite of
    the fault.
    """

    call: int
    over: bool = False
    make: bool = False
    refused: str | None = None
    fault: str | None = None
    output: Any = None
    is_error: bool | None = None
    delay_s: float = 0.0
    is_whole: bool = False
    again: bool = False
    drift: str | None = None
    within: Skipped | None = None


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """What the agent raised."""

    reason: str
    exceptions: tuple[str, ...] = ()
    fault: bool = False
    provider: bool = False
    trace: str = ""


class Incoming(msgspec.Struct, kw_only=True):
    """Any message of a worker; which fields count depends on ``op``."""

    op: str
    id: int = 0
    call: int = 0
    kind: str = ""
    name: str = ""
    arguments: Any = None
    output: Any = None
    is_error: bool = False
    turn: int | None = None
    lane: str = "main"
    asks: bool = False
    first: First | None = None
    determinism: Determinism | None = None
    ms: float | None = None
    result: Any = None
    failure: Failure | None = None
    draws: tuple[Drawn, ...] = ()
    breaches: tuple[str, ...] = ()
    noted: dict[str, int] = {}
    blocked_s: float = 0.0
    stoppable: bool = True
    python: str = ""
    error: str = ""
    trace: str = ""


_decoder = msgspec.json.Decoder(Incoming)
_encoder = msgspec.json.Encoder()


def weight_of(line: bytes) -> int:
    """Return a bound in bytes of the memory that the values of a JSON line take.

    Notes
    -----
    Two bytes of JSON can become a list of 56: the length of a line says little about a hostile one.
    Characters in texts are counted as if they were structure, which errs on the safe side.
    """
    containers = 240 * line.count(b"{") + 96 * line.count(b"[")
    quotes = line.count(b'"') - line.count(b'\\"')
    return 4 * len(line) + containers + 40 * quotes + 36 * line.count(b",")


class Line:
    """Our end of a worker's private line.

    Parameters
    ----------
    incoming, outgoing : int
        Descriptors; owned from here on.
    take : callable
        Is given every message.
    ended : callable
        Is told once that no more will come: ``""`` when the worker hung up, else what was wrong.

    Attributes
    ----------
    weight_bytes : int
        Bound of the memory that the message that is being taken holds.
    """

    def __init__(
        self,
        incoming: int,
        outgoing: int,
        *,
        take: Callable[[Incoming], None],
        ended: Callable[[str], None],
    ) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self._take = take
        self._ended = ended
        self._partial: list[bytes] = []
        self._partial_bytes = 0
        self._received = 0
        self.weight_bytes = 0
        self._posted: list[bytes] = []
        self._unsent = bytearray()
        self._loop = asyncio.get_running_loop()
        os.set_blocking(incoming, False)
        os.set_blocking(outgoing, False)
        self._loop.add_reader(incoming, self.read)

    @property
    def unsent_bytes(self) -> int:
        """How much the other side has not read yet."""
        return len(self._unsent)

    def send(self, message: msgspec.Struct) -> None:
        """Send a message at once, or as soon as the pipe takes it."""
        self._write(_encoder.encode(message) + b"\n")

    def post(self, message: msgspec.Struct) -> None:
        """Send a message with all others of this round of the loop."""
        if not self._posted:
            self._loop.call_soon(self._flush)
        self._posted.append(_encoder.encode(message))
        if len(self._posted) >= _BATCH:
            self._flush()

    def _flush(self) -> None:
        posted, self._posted = self._posted, []
        if posted:
            self._write(b"\n".join(posted) + b"\n")

    def _write(self, content: bytes) -> None:
        if self._unsent:
            self._unsent += content
            return
        self._unsent += content[self._written(content) :]
        if self._unsent:
            self._loop.add_writer(self._outgoing, self._writable)

    def _written(self, content: bytes | bytearray) -> int:
        """Write and return how much the pipe took; a closed one takes everything."""
        if self._outgoing < 0:
            return len(content)
        try:
            return os.write(self._outgoing, content)
        except BlockingIOError:
            return 0
        except OSError:  # the worker is ending; its exit is told by who watches the process
            return len(content)

    def _writable(self) -> None:
        del self._unsent[: self._written(self._unsent)]
        if not self._unsent:
            self._loop.remove_writer(self._outgoing)

    def read(self) -> None:
        """Take what has arrived."""
        if self._incoming < 0:
            return
        try:
            chunk = os.read(self._incoming, _CHUNK_BYTES)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if chunk:
            self._split(chunk)
        else:
            self.refuse("")

    def read_rest(self) -> None:
        """Take everything that has arrived, for a worker that has ended."""
        before = -1
        while self._incoming >= 0 and before != self._received:
            before = self._received
            self.read()

    def _split(self, chunk: bytes) -> None:
        self._received += len(chunk)
        *whole, rest = chunk.split(b"\n")
        if whole:
            whole[0] = b"".join(self._partial) + whole[0]
            self._partial, self._partial_bytes = [], 0
        if rest:
            self._partial.append(rest)
            self._partial_bytes += len(rest)
        for line in whole:
            self._take_line(line)
        if self._partial_bytes > MAX_MESSAGE_BYTES + _SLACK_BYTES:
            self.refuse(f"a message of more than {MAX_MESSAGE_BYTES} bytes")

    def _take_line(self, line: bytes) -> None:
        if self._incoming < 0:
            return
        # Before it is decoded: afterwards the memory would be gone.
        self.weight_bytes = weight_of(line)
        if self.weight_bytes > MAX_WEIGHT_BYTES:
            self.refuse(f"a message of more than {MAX_WEIGHT_BYTES} bytes in memory")
            return
        try:
            message = _decoder.decode(line)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            self.refuse(f"a message that cannot be read: {error}")
        else:
            self._take(message)

    def refuse(self, why: str) -> None:
        """Take nothing more, for a reason that ``ended`` is told; ``""`` where it hung up."""
        if self._incoming >= 0:
            self._close_incoming()
            self._ended(why)

    def _close_incoming(self) -> None:
        self._loop.remove_reader(self._incoming)
        os.close(self._incoming)
        self._incoming = -1

    def hang_up(self) -> None:
        """Close the outgoing end, which asks the worker to end; safe to call twice."""
        if self._outgoing >= 0:
            self._loop.remove_writer(self._outgoing)
            with contextlib.suppress(OSError):
                os.close(self._outgoing)
            self._outgoing = -1
            self._unsent.clear()

    def close(self) -> None:
        """Close both ends; safe to call twice."""
        self.hang_up()
        if self._incoming >= 0:
            self._close_incoming()

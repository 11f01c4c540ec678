"""Keeps a bounded part of what a process prints, and drains all of it.

A process that prints gigabytes costs neither memory nor disk and is never held up.
"""

from __future__ import annotations

import asyncio
import contextlib
import os

__all__ = ["HEAD_BYTES", "RESULT_BYTES", "TAIL_BYTES", "Capture", "Drain"]

HEAD_BYTES = 8 * 1024
TAIL_BYTES = 32 * 1024
RESULT_BYTES = 1024 * 1024

_CHUNK_BYTES = 1024 * 1024
_LAST_BYTES = 4 * 1024 * 1024


class Capture:
    """The first and the last bytes of a stream.

    Parameters
    ----------
    head_bytes, tail_bytes : int
        How much is kept at most of the beginning and of what follows it.
    """

    __slots__ = ("_head", "_head_bytes", "_tail", "_tail_bytes", "total_bytes")

    def __init__(self, *, head_bytes: int = HEAD_BYTES, tail_bytes: int = TAIL_BYTES) -> None:
        self._head_bytes = head_bytes
        self._tail_bytes = tail_bytes
        self._head = b""
        self._tail = bytearray()
        self.total_bytes = 0

    def add(self, chunk: bytes) -> None:
        """Take the next bytes of the stream."""
        self.total_bytes += len(chunk)
        room = self._head_bytes - len(self._head)
        if room > 0:
            self._head += chunk[:room]
            chunk = chunk[room:]
        self._tail += chunk[-self._tail_bytes :]
        # Twice the bound before the cut: the bytes are moved once in a while, not at every chunk.
        if len(self._tail) > 2 * self._tail_bytes:
            del self._tail[: -self._tail_bytes]

    def tail(self) -> bytes:
        """Return the kept bytes after the head."""
        return bytes(self._tail[-self._tail_bytes :])

    def text(self) -> str:
        """Return what was kept; a line in the middle says how much was left out."""
        tail = self.tail()
        left_out = self.total_bytes - len(self._head) - len(tail)
        gap = f"\n[... {left_out} bytes left out ...]\n".encode() if left_out else b""
        return (self._head + gap + tail).decode("utf-8", "replace")

    def clear(self) -> None:
        """Begin anew."""
        self._head = b""
        self._tail.clear()
        self.total_bytes = 0


class Drain:
    """Reads a pipe into a capture whenever there is something to read.

    Parameters
    ----------
    descriptor : int
        Reading end; owned from here on.
    capture : Capture

    Notes
    -----
    Reading begins with ``begin``; what a process printed that ended before that is read by
    ``take_rest``, which is cheaper than to watch its pipe.
    """

    def __init__(self, descriptor: int, capture: Capture) -> None:
        self._descriptor = descriptor
        self._capture = capture
        self._is_watched = False
        os.set_blocking(descriptor, False)
        self._loop = asyncio.get_running_loop()

    def begin(self) -> None:
        """Read from now on whenever there is something."""
        if self._descriptor >= 0 and not self._is_watched:
            self._is_watched = True
            self._loop.add_reader(self._descriptor, self._readable)

    def _readable(self) -> None:
        if self._read() == 0:
            self.close()

    def _read(self) -> int:
        """Return how many bytes were read; 0 at the end, -1 where there is nothing now."""
        try:
            chunk = os.read(self._descriptor, _CHUNK_BYTES)
        except BlockingIOError:
            return -1
        except OSError:
            return 0
        self._capture.add(chunk)
        return len(chunk)

    def take_rest(self) -> None:
        """Read what is there now, within a bound: somebody may print without an end."""
        budget = _LAST_BYTES
        while self._descriptor >= 0 and budget > 0:
            count = self._read()
            if count <= 0:
                return
            budget -= count

    def close(self) -> None:
        """Stop reading; safe to call twice."""
        if self._descriptor >= 0:
            if self._is_watched:
                self._loop.remove_reader(self._descriptor)
            with contextlib.suppress(OSError):
                os.close(self._descriptor)
            self._descriptor = -1

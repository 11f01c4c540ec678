"""Regular expressions over hostile text: a search comes to an end, whatever it is given.

Python's matcher backtracks and cannot be interrupted. Here a bound of the work decides where a
search is made: what is surely quick at once, everything else in a process of its own that the
system ends when its time is up. What a match means is not known here.

This file is also the program of that process, so it imports the standard library alone.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib
import math
import re
import signal
import struct
import subprocess
import sys
from typing import Any, BinaryIO, Final

__all__ = ["LONGEST_S", "PatternError", "is_quick", "search"]

LONGEST_S: Final = 2.0
"""Seconds after which a search is given up."""

# Steps of the matcher, each some 10 ns: at worst some 20 ms.
_QUICK_STEPS: Final = 2_000_000
_ATTEMPTS: Final = 2
_END_S: Final = 1.0
_ORDER: Final = struct.Struct("=dqqq")
_REPLY: Final = struct.Struct("=qq")
_NO_MATCH: Final = (-1, -1)

_REPEATS: Final = frozenset({"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"})
_ASSERTIONS: Final = frozenset({"ASSERT", "ASSERT_NOT"})
_SINGLE: Final = frozenset(
    {"ANY", "AT", "CATEGORY", "FAILURE", "GROUPREF", "IN", "LITERAL", "NOT_LITERAL", "RANGE"}
)


class PatternError(Exception):
    """Whether the pattern matches cannot be said; the text says why."""


def search(pattern: re.Pattern[str], text: str) -> tuple[int, int] | None:
    """Return where the first match begins and ends, or None where there is none.

    Blocks for up to ``LONGEST_S``, unless ``is_quick``; may be called by any thread.

    Raises
    ------
    PatternError
        The search took longer, or its process was killed by somebody else.
    OSError
        No process can be started.
    """
    if is_quick(pattern, text):
        found = pattern.search(text)
        return None if found is None else found.span()
    for _ in range(_ATTEMPTS):
        searcher = _idle.pop() if _idle else _Searcher()
        span = searcher.search(pattern, text)
        if span is not None:
            _idle.append(searcher)
            return None if span == _NO_MATCH else span
        if searcher.end() == -signal.SIGALRM:
            raise PatternError(f"pattern took longer than {LONGEST_S:g} s")
    raise PatternError("pattern could not be tried: its process was killed")


def is_quick(pattern: re.Pattern[str], text: str) -> bool:
    """Return whether a search surely takes milliseconds at most.

    Notes
    -----
    The bound is the number of starts, times that of the ways through the pattern, times the length
    of the longest way; it exceeds the truth by far, never the other way round.
    """
    tree = _parsed(pattern)
    if tree is None:
        return False
    length = len(text)
    longest = min(int(tree.getwidth()[1]), length) + len(pattern.pattern)
    return (length + 1) * _ways(tree, length) * longest <= _QUICK_STEPS


@functools.lru_cache(maxsize=256)
def _parsed(pattern: re.Pattern[str]) -> Any:
    """Return the parse tree, or None where this Python does not show it."""
    try:
        return importlib.import_module("re._parser").parse(pattern.pattern, pattern.flags)
    except (ImportError, AttributeError, RecursionError, re.error):
        return None


def _ways(tree: Any, length: int) -> float:
    """Return in how many ways a pattern can be tried at one place of a text, at most."""
    return math.prod(_ways_of(str(code), value, length) for code, value in tree)


def _ways_of(code: str, value: Any, length: int) -> float:
    if code in _SINGLE:
        return 1.0
    if code in _REPEATS:
        return _ways_to_repeat(*value, length=length)
    if code == "BRANCH":
        return sum(_ways(branch, length) for branch in value[1])
    if code == "SUBPATTERN":
        return _ways(value[-1], length)
    if code == "ATOMIC_GROUP":
        return _ways(value, length)
    if code in _ASSERTIONS:
        return _ways(value[1], length) * (1 + min(int(value[1].getwidth()[1]), length))
    return math.inf


def _ways_to_repeat(least: int, most: int, body: Any, *, length: int) -> float:
    inner = _ways(body, length)
    if most <= 1:
        return inner + 1
    # A choice that is repeated multiplies with every round.
    return math.inf if inner > 1 else max(least, min(most, length)) + 1.0


class _Searcher:
    """A process that searches, one order at a time."""

    def __init__(self) -> None:
        self._popen = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__],
            cwd="/",
            env={},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def search(self, pattern: re.Pattern[str], text: str) -> tuple[int, int] | None:
        """Return the span of a match or ``_NO_MATCH``; None where the process ended."""
        assert self._popen.stdin is not None
        assert self._popen.stdout is not None
        expression, searched = _encoded(pattern.pattern), _encoded(text)
        head = _ORDER.pack(LONGEST_S, pattern.flags, len(expression), len(searched))
        try:
            self._popen.stdin.write(head + expression + searched)
            self._popen.stdin.flush()
            reply = self._popen.stdout.read(_REPLY.size)
        except OSError:
            return None
        if len(reply) < _REPLY.size:
            return None
        start, end = _REPLY.unpack(reply)
        return start, end

    def end(self) -> int:
        """Let the process end, for a moment, then end it; return its exit status."""
        for pipe in (self._popen.stdin, self._popen.stdout):
            # What was not sent is sent on closing, to nobody.
            with contextlib.suppress(OSError):
                assert pipe is not None
                pipe.close()
        try:
            return self._popen.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            return self._popen.wait()


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


_idle: list[_Searcher] = []


@atexit.register
def _end_all() -> None:
    while _idle:
        _idle.pop().end()


def _serve(orders: BinaryIO, replies: BinaryIO) -> None:
    """Search for whoever is at the other end, until it hangs up or a search takes too long."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})
    while head := orders.read(_ORDER.size):
        longest_s, flags, *sizes = _ORDER.unpack(head)
        expression, text = (orders.read(n).decode("utf-8", "surrogatepass") for n in sizes)
        pattern = re.compile(expression, flags)
        # The system ends this process by default when it rings, and needs nobody else for it.
        signal.setitimer(signal.ITIMER_REAL, longest_s)
        found = pattern.search(text)
        signal.setitimer(signal.ITIMER_REAL, 0)
        replies.write(_REPLY.pack(*(_NO_MATCH if found is None else found.span())))
        replies.flush()


if __name__ == "__main__":
    _serve(sys.stdin.buffer, sys.stdout.buffer)

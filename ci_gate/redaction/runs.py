"""How long the longest word of a content is, at the least: what a secret must find room in.

Nearly every content has no word as long as a credential. Asking once for each length is cheaper
than to search for each credential, so that what is looked for costs nothing where it cannot be.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Final, Generic, NamedTuple, TypeVar

__all__ = ["Gated", "Look", "longest_run", "runs_of"]

Found = TypeVar("Found")
Search = Callable[[bytes], object]

_WORD: Final = (string.ascii_letters + string.digits + "_-+/%").encode() + bytes(range(128, 256))
_MARK: Final = b"w"
_TO_RUNS: Final = bytes(_MARK[0] if byte in _WORD else ord(" ") for byte in range(256))
_RUN: Final = re.compile(_MARK + b"+")


class Look(NamedTuple):
    """A search, and the length of a word without which it finds nothing."""

    search: Search
    run: int = 0


def runs_of(content: bytes) -> bytes:
    """Return the content with all that words are made of as one character, the rest as another."""
    return content.translate(_TO_RUNS)


def longest_run(content: bytes) -> int:
    """Return the length of the longest word."""
    return max((len(run) for run in _RUN.findall(runs_of(content))), default=0)


class Gated(Generic[Found]):
    """Searches by the length of the word that they need, the shortest first.

    Parameters
    ----------
    looks : iterable of tuple of Look and Found
        Each with what it stands for.
    """

    def __init__(self, looks: Iterable[tuple[Look, Found]]) -> None:
        ordered = sorted(looks, key=lambda pair: pair[0].run)
        self._groups = [
            (_MARK * run, [(look.search, found) for look, found in group])
            for run, group in groupby(ordered, key=lambda pair: pair[0].run)
        ]

    def found(self, content: bytes, runs: bytes) -> Iterator[Found]:
        """Yield what the searches that find something stand for.

        Parameters
        ----------
        content : bytes
        runs : bytes
            See ``runs_of``; of the same content.
        """
        for needed, looks in self._groups:
            if needed not in runs:
                return
            for search, one in looks:
                if search(content) is not None:
                    yield one

"""Which calls an agent may make: ``[agent] allow``, decided by this side whatever a worker does."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import lru_cache

__all__ = ["Capabilities"]


class Capabilities:
    """What may be called.

    Parameters
    ----------
    entries : sequence of str
        ``kind`` or ``kind:name``, both with ``*``, ``?`` and ``[...]``; empty: everything.

    Notes
    -----
    The worker has the same rule (``worker.Capabilities``) and refuses a call before it is made.
    """

    def __init__(self, entries: Sequence[str] = ()) -> None:
        self._entries = tuple(map(_parts, entries))
        self._shown = ", ".join(entries)

    def refusal(self, kind: str, name: str) -> str | None:
        """Return why a call may not be made, or None."""
        if not self._entries or _allows(self._entries, kind, name):
            return None
        return f"{kind} {name} is called where only {self._shown} may be used"


@lru_cache(maxsize=1024)
def _allows(entries: tuple[tuple[str, str], ...], kind: str, name: str) -> bool:
    return any(fnmatchcase(kind, k) and fnmatchcase(name, n) for k, n in entries)


def _parts(entry: str) -> tuple[str, str]:
    kind, _, name = entry.partition(":")
    return kind, name or "*"

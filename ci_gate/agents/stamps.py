"""A stamp that a process cannot lose by accident: a resource limit that nobody needs.

The soft limit of POSIX message queues is lowered by a few bytes, by another number for each child.
Every descendant inherits it, through ``setsid``, ``env -i`` and a title written over the
environment. Linux only; elsewhere nothing has a stamp. Knows nothing about what is done with it.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
from collections.abc import Collection, Iterator
from typing import TypeAlias

__all__ = ["Stamp", "stamped", "stamping"]

Stamp: TypeAlias = int | None

_MOST = 4096
_LEAST_LIMIT_BYTES = 65536
_USUAL_BYTES = 819_200
_counted = itertools.count()


@contextlib.contextmanager
def stamping() -> Iterator[Stamp]:
    """Have what is started meanwhile born with a stamp; yields it.

    Yields
    ------
    int or None
        Another one for each of the last 4,096 calls; None where the system has none.

    Notes
    -----
    It is this process's own for the moment: put on a child afterwards, it could come later than
    the child's first children.
    """
    found = _limits()
    if found is None:
        yield None
        return
    soft, hard, most = found
    stamp = most - 1 - next(_counted) % _MOST
    _set(stamp, hard)
    try:
        yield stamp
    finally:
        _set(soft, hard)


def _limits() -> tuple[int, int, int] | None:
    """Return the soft and the hard limit and from where stamps count down."""
    if sys.platform != "linux":
        return None
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_MSGQUEUE)
    most = _USUAL_BYTES if hard == resource.RLIM_INFINITY else hard
    return (soft, hard, most) if most >= _LEAST_LIMIT_BYTES else None


def _set(soft: int, hard: int) -> None:
    if sys.platform == "linux":
        import resource

        with contextlib.suppress(OSError, ValueError):  # then there is no stamp, only a mark
            resource.setrlimit(resource.RLIMIT_MSGQUEUE, (soft, hard))


def stamped(pid: int, stamps: Collection[Stamp]) -> bool:
    """Return whether a process of another session than ours has one of these stamps."""
    if sys.platform != "linux":
        return False
    import resource

    try:
        is_ours = os.getsid(pid) == os.getsid(0)  # started by another thread in the moment
        return not is_ours and resource.prlimit(pid, resource.RLIMIT_MSGQUEUE)[0] in stamps
    except OSError:
        return False

"""A disk that is full, as far as this process is concerned."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

import pytest


@contextlib.contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Let no file grow beyond ``size`` bytes: a write that would fails, as on a full disk."""
    if sys.platform == "win32":
        pytest.skip("the limit is a POSIX one")
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

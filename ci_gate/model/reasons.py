"""Reasons that are the same in every run: without what only one process means something by."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["without_addresses"]

# As in <Order object at 0x7f3a>; what follows is the end of that or, where it was cut, of the text.
_ADDRESS: Final = re.compile(r"(<[^<>]{1,200}? at 0x)[0-9a-fA-F]+(?=[^<>]*(?:>|\Z))")


def without_addresses(reason: str) -> str:
    """Return a reason with the addresses of Python's objects left out.

    Two runs of one seed differ in them and in nothing else.
    """
    return _ADDRESS.sub(r"\1...", reason) if " at 0x" in reason else reason

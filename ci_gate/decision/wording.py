"""Short pieces of sentences: counts and lists of tasks, safe to show in one line."""

from __future__ import annotations

from collections.abc import Iterable

from ci_gate.errors import printable

__all__ = ["counted", "named"]

_NAMED = 5
_ID_CHARS = 60


def counted(number: int, noun: str) -> str:
    """Return ``1 task`` or ``3 tasks``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def named(ids: Iterable[str]) -> str:
    """Return the first ids of a list, and how many more there are."""
    every = list(ids)
    shown = ", ".join(printable(task_id, limit=_ID_CHARS) for task_id in every[:_NAMED])
    return shown if len(every) <= _NAMED else f"{shown} and {len(every) - _NAMED} more"

"""JSON values beside each other: when two are equal, and when one has the parts of another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["has_parts", "is_number", "same"]


def is_number(value: Any) -> bool:
    """Return whether a JSON value is a number; true and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def same(one: Any, other: Any) -> bool:
    """Return whether two JSON values are equal: 2 is 2.0, and neither is true or "2".

    Without calling itself: the agent decides how deep its values are.
    """
    waiting = [(one, other)]
    while waiting:
        left, right = waiting.pop()
        parts = _parts(left, right)
        if parts is None:
            return False
        waiting += parts
    return True


def _parts(one: Any, other: Any) -> list[tuple[Any, Any]] | None:
    """Return the pairs that must be equal for two values to be; None where they are not."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        alike = one.keys() == other.keys()
        return [(one[key], other[key]) for key in one] if alike else None
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return list(zip(one, other, strict=True)) if len(one) == len(other) else None
    comparable = (is_number(one) and is_number(other)) or type(one) is type(other)
    return [] if comparable and one == other else None


def has_parts(value: Any, parts: Mapping[str, Any]) -> bool:
    """Return whether a value is a table with each of these parts, and perhaps others."""
    if not isinstance(value, Mapping):
        return False
    return all(name in value and same(value[name], part) for name, part in parts.items())

"""JSON values beside each other: when two are equal, and when one has the parts of another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["has_parts", "is_number", "same"]


def is_number(value: Any) -> bool:
    """Return whether a JSON value is a number; true and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def same(one: Any, other: Any) -> bool:
    """Return whether two JSON values are equal: 2 is 2.0, and neither is true or "2"."""
    if is_number(one) and is_number(other):
        return bool(one == other)
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        pairs = zip(one, other, strict=False)
        return len(one) == len(other) and all(same(a, b) for a, b in pairs)
    return type(one) is type(other) and bool(one == other)


def has_parts(value: Any, parts: Mapping[str, Any]) -> bool:
    """Return whether a value is a table with each of these parts, and perhaps others."""
    if not isinstance(value, Mapping):
        return False
    return all(name in value and same(value[name], part) for name, part in parts.items())

"""Figures as they leave the gate: six significant digits, after every decision was taken."""

from __future__ import annotations

from typing import Any, TypeVar, cast

import msgspec

__all__ = ["six_digits"]

_T = TypeVar("_T")


def six_digits(value: _T) -> _T:
    """Return a value with each of its floats rounded to 6 significant digits.

    Goes into structs, mappings and tuples; everything else stays as it is.
    """
    return cast("_T", _rounded(value))


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        # Adding 0.0 turns -0.0, which JSON would show, into 0.0.
        return float(f"{value:.6g}") + 0.0
    if isinstance(value, msgspec.Struct):
        fields = {name: _rounded(getattr(value, name)) for name in value.__struct_fields__}
        return type(value)(**fields)
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    return tuple(map(_rounded, value)) if isinstance(value, tuple) else value

"""Which rows, messages or payments a check is about: ``where`` of a task file.

A field equals a value, is one of a list, or lies within bounds. True and 1 are the same in a field,
because SQL has no truth values.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

import msgspec

from ci_gate.errors import printable
from ci_gate.grading.options import unknown_options
from ci_gate.grading.state.showing import shown
from ci_gate.grading.state.world import frozen

__all__ = [
    "BOUNDS",
    "Condition",
    "bounds_hold",
    "bounds_problems",
    "bounds_text",
    "conditions_of",
    "is_number",
    "is_same",
    "selected",
    "where_problems",
    "where_text",
]

BOUNDS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "ge": operator.ge,
    "gt": operator.gt,
    "le": operator.le,
    "lt": operator.lt,
}
_SIGNS: Final = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<", "ne": "!="}
_SCALARS: Final = frozenset({int, str, float, bytes, type(None)})
_TESTS: Final = (*BOUNDS, "ne", "null")


class Condition(msgspec.Struct, frozen=True, kw_only=True):
    """What a field must be.

    Parameters
    ----------
    field : str
    one_of : tuple or None
        Values of which it is one.
    tests : mapping
        ``ge``, ``gt``, ``le``, ``lt``, ``ne`` with a value, ``null`` with a truth value.
    """

    field: str
    one_of: tuple[Any, ...] | None = None
    tests: Mapping[str, Any] = msgspec.field(default_factory=dict)

    def holds(self, value: Any) -> bool:
        """Return whether a field of this value is as it must be."""
        if self.one_of is not None:
            if value.__class__ in _SCALARS:  # nearly every one, and there may be many
                return value in self.one_of
            return any(is_same(wanted, value) for wanted in self.one_of)
        return all(_passes(name, value, operand) for name, operand in self.tests.items())

    def text(self) -> str:
        """Return the condition as it is shown."""
        name = printable(self.field, limit=60)
        if self.one_of is None:
            return ", ".join(f"{name} {_test_text(*test)}" for test in self.tests.items())
        if len(self.one_of) == 1:
            return f"{name}={shown(self.one_of[0])}"
        return f"{name} in ({', '.join(map(shown, self.one_of))})"


def is_same(wanted: Any, found: Any) -> bool:
    """Return whether a value of a field is the one that a task names."""
    if isinstance(wanted, list | dict) or isinstance(found, list | dict):
        return bool(frozen(wanted) == frozen(found))
    return bool(wanted == found)


def is_number(value: Any) -> bool:
    """Return whether a value is a number, and no truth value."""
    return isinstance(value, int | float | Fraction) and not isinstance(value, bool)


def _passes(name: str, value: Any, operand: Any) -> bool:
    if name == "null":
        return (value is None) is operand
    if name == "ne":
        return not is_same(operand, value)
    return bounds_hold({name: operand}, value)


def bounds_hold(bounds: Mapping[str, Any], value: Any) -> bool:
    """Return whether a value lies within bounds; one of another kind does not."""
    return all(
        _are_comparable(value, bound) and BOUNDS[name](value, bound)
        for name, bound in bounds.items()
    )


def _are_comparable(one: Any, other: Any) -> bool:
    both_text = isinstance(one, str) and isinstance(other, str)
    return both_text or (is_number(one) and is_number(other))


def _test_text(name: str, operand: Any) -> str:
    if name == "null":
        return "is null" if operand else "is not null"
    return f"{_SIGNS[name]} {shown(operand)}"


def bounds_text(bounds: Mapping[str, Any]) -> str:
    """Return bounds as they are shown."""
    return " and ".join(_test_text(name, bound) for name, bound in bounds.items())


def conditions_of(where: Mapping[str, Any]) -> tuple[Condition, ...]:
    """Return the conditions of a ``where`` that has no ``where_problems``."""
    return tuple(_condition(field, wanted) for field, wanted in where.items())


def _condition(field: str, wanted: Any) -> Condition:
    if isinstance(wanted, dict):
        return Condition(field=field, tests=wanted)
    values = wanted if isinstance(wanted, list) else [wanted]
    return Condition(field=field, one_of=tuple(values))


def where_text(conditions: Iterable[Condition]) -> str:
    """Return ``[field=value, ...]``; empty where there is no condition."""
    text = ", ".join(condition.text() for condition in conditions)
    return f"[{text}]" if text else ""


def selected(
    conditions: Sequence[Condition], records: Iterable[Mapping[str, Any]]
) -> Iterator[Mapping[str, Any]]:
    """Yield the records that meet every condition; a field that one lacks is null."""
    for record in records:
        if all(one.holds(record.get(one.field)) for one in conditions):
            yield record


def where_problems(where: Any, name: str) -> Iterator[str]:
    """Yield what is wrong with a ``where``."""
    if not isinstance(where, dict):
        yield f"{name!r} must be a table of fields, found {shown(where)}"
        return
    for field, wanted in where.items():
        if isinstance(wanted, dict):
            place = f"{name}.{printable(field)}: "
            yield from (place + problem for problem in _test_problems(wanted))
        elif isinstance(wanted, list) and not wanted:
            yield f"{name}.{printable(field)}: an empty list matches nothing"


def _test_problems(tests: Mapping[str, Any]) -> Iterator[str]:
    if not tests:
        yield f"an empty table asks nothing; tests are {', '.join(_TESTS)}"
    yield from unknown_options(tests, _TESTS)
    for name, operand in tests.items():
        if name == "null" and not isinstance(operand, bool):
            yield f"'null' must be true or false, found {shown(operand)}"
        if name in BOUNDS and not (is_number(operand) or isinstance(operand, str)):
            yield f"{name!r} must be a number or a text, found {shown(operand)}"


def bounds_problems(bounds: Mapping[str, Any], name: str) -> Iterator[str]:
    """Yield what is wrong with the bounds of a number."""
    if not bounds:
        yield f"{name}: an empty table asks nothing; bounds are {', '.join(BOUNDS)}"
    yield from (f"{name}: {problem}" for problem in unknown_options(bounds, tuple(BOUNDS)))
    for bound, operand in bounds.items():
        if bound in BOUNDS and not is_number(operand):
            yield f"{name}.{bound} must be a number, found {shown(operand)}"

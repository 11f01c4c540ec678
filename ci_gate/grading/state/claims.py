"""What a check claims of the rows, messages or values that it found.

A claim gets what was found and says what was expected and what is there instead, with the rows that
offend; which part of a world that was is not known here.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from ci_gate.grading.conditions import TextConditions
from ci_gate.grading.state.selecting import bounds_hold, bounds_text, is_same
from ci_gate.grading.state.showing import bounded, record_line, row_line, shown
from ci_gate.grading.state.summing import NotANumber, decimal_text, exact, total
from ci_gate.grading.state.world import frozen

__all__ = ["Claim", "Count", "Each", "Failure", "Found", "Presence", "RowSet", "Sum"]


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """A check that does not hold.

    Parameters
    ----------
    expected, found : str
        One line each; ``expected`` is empty where ``found`` says it all.
    lines : tuple of str
        A small difference, bounded: each begins with ``- `` for what is missing, ``+ `` for what
        is there and should not be, or two spaces.
    """

    found: str
    expected: str = ""
    lines: tuple[str, ...] = ()

    def text(self) -> str:
        """Return it in one line."""
        return f"expected {self.expected}, found {self.found}" if self.expected else self.found


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What a check looks at.

    Parameters
    ----------
    records : sequence of mapping
        The rows or messages that were selected; empty for values of a document.
    values : sequence
        One field of each record, or the values that a path found.
    noun : str
        What there is one of: row, message, payment, value.
    """

    records: Sequence[Mapping[str, Any]] = ()
    values: Sequence[Any] = ()
    noun: str = "row"

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.records) or len(self.values)

    def counted(self, number: int | None = None) -> str:
        """Return how many there are in words."""
        count = self.count if number is None else number
        return f"{count or 'no'} {self.noun}{'' if count == 1 else 's'}"

    def lines(self, sign: str = "  ") -> tuple[str, ...]:
        """Return a line each of the first."""
        if self.records:
            return bounded(self.records, lambda record: sign + record_line(record))
        return bounded(self.values, lambda value: sign + shown(value))


class Claim(Protocol):
    """What must hold of what was found."""

    def text(self) -> str:
        """Return the claim in a few words, behind the name of what it is about."""

    def failure(self, found: Found) -> Failure | None:
        """Return why it does not hold, None where it does."""


class Count(msgspec.Struct, frozen=True):
    """There are so many, or a number within bounds."""

    wanted: int | Mapping[str, Any]

    def text(self) -> str:
        """Return the claim in a few words."""
        return " count"

    def failure(self, found: Found) -> Failure | None:
        """Return why it does not hold, None where it does."""
        if isinstance(self.wanted, int):
            holds, expected = found.count == self.wanted, found.counted(self.wanted)
        else:
            holds = bounds_hold(self.wanted, found.count)
            expected = f"{bounds_text(self.wanted)} {found.noun}s"
        if holds:
            return None
        return Failure(expected=expected, found=found.counted(), lines=found.lines("+ "))


class Presence(msgspec.Struct, frozen=True):
    """There is at least one, or none."""

    wanted: bool

    def text(self) -> str:
        """Return the claim in a few words."""
        return " exists" if self.wanted else " absent"

    def failure(self, found: Found) -> Failure | None:
        """Return why it does not hold, None where it does."""
        if bool(found.count) is self.wanted:
            return None
        expected = f"at least one {found.noun}" if self.wanted else found.counted(0)
        return Failure(expected=expected, found=found.counted(), lines=found.lines("+ "))


class Sum(msgspec.Struct, frozen=True, kw_only=True):
    """Values add up to a number, or to one within bounds."""

    wanted: Any

    def text(self) -> str:
        """Return the claim in a few words."""
        return " sum"

    def failure(self, found: Found) -> Failure | None:
        """Return why it does not hold, None where it does."""
        try:
            added = total(found.values)
        except NotANumber as error:
            what = f"{shown(error.value)}, which is no number"
            return Failure(expected="numbers", found=what, lines=found.lines("+ "))
        if isinstance(self.wanted, Mapping):
            bounds = {name: exact(bound) for name, bound in self.wanted.items()}
            holds, expected = bounds_hold(bounds, added), bounds_text(self.wanted)
        else:
            wanted = exact(self.wanted)
            holds, expected = added == wanted, decimal_text(wanted)
        if holds:
            return None
        return Failure(expected=expected, found=decimal_text(added), lines=found.lines("+ "))


class Each(msgspec.Struct, frozen=True, kw_only=True):
    """There is at least one value, and each equals, contains or matches something.

    Parameters
    ----------
    equals : Any
    is_strict : bool
        True is not 1: in documents.
    conditions : TextConditions or None
        In place of ``equals``: the values must be texts that meet them.
    contains : str or None
        In place of both: the part of a text, or a member of a list.
    """

    equals: Any = None
    is_strict: bool = False
    conditions: TextConditions | None = None
    contains: Any = None

    def text(self) -> str:
        """Return the claim in a few words."""
        return ""

    def failure(self, found: Found) -> Failure | None:
        """Return why it does not hold, None where it does."""
        bad = [at for at, value in enumerate(found.values) if not self._holds(value)]
        if found.values and not bad:
            return None
        if not found.values:
            return Failure(expected=self._expected(), found=found.counted(0))
        offending = Found(
            records=[found.records[at] for at in bad] if found.records else (),
            values=[found.values[at] for at in bad],
            noun=found.noun,
        )
        first = shown(offending.values[0])
        more = f" and {len(bad) - 1} more" if len(bad) > 1 else ""
        return Failure(expected=self._expected(), found=first + more, lines=offending.lines("+ "))

    def _holds(self, value: Any) -> bool:
        if self.conditions is not None:
            return isinstance(value, str) and self.conditions.complaint(value) is None
        if self.contains is not None:
            return _has(value, self.contains)
        if self.is_strict:
            return bool(frozen(value) == frozen(self.equals))
        return is_same(self.equals, value)

    def _expected(self) -> str:
        if self.conditions is not None:
            assert isinstance(self.conditions.matches, re.Pattern)
            return f"a match of {shown(self.conditions.matches.pattern)}"
        return (
            shown(self.equals)
            if self.contains is None
            else f"something with {shown(self.contains)}"
        )


def _has(value: Any, part: Any) -> bool:
    if isinstance(value, str):
        return isinstance(part, str) and part in value
    return isinstance(value, list) and any(frozen(one) == frozen(part) for one in value)


class RowSet(msgspec.Struct, frozen=True, kw_only=True):
    """There are exactly these rows, in any order.

    Parameters
    ----------
    columns : tuple of str
        Fields of a record that make a row; empty: all of them.
    rows : tuple of tuple
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def text(self) -> str:
        """Return the claim in a few words."""
        return " rows"

    def failure(self, found: Found) -> Failure | None:
        """Return why it does not hold, None where it does."""
        columns = self.columns or tuple(dict.fromkeys(name for r in found.records for name in r))
        rows = [tuple(record.get(name) for name in columns) for record in found.records]
        missing, extra = _without(self.rows, rows), _without(rows, self.rows)
        if not missing and not extra:
            return None
        return Failure(
            expected=found.counted(len(self.rows)),
            found=f"{found.counted()}: {len(missing)} missing, {len(extra)} not expected",
            lines=(*_lines("- ", columns, missing), *_lines("+ ", columns, extra)),
        )


def _without(
    rows: Sequence[tuple[Any, ...]], others: Sequence[tuple[Any, ...]]
) -> list[tuple[Any, ...]]:
    left = Counter(map(_number_like, others))
    beyond = []
    for row in rows:
        name = _number_like(row)
        left[name] -= 1
        if left[name] < 0:
            beyond.append(row)
    return beyond


def _number_like(row: tuple[Any, ...]) -> Any:
    """Return a row in which true is 1, as where single fields are compared."""
    return tuple(cell if isinstance(cell, bool) else frozen(cell) for cell in row)


def _lines(sign: str, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> tuple[str, ...]:
    fits = all(len(row) == len(columns) for row in rows)
    if columns and fits:
        return bounded(rows, lambda row: sign + row_line(columns, row))
    return bounded(rows, lambda row: f"{sign}({', '.join(map(shown, row))})")

"""Figures with their errors, tables of them, and whether they hold what is asked.

Knows how a figure is printed; not where it comes from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt

_ALLOWED_ERRORS = 3
"""Standard errors by which a figure may miss: hundreds are held at once."""


@dataclass(frozen=True)
class Rate:
    """Share of repeats in which something happened, with its standard error."""

    hits: int
    repeats: int

    @property
    def value(self) -> float:
        """The share: hits over repeats."""
        return self.hits / self.repeats

    @property
    def error(self) -> float:
        """Standard error, with half a hit and half a miss more so that it is never 0."""
        share = (self.hits + 0.5) / (self.repeats + 1)
        return sqrt(share * (1 - share) / self.repeats)

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.error:.3f})"


@dataclass(frozen=True)
class Mean:
    """A mean with its standard error."""

    value: float
    error: float

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.error:.3f})"


Cell = Rate | Mean | str


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a figure has to hold.

    Attributes
    ----------
    low, high
        Bounds; a figure may miss them by three standard errors.
    """

    low: float = 0.0
    high: float = 1.0

    def holds(self, found: Rate | Mean) -> bool:
        """Whether a figure lies within, its error allowed for."""
        slack = _ALLOWED_ERRORS * found.error
        return self.low - slack <= found.value <= self.high + slack

    def __str__(self) -> str:
        return f"{self.low:.3f} to {self.high:.3f}"


def about(value: float, error: float = 0.011) -> Asked:
    """Ask for a figure that was measured before, with so much error of its own."""
    return Asked(low=value - 2 * error, high=value + 2 * error)


@dataclass(frozen=True, kw_only=True)
class Table:
    """A named table; ``asked`` holds the cells that have to keep something, by row and column."""

    name: str
    title: str
    columns: Sequence[str]
    rows: Mapping[str, Sequence[Cell]]
    notes: Sequence[str] = ()
    asked: Mapping[tuple[str, str], Asked] = field(default_factory=dict)

    def missed(self) -> list[str]:
        """Name the cells that do not hold what is asked."""
        return [
            f"{self.name}, {row}, {column}: {found}, asked {asked}"
            for (row, column), asked in self.asked.items()
            if not isinstance(found := self.cell(row, column), str) and not asked.holds(found)
        ]

    def cell(self, row: str, column: str) -> Cell:
        """Return one cell."""
        return self.rows[row][list(self.columns).index(column)]

    def text(self) -> str:
        """Lay the table out for a terminal."""
        first = max(map(len, self.rows), default=0) + 2
        widths = [
            2 + max(len(column), *(len(str(row[at])) for row in self.rows.values()))
            for at, column in enumerate(self.columns)
        ]
        lines = [self.title, *self.notes, _line("", self.columns, first, widths)]
        lines += [_line(name, map(str, row), first, widths) for name, row in self.rows.items()]
        return "\n".join(lines)

    def markdown(self) -> str:
        """Lay the table out for a page."""
        head = [
            "| " + " | ".join(["", *self.columns]) + " |",
            "|---" * (1 + len(self.columns)) + "|",
        ]
        body = ["| " + " | ".join([name, *map(str, row)]) + " |" for name, row in self.rows.items()]
        notes = [f"{note}  " for note in self.notes]
        return "\n".join([f"**{self.title}**", "", *notes, "", *head, *body])

    def plain(self) -> dict[str, object]:
        """Return the table as plain data."""
        return {
            "title": self.title,
            "notes": list(self.notes),
            "rows": {
                name: dict(zip(self.columns, map(_plain, row), strict=True))
                for name, row in self.rows.items()
            },
        }


def _line(name: str, cells: Sequence[str] | map[str], first: int, widths: Sequence[int]) -> str:
    padded = (f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
    return (f"{name:<{first}}" + "".join(padded)).rstrip()


def _plain(cell: Cell) -> object:
    if isinstance(cell, Rate):
        return {"share": cell.value, "standard_error": cell.error, "n": cell.repeats}
    if isinstance(cell, Mean):
        return {"mean": cell.value, "standard_error": cell.error}
    return cell

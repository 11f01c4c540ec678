"""What the builders of sections share: how much is shown, tables without empty columns.

It knows neither verdicts nor formats.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from ci_gate.render.document import Column, Table
from ci_gate.render.figures import UNKNOWN

__all__ = ["Limits", "table"]


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How much is shown at most.

    Parameters
    ----------
    rows : int
        Rows of a table, and bullets of a list.
    replayed_tasks : int
        Tasks of a section whose failing trials are shown.
    seeds : int
        Failing trials of a task.
    contributors : int
        Largest drops that are named when no single task is proven.
    """

    rows: int = 50
    replayed_tasks: int = 10
    seeds: int = 8
    contributors: int = 5


def table(
    columns: Sequence[Column],
    rows: Sequence[tuple[str, ...]],
    *,
    optional: Iterable[str] = (),
    most: int | None = None,
) -> Table:
    """Return a table without those optional columns in which every row is unknown.

    Parameters
    ----------
    columns : sequence of Column
    rows : sequence of tuple of str
        One string a column.
    optional : iterable of str
        Titles of the columns that may be left out.
    most : int or None
        Rows that are shown; the others are counted.
    """
    leave_out = {
        index
        for index, column in enumerate(columns)
        if column.title in set(optional) and all(row[index] in {"", UNKNOWN} for row in rows)
    }
    kept = [index for index in range(len(columns)) if index not in leave_out]
    whole = Table(
        columns=tuple(columns[index] for index in kept),
        rows=tuple(tuple(row[index] for index in kept) for row in rows),
    )
    return whole if most is None else whole.shortened(most)

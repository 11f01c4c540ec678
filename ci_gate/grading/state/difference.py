"""What changed between two states of a world: rows, paths, messages and payments.

Rows of a table with a key are compared field by field under their key, others are counted as
wholes. Which changes are allowed is not known here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, TypeVar

import msgspec

from ci_gate.grading.state.world import Entry, Record, Row, Table, WorldState, frozen

__all__ = [
    "RowChange",
    "TableDifference",
    "WorldDifference",
    "added_records",
    "apply",
    "difference",
    "table_difference",
]

_T = TypeVar("_T")


class RowChange(msgspec.Struct, frozen=True, kw_only=True):
    """A row that is still there under its key with other values.

    Parameters
    ----------
    before, after : Row
    fields : tuple of str
        Columns that differ, in the table's order.
    """

    before: Row
    after: Row
    fields: tuple[str, ...]


class TableDifference(msgspec.Struct, frozen=True, kw_only=True):
    """What happened to a table.

    Parameters
    ----------
    before, after : Table or None
        Without rows; None where there is no such table. Where their columns differ, every row of
        the one is removed and every row of the other added.
    added, removed : tuple of Row
    changed : tuple of RowChange
    """

    before: Table | None
    after: Table | None
    added: tuple[Row, ...] = ()
    removed: tuple[Row, ...] = ()
    changed: tuple[RowChange, ...] = ()

    @property
    def has_other_columns(self) -> bool:
        """Whether the table was made, dropped or given other columns."""
        if self.before is None or self.after is None:
            return True
        return self.before.columns != self.after.columns


class WorldDifference(msgspec.Struct, frozen=True, kw_only=True):
    """What happened to a world; a world in which nothing changed gives an empty one.

    Parameters
    ----------
    tables : mapping of str to TableDifference
        Those that changed.
    files_added, files_removed : mapping of str to Entry
    files_changed : mapping of str to (Entry, Entry)
        Before and after.
    messages_added, messages_removed, payments_added, payments_removed : tuple of Record
    """

    tables: Mapping[str, TableDifference] = msgspec.field(default_factory=dict)
    files_added: Mapping[str, Entry] = msgspec.field(default_factory=dict)
    files_removed: Mapping[str, Entry] = msgspec.field(default_factory=dict)
    files_changed: Mapping[str, tuple[Entry, Entry]] = msgspec.field(default_factory=dict)
    messages_added: tuple[Record, ...] = ()
    messages_removed: tuple[Record, ...] = ()
    payments_added: tuple[Record, ...] = ()
    payments_removed: tuple[Record, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing changed."""
        return not any(getattr(self, name) for name in self.__struct_fields__)


def difference(before: WorldState, after: WorldState) -> WorldDifference:
    """Return what changed from one state to the other.

    Parameters
    ----------
    before, after : WorldState
        The same parts of the same world.

    Notes
    -----
    ``apply(before, difference(before, after))`` is ``after`` up to the order of rows and records.
    """
    tables = {}
    for name in sorted({*before.tables, *after.tables}):
        found = table_difference(before.tables.get(name), after.tables.get(name))
        if found is not None:
            tables[name] = found
    files, later = before.files, after.files
    return WorldDifference(
        tables=tables,
        files_added={path: later[path] for path in sorted(later.keys() - files.keys())},
        files_removed={path: files[path] for path in sorted(files.keys() - later.keys())},
        files_changed={
            path: (files[path], later[path])
            for path in sorted(files.keys() & later.keys())
            if files[path] != later[path]
        },
        messages_added=added_records(before.messages, after.messages),
        messages_removed=added_records(after.messages, before.messages),
        payments_added=added_records(before.payments, after.payments),
        payments_removed=added_records(after.payments, before.payments),
    )


def added_records(before: Sequence[Record], after: Sequence[Record]) -> tuple[Record, ...]:
    """Return the records that are in ``after`` more often than in ``before``, in order."""
    return tuple(_beyond(before, after, frozen))


def _beyond(
    before: Iterable[_T], after: Iterable[_T], exact: Callable[[_T], Hashable]
) -> Iterable[_T]:
    left = Counter(map(exact, before))
    for item in after:
        name = exact(item)
        if left[name] > 0:
            left[name] -= 1
        else:
            yield item


def table_difference(before: Table | None, after: Table | None) -> TableDifference | None:
    """Return what changed in a table; None where nothing did."""
    rows, later = (() if table is None else table.rows for table in (before, after))
    head, head_later = _head(before), _head(after)
    if before is None or after is None or before.columns != after.columns:
        return TableDifference(before=head, after=head_later, added=later, removed=rows)
    exact = _exact(before, after)
    found = _by_key(before, after, exact)
    if found is None:
        found = tuple(_beyond(rows, later, exact)), tuple(_beyond(later, rows, exact)), ()
    added, removed, changed = found
    if not (added or removed or changed):
        return None
    return TableDifference(
        before=head, after=head_later, added=added, removed=removed, changed=changed
    )


def _head(table: Table | None) -> Table | None:
    return table and msgspec.structs.replace(table, rows=())


def _exact(before: Table, after: Table) -> Callable[[Row], Hashable]:
    return frozen if before.is_json or after.is_json else _as_it_is


def _as_it_is(row: Row) -> Row:
    return row


_Changes = tuple[tuple[Row, ...], tuple[Row, ...], tuple[RowChange, ...]]


def _by_key(before: Table, after: Table, exact: Callable[[Row], Hashable]) -> _Changes | None:
    """Return rows added, removed and changed, or None where no key names the rows of both."""
    if not before.key or before.key != after.key:
        return None
    rows, later = _named(before), _named(after)
    if rows is None or later is None:
        return None
    changed = [
        _change(before, rows[name], row)
        for name, row in later.items()
        if name in rows and exact(rows[name]) != exact(row)
    ]
    return (
        tuple(row for name, row in later.items() if name not in rows),
        tuple(row for name, row in rows.items() if name not in later),
        tuple(changed),
    )


def _named(table: Table) -> dict[Any, Row] | None:
    key_of = itemgetter(*map(table.columns.index, table.key))
    if table.is_json:
        named = {frozen(key_of(row)): row for row in table.rows}
    else:
        named = {key_of(row): row for row in table.rows}
    return named if len(named) == len(table.rows) else None


def _change(table: Table, before: Row, after: Row) -> RowChange:
    fields = tuple(
        column
        for column, old, new in zip(table.columns, before, after, strict=True)
        if frozen(old) != frozen(new)
    )
    return RowChange(before=before, after=after, fields=fields)


def apply(before: WorldState, changes: WorldDifference) -> WorldState:
    """Return the state that comes of the changes, up to the order of rows and records."""
    tables = dict(before.tables)
    for name, found in changes.tables.items():
        if found.after is None:
            del tables[name]
        else:
            tables[name] = _applied(tables.get(name), found, found.after)
    files = {path: e for path, e in before.files.items() if path not in changes.files_removed}
    files |= {path: new for path, (_, new) in changes.files_changed.items()}
    return WorldState(
        tables=tables,
        table_names=tuple(tables),
        files=files | dict(changes.files_added),
        messages=_moved(before.messages, changes.messages_removed, changes.messages_added),
        payments=_moved(before.payments, changes.payments_removed, changes.payments_added),
    )


def _moved(
    records: Sequence[Record], removed: Sequence[Record], added: Sequence[Record]
) -> tuple[Record, ...]:
    return (*_beyond(removed, records, frozen), *added)


def _applied(table: Table | None, found: TableDifference, head: Table) -> Table:
    rows = () if table is None else table.rows
    exact = frozen if head.is_json else _as_it_is
    gone = [*found.removed, *(change.before for change in found.changed)]
    come = [*found.added, *(change.after for change in found.changed)]
    return msgspec.structs.replace(head, rows=(*_beyond(gone, rows, exact), *come))

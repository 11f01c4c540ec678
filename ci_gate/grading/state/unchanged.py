"""That nothing changed but what may: the changes of a world that no exception covers.

A row that was added or removed is covered by an exception that means it; a row that changed by one
that means it as it was and as it is, or whose every changed field is covered so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from ci_gate.errors import printable
from ci_gate.grading.state.difference import RowChange, TableDifference, WorldDifference
from ci_gate.grading.state.exceptions import Exempt
from ci_gate.grading.state.showing import record_line, row_line, shown
from ci_gate.grading.state.world import Entry, Record, Row, Table, WorldState

__all__ = ["Line", "uncovered"]

Line = Callable[[], str]
"""Makes a line when it is shown."""

_MOST_PAIRS: Final = 250_000


def uncovered(
    changes: WorldDifference, exempt: Sequence[Exempt], before: WorldState, after: WorldState
) -> list[Line]:
    """Return a line or two for each change that no exception covers.

    Parameters
    ----------
    changes : WorldDifference
    exempt : sequence of Exempt
    before, after : WorldState
        Whose difference it is.

    Returns
    -------
    list of Line
        Each makes a text that begins with ``- `` for what was there before, or ``+ `` for what is
        there now; there may be as many as a world has rows.
    """
    lines: list[Line] = []
    for name, found in changes.tables.items():
        covering = [one for one in exempt if one.kind == "table" and one.names(name)]
        if not any(not one.where and one.field is None for one in covering):
            lines += _of_table(name, found, covering)
    for kind in ("messages", "payments"):
        covering = [one for one in exempt if one.kind == kind]
        lines += _of_records("- ", kind, getattr(changes, f"{kind}_removed"), covering)
        lines += _of_records("+ ", kind, getattr(changes, f"{kind}_added"), covering)
    return lines + list(_of_files(changes, exempt, before, after))


def _of_table(name: str, found: TableDifference, exempt: Sequence[Exempt]) -> Iterator[Line]:
    label = printable(name, limit=80)
    if found.has_other_columns:
        yield from _columns(label, found.before, "- ")
        yield from _columns(label, found.after, "+ ")
    removed, added = _unpaired(found, exempt)
    for sign, table, rows in (("- ", found.before, removed), ("+ ", found.after, added)):
        columns = () if table is None else table.columns
        for row in rows:
            if not _covers_row(exempt, columns, row):
                yield partial(_row, f"{sign}{label}", columns, row)
    for change in found.changed:
        yield from _of_change(label, found, change, exempt)


def _columns(label: str, table: Table | None, sign: str) -> Iterator[Line]:
    if table is not None:
        yield partial(str, f"{sign}table {label} ({printable(', '.join(table.columns))})")


def _covers_row(exempt: Iterable[Exempt], columns: Sequence[str], row: Row) -> bool:
    of_rows = [one for one in exempt if one.field is None]
    record = dict(zip(columns, row, strict=True)) if of_rows else {}
    return any(one.has(record) for one in of_rows)


def _unpaired(
    found: TableDifference, exempt: Sequence[Exempt]
) -> tuple[Sequence[Row], Sequence[Row]]:
    """Leave out rows without a key that were replaced by one with other exempt fields."""
    by_field = [one for one in exempt if one.field is not None]
    table = found.after
    pairs = len(found.removed) * len(found.added)
    if not by_field or found.has_other_columns or table is None or pairs > _MOST_PAIRS:
        return found.removed, found.added
    removed, added = list(found.removed), list(found.added)
    for old in found.removed:
        for new in added:
            fields = [c for c, a, b in zip(table.columns, old, new, strict=True) if a != b]
            change = RowChange(before=old, after=new, fields=tuple(fields))
            if not _left(table.columns, change, by_field):
                removed.remove(old)
                added.remove(new)
                break
    return removed, added


def _of_change(
    label: str, found: TableDifference, change: RowChange, exempt: Sequence[Exempt]
) -> Iterator[Line]:
    assert found.after is not None
    columns = found.after.columns
    named = dict(zip(columns, change.after, strict=True))
    key = ", ".join(f"{name}={shown(named[name])}" for name in found.after.key)
    old = dict(zip(columns, change.before, strict=True))
    for field in _left(columns, change, exempt):
        place = f"{label}[{printable(key)}].{printable(field, limit=80)}"
        yield partial(_value, f"- {place}", old[field])
        yield partial(_value, f"+ {place}", named[field])


def _left(columns: Sequence[str], change: RowChange, exempt: Iterable[Exempt]) -> list[str]:
    """Return the changed fields of a row that no exception covers."""
    before = dict(zip(columns, change.before, strict=True))
    after = dict(zip(columns, change.after, strict=True))
    meant = [one for one in exempt if one.has(before) and one.has(after)]
    if any(one.field is None for one in meant):
        return []
    fields = {one.field for one in meant}
    return [field for field in change.fields if field not in fields]


def _of_records(
    sign: str, kind: str, records: Iterable[Record], exempt: Sequence[Exempt]
) -> Iterator[Line]:
    for record in records:
        if not any(one.has(record) for one in exempt):
            yield partial(_record, f"{sign}{kind.removesuffix('s')}", record)


def _of_files(
    changes: WorldDifference, exempt: Sequence[Exempt], before: WorldState, after: WorldState
) -> Iterator[Line]:
    def is_exempt(path: str) -> bool:
        return any(one.kind == "path" and one.names(path) for one in exempt)

    for path, entry in changes.files_removed.items():
        if not is_exempt(path) and not _only_filled(path, entry, after.files):
            yield partial(_entry, "- ", path, entry)
    for path, entry in changes.files_added.items():
        if not is_exempt(path) and not _only_filled(path, entry, before.files):
            yield partial(_entry, "+ ", path, entry)
    for path, (old, new) in changes.files_changed.items():
        if not is_exempt(path):
            yield partial(_entry, "- ", path, old)
            yield partial(_entry, "+ ", path, new)


def _only_filled(path: str, entry: Entry, others: Mapping[str, Any]) -> bool:
    """Return whether an empty folder is there too, with something in it: which is said of that."""
    return entry.kind == "folder" and any(other.startswith(f"{path}/") for other in others)


def _row(label: str, columns: Sequence[str], row: Row) -> str:
    return f"{label}: {row_line(columns, row)}"


def _record(label: str, record: Record) -> str:
    return f"{label}: {record_line(record)}"


def _value(label: str, value: Any) -> str:
    return f"{label}: {shown(value)}"


def _entry(sign: str, path: str, entry: Entry) -> str:
    shown_path = printable(path, limit=200)
    if entry.kind == "link":
        return f"{sign}link {shown_path} -> {printable(entry.target, limit=200)}"
    if entry.kind != "file":
        kind = "empty folder" if entry.kind == "folder" else "pipe or device"
        return f"{sign}{kind} {shown_path}"
    mode = ", executable" if entry.executable else ""
    return f"{sign}file {shown_path} ({entry.size} bytes, sha256 {str(entry.digest)[:12]}{mode})"

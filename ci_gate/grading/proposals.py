"""What a trial left, as graders that would hold of it: a draft for whoever writes the real ones.

Both worlds are the work of code under test and are read as every grader reads them. What is
proposed is what happened, not what should have; nobody is graded here.
"""

from __future__ import annotations

import math
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from ci_gate import codec
from ci_gate.errors import printable
from ci_gate.grading import answer as answer_grader
from ci_gate.grading import file as file_grader
from ci_gate.grading import sql as sql_grader
from ci_gate.grading.databases import UnusableError, reading
from ci_gate.grading.opening import read_text
from ci_gate.grading.state import grader as state_grader
from ci_gate.grading.state.difference import TableDifference, WorldDifference, difference
from ci_gate.grading.state.snapshot import Places, snapshot
from ci_gate.grading.state.world import Table, WorldState
from ci_gate.model.suite import GraderSpec

__all__ = ["Proposal", "of_answer", "of_world"]

_MOST: Final = 30
_MOST_ROWS: Final = 20
_MOST_CHARACTERS: Final = 2000
_RECORDS: Final = ("messages", "payments")
_LARGEST_INTEGER: Final = 2**63
_WORD: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """A grader that holds of what happened.

    Parameters
    ----------
    what : str
        What happened, in one line; its names are the agent's and made printable.
    table : mapping
        The grader's keys as a task file has them, ``type`` first.
    """

    what: str
    table: Mapping[str, Any]


def of_answer(answer: str | None) -> Iterator[Proposal]:
    """Yield the grader of an answer, where there is one and it is short enough to be compared."""
    if answer is not None and len(answer) <= _MOST_CHARACTERS:
        yield from _valid("the answer", {"type": "answer", "equals": answer})


def of_world(before: Places, after: Places) -> list[Proposal]:
    """Return graders of what changed from one world to the other, at most 30.

    Parameters
    ----------
    before, after : Places

    Raises
    ------
    UnusableError
        A world cannot be read, in a sentence.
    """
    first, last = snapshot(before), snapshot(after)
    changes = difference(first, last)
    found = [
        *_of_tables(changes, first, last, after.database),
        *_of_files(changes, first, last, after.workdir),
        *_of_records(changes),
    ]
    return [*found[: _MOST - 1], *_of_all_else(changes)]


def _valid(what: str, table: Mapping[str, Any]) -> Iterator[Proposal]:
    """Yield the proposal, unless the grader would refuse it."""
    options = {key: value for key, value in table.items() if key != "type"}
    spec = GraderSpec(type=table["type"], name="-", options=options)
    validate = {
        "answer": answer_grader.validate,
        "file": file_grader.validate,
        "sql": sql_grader.validate,
        "state": state_grader.validate,
    }[spec.type]
    if not validate(spec):
        yield Proposal(what=what, table=table)


def _of_tables(
    changes: WorldDifference, first: WorldState, last: WorldState, database: Path | None
) -> Iterator[Proposal]:
    if database is None:
        return
    for name, change in changes.tables.items():
        what = f"table {printable(name, limit=80)}: {_counted(change)}"
        for query in _queries(name, change, first.tables.get(name), last.tables.get(name)):
            expected = _asked(database, query)
            if expected is not None:
                yield from _valid(what, {"type": "sql", "query": query, **expected})
                break


def _counted(change: TableDifference) -> str:
    if change.after is None:
        return "dropped"
    counts = {"added": change.added, "removed": change.removed, "changed": change.changed}
    return ", ".join(f"{len(rows)} {what}" for what, rows in counts.items() if rows) or "made"


def _queries(
    name: str, change: TableDifference, before: Table | None, after: Table | None
) -> Iterator[str]:
    """Yield queries about what changed in a table, the most telling first."""
    shown = _identifier(name)
    if after is None:
        text = _literal(name)
        yield f"SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = {text}"  # noqa: S608 - quoted
        return
    where = _where(change, before, after)
    if where is not None or len(after.rows) <= _MOST_ROWS:
        plain = ", ".join(map(_identifier, after.columns))
        yield _selected(plain, shown, where, after)
        # What TOML does not have, as SQL writes it.
        quoted = ", ".join(f"quote({_identifier(column)})" for column in after.columns)
        yield _selected(quoted, shown, where, after)
    yield f"SELECT count(*) FROM {shown}"  # noqa: S608 - quoted


def _selected(columns: str, table: str, where: str | None, after: Table) -> str:
    order = ", ".join(map(_identifier, after.key or after.columns))
    condition = f" WHERE {where}" if where else ""
    return f"SELECT {columns} FROM {table}{condition} ORDER BY {order}"  # noqa: S608 - quoted


def _where(change: TableDifference, before: Table | None, after: Table) -> str | None:
    """Return which rows to ask for: those beyond the last one before, or those that changed."""
    if before is None or len(after.key) != 1 or change.has_other_columns:
        return None
    place = after.columns.index(after.key[0])
    key, known = _identifier(after.key[0]), [row[place] for row in before.rows]
    added = [row[place] for row in change.added]
    touched = [*change.removed, *(one.after for one in change.changed)]
    if not touched and known and _are_numbers([*known, *added]) and min(added) > max(known):
        return f"{key} > {max(known)}"
    names = [*added, *(row[place] for row in touched)]
    if len(names) > _MOST_ROWS or not all(isinstance(one, int | str) for one in names):
        return None
    return f"{key} IN ({', '.join(map(_literal, names))})"


def _are_numbers(values: Sequence[Any]) -> bool:
    return all(isinstance(value, int) and abs(value) < _LARGEST_INTEGER for value in values)


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(value: int | str) -> str:
    return str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"


def _asked(database: Path, query: str) -> Mapping[str, Any] | None:
    """Return what the query gives, as a grader expects it; None where a task cannot say it."""
    try:
        with reading(database, sql_grader.LONGEST_QUERY_S) as connection:
            rows = connection.execute(query).fetchmany(_MOST_ROWS + 1)
    except (UnusableError, sqlite3.Error, sqlite3.Warning, OverflowError, UnicodeError):
        return None
    size = sum(len(cell) for row in rows for cell in row if isinstance(cell, str))
    if len(rows) > _MOST_ROWS or size > _MOST_CHARACTERS:
        return None
    if not all(_is_said(cell) for row in rows for cell in row):
        return None
    return {"equals": [list(row) for row in rows]} if rows else {"empty": True}


def _is_said(cell: Any) -> bool:
    if isinstance(cell, float):
        return math.isfinite(cell)
    return isinstance(cell, int | str)


def _of_files(
    changes: WorldDifference, first: WorldState, last: WorldState, workdir: Path | None
) -> Iterator[Proposal]:
    came = {**dict.fromkeys(changes.files_added, "made")}
    came |= dict.fromkeys(changes.files_changed, "changed")
    for path, what in sorted(came.items()):
        if last.files[path].kind == "file":
            said = f"file {printable(path, limit=120)}: {what}"
            yield from _valid(said, {"type": "file", "path": path, **_content(workdir, path)})
    for path in changes.files_removed:
        if path not in last.files and first.files[path].kind == "file":
            said = f"file {printable(path, limit=120)}: removed"
            yield from _valid(said, {"type": "file", "path": path, "exists": False})


def _content(workdir: Path | None, path: str) -> Mapping[str, Any]:
    try:
        text = read_text(workdir, path)
    except (OSError, UnicodeError):
        return {"exists": True}
    return {"equals": text} if len(text) <= _MOST_CHARACTERS else {"exists": True}


def _of_records(changes: WorldDifference) -> Iterator[Proposal]:
    for kind in _RECORDS:
        count = len(getattr(changes, f"{kind}_added"))
        if count:
            what = f"{kind}: {count} added"
            yield from _valid(what, {"type": "state", "checks": [{kind: True, "count": count}]})


def _of_all_else(changes: WorldDifference) -> Iterator[Proposal]:
    """Yield the grader that allows these changes and no other."""
    paths = sorted({*changes.files_added, *changes.files_changed, *changes.files_removed})
    allowed = [_exempt(name, change) for name, change in changes.tables.items()]
    allowed += [f"./{path}" for path in paths]
    allowed += [kind for kind in _RECORDS if _has_changed(changes, kind)]
    # A path with one of these would mean others too.
    if allowed and len(allowed) <= _MOST and not any(set(path) & set("*?[]") for path in paths):
        checks = [{"unchanged": {"except": allowed}}]
        yield from _valid("nothing else changed", {"type": "state", "checks": checks})


def _has_changed(changes: WorldDifference, kind: str) -> bool:
    return any(getattr(changes, f"{kind}_{how}") for how in ("added", "removed"))


def _exempt(name: str, change: TableDifference) -> str:
    shown = name if _WORD.fullmatch(name) else codec.encode(name).decode() + "[]"
    table = change.after
    if table is None or len(table.key) != 1 or change.has_other_columns:
        return shown
    place = table.columns.index(table.key[0])
    rows = [*change.added, *change.removed, *(one.after for one in change.changed)]
    if len(rows) != 1 or not isinstance(rows[0][place], int) or not _WORD.fullmatch(table.key[0]):
        return shown
    return f"{shown.removesuffix('[]')}[{table.key[0]}={rows[0][place]}]"

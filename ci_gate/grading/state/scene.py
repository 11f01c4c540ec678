"""What a trial's checks look at: the world before and after, read once for all of them.

Decides what a check finds in them; whether that is as claimed is ``claims``' to know.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property
from typing import Any, Final

from ci_gate import codec
from ci_gate.errors import printable
from ci_gate.grading.conditions import TextConditions
from ci_gate.grading.databases import UnusableError, reading, said
from ci_gate.grading.opening import read_bytes, why_unread
from ci_gate.grading.sql import LONGEST_QUERY_S, MOST_ROWS, difference_of, expected_rows, rows_of
from ci_gate.grading.state import postgres
from ci_gate.grading.state.checks import FILE_CLAIMS, Check
from ci_gate.grading.state.claims import Failure, Found, RowSet
from ci_gate.grading.state.difference import (
    WorldDifference,
    added_records,
    difference,
    table_difference,
)
from ci_gate.grading.state.json_path import found_by
from ci_gate.grading.state.selecting import Condition, selected
from ci_gate.grading.state.showing import bounded
from ci_gate.grading.state.snapshot import Parts, Places
from ci_gate.grading.state.unchanged import uncovered
from ci_gate.grading.state.world import Record, Row, WorldState

__all__ = ["Scene", "nearest_of", "parts_of"]

_NOUNS: Final = {"table": "row", "messages": "message", "payments": "payment"}


def parts_of(checks: Iterable[Check]) -> Parts:
    """Return the parts of a world that checks look at."""
    asked = list(checks)
    subjects = {check.subject for check in asked}
    is_all = "unchanged" in subjects
    named = frozenset(check.name for check in asked if check.subject == "table")
    return Parts(
        tables=None if is_all else named,
        files=is_all,
        messages=is_all or "messages" in subjects,
        payments=is_all or "payments" in subjects,
    )


def nearest_of(name: str, known: Iterable[str]) -> str:
    """Return what a name may have been meant to be, for the end of a sentence."""
    names = sorted(known)
    near = get_close_matches(name, names, 1)
    if near:
        return f" (did you mean '{printable(near[0], limit=80)}'?)"
    shown = printable(", ".join(names), limit=200)
    return f" (there are {shown})" if names else " (there is none)"


class Scene:
    """A world before and after a trial.

    Parameters
    ----------
    before, after : WorldState
    places : Places
        Of the world after, for queries, documents and files.
    """

    def __init__(self, before: WorldState, after: WorldState, places: Places) -> None:
        self._before = before
        self._after = after
        self._places = places

    @cached_property
    def _changes(self) -> WorldDifference:
        return difference(self._before, self._after)

    def failure(self, check: Check) -> Failure | None:
        """Return why a check does not hold, None where it does."""
        try:
            return self._failure(check)
        except UnusableError as error:
            return Failure(found=str(error))

    def _failure(self, check: Check) -> Failure | None:
        if check.subject == "unchanged":
            return self._unchanged(check)
        if check.subject == "file":
            return self._file(check)
        if check.subject == "query":
            return self._query(check)
        assert check.claim is not None
        if check.subject == "document":
            return check.claim.failure(self._document(check))
        return check.claim.failure(self._records(check))

    def _unchanged(self, check: Check) -> Failure | None:
        lines = uncovered(self._changes, check.exempt, self._before, self._after)
        if not lines:
            return None
        more = f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""
        return Failure(
            expected="no other change",
            found=lines[0]() + more,
            lines=bounded(lines, lambda line: line()),
        )

    def _records(self, check: Check) -> Found:
        records = self._table(check) if check.subject == "table" else self._log(check)
        found = list(records)
        values = [record.get(check.field) for record in found] if check.field else ()
        return Found(records=found, values=values, noun=_NOUNS[check.subject])

    def _log(self, check: Check) -> Sequence[Record]:
        before: Sequence[Record] = getattr(self._before, check.subject)
        after: Sequence[Record] = getattr(self._after, check.subject)
        records = added_records(before, after) if check.is_added else after
        return list(selected(check.conditions, records))

    def _table(self, check: Check) -> Iterable[Mapping[str, Any]]:
        table = self._after.table(check.name)
        if table is None:
            near = nearest_of(check.name, self._after.table_names)
            raise UnusableError(f"there is no table '{printable(check.name)}'{near}")
        for column in check.columns:
            if column not in table.columns and not table.is_json:
                near = nearest_of(column, table.columns)
                raise UnusableError(f"there is no field '{printable(column)}'{near}")
        rows = table.rows
        if check.is_added:
            change = table_difference(self._before.table(check.name), table)
            rows = () if change is None else change.added
        return _chosen(check.conditions, table.columns, rows)

    def _document(self, check: Check) -> Found:
        document = self._content(check.name)
        if document is None:
            if "absent" in check.options or "count" in check.options:
                return Found(noun="value")
            raise UnusableError("there is no such document")
        try:
            value = codec.decode(document)
        except ValueError as error:
            raise UnusableError(f"it is not JSON: {printable(error, limit=120)}") from error
        return Found(values=found_by(check.path, value), noun="value")

    def _content(self, path: str) -> bytes | None:
        try:
            return read_bytes(self._places.workdir, path)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise UnusableError(f"it cannot be read: {why_unread(error)}") from error

    def _file(self, check: Check) -> Failure | None:
        content = self._content(check.name)
        if "absent" in check.options:
            return None if content is None else Failure(expected="no file", found="one")
        if content is None:
            return Failure(expected="a file", found="none")
        if "sha256" in check.options:
            return _digest_failure(check.options["sha256"], content)
        wanted = {name: check.options[name] for name in FILE_CLAIMS if name in check.options}
        return _text_failure(wanted, content) if wanted else None

    def _query(self, check: Check) -> Failure | None:
        rows = self._result(check.name)
        if "equals" in check.options:
            expected = expected_rows(check.options)
            return None if rows == expected else Failure(found=difference_of(expected, rows))
        assert check.claim is not None
        names = [f"column {number}" for number in range(1, len(rows[0]) + 1 if rows else 1)]
        claim = check.claim
        if isinstance(claim, RowSet):
            claim = RowSet(columns=tuple(names), rows=claim.rows)
        records = [dict(zip(names, row, strict=True)) for row in rows]
        return claim.failure(Found(records=records))

    def explain(self, query: str) -> None:
        """Raise ``UnusableError`` where the database cannot answer a query, without running it."""
        if self._is_postgres:
            assert self._places.postgres is not None
            postgres.explain(self._places.postgres, query, longest_s=LONGEST_QUERY_S)
        else:
            self._result(f"EXPLAIN {query}")

    @property
    def _is_postgres(self) -> bool:
        return self._places.database is None and self._places.postgres is not None

    def _result(self, query: str) -> list[tuple[Any, ...]]:
        database, url = self._places.database, self._places.postgres
        if database is None and url is not None:
            longest_s, most = LONGEST_QUERY_S, MOST_ROWS
            return rows_of(postgres.query_rows(url, query, most=most, longest_s=longest_s))
        if database is None:
            raise UnusableError("the trial has no database: the task's fixture makes none")
        try:
            with reading(
                database, LONGEST_QUERY_S, is_template=self._places.is_template
            ) as connection:
                return rows_of(connection.execute(query))
        except (sqlite3.Error, sqlite3.Warning, OverflowError) as error:
            raise UnusableError(said(error)) from error


def _chosen(
    conditions: Sequence[Condition], columns: Sequence[str], rows: Iterable[Row]
) -> Iterator[Mapping[str, Any]]:
    """Yield the rows that meet every condition as records; most rows never become one."""
    tests = [(columns.index(one.field), one) for one in conditions if one.field in columns]
    if len(tests) == len(conditions):
        for row in rows:
            if all(one.holds(row[place]) for place, one in tests):
                yield dict(zip(columns, row, strict=True))
        return
    records = (dict(zip(columns, row, strict=True)) for row in rows)
    yield from selected(conditions, records)


def _digest_failure(expected: str, content: bytes) -> Failure | None:
    found = codec.digest_bytes(content).removeprefix(codec.DIGEST_PREFIX)
    return None if found == expected else Failure(expected=expected, found=found)


def _text_failure(wanted: Mapping[str, Any], content: bytes) -> Failure | None:
    try:
        text = content.decode("utf-8")
    except UnicodeError:
        return Failure(found="it is not UTF-8")
    complaint = TextConditions.of(wanted).complaint(text)
    return None if complaint is None else Failure(found=complaint)

"""The grader ``sql``: what a query over the trial's final database must give.

Whatever is wrong with the query or the database fails the grade with a sentence.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from ci_gate.errors import printable
from ci_gate.grading.databases import UnusableError, permit, reading, said
from ci_gate.grading.options import count_problems, unknown_options
from ci_gate.model.suite import GraderSpec, PlannedTrial
from ci_gate.model.trial import Grade, Trajectory
from ci_gate.ports import TrialSandbox

__all__ = [
    "LONGEST_QUERY_S",
    "MOST_ROWS",
    "Row",
    "SqlGrader",
    "build",
    "difference_of",
    "expectation_problems",
    "expected_rows",
    "query_problems",
    "rows_of",
    "validate",
]

MOST_ROWS: Final = 1_000
"""Rows of a result, beyond which it is refused."""

LONGEST_QUERY_S: Final = 5.0
"""Seconds after which a query is ended."""

_MOST_RESULT_CHARACTERS: Final = 4_000_000
_SHOWN: Final = 200
_OPTIONS: Final = ("query", "equals", "empty")
_EXPECTATIONS: Final = ("equals", "empty")

_GRAMMAR_ERRORS: Final = ("syntax error", "incomplete input", "unrecognized token", "one statement")

Row = tuple[Any, ...]


class SqlGrader:
    """Passes when the query gives exactly the expected rows.

    Parameters
    ----------
    name : str
    query : str
        One reading statement.
    expected : list of tuple
        Rows in order.
    longest_s : float
        Seconds after which the query is ended.

    Attributes
    ----------
    blocking : bool
        Always: what is read comes from the agent, and decides how long it takes.
    """

    blocking: Final = True

    def __init__(
        self, name: str, query: str, expected: list[Row], *, longest_s: float = LONGEST_QUERY_S
    ) -> None:
        self._name = name
        self._query = query
        self._expected = expected
        self._longest_s = longest_s

    def grade(self, trial: PlannedTrial, trajectory: Trajectory, sandbox: TrialSandbox) -> Grade:
        """Return whether the database is as asked."""
        del trial, trajectory
        complaint = self._complaint(sandbox.database)
        return Grade(grader=self._name, passed=complaint is None, reason=complaint)

    def _complaint(self, database: Path | None) -> str | None:
        if database is None:
            return "the trial has no database: the task's fixture makes none"
        try:
            found = self._result(database)
        except UnusableError as error:
            return str(error)
        except (sqlite3.Error, sqlite3.Warning, OverflowError) as error:
            return said(error)
        return None if found == self._expected else difference_of(self._expected, found)

    def _result(self, database: Path) -> list[Row]:
        with reading(database, self._longest_s) as connection:
            return rows_of(connection.execute(self._query))


def rows_of(cursor: Iterable[Row]) -> list[Row]:
    """Return the rows of a result; raises ``UnusableError`` where there are too many."""
    rows: list[Row] = []
    characters = 0
    for row in cursor:
        rows.append(row)
        characters += sum(len(value) for value in row if isinstance(value, str | bytes))
        if len(rows) > MOST_ROWS or characters > _MOST_RESULT_CHARACTERS:
            raise UnusableError(
                f"the query gives more than {MOST_ROWS} rows"
                f" or {_MOST_RESULT_CHARACTERS} characters"
            )
    return rows


def difference_of(expected: list[Row], found: list[Row]) -> str:
    """Return both results in one line."""
    if _is_scalar(expected) and _is_scalar(found):
        return f"expected {_shown(expected[0][0])}, found {_shown(found[0][0])}"
    return f"expected {_shown_rows(expected)}, found {_shown_rows(found)}"


def _is_scalar(rows: list[Row]) -> bool:
    return len(rows) == 1 and len(rows[0]) == 1


def _shown_rows(rows: list[Row]) -> str:
    if not rows:
        return "no rows"
    head = ", ".join(f"({', '.join(map(_shown, row))})" for row in rows[:10])
    count = "1 row" if len(rows) == 1 else f"{len(rows)} rows"
    return f"{count}: {printable(head, limit=_SHOWN)}"


def _shown(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return f'"{printable(value, limit=60)}"'
    return printable(repr(value), limit=60)


def validate(spec: GraderSpec) -> list[str]:
    """Return what is wrong with the options, empty where nothing is."""
    options = spec.options
    return [
        *unknown_options(options, _OPTIONS),
        *query_problems(options.get("query")),
        *count_problems(options, _EXPECTATIONS, most=1),
        *expectation_problems(options),
    ]


def query_problems(query: Any, *, is_sqlite: bool = True) -> Iterator[str]:
    """Yield what is wrong with a query, whose grammar is SQLite's or perhaps another's."""
    if not isinstance(query, str) or not query.strip():
        yield "option 'query' must be an SQL query"
        return
    # An empty database knows no table, but it knows the grammar.
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.set_authorizer(permit)
        try:
            connection.execute(f"EXPLAIN {query}")
        except (sqlite3.Error, sqlite3.Warning) as error:
            if is_sqlite and any(mistake in str(error) for mistake in _GRAMMAR_ERRORS):
                yield f"option 'query' is no SQL query: {printable(error)}"
            elif getattr(error, "sqlite_errorname", "") == "SQLITE_AUTH":
                yield "option 'query' must only read: begin it with SELECT or WITH"


def expectation_problems(options: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with ``equals`` and ``empty``."""
    if "empty" in options and options["empty"] is not True:
        yield "option 'empty' can only be true; give the expected rows as 'equals'"
    if "equals" in options and not _is_result(options["equals"]):
        yield (
            "option 'equals' must be a number, text or truth value, a list of them (one a row),"
            " or a list of rows"
        )


def _is_result(value: Any) -> bool:
    if not isinstance(value, list):
        return _is_cell(value)
    rows = [row for row in value if isinstance(row, list)]
    if not rows:
        return all(map(_is_cell, value))
    return len(rows) == len(value) and all(row and all(map(_is_cell, row)) for row in rows)


def _is_cell(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float)


def build(spec: GraderSpec) -> SqlGrader:
    """Return the grader of options that ``validate`` has passed."""
    return SqlGrader(spec.name, spec.options["query"], expected_rows(spec.options))


def expected_rows(options: Mapping[str, Any]) -> list[Row]:
    """Return the rows that ``equals`` means; none where it is absent."""
    value = options.get("equals", [])
    rows = value if isinstance(value, list) else [value]
    return [tuple(row) if isinstance(row, list) else (row,) for row in rows]

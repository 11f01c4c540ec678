"""The grader of databases: exact results, and hostile files that neither fool nor hang it."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ci_gate.grading.sql import MOST_ROWS, SqlGrader, build, validate
from ci_gate.model.trial import Grade, Trajectory
from tests.trials import BareWorld, spec_of, trial_of

SHOP = """
CREATE TABLE refunds (id INTEGER PRIMARY KEY, order_id TEXT, cents INTEGER, note TEXT);
INSERT INTO refunds VALUES (1, 'R-1', 4500, NULL), (2, 'R-2', 990, 'late');
CREATE TABLE sizes (x REAL); INSERT INTO sizes VALUES (0.5);
"""


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A database with two refunds."""
    path = tmp_path / "world.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(SHOP)
    return path


def graded(database: Path | None, query: str, **expected: Any) -> Grade:
    spec = spec_of("sql", query=query, **(expected or {"empty": True}))
    return build(spec).grade(trial_of(), Trajectory(), BareWorld(database=database))


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT count(*) FROM refunds", {"equals": 2}),
        ("SELECT order_id FROM refunds WHERE id = 1", {"equals": "R-1"}),
        ("SELECT x FROM sizes", {"equals": 0.5}),
        ("SELECT sum(cents) FROM refunds", {"equals": 5490.0}),
        ("SELECT count(*) > 1 FROM refunds", {"equals": True}),
        ("SELECT note FROM refunds WHERE id = 1", {"equals": None}),
        (
            "SELECT order_id, cents FROM refunds ORDER BY id",
            {"equals": [["R-1", 4500], ["R-2", 990]]},
        ),
        ("SELECT cents FROM refunds ORDER BY id", {"equals": [4500, 990]}),
        ("SELECT id FROM refunds WHERE cents < 0", {"empty": True}),
        ("SELECT id FROM refunds WHERE cents < 0", {"equals": []}),
        ("WITH r AS (SELECT * FROM refunds) SELECT count(*) FROM r", {"equals": 2}),
        ("VALUES (1, 'a')", {"equals": [[1, "a"]]}),
        ("SELECT name FROM sqlite_master WHERE name = 'sizes'", {"equals": "sizes"}),
        ("PRAGMA integrity_check", {"equals": "ok"}),
    ],
)
def test_a_result_that_is_as_expected_passes(
    database: Path, query: str, expected: dict[str, Any]
) -> None:
    """A scalar, rows, a column or nothing: what the query gives must be just that."""
    assert validate(spec_of("sql", query=query, **expected)) == []
    assert graded(database, query, **expected) == Grade(grader="sql", passed=True)


@pytest.mark.parametrize(
    ("query", "expected", "reason"),
    [
        ("SELECT count(*) FROM refunds", {"equals": 1}, "expected 1, found 2"),
        ("SELECT note FROM refunds WHERE id=1", {"equals": "x"}, 'expected "x", found NULL'),
        ("SELECT '4500'", {"equals": 4500}, 'expected 4500, found "4500"'),
        (
            "SELECT order_id FROM refunds ORDER BY id",
            {"equals": ["R-2", "R-1"]},
            'expected 2 rows: ("R-2"), ("R-1"), found 2 rows: ("R-1"), ("R-2")',
        ),
        (
            "SELECT id, cents FROM refunds WHERE id = 2",
            {"empty": True},
            "expected no rows, found 1 row: (2, 990)",
        ),
        (
            "SELECT id FROM refunds WHERE id = 9",
            {"equals": 1},
            "expected 1 row: (1), found no rows",
        ),
        (
            "SELECT missing FROM refunds",
            {},
            "the query cannot be answered: no such column: missing",
        ),
        ("SELECT * FROM paid", {}, "the query cannot be answered: no such table: paid"),
    ],
)
def test_reasons_show_expected_and_found(
    database: Path, query: str, expected: dict[str, Any], reason: str
) -> None:
    """A reason has both sides, with types and order visible."""
    grade = graded(database, query, **expected)
    assert (grade.passed, grade.reason) == (False, reason)


def test_reasons_are_bounded_and_harmless(database: Path) -> None:
    """Neither many rows nor hostile text can fill or forge the report."""
    with closing(sqlite3.connect(database)) as connection, connection:
        rows = [(f"\n::error::{'x' * 5000}",)] * 500
        connection.executemany("INSERT INTO refunds (order_id) VALUES (?)", rows)
    reason = graded(database, "SELECT * FROM refunds").reason
    assert reason is not None
    assert "\n" not in reason
    assert len(reason) < 400


@pytest.mark.parametrize(
    "query",
    [
        "DELETE FROM refunds",
        "UPDATE refunds SET cents = 0",
        "CREATE TABLE t (x)",
        "ATTACH 'other.db' AS other",
        "PRAGMA journal_mode = WAL",
        "PRAGMA query_only = OFF",
        "PRAGMA writable_schema = ON",
        "SELECT load_extension('evil.so')",
        "SELECT fts3_tokenizer('simple')",
        "VACUUM INTO 'copy.db'",
        "BEGIN",
    ],
)
def test_a_query_can_only_read(database: Path, query: str) -> None:
    """A query that writes, reaches another file or loads code fails and changes nothing."""
    before = database.read_bytes()
    grade = graded(database, query)
    assert not grade.passed
    assert grade.reason is not None
    assert "cannot be answered" in grade.reason
    assert database.read_bytes() == before
    assert [entry.name for entry in database.parent.iterdir()] == ["world.db"]


ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n"


def test_an_endless_query_is_ended(database: Path) -> None:
    """A query that would run for ever fails after its time, with the reason."""
    grader = SqlGrader("sql", ENDLESS, [(1,)], longest_s=0.1)
    start = time.monotonic()
    grade = grader.grade(trial_of(), Trajectory(), BareWorld(database=database))
    assert grade.reason == "the query was ended because it ran too long"
    assert time.monotonic() - start < 3.0


def test_a_table_replaced_by_an_endless_view_is_ended(database: Path) -> None:
    """The agent may rewrite the schema; the query on it ends all the same."""
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("DROP TABLE refunds")
        connection.execute(f"CREATE VIEW refunds AS {ENDLESS}")
    grader = SqlGrader("sql", "SELECT * FROM refunds", [], longest_s=0.1)
    grade = grader.grade(trial_of(), Trajectory(), BareWorld(database=database))
    assert grade.reason == "the query was ended because it ran too long"


def test_too_many_rows_are_refused(database: Path) -> None:
    """Results are read up to a number of rows, and up to a number of characters."""
    counting = (
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT {}) SELECT x FROM n"
    )
    expected = list(range(1, MOST_ROWS + 1))
    assert graded(database, counting.format(MOST_ROWS), equals=expected).passed
    more = graded(database, counting.format(MOST_ROWS + 1), equals=expected)
    wide = graded(
        database, counting.format(900).replace("SELECT x FROM", "SELECT zeroblob(90000) FROM")
    )
    for grade in (more, wide):
        assert grade.reason is not None
        assert "more than 1000 rows or 4000000 characters" in grade.reason


def test_huge_values_are_refused(database: Path) -> None:
    """A single value cannot take the memory of the gate."""
    reason = graded(database, "SELECT length(zeroblob(2000000000))").reason
    assert reason == "the query cannot be answered: string or blob too big"


def test_a_trial_without_a_database_fails(tmp_path: Path) -> None:
    """A task without a fixture has nothing to ask, and an agent may delete what it had."""
    assert graded(None, "SELECT 1").reason is not None
    assert graded(tmp_path / "world.db", "SELECT 1").reason == "the database is gone"


def _as_link(path: Path) -> None:
    other = path.with_name("other.db")
    path.rename(other)
    path.symlink_to(other)


def _as_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _as_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _with_pipe(suffix: str) -> Any:
    return lambda path: os.mkfifo(f"{path}{suffix}")


@pytest.mark.parametrize(
    "change", [_as_link, _as_pipe, _as_folder, *map(_with_pipe, ("-journal", "-wal", "-shm"))]
)
def test_only_plain_files_are_opened(database: Path, change: Any) -> None:
    """A link, folder or pipe in place of the database, or beside it, fails without waiting."""
    change(database)
    reason = graded(database, "SELECT 1", equals=1).reason
    assert reason is not None
    assert "is not a regular file any more" in reason


@pytest.mark.parametrize("position", [0, 16, 100, 4096, 4200])
def test_corrupt_files_fail_with_a_sentence(database: Path, position: int) -> None:
    """Bytes overwritten anywhere give a grade and no exception."""
    content = bytearray(database.read_bytes())
    content[position : position + 64] = os.urandom(64)
    database.write_bytes(content)
    grade = graded(database, "SELECT count(*), sum(cents) FROM refunds", equals=[[99, 99]])
    assert not grade.passed
    assert grade.reason


def test_text_that_is_not_utf8_fails_with_a_sentence(database: Path) -> None:
    """A text column of raw bytes is reported."""
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE refunds SET note = CAST(x'ff' AS TEXT)")
    reason = graded(database, "SELECT note FROM refunds", equals="x").reason
    assert reason is not None
    assert "UTF-8" in reason


def test_a_name_with_uri_characters_is_a_path(tmp_path: Path) -> None:
    """Question marks and percent signs in a path are no options of the connection."""
    folder = tmp_path / "a?mode=rwc%41 b"
    folder.mkdir()
    with closing(sqlite3.connect(folder / "world.db")) as connection:
        connection.executescript(SHOP)
    assert graded(folder / "world.db", "SELECT count(*) FROM refunds", equals=2).passed


KILLED = """
import os, sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
connection.execute("PRAGMA journal_mode=" + sys.argv[2])
connection.execute("INSERT INTO refunds VALUES (3, 'R-3', 1, NULL)")
connection.commit()
connection.execute("PRAGMA cache_size=1")
connection.executemany("INSERT INTO refunds (note) VALUES (?)", [("x" * 3000,)] * 50)
os._exit(0)
"""


def _killed_in_transaction(database: Path, journal: str) -> None:
    subprocess.run([sys.executable, "-c", KILLED, os.fspath(database), journal], check=True)


def test_what_was_committed_counts_in_wal_mode(database: Path) -> None:
    """An agent killed in a transaction leaves what it had committed before."""
    _killed_in_transaction(database, "wal")
    assert graded(database, "SELECT count(*) FROM refunds", equals=3).passed


def test_a_half_written_database_is_no_result(database: Path) -> None:
    """An agent that dies while it writes leaves pages that only a writer could repair."""
    _killed_in_transaction(database, "delete")
    reason = graded(database, "SELECT count(*) FROM refunds", equals=3).reason
    assert reason == "the agent left the database in the middle of a transaction"


def test_a_locked_database_is_said(database: Path) -> None:
    """A lock that outlives the trial fails the grade after a short wait."""
    with closing(sqlite3.connect(database)) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        reason = graded(database, "SELECT count(*) FROM refunds", equals=2).reason
    assert reason == "the agent left the database locked"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"equals": 1}, "option 'query' must be an SQL query"),
        ({"query": "  ", "equals": 1}, "option 'query' must be an SQL query"),
        ({"query": 5, "equals": 1}, "option 'query' must be an SQL query"),
        ({"query": "SELEC 1", "equals": 1}, "option 'query' is no SQL query: near"),
        ({"query": "SELECT (1", "equals": 1}, "option 'query' is no SQL query: incomplete input"),
        ({"query": "SELECT 1; SELECT 2", "equals": 1}, "option 'query' is no SQL query"),
        ({"query": "SELECT 1"}, "nothing is expected: give 'equals' or 'empty'"),
        ({"query": "SELECT 1", "equals": 1, "empty": True}, "'equals' and 'empty' exclude"),
        ({"query": "SELECT 1", "empty": False}, "option 'empty' can only be true"),
        ({"query": "SELECT 1", "equals": {"a": 1}}, "option 'equals' must be a number, text"),
        ({"query": "SELECT 1", "equals": [[1], 2]}, "option 'equals' must be a number, text"),
        ({"query": "SELECT 1", "equals": [[[1]]]}, "option 'equals' must be a number, text"),
        ({"query": "SELECT 1", "equals": [[]]}, "option 'equals' must be a number, text"),
        ({"query": "SELECT 1", "equal": 1}, "unknown option 'equal'; did you mean 'equals'?"),
        ({"query": "PRAGMA user_version = 5", "empty": True}, "must only read"),
        ({"query": "ATTACH 'x' AS y", "empty": True}, "must only read"),
    ],
)
def test_mistakes_are_named_when_the_suite_is_loaded(options: dict[str, Any], said: str) -> None:
    """A query that is no query, or an expectation that is none, is refused before any trial."""
    problems = validate(spec_of("sql", **options))
    assert any(said in problem for problem in problems), problems

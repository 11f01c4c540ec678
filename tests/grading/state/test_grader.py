"""The grader of states: the canonical refund, every subject and claim, and what a failure shows."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import tomli

from ci_gate.grading.state.grader import LONGEST_DETAIL, InitialStates, build, validate
from ci_gate.model.trial import Grade, Trajectory
from tests.trials import BareWorld, spec_of, trial_of

SHOP = """
PRAGMA synchronous=OFF;
CREATE TABLE orders (id INTEGER PRIMARY KEY, status TEXT, cents INTEGER, note TEXT);
INSERT INTO orders VALUES (4811, 'paid', 990, NULL), (4812, 'paid', 4500, 'gift');
CREATE TABLE refunds (id INTEGER PRIMARY KEY, order_id INTEGER, cents INTEGER);
INSERT INTO refunds VALUES (1, 4000, 100);
CREATE TABLE ledger (order_id INTEGER, cents INTEGER, rate REAL);
INSERT INTO ledger VALUES (4000, -100, 0.1), (4811, 990, 0.2);
"""

# The canonical case, as a task file has it.
CANONICAL = """
type = "state"
checks = [
  { table = "refunds", where = { order_id = 4812 }, count = 1 },
  { table = "refunds", where = { order_id = 4812 }, field = "cents", equals = 4500 },
  { table = "orders", where = { id = 4812 }, field = "status", equals = "refunded" },
  { table = "ledger", where = { order_id = 4812 }, sum = "cents", equals = -4500 },
  { messages = { template = "refund" }, count = 1 },
  { unchanged = { except = ["refunds[order_id=4812]", "ledger[order_id=4812]",
                           "orders[id=4812].status", "messages[template=refund]"] } },
]
"""
REFUND = """
INSERT INTO refunds (order_id, cents) VALUES (4812, 4500);
INSERT INTO ledger VALUES (4812, -4500, NULL);
UPDATE orders SET status = 'refunded' WHERE id = 4812;
"""
MAIL = {"to": "ada@example.org", "template": "refund", "body": "45.00"}

Grades = Callable[..., Grade]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The state that trials start in."""
    folder = tmp_path_factory.mktemp("shop")
    with closing(sqlite3.connect(folder / "world.db")) as connection:
        connection.executescript(SHOP)
    (folder / "work").mkdir()
    (folder / "work" / "policy.txt").write_text("30 days")
    (folder / "work" / "empty").mkdir()
    return folder


@pytest.fixture
def grades(shop: Path, tmp_path: Path) -> Grades:
    """Grade a world in which an agent ran SQL, sent messages and wrote files."""
    folder = tmp_path / "trial"
    shutil.copytree(shop, folder)
    places = {"folder": shop, "database": shop / "world.db", "workdir": shop / "work"}
    states = InitialStates(lambda trial: {name: str(place) for name, place in places.items()})
    world = BareWorld(folder=folder, database=folder / "world.db", workdir=folder / "work")

    def graded(
        checks: list[dict[str, Any]],
        *,
        sql: str = "",
        mails: list[dict[str, Any]] | None = None,
        files: dict[str, str] | None = None,
        **beside: Any,
    ) -> Grade:
        with closing(sqlite3.connect(folder / "world.db")) as connection:
            connection.executescript(f"PRAGMA synchronous=OFF; {sql}")
        lines = [json.dumps(mail) for mail in mails or ()]
        (folder / "outbox.jsonl").write_text("\n".join(lines))
        for name, content in {**(files or {})}.items():
            (folder / "work" / name).write_text(content)
        for name, content in beside.items():
            (folder / f"{name}.json").write_text(json.dumps(content))
        spec = spec_of("state", checks=checks)
        assert validate(spec) == []
        return build(spec, states=states).grade(trial_of(), Trajectory(), world)

    return graded


def reason_of(grade: Grade) -> str:
    assert not grade.passed
    assert grade.reason is not None
    return grade.reason


def detail_of(grade: Grade) -> list[str]:
    assert isinstance(grade.detail, str)
    return grade.detail.splitlines()


def canonical() -> list[dict[str, Any]]:
    checks: list[dict[str, Any]] = tomli.loads(CANONICAL)["checks"]
    return checks


def test_the_refund_as_it_should_be_passes(grades: Grades) -> None:
    """One refund of the approved amount, the ledger, the status, one mail, and nothing else."""
    assert grades(canonical(), sql=REFUND, mails=[MAIL]) == Grade(
        grader="state", passed=True, score=1.0
    )


SECOND = "INSERT INTO refunds (order_id, cents) VALUES (4812, 4500);"


@pytest.mark.parametrize(
    ("sql", "mails", "failing", "first"),
    [
        (
            REFUND + SECOND,
            [MAIL],
            1,
            "check 1, refunds[order_id=4812] count: expected 1 row, found 2 rows",
        ),
        (
            REFUND.replace("4500", "5400"),
            [MAIL],
            2,
            (
                "check 2, refunds[order_id=4812].cents: expected 4500, found 5400; 2 of 6 checks"
                " do not hold"
            ),
        ),
        (
            "",
            [MAIL],
            4,
            (
                "check 1, refunds[order_id=4812] count: expected 1 row, found no rows"
                "; 4 of 6 checks do not hold"
            ),
        ),
        (
            f"{REFUND} UPDATE orders SET note = 'vip' WHERE id = 4811;",
            [MAIL],
            1,
            (
                "check 6, nothing else changed: expected no other change,"
                " found - orders[id=4811].note: null (and 1 more)"
            ),
        ),
        (
            f"{REFUND} UPDATE orders SET note = NULL WHERE id = 4812;",
            [MAIL],
            1,
            (
                "check 6, nothing else changed: expected no other change,"
                ' found - orders[id=4812].note: "gift" (and 1 more)'
            ),
        ),
        (
            (
                f"{REFUND} UPDATE refunds SET order_id = 4812, cents = 4500 WHERE id = 1;"
                " DELETE FROM refunds WHERE id = 2;"
            ),
            [MAIL],
            1,
            (
                "check 6, nothing else changed: expected no other change,"
                " found - refunds[id=1].order_id: 4000 (and 3 more)"
            ),
        ),
        (
            REFUND,
            [MAIL, MAIL],
            1,
            'check 5, messages[template="refund"] count: expected 1 message, found 2 messages',
        ),
        (
            REFUND,
            [MAIL, {**MAIL, "template": "survey"}],
            1,
            (
                "check 6, nothing else changed: expected no other change, found + message:"
                ' to="ada@example.org", template="survey", body="45.00"'
            ),
        ),
    ],
    ids=[
        "two refunds",
        "wrong amount",
        "right answer without refund",
        "an unrelated order is edited",
        "another field of the order is edited",
        "an unrelated refund is taken for it",
        "a second mail",
        "a mail of another template",
    ],
)
def test_what_only_looks_like_the_refund_is_caught(
    grades: Grades, sql: str, mails: list[dict[str, Any]], failing: int, first: str
) -> None:
    """Each way to get it wrong fails, says which check, and counts the others."""
    grade = grades(canonical(), sql=sql, mails=mails)
    assert reason_of(grade) == first
    assert grade.score == pytest.approx(1 - failing / 6)


def test_the_difference_shows_the_offending_rows(grades: Grades) -> None:
    """The detail has each failed check with its rows, what was there and what is there now."""
    sql = REFUND + SECOND + "UPDATE orders SET cents = 1 WHERE id = 4811;"
    assert detail_of(grades(canonical(), sql=sql, mails=[MAIL])) == [
        "check 1, refunds[order_id=4812] count: expected 1 row, found 2 rows",
        "+ id=2, order_id=4812, cents=4500",
        "+ id=3, order_id=4812, cents=4500",
        (
            "check 6, nothing else changed: expected no other change,"
            " found - orders[id=4811].cents: 990 (and 1 more)"
        ),
        "- orders[id=4811].cents: 990",
        "+ orders[id=4811].cents: 1",
    ]


HELD: list[dict[str, Any]] = [
    {"table": "orders", "count": 2},
    {"table": "orders", "where": {"id": [4812, 1]}, "count": {"ge": 1, "lt": 2}},
    {"table": "orders", "where": {"cents": {"gt": 990}}, "count": 1},
    {"table": "orders", "where": {"note": {"null": True}}, "count": 1},
    {"table": "orders", "where": {"status": {"ne": "paid"}}, "absent": True},
    {"table": "orders", "field": "status", "equals": "paid"},
    {"table": "orders", "where": {"id": 4812}, "field": "note", "contains": "if"},
    {"table": "orders", "where": {"id": 4812}, "field": "note", "matches": "^g.ft$"},
    {"table": "orders", "where": {"id": 4811}, "field": "note", "equals": None},
    {"table": "orders", "where": {"id": 4811}, "exists": True},
    {"table": "orders", "since": "start", "absent": True},
    {"table": "orders", "columns": ["cents", "id"], "rows": [[4500, 4812], [990, 4811]]},
    {"table": "ledger", "sum": "rate", "equals": 0.3},
    {"table": "ledger", "sum": "cents", "equals": {"le": 890, "ge": 890}},
    {"query": "SELECT id FROM orders ORDER BY id", "equals": [4811, 4812]},
    {"query": "SELECT id FROM orders ORDER BY id", "rows": [[4812], [4811]]},
    {"query": "SELECT id FROM orders", "count": 2},
    {"query": "SELECT id FROM orders WHERE id < 0", "absent": True},
    {"document": "a.json", "path": "$.items[*].n", "count": 2},
    {"document": "a.json", "path": "$.items[-1]['n']", "equals": 2},
    {"document": "a.json", "path": "$.tags", "contains": "x"},
    {"document": "a.json", "path": "$.ok", "equals": True},
    {"document": "a.json", "path": "$.missing", "absent": True},
    {"document": "none.json", "absent": True},
    {"file": "policy.txt", "exists": True},
    {"file": "policy.txt", "equals": "30 days"},
    {"file": "policy.txt", "not_contains": "31"},
    {"file": "none.txt", "absent": True},
    {
        "file": "policy.txt",
        "sha256": "ffd7280513ce285e6d9dc8d0b7078c4f39c8fe0e69b0d0a87d8af2965e445d7a",
    },
    {"messages": True, "count": 2},
    {"messages": {"to": "a"}, "field": "n", "equals": 1},
    {"messages": True, "sum": "n", "equals": 3},
    {"payments": True, "absent": True},
    {"table": "carts", "where": {"paid": True}, "field": "items", "equals": ["tea"]},
    {"unchanged": {"except": ["./a.json", "messages", "carts"]}},
]


def test_every_subject_and_claim_can_hold(grades: Grades) -> None:
    """What is so passes, in each way to say it."""
    document = {"items": [{"n": 1}, {"n": 2}], "tags": ["x"], "ok": True}
    grade = grades(
        HELD,
        files={"a.json": json.dumps(document)},
        mails=[{"to": "a", "n": 1}, {"to": "b", "n": 2}],
        tables={"carts": [{"id": 1, "paid": True, "items": ["tea"]}]},
    )
    assert grade == Grade(grader="state", passed=True, score=1.0)


@pytest.mark.parametrize(
    ("check", "reason"),
    [
        (
            {"table": "orders", "field": "status", "equals": "x"},
            'orders.status: expected "x", found "paid" and 1 more',
        ),
        (
            {"table": "orders", "where": {"id": 1}, "field": "status", "equals": "x"},
            'orders[id=1].status: expected "x", found no rows',
        ),
        (
            {"table": "orders", "where": {"cents": {"lt": 0}}, "exists": True},
            "orders[cents < 0] exists: expected at least one row, found no rows",
        ),
        (
            {"table": "order", "count": 1},
            "order count: there is no table 'order' (did you mean 'orders'?)",
        ),
        (
            {"table": "orders", "where": {"idd": 1}, "count": 1},
            "orders[idd=1] count: there is no field 'idd' (did you mean 'id'?)",
        ),
        (
            {"table": "orders", "sum": "status", "equals": 1},
            'orders.status sum: expected numbers, found "paid", which is no number',
        ),
        (
            {"table": "ledger", "sum": "rate", "equals": "0.31"},
            "ledger.rate sum: expected 0.31, found 0.3",
        ),
        (
            {"table": "refunds", "columns": ["cents"], "rows": [[1], [2]]},
            "refunds rows: expected 2 rows, found 1 row: 2 missing, 1 not expected",
        ),
        (
            {"query": "SELECT 1", "equals": 2},
            "query SELECT 1: expected 2, found 1",
        ),
        (
            {"query": "SELECT x FROM orders", "count": 2},
            "query SELECT x FROM orders count: the query cannot be answered: no such column: x",
        ),
        (
            {"document": "policy.txt", "exists": True},
            "document policy.txt exists: it is not JSON: ",
        ),
        ({"document": "x.json", "equals": 1}, "document x.json: there is no such document"),
        ({"document": "n.json", "equals": True}, "document n.json: expected true, found 1"),
        ({"file": "policy.txt", "absent": True}, "file policy.txt: expected no file, found one"),
        (
            {"file": "policy.txt", "contains": "60"},
            'file policy.txt: expected a text with "60", found "30 days"',
        ),
        (
            {"messages": {"to": "a"}, "exists": True},
            'messages[to="a"] exists: expected at least one message, found no messages',
        ),
    ],
)
def test_reasons_name_what_was_expected_and_found(
    grades: Grades, check: dict[str, Any], reason: str
) -> None:
    """A failed check says in one line what it is about and both sides."""
    grade = grades([check], files={"n.json": "1"})
    assert reason_of(grade).startswith(f"check 1, {reason}")


@pytest.mark.parametrize(
    ("except_", "sql", "files", "lines"),
    [
        (["refunds"], "DELETE FROM refunds", {}, []),
        (["refunds[id=1]"], "DELETE FROM refunds", {}, []),
        (["refunds[id=2]"], "DELETE FROM refunds", {},
         ["- refunds: id=1, order_id=4000, cents=100"]),
        (["orders[].status", "orders[id=4811].cents"], "UPDATE orders SET status='x', cents=0", {},
         ["- orders[id=4812].cents: 4500", "+ orders[id=4812].cents: 0"]),
        (["ledger[order_id=4000].rate"], "UPDATE ledger SET rate = 9", {},
         ["- ledger: order_id=4811, cents=990, rate=0.2",
          "+ ledger: order_id=4811, cents=990, rate=9.0"]),
        (["or*[]", "ref*[]"], "UPDATE orders SET cents=0; DELETE FROM refunds", {}, []),
        ([], "CREATE TABLE extra (x)", {}, ["+ table extra (x)"]),
        ([], "DROP TABLE refunds", {}, ["- table refunds (id, order_id, cents)",
                                        "- refunds: id=1, order_id=4000, cents=100"]),
        (["./policy.txt"], "", {"policy.txt": "60 days"}, []),
        (["*.md"], "", {"a.md": "", "b.txt": ""}, ["+ file b.txt (0 bytes, sha256 e3b0c44298fc)"]),
        (["empty/"], "", {"empty/new.txt": "x"}, []),
        (['"orders"[id=4812]'], "UPDATE orders SET note = 'x' WHERE id = 4812", {}, []),
    ],
)  # fmt: skip
def test_nothing_else_may_change(
    grades: Grades, except_: list[str], sql: str, files: dict[str, str], lines: list[str]
) -> None:
    """Tables, rows, fields and paths can be exempt; every other change is a line of the detail."""
    grade = grades([{"unchanged": {"except": except_}}], sql=sql, files=files)
    assert grade.passed == (not lines)
    assert lines == ([] if grade.passed else detail_of(grade)[1:])


def test_a_detail_is_bounded_and_harmless(grades: Grades) -> None:
    """Neither many rows nor hostile values fill or forge what is shown."""
    sql = "INSERT INTO orders (status) VALUES " + ",".join(["(char(10) || '::error::```')"] * 100)
    wide = {"query": "SELECT hex(zeroblob(500)) FROM orders", "count": 0}
    grade = grades([{"table": "orders", "count": 0}, wide], sql=sql)
    lines = detail_of(grade)
    assert lines[21] == "  ... and 82 more"
    assert lines[-1].endswith("lines more")
    assert "\n::" not in str(grade.detail)
    assert len(str(grade.detail)) <= LONGEST_DETAIL


def test_a_world_that_cannot_be_read_fails_with_its_reason(shop: Path, tmp_path: Path) -> None:
    """What the agent left in a state that nobody can read is its failure, and no crash."""
    database = tmp_path / "world.db"
    database.write_bytes(b"no database" * 1000)
    world = BareWorld(folder=tmp_path, database=database)
    states = InitialStates(lambda trial: {"database": str(shop / "world.db")})
    grader = build(spec_of("state", checks=[{"unchanged": True}]), states=states)
    assert grader.grade(trial_of(), Trajectory(), world) == Grade(
        grader="state",
        passed=False,
        reason="the database cannot be read: file is not a database",
        score=0.0,
    )


def test_the_state_before_is_read_once(shop: Path) -> None:
    """A thousand trials of a fixture read its initial state one time."""
    states = InitialStates(lambda trial: {"database": str(shop / "world.db")})
    parts = build(spec_of("state", checks=[{"unchanged": True}]), states=states)._parts
    assert states.of(trial_of(trial=0), parts) is states.of(trial_of(trial=1), parts)


@pytest.mark.parametrize(
    ("check", "problem"),
    [
        (3, "must be a table, found 3"),
        ({}, "it is about nothing: give one of table, messages, payments, query, document"),
        ({"tabel": "x"}, "unknown option 'tabel'; did you mean 'table'?"),
        ({"table": "x", "file": "y"}, "'table' and 'file' exclude each other"),
        (
            {"table": "x", "feild": "y", "equals": 1},
            "unknown option 'feild'; did you mean 'field'?",
        ),
        ({"table": "x"}, "nothing is expected: give 'count' or 'equals'"),
        ({"table": "x", "count": 1, "absent": True}, "'count' and 'absent' exclude each other"),
        ({"table": "x", "equals": 1}, "of which 'field' is missing"),
        ({"table": "x", "field": "y", "count": 1}, "'field' needs one of 'equals'"),
        ({"table": "x", "sum": "y"}, "of 'sum' the number is missing: give 'equals'"),
        ({"table": "x", "sum": "y", "equals": "z"}, "'equals' of 'sum' must be a number"),
        ({"table": "x", "count": -1}, "'count' must be a whole number or bounds"),
        ({"table": "x", "count": {"at": 1}}, "count: unknown option 'at'"),
        ({"table": "x", "exists": False}, "'exists' can only be true; the opposite is"),
        ({"table": "x", "where": 1, "count": 1}, "'where' must be a table of fields, found 1"),
        ({"table": "x", "where": {"a": {"gte": 1}}, "count": 1}, "where.a: unknown option 'gte'"),
        ({"table": "x", "where": {"a": []}, "count": 1}, "where.a: an empty list matches nothing"),
        ({"table": "x", "rows": [[1]]}, "'rows' needs 'columns'"),
        ({"table": "x", "columns": ["a"], "rows": [[1, 2]]}, "each of 'rows' must have 1 values"),
        ({"table": "x", "since": "now", "count": 1}, "'since' must be 'start' or 'ever'"),
        ({"query": "CREATE TABLE x (y)", "count": 0}, "option 'query' must only read"),
        ({"document": "../x", "exists": True}, "'document' must stay inside the working directory"),
        ({"document": "x", "path": "a.b", "exists": True}, "'path': 'a.b' is no JSON path"),
        ({"document": "x", "path": "$..a", "exists": True}, "'path': '$..a' is no JSON path from"),
        ({"file": "/x", "exists": True}, "'file' must stay inside the working directory"),
        ({"file": "x", "sha256": "A"}, "'sha256' must be 64 hexadecimal digits"),
        ({"file": "x", "matches": "("}, "option 'matches' is no regular expression"),
        ({"messages": 3, "count": 1}, "'messages' must be a table of fields, found 3"),
        ({"unchanged": False}, "'unchanged' must be true or { except = [...] }, found false"),
        ({"unchanged": {"exept": []}}, "unknown option 'exept'; did you mean 'except'?"),
        ({"unchanged": {"except": ["a[b"]}}, "'except': 'a[b' is no exception: write table"),
        ({"unchanged": {"except": ["a[b]"]}}, "'except': 'a[b]': between the brackets stand"),
        ({"unchanged": {"except": ["../x"]}}, "'except': '../x' does not stay inside"),
    ],
)
def test_mistakes_are_named_with_the_number_of_the_check(check: Any, problem: str) -> None:
    """What a task file gets wrong is said at load, of the check that has it."""
    good = {"unchanged": True}
    (found,) = validate(spec_of("state", checks=[good, check]))
    assert found.startswith(f"check 2: {problem}")


def test_checks_are_a_list() -> None:
    """Without checks nothing is judged."""
    assert validate(spec_of("state", checks=[])) == [
        "option 'checks' must be a list of tables, at least one"
    ]

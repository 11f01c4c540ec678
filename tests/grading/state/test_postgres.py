"""What is read of a PostgreSQL database: values by their types, and whole worlds from a server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from ci_gate.grading.databases import UnusableError
from ci_gate.grading.state import snapshot as snapshots
from ci_gate.grading.state.checks import check_of
from ci_gate.grading.state.grader import InitialStates, build, validate
from ci_gate.grading.state.postgres import query_rows, value_of
from ci_gate.grading.state.snapshot import Parts, Places, snapshot
from ci_gate.grading.state.starting import mistakes_in
from ci_gate.grading.state.world import Table
from ci_gate.model.trial import Grade, Trajectory
from ci_gate.sandbox.postgres import SERVER, TrialDatabases
from ci_gate.sandbox.world import World
from ci_gate.sandbox.world_factory import WorldFactory
from tests.sandbox.postgres_servers import running_server
from tests.trials import spec_of, task_of, trial_of

SCRIPT = """
CREATE TABLE orders (id int PRIMARY KEY, total numeric(12, 2), status text,
  twice numeric GENERATED ALWAYS AS (total * 2) STORED);
INSERT INTO orders VALUES (4812, 45.00, 'paid'), (4813, 0.10, 'paid');
CREATE SCHEMA shop;
CREATE TABLE shop.lines (order_id int, pos int, at timestamptz, tags jsonb, raw bytea,
  PRIMARY KEY (pos, order_id));
INSERT INTO shop.lines VALUES (4812, 1, '2026-03-01 02:00+02', '{"a": [1, true]}', '\\xff00');
CREATE VIEW seen AS SELECT * FROM orders;
CREATE TABLE parts (k int) PARTITION BY RANGE (k);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (9);
INSERT INTO parts VALUES (1);
"""

REFUND = "UPDATE orders SET status = 'refunded' WHERE id = 4812;"


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (23, "7", 7),
        (701, "0.1", 0.1),
        (1700, "45.00", 45),
        (1700, "45.10", 45.1),
        (1700, "0.1000000000000000055511151231257827", "0.1000000000000000055511151231257827"),
        (1700, "9223372036854775808", "9223372036854775808"),
        (1700, "NaN", "NaN"),
        (16, "t", True),
        (16, "f", False),
        (17, "\\xff00", b"\xff\x00"),
        (114, '{"a": 1}', {"a": 1}),
        (3802, "[1, null]", [1, None]),
        (1114, "2026-03-01 00:00:00.5", "2026-03-01T00:00:00.5"),
        (1184, "2026-03-01 00:00:00+00", "2026-03-01T00:00:00+00:00"),
        (1184, "infinity", "infinity"),
        (1082, "2026-03-01", "2026-03-01"),
        (1007, "{1,2}", "{1,2}"),
        (25, None, None),
    ],
)
def test_a_value_is_exactly_what_the_server_writes(kind: int, text: str | None, value: Any) -> None:
    """Numbers are numbers where one stands for exactly this decimal, moments are ISO 8601."""
    found = value_of(kind, text)
    assert found == value
    assert type(found) is type(value)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Return the address of a server."""
    with running_server() as url:
        yield url


@pytest.fixture
def worlds(server: str, tmp_path: Path) -> Iterator[WorldFactory]:
    """Return what makes worlds with databases on the server."""
    databases = TrialDatabases({SERVER: server})
    with WorldFactory(tmp_path / "scratch", None, postgres=databases) as made:
        yield made


@pytest.fixture
def trial(tmp_path: Path) -> Any:
    """A trial that starts with two orders."""
    (tmp_path / "shop.pg.sql").write_text(SCRIPT)
    return trial_of(task_of(fixture_path=str(tmp_path / "shop.pg.sql")))


def run(world: World, script: str) -> None:
    assert world.postgres is not None
    with psycopg.connect(world.postgres) as connection:
        connection.execute(script)


def graded(worlds: WorldFactory, trial: Any, script: str, *checks: dict[str, Any]) -> Grade:
    world = worlds.open(trial)
    run(world, script)
    spec = spec_of("state", checks=list(checks))
    grader = build(spec, states=InitialStates(worlds.initial))
    return grader.grade(trial, Trajectory(), world)


@pytest.mark.slow
def test_tables_are_read_with_their_keys(worlds: WorldFactory, trial: Any) -> None:
    """Ordinary tables of all schemas; no view, no computed column, no partition by itself."""
    state = snapshot(Places(postgres=worlds.open(trial).postgres))
    assert state.table_names == ("orders", "parts", "shop.lines")
    rows = ((4812, 45, "paid"), (4813, 0.1, "paid"))
    assert state.tables["orders"] == Table(
        columns=("id", "total", "status"), rows=rows, key=("id",)
    )
    lines = state.tables["shop.lines"]
    assert lines.key == ("pos", "order_id")
    at = "2026-03-01T00:00:00+00:00"
    assert lines.rows == ((4812, 1, at, {"a": [1, True]}, b"\xff\x00"),)
    assert state.tables["parts"].rows == ((1,),)
    only = snapshot(Places(postgres=worlds.open(trial).postgres), Parts(tables=frozenset(["x"])))
    assert (only.tables, only.table_names) == ({}, state.table_names)


@pytest.mark.slow
def test_checks_hold_of_what_the_trial_did(worlds: WorldFactory, trial: Any) -> None:
    """Fields, sums, queries and that nothing else changed, by either name of a table."""
    checks: list[dict[str, Any]] = [
        {"table": "orders", "where": {"id": 4812}, "field": "status", "equals": "refunded"},
        {"table": "public.orders", "sum": "total", "equals": 45.1},
        {"table": "shop.lines", "count": 1},
        {"query": "SELECT status FROM orders ORDER BY id", "equals": ["refunded", "paid"]},
        {"unchanged": {"except": ['"public.orders"[id=4812].status']}},
    ]
    assert graded(worlds, trial, REFUND, *checks) == Grade(grader="state", passed=True, score=1.0)


@pytest.mark.slow
def test_an_edit_of_anything_else_is_found(worlds: WorldFactory, trial: Any) -> None:
    """The offending row is shown under the name of its table."""
    script = REFUND + "UPDATE shop.lines SET raw = NULL; DROP TABLE parts"
    unchanged = {"unchanged": {"except": ["orders[id=4812].status"]}}
    grade = graded(worlds, trial, script, unchanged)
    assert not grade.passed
    assert grade.detail is not None
    assert "shop.lines" in grade.detail
    assert "parts" in grade.detail


@pytest.mark.slow
def test_mistakes_are_found_in_the_state_that_trials_start_in(
    worlds: WorldFactory, trial: Any
) -> None:
    """Tables, fields and queries are held against the catalog, with the nearest name."""
    worlds.open(trial)
    states = InitialStates(worlds.initial)
    checks = [
        check_of({"table": "order", "count": 1}),
        check_of({"table": "orders", "where": {"stat": 1}, "count": 1}),
        check_of({"query": "SELECT nothing FROM orders", "count": 1}),
        check_of({"query": "SELECT count(*) FROM shop.lines", "equals": 1}),
    ]
    found = mistakes_in(checks, states.of(trial, Parts()), states.places(trial))
    assert found == [
        "check 1: there is no table 'order' (did you mean 'orders'?)",
        "check 2: there is no field 'stat' (did you mean 'status'?)",
        'check 3: the query cannot be answered: column "nothing" does not exist',
    ]


@pytest.mark.slow
def test_nothing_is_written_waited_for_or_without_end(
    worlds: WorldFactory, trial: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither by a query nor by what the agent left, and too much of anything is refused."""
    world = worlds.open(trial)
    url = world.postgres
    assert url is not None
    for query, said in [
        ("DELETE FROM orders RETURNING id", "the query cannot be answered: syntax error"),
        ("SELECT nextval('s') FROM orders", "the query cannot be answered: cannot execute nextval"),
        ("SELECT pg_sleep(9)", "the query was ended because it ran too long"),
    ]:
        run(world, "CREATE SEQUENCE IF NOT EXISTS s")
        with pytest.raises(UnusableError, match=said.replace("(", r"\(")):
            query_rows(url, query, most=10, longest_s=0.2)
    with psycopg.connect(url) as holding:
        holding.execute("LOCK TABLE orders IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(UnusableError, match="the agent left the database locked"):
            snapshot(Places(postgres=url))
    many = "SELECT generate_series(1, 100000000)"
    assert len(query_rows(url, many, most=10, longest_s=60)) == 11
    monkeypatch.setattr(snapshots, "MOST_ROWS", 1)
    with pytest.raises(UnusableError, match="more than 1 rows, with table 'orders'"):
        snapshot(Places(postgres=url))


@pytest.mark.slow
def test_one_name_means_one_table(worlds: WorldFactory, trial: Any, tmp_path: Path) -> None:
    """A table that stands in PostgreSQL and elsewhere is refused, and so is no database."""
    (tmp_path / "tables.json").write_text('{"orders": []}')
    url = worlds.open(trial).postgres
    with pytest.raises(UnusableError, match="'orders' is both in PostgreSQL and elsewhere"):
        snapshot(Places(folder=tmp_path, postgres=url))
    with pytest.raises(UnusableError, match="the database cannot be read: "):
        snapshot(Places(postgres="postgresql://x:secret@127.0.0.1:1/x"))


def test_a_query_may_have_the_grammar_of_postgresql() -> None:
    """Whether the database can answer it is found with the fixture, not before it is known."""
    spec = spec_of("state", checks=[{"query": "SELECT total::text FROM orders", "equals": "1"}])
    assert validate(spec) == []

"""Which moments and tables a task may start with."""

from __future__ import annotations

from typing import Any

import pytest

from ci_gate.model.worlds import mistake_in_now, mistake_in_tables


@pytest.mark.parametrize(
    "now", ["2026-03-01T00:00:00Z", "2024-02-29T23:59:59+00:00", "2026-03-01T00:00:00.500Z"]
)
def test_a_moment_in_utc_is_one(now: str) -> None:
    """ISO 8601 with seconds, in UTC, starts a clock."""
    assert mistake_in_now(now) is None


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (3, "must be a string such as"),
        ("2026-03-01", "must be a time such as"),
        ("2026-03-01T00:00Z", "must be a time such as"),
        ("2026-03-01T00:00:00", "must be a time such as"),
        ("2026-02-30T00:00:00Z", "must be a time such as"),
        ("2026-03-01T00:00:00+02:00", "must be in UTC"),
        ("2026-03-01T00:00:00Z\n", "must be a time such as"),
    ],
)
def test_any_other_moment_is_a_mistake(now: Any, said: str) -> None:
    """What some reader would take otherwise, or not at all, is refused in words."""
    mistake = mistake_in_now(now)
    assert mistake is not None
    assert mistake.startswith(said)


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ([], "must be a table of lists of rows"),
        ({"orders": {}}, "must be a table of lists of rows; 'orders' is no list"),
        ({"orders": [{}, 3]}, "has a row that is no table: 'orders'[1] is 3"),
    ],
)
def test_tables_are_lists_of_rows(tables: Any, said: str) -> None:
    """Each kind of mistake is named with its place."""
    assert mistake_in_tables(tables) == said


def test_rows_may_hold_any_json() -> None:
    """Rows need not have the same fields, and no table needs a row."""
    assert mistake_in_tables({"orders": [{"id": 1}, {"tags": ["a", None]}], "refunds": []}) is None

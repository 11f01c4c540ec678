"""The name of a world's content: the same for the same content, another for any other."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from ci_gate.grading.state.digest import digest_of_state
from ci_gate.grading.state.snapshot import Places, snapshot
from ci_gate.grading.state.world import Entry, Table, WorldState

WORLD = WorldState(
    tables={"t": Table(columns=("a", "b"), rows=((1, "x"), (2, None)), key=("a",))},
    files={"f": Entry(kind="file", digest="d", size=1)},
    messages=({"to": "a"},),
)


def with_rows(*rows: tuple[object, ...]) -> WorldState:
    return replace(WORLD, tables={"t": replace(WORLD.tables["t"], rows=rows)})


def test_the_order_of_rows_does_not_count() -> None:
    """A database may give its rows in any order."""
    assert digest_of_state(with_rows((2, None), (1, "x"))) == digest_of_state(WORLD)


def test_the_digest_is_the_same_on_every_machine() -> None:
    """A run that is resumed elsewhere starts in the same state."""
    assert digest_of_state(WORLD) == "900b0b737622cb11"


@pytest.mark.parametrize(
    "other",
    [
        with_rows((1, "x"), (2, "None")),
        with_rows((1, "x"), (2, b"")),
        with_rows((1.0, "x"), (2, None)),
        with_rows((1, "x")),
        replace(WORLD, tables={"u": WORLD.tables["t"]}),
        replace(WORLD, files={"f": Entry(kind="file", digest="d", size=1, executable=True)}),
        replace(WORLD, messages=()),
        replace(WORLD, messages=(), payments=WORLD.messages),
    ],
)
def test_any_other_content_has_another_digest(other: WorldState) -> None:
    """Types, names, modes and places count."""
    assert digest_of_state(other) != digest_of_state(WORLD)


def test_how_a_database_is_laid_out_does_not_count(tmp_path: Path) -> None:
    """Two files with other bytes and the same rows are the same state."""
    states = []
    for name, more in (("one.db", ""), ("two.db", "PRAGMA page_size=8192;")):
        path = tmp_path / name
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(f"{more} CREATE TABLE t (x); INSERT INTO t VALUES (1)")
        states.append(snapshot(Places(database=path)))
    assert (tmp_path / "one.db").read_bytes() != (tmp_path / "two.db").read_bytes()
    assert digest_of_state(states[0]) == digest_of_state(states[1])

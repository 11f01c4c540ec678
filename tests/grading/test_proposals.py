"""What is proposed of a world holds of it, and not of the one before."""

from __future__ import annotations

import sqlite3
from types import SimpleNamespace

import pytest

from ci_gate.grading import answer, file, sql
from ci_gate.grading.proposals import of_answer, of_world
from ci_gate.grading.state.snapshot import Places
from ci_gate.model.suite import GraderSpec
from ci_gate.model.trial import Trajectory

BUILD = {"answer": answer.build, "file": file.build, "sql": sql.build}


def _places(folder, script="", files=None):
    (folder / "work").mkdir(parents=True)
    for name, content in (files or {}).items():
        (folder / "work" / name).write_bytes(content)
    connection = sqlite3.connect(folder / "world.db")
    connection.executescript(script)
    connection.close()
    return Places(database=folder / "world.db", workdir=folder / "work")


def _passes(proposal, places, said=None):
    options = {key: value for key, value in proposal.table.items() if key != "type"}
    grader = BUILD[proposal.table["type"]](
        GraderSpec(type=proposal.table["type"], name="g", options=options)
    )
    sandbox = SimpleNamespace(database=places.database, workdir=places.workdir)
    return grader.grade(None, Trajectory(answer=said), sandbox).passed


NAME = '"a ""b"'
MADE = f'CREATE TABLE {NAME} (id INTEGER PRIMARY KEY, "n\nn", x);'
ONE = f"INSERT INTO {NAME} VALUES (1, 'a', 2)"


@pytest.mark.parametrize(
    ("before", "change", "expected"),
    [
        (ONE, f"INSERT INTO {NAME} VALUES (2, 'b', 3)", {"equals": [[2, "b", 3]]}),
        (ONE, f"UPDATE {NAME} SET x = 5", {"equals": [[1, "a", 5]]}),
        ("", f"INSERT INTO {NAME} VALUES (7, 'it''s', 1.5)", {"equals": [[7, "it's", 1.5]]}),
        ("", f"INSERT INTO {NAME} VALUES (7, NULL, x'ff')", {"equals": [["7", "NULL", "X'FF'"]]}),
        (ONE, f"DELETE FROM {NAME}", {"empty": True}),
    ],
)
def test_rows_are_asked_for_as_they_are(tmp_path, before, change, expected):
    """Added, changed, removed, with values that TOML does not have, under any name."""
    old = _places(tmp_path / "old", MADE + before)
    new = _places(tmp_path / "new", f"{MADE}{before};{change}")

    proposal, rest = of_world(old, new)

    assert {key: x for key, x in proposal.table.items() if key not in ("type", "query")} == expected
    assert _passes(proposal, new)
    assert not _passes(proposal, old)
    assert rest.table["type"] == "state"


def test_many_rows_are_counted(tmp_path):
    """A task file is for people."""
    rows = ";".join(f"INSERT INTO t VALUES ({n})" for n in range(50))
    old = _places(tmp_path / "old", "CREATE TABLE t (id INTEGER PRIMARY KEY)")
    new = _places(tmp_path / "new", f"CREATE TABLE t (id INTEGER PRIMARY KEY);{rows}")

    proposal, rest = of_world(old, new)

    assert proposal.table["equals"] == [[50]]
    assert proposal.what == "table t: 50 added"
    assert rest.table["checks"] == [{"unchanged": {"except": ["t"]}}]


def test_a_dropped_table_is_asked_for(tmp_path):
    """By its absence."""
    old = _places(tmp_path / "old", "CREATE TABLE t (id)")
    new = _places(tmp_path / "new")

    proposal, _ = of_world(old, new)

    assert _passes(proposal, new)
    assert not _passes(proposal, old)


def test_files_are_asked_for_by_content_or_presence(tmp_path):
    """Short texts by content; others, and those that are gone, by being there or not."""
    old = _places(tmp_path / "old", files={"gone": b"x", "same": b"x", "note": b"a"})
    new = _places(tmp_path / "new", files={"same": b"x", "note": b"b\n", "image": b"\xff"})

    *found, rest = of_world(old, new)

    assert {one.table["path"]: one.table for one in found} == {
        "gone": {"type": "file", "path": "gone", "exists": False},
        "image": {"type": "file", "path": "image", "exists": True},
        "note": {"type": "file", "path": "note", "equals": "b\n"},
    }
    assert all(_passes(one, new) and not _passes(one, old) for one in found)
    assert rest.table["checks"] == [{"unchanged": {"except": ["./gone", "./image", "./note"]}}]


def test_an_answer_is_asked_for_unless_it_is_long(tmp_path):
    """Nobody compares ten pages."""
    [proposal] = of_answer("yes")

    assert _passes(proposal, _places(tmp_path), said="yes")
    assert list(of_answer("x" * 2001)) == []
    assert list(of_answer(None)) == []


def test_a_world_in_which_nothing_changed_asks_for_nothing(tmp_path):
    """There is nothing to say."""
    old = _places(tmp_path / "old", "CREATE TABLE t (id)", {"a": b"x"})

    assert of_world(old, _places(tmp_path / "new", "CREATE TABLE t (id)", {"a": b"x"})) == []


def test_messages_are_counted_and_allowed(tmp_path):
    """What the trial sent is asked for by its number, and nothing else changed beside it."""
    old, new = tmp_path / "old", tmp_path / "new"
    for folder in (old, new):
        folder.mkdir()
    (new / "outbox.jsonl").write_text('{"template": "refund"}')

    sent, rest = of_world(Places(folder=old), Places(folder=new))

    assert sent.table["checks"] == [{"messages": True, "count": 1}]
    assert rest.table["checks"] == [{"unchanged": {"except": ["messages"]}}]

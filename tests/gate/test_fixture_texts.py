"""What lies in a fixture as text: databases and files, read once and only when asked for."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from ci_gate.gate.fixture_texts import FixtureTexts
from ci_gate.sandbox.world_factory import WorldFactory
from tests.trials import task_of, trial_of


def test_values_of_databases_and_texts_of_files_are_found(tmp_path: Path) -> None:
    """Whatever the form of the fixture; what is no text is left out."""
    folder = tmp_path / "world"
    folder.mkdir()
    (folder / "note.txt").write_text("the code is FX-1")
    (folder / "image.bin").write_bytes(b"\xff\xfe\x00")
    (folder / "world.sql").write_text("CREATE TABLE orders (id TEXT, cents); "
        "INSERT INTO orders VALUES ('R-77', 4500);")  # fmt: skip
    script = tmp_path / "other.sql"
    script.write_text("CREATE TABLE t (x); INSERT INTO t VALUES ('Z-9');")
    with sqlite3.connect(tmp_path / "shop.db") as database:
        database.execute('CREATE TABLE "odd "" name" (x)')
        database.execute('INSERT INTO "odd "" name" VALUES (\'D-5\')')
    database.close()
    tasks = [
        task_of(name, fixture_path=str(tmp_path / name))
        for name in ("world", "other.sql", "shop.db")
    ]
    with WorldFactory(tmp_path / "scratch", None) as worlds:
        worlds.prepare([*tasks, task_of("bare")])
        texts = FixtureTexts(worlds.initial)
        found = [texts(trial_of(task)) for task in tasks]
        script.write_text("changed afterwards")
        assert texts(trial_of(task_of("bare"))) == ""
        assert texts(trial_of(tasks[1])) == found[1]
    for value in ("FX-1", "R-77", "4500"):
        assert value in found[0]
    assert "Z-9" in found[1]
    assert "D-5" in found[2]


def test_tables_of_a_task_are_texts_beside_its_fixture(tmp_path: Path) -> None:
    """Tasks that share a fixture and have other tables have other texts."""
    (tmp_path / "world").mkdir()
    (tmp_path / "world" / "note.txt").write_text("the code is FX-1")
    shared = str(tmp_path / "world")
    tasks = [
        task_of("alone", tables={"orders": [{"id": "R-77"}]}),
        task_of("one", fixture_path=shared, tables={"orders": [{"id": "R-78"}]}),
        task_of("other", fixture_path=shared, tables={"orders": [{"id": "R-79"}]}),
    ]
    with WorldFactory(tmp_path / "scratch", None) as worlds:
        texts = FixtureTexts(worlds.initial)
        found = [texts(trial_of(task)) for task in tasks]
    said = ("FX-1", "R-77", "R-78", "R-79")
    assert [[word for word in said if word in text] for text in found] == [
        ["R-77"],
        ["FX-1", "R-78"],
        ["FX-1", "R-79"],
    ]

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

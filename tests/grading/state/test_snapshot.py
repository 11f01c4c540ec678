"""Snapshots: every schema is read, and no hostile place fools, hangs or runs anything."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest

from ci_gate.grading.databases import UnusableError
from ci_gate.grading.state import snapshot as reading
from ci_gate.grading.state import tree
from ci_gate.grading.state.snapshot import Parts, Places, snapshot
from ci_gate.grading.state.world import Entry, Table

SCHEMAS = """
CREATE TABLE keyed (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT,
                    length INTEGER GENERATED ALWAYS AS (length(name)) VIRTUAL);
INSERT INTO keyed (name) VALUES ('ada'), (NULL);
CREATE TABLE pairs (b TEXT, a INTEGER, PRIMARY KEY (a, b)) WITHOUT ROWID;
INSERT INTO pairs VALUES ('y', 1), ('x', 1);
CREATE TABLE bare (content, size REAL);
INSERT INTO bare VALUES (x'00ff', 0.5), (x'00ff', 0.5);
CREATE TABLE "odd ""name"" " ("a column");
CREATE VIEW seen AS SELECT * FROM keyed;
"""


def database_of(folder: Path, script: str) -> Path:
    path = folder / "world.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(f"PRAGMA synchronous=OFF; {script}")
    return path


def refusal(places: Places, parts: Parts | None = None) -> str:
    with pytest.raises(UnusableError) as caught:
        snapshot(places, parts or Parts())
    return str(caught.value)


def test_every_kind_of_table_is_read(tmp_path: Path) -> None:
    """Keys of several columns, no key, blobs, NULL and odd names; nothing computed."""
    state = snapshot(Places(database=database_of(tmp_path, SCHEMAS)))
    assert state.tables == {
        "keyed": Table(
            columns=("id", "name"),
            rows=((1, "ada"), (2, None)),
            key=("id",),
        ),
        "pairs": Table(columns=("b", "a"), rows=(("x", 1), ("y", 1)), key=("a", "b")),
        "bare": Table(columns=("content", "size"), rows=((b"\0\xff", 0.5),) * 2),
        'odd "name" ': Table(columns=("a column",), rows=()),
    }


def test_only_what_is_asked_for_is_read(tmp_path: Path) -> None:
    """A table that is not wanted costs nothing, and its name is known all the same."""
    places = Places(database=database_of(tmp_path, SCHEMAS), workdir=tmp_path / "gone")
    parts = Parts(tables=frozenset({"bare", "missing"}), files=False)
    state = snapshot(places, parts)
    assert list(state.tables) == ["bare"]
    assert state.table_names == ("bare", "keyed", 'odd "name" ', "pairs")


def test_a_virtual_table_is_read_by_what_it_keeps(tmp_path: Path) -> None:
    """No code of a virtual table runs over the agent's content, which is compared all the same."""
    script = "CREATE VIRTUAL TABLE notes USING fts4(body); INSERT INTO notes VALUES ('tea');"
    state = snapshot(Places(database=database_of(tmp_path, script)))
    assert "notes" not in state.table_names
    assert state.tables["notes_content"].rows == ((1, "tea"),)


def test_text_that_is_not_utf8_is_read(tmp_path: Path) -> None:
    """SQLite keeps any bytes as text."""
    script = "CREATE TABLE t (x TEXT); INSERT INTO t VALUES (CAST(x'61ff' AS TEXT));"
    state = snapshot(Places(database=database_of(tmp_path, script)))
    assert state.tables["t"].rows == (("a\udcff",),)


def test_what_is_in_the_log_of_a_database_is_read(tmp_path: Path) -> None:
    """Rows that were committed and lie in the write-ahead log are rows."""
    path = tmp_path / "world.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.executescript("CREATE TABLE t (x); INSERT INTO t VALUES (1);")
        assert (tmp_path / "world.db-wal").stat().st_size
        assert snapshot(Places(database=path)).tables["t"].rows == ((1,),)


def test_nothing_is_left_beside_a_template(tmp_path: Path) -> None:
    """Reading the state that trials start in changes no byte of it."""
    path = database_of(tmp_path, "PRAGMA journal_mode=WAL; CREATE TABLE t (x);")
    assert snapshot(Places(database=path, is_template=True)).table_names == ("t",)
    assert list(tmp_path.iterdir()) == [path]


def test_tables_messages_and_payments_beside_the_work_are_read(tmp_path: Path) -> None:
    """Rows are objects; a field that one lacks is null; an id that all have is the key."""
    rows = [{"id": 1, "paid": True}, {"id": 2, "note": ["x"]}]
    (tmp_path / "tables.json").write_text(json.dumps({"orders": rows}))
    (tmp_path / "outbox.jsonl").write_text('{"to": "a"}\n\n{"to": "b"}\n')
    (tmp_path / "payments.jsonl").write_text('{"cents": 1}')
    state = snapshot(Places(folder=tmp_path))
    assert state.tables["orders"] == Table(
        columns=("id", "paid", "note"),
        rows=((1, True, None), (2, None, ["x"])),
        key=("id",),
        is_json=True,
    )
    assert state.messages == ({"to": "a"}, {"to": "b"})
    assert state.payments == ({"cents": 1},)


def test_a_folder_is_read_with_modes_links_and_empty_folders(tmp_path: Path) -> None:
    """Content, executable bit and a link's own text count, and the database is not part of it."""
    work = tmp_path / "work"
    (work / "a" / "empty").mkdir(parents=True)
    (work / "a" / "run.sh").write_text("x")
    (work / "a" / "run.sh").chmod(0o700)
    (work / "link").symlink_to("/etc/passwd")
    database_of(work, "CREATE TABLE t (x)")
    (work / "world.db-wal").touch()
    os.mkfifo(work / "pipe")
    state = snapshot(Places(database=work / "world.db", workdir=work), Parts(tables=frozenset()))
    digest = sha256(b"x").hexdigest()
    assert state.files == {
        "a/empty": Entry(kind="folder"),
        "a/run.sh": Entry(kind="file", digest=digest, size=1, executable=True),
        "link": Entry(kind="link", target="/etc/passwd"),
        "pipe": Entry(kind="other"),
    }


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("tables.json", "[]", "tables.json is not a JSON object of tables"),
        ("tables.json", '{"t": [1]}', "tables.json: table 't' is not a list of objects"),
        ("tables.json", "{", "tables.json is not JSON: Input data was truncated"),
        ("outbox.jsonl", "{}\n1", "outbox.jsonl, line 2, is not a JSON object"),
        ("payments.jsonl", "[" * 5000, "payments.jsonl, line 1, is not JSON: "),
    ],
)
def test_files_that_are_not_what_they_should_be(
    tmp_path: Path, name: str, content: str, reason: str
) -> None:
    """What the agent spoilt ends in a sentence that names the file."""
    (tmp_path / name).write_text(content)
    assert refusal(Places(folder=tmp_path)).startswith(reason)


def test_links_and_pipes_in_the_place_of_files_are_not_read(tmp_path: Path) -> None:
    """No file of the machine is shown, and nothing is waited for."""
    (tmp_path / "outbox.jsonl").symlink_to("/etc/passwd")
    link = "outbox.jsonl cannot be read: it is a symbolic link, which is not followed"
    assert refusal(Places(folder=tmp_path)) == link
    os.mkfifo(tmp_path / "tables.json")
    pipe = "tables.json cannot be read: it is not a regular file"
    assert refusal(Places(folder=tmp_path)) == pipe
    database = tmp_path / "world.db"
    os.mkfifo(database)
    assert refusal(Places(database=database)) == "world.db is not a regular file any more"
    database.unlink()
    assert refusal(Places(database=database)) == "the database is gone"


def test_a_database_that_is_none_ends_in_words(tmp_path: Path) -> None:
    """A corrupt file is no crash."""
    path = tmp_path / "world.db"
    path.write_bytes(b"x" * 5000)
    assert refusal(Places(database=path)) == "the database cannot be read: file is not a database"


def test_a_name_in_both_kinds_of_tables_is_refused(tmp_path: Path) -> None:
    """The tables of the database and those in memory are one namespace."""
    path = database_of(tmp_path, "CREATE TABLE orders (x)")
    (tmp_path / "tables.json").write_text('{"orders": []}')
    places = Places(folder=tmp_path, database=path)
    assert refusal(places).startswith("table 'orders' is both in the database and in tables.json")


def test_what_is_read_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows, bytes, paths, bytes of files and depth each end in a sentence with the bound."""
    database = database_of(tmp_path, "CREATE TABLE t (x); INSERT INTO t VALUES ('abc'), ('d');")
    monkeypatch.setattr(reading, "MOST_ROWS", 1)
    assert refusal(Places(database=database)) == "the tables have more than 1 rows, with table 't'"
    monkeypatch.setattr(reading, "MOST_ROWS", 2)
    monkeypatch.setattr(reading, "MOST_BYTES", 3)
    assert refusal(Places(database=database)) == "the tables hold more than 3 bytes, with table 't'"
    work = tmp_path / "work"
    (work / "a" / "b").mkdir(parents=True)
    (work / "c").write_bytes(b"1234")
    monkeypatch.setattr(tree, "DEEPEST", 1)
    assert refusal(Places(workdir=work)) == "the working directory is deeper than 1 folders"
    monkeypatch.setattr(tree, "DEEPEST", 2)
    monkeypatch.setattr(tree, "MOST_FILE_BYTES", 3)
    assert refusal(Places(workdir=work)) == "the working directory has more than 3 bytes"
    monkeypatch.setattr(tree, "MOST_PATHS", 1)
    monkeypatch.setattr(tree, "MOST_FILE_BYTES", 4)
    assert refusal(Places(workdir=work)) == "the working directory has more than 1 paths"


def test_no_computed_column_is_read(tmp_path: Path) -> None:
    """A schema of the agent's is never run: this one would fail, or take for ever."""
    script = """
    CREATE TABLE t (x, y AS (x)); INSERT INTO t (x) VALUES (-9223372036854775808);
    PRAGMA writable_schema=1; UPDATE sqlite_master SET sql = 'CREATE TABLE t (x, y AS (abs(x)))';
    """
    database = database_of(tmp_path, script)
    with closing(sqlite3.connect(database)) as connection, pytest.raises(sqlite3.Error):
        connection.execute("SELECT * FROM t").fetchall()
    assert snapshot(Places(database=database)).tables["t"] == Table(
        columns=("x",), rows=((-(2**63),),)
    )


def test_a_transaction_that_was_left_open_by_a_dead_process_ends_in_words(tmp_path: Path) -> None:
    """A journal that would have to be rolled back is the agent's, and nothing is written."""
    path = database_of(tmp_path, "CREATE TABLE t (x)")
    code = (
        "import os, sqlite3, sys\n"
        "c = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "c.execute('PRAGMA cache_size=1'); c.execute('BEGIN')\n"
        "c.executemany('INSERT INTO t VALUES (?)', [('x' * 1000,)] * 500)\n"
        "os._exit(0)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(path)], check=True)
    assert refusal(Places(database=path)) == (
        "the agent left the database in the middle of a transaction"
    )

"""What each kind of fixture becomes, and what is said of one that cannot be used."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ci_gate.errors import SuiteError
from ci_gate.sandbox.fixtures import Template, make_template


def template_of(fixture: Path, tmp_path: Path) -> Template:
    folder = tmp_path / "template"
    folder.mkdir()
    return make_template(fixture, folder, source="evals/a.toml:3")


def rows_of(database: Path, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute(query).fetchall()


def database_at(path: Path, *, journal: str = "delete") -> Path:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA journal_mode={journal}")
        connection.execute("CREATE TABLE orders (id)")
        connection.execute("INSERT INTO orders VALUES (4812)")
        connection.commit()
    return path


def test_a_script_becomes_a_database(tmp_path: Path) -> None:
    """Every statement of an SQL script has run, with or without a transaction of its own."""
    script = tmp_path / "World.SQL"
    script.write_text(
        "\ufeff-- the shop; in words\n"
        "BEGIN; CREATE TABLE t (x TEXT);\nINSERT INTO t VALUES ('a;b'); COMMIT;\n"
        "CREATE TRIGGER r AFTER INSERT ON t BEGIN DELETE FROM t WHERE x = 'no'; END;\n"
        "INSERT INTO t VALUES ('no'); BEGIN; INSERT INTO t VALUES ('yes')\n"
    )
    template = template_of(script, tmp_path)
    assert (template.database, template.work) == ("world.db", None)
    assert rows_of(template.folder / "world.db", "SELECT x FROM t") == [("a;b",), ("yes",)]
    assert [entry.name for entry in template.folder.iterdir()] == ["world.db"]


@pytest.mark.parametrize("suffix", [".db", ".sqlite", ".sqlite3"])
@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_a_database_is_backed_up(tmp_path: Path, suffix: str, journal: str) -> None:
    """A SQLite file arrives with its rows, whatever its journal mode."""
    fixture = database_at(tmp_path / f"shop{suffix}", journal=journal)
    template = template_of(fixture, tmp_path)
    assert rows_of(template.folder / "world.db", "SELECT id FROM orders") == [(4812,)]


def test_a_folder_becomes_the_working_directory(tmp_path: Path) -> None:
    """A folder without a world is files alone."""
    (tmp_path / "desk" / "notes").mkdir(parents=True)
    (tmp_path / "desk" / "notes" / "a.txt").write_text("hi")
    template = template_of(tmp_path / "desk", tmp_path)
    assert (template.database, template.work) == (None, "work")
    assert (template.folder / "work" / "notes" / "a.txt").read_text() == "hi"


def test_a_folder_with_a_script_has_a_database_too(tmp_path: Path) -> None:
    """``world.sql`` in a folder makes the trial's database beside the working directory."""
    (tmp_path / "desk").mkdir()
    (tmp_path / "desk" / "world.sql").write_text("CREATE TABLE t (x); INSERT INTO t VALUES (1);")
    template = template_of(tmp_path / "desk", tmp_path)
    assert (template.database, template.work) == ("world.db", "work")
    assert rows_of(template.folder / "world.db", "SELECT x FROM t") == [(1,)]


def test_a_folder_with_a_database_works_on_it(tmp_path: Path) -> None:
    """``world.db`` in a folder is the trial's database where it lies."""
    (tmp_path / "desk").mkdir()
    database_at(tmp_path / "desk" / "world.db", journal="wal")
    template = template_of(tmp_path / "desk", tmp_path)
    assert template.database == "work/world.db"
    assert rows_of(template.folder / "work" / "world.db", "SELECT id FROM orders") == [(4812,)]


def test_any_other_file_lies_in_the_working_directory(tmp_path: Path) -> None:
    """A file that is neither script nor database is copied under its name."""
    (tmp_path / "orders.csv").write_text("1,2")
    template = template_of(tmp_path / "orders.csv", tmp_path)
    assert (template.folder / "work" / "orders.csv").read_text() == "1,2"


def test_a_link_to_a_database_in_a_folder_is_no_database(tmp_path: Path) -> None:
    """A folder's ``world.db`` that leads out of it is kept as a link and never opened."""
    database_at(tmp_path / "secret.db")
    (tmp_path / "desk").mkdir()
    (tmp_path / "desk" / "world.db").symlink_to(tmp_path / "secret.db")
    assert template_of(tmp_path / "desk", tmp_path).database is None


def test_a_mistake_in_a_script_has_its_line(tmp_path: Path) -> None:
    """The message names the task, the script, the line of the statement and SQLite's reason."""
    script = tmp_path / "world.sql"
    script.write_text(
        "CREATE TABLE t (x);\n\nINSERT INTO t\n VALUES (1);\nINSERT INTO u VALUES (2);"
    )
    with pytest.raises(SuiteError) as caught:
        template_of(script, tmp_path)
    assert str(caught.value) == (
        "evals/a.toml:3: the fixture's script fails at world.sql:5: no such table: u."
        " Correct the script"
    )


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"CREATE TABLE t (x); SELEC 1", "world.sql:1: near"),
        (b"ATTACH 'elsewhere.db' AS e;", "not authorized"),
        (b"SELECT load_extension('x');", "not authorized"),
        (b"CREATE TABLE t (x); INSERT INTO t VALUES ('\xff');", "utf-8"),
    ],
)
def test_a_script_that_cannot_be_used_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    """A script with bad SQL or bad text, or one that reaches out, is the suite's mistake."""
    (tmp_path / "world.sql").write_bytes(content)
    with pytest.raises(SuiteError) as caught:
        template_of(tmp_path / "world.sql", tmp_path)
    assert said in str(caught.value)
    assert not (tmp_path / "elsewhere.db").exists()


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    """The name alone makes no database."""
    (tmp_path / "shop.db").write_text("this is not a database at all" * 100)
    with pytest.raises(SuiteError, match="file is not a database"):
        template_of(tmp_path / "shop.db", tmp_path)


@pytest.mark.parametrize("name", ["world.sql", "world.db", "orders.csv"])
def test_a_missing_fixture_is_named(tmp_path: Path, name: str) -> None:
    """A fixture that is not there is said with its path."""
    with pytest.raises(SuiteError, match=name):
        template_of(tmp_path / name, tmp_path)


@pytest.mark.parametrize("name", ["world.sql", "world.db", "orders.csv"])
def test_a_pipe_is_refused_without_waiting(tmp_path: Path, name: str) -> None:
    """A fixture that is a pipe ends in an error instead of hanging the gate."""
    os.mkfifo(tmp_path / name)
    with pytest.raises(SuiteError, match="not a regular file"):
        template_of(tmp_path / name, tmp_path)


def test_a_folder_with_two_worlds_is_refused(tmp_path: Path) -> None:
    """Script and database in one folder leave open which one counts."""
    (tmp_path / "desk").mkdir()
    (tmp_path / "desk" / "world.sql").write_text("")
    database_at(tmp_path / "desk" / "world.db")
    with pytest.raises(SuiteError, match=r"both world\.sql and world\.db"):
        template_of(tmp_path / "desk", tmp_path)

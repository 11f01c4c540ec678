"""The state of a world is kept and restored, and nothing hostile in it leads anywhere else."""

import os

import pytest

from ci_gate.redaction import Redactor
from ci_gate.sandbox.states import StateError, capture, restore
from ci_gate.store.contents import Contents

_SECRET = "zebra-4711-secret"


@pytest.fixture
def world(tmp_path):
    """A world with a binary file, a text and an empty folder."""
    folder = tmp_path / "world"
    (folder / "work" / "empty").mkdir(parents=True)
    (folder / "world.db").write_bytes(b"SQLite\0\xff\xfe")
    (folder / "work" / "note.txt").write_text("hello")
    return folder


def _listing(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


def test_a_state_is_restored_as_it_was(world, tmp_path):
    """Files, bytes and empty folders."""
    contents = Contents(tmp_path / "traces")
    (tmp_path / "again").mkdir()

    restore(capture(world, contents, Redactor()), tmp_path / "again", contents)

    assert _listing(tmp_path / "again") == _listing(world)


def test_the_same_state_is_kept_once(world, tmp_path):
    """Two trials that ended alike share every content."""
    contents = Contents(tmp_path / "traces")

    first = capture(world, contents, Redactor())
    kept = len(_listing(tmp_path / "traces"))

    assert capture(world, Contents(tmp_path / "traces"), Redactor()) == first
    assert len(_listing(tmp_path / "traces")) == kept


def test_a_text_is_kept_without_secrets_and_other_content_is_withheld(world, tmp_path):
    """And the state says that it is not whole."""
    (world / "work" / "note.txt").write_text(f"key {_SECRET}")
    (world / "world.db").write_bytes(b"\xff" + _SECRET.encode())
    contents = Contents(tmp_path / "traces")

    state = capture(world, contents, Redactor([_SECRET]))

    assert state["files"]["world.db"] == {"withheld": "holds a secret"}
    assert contents.get(state["files"]["work/note.txt"]["digest"]) == b"key [REDACTED:secret]"
    with pytest.raises(StateError, match="not whole: holds a secret"):
        restore(state, tmp_path, contents)


def test_links_and_pipes_are_withheld(world, tmp_path):
    """What a link leads to is not the trial's world, and a pipe would wait for ever."""
    (world / "work" / "link").symlink_to("/etc/passwd")
    os.mkfifo(world / "work" / "pipe")

    state = capture(world, Contents(tmp_path / "traces"), Redactor())

    assert state["files"]["work/link"] == {"withheld": "no regular file"}
    assert state["files"]["work/pipe"] == {"withheld": "no regular file"}


@pytest.mark.slow
def test_very_many_files_are_withheld(tmp_path):
    """An agent decides how many there are."""
    folder = tmp_path / "world"
    folder.mkdir()
    for number in range(2001):
        (folder / str(number)).touch()

    state = capture(folder, Contents(tmp_path / "traces"), Redactor())

    assert state["withheld"] == "over 2000 files"


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a/../../x", "", "a\0b", "..\\x"])
def test_a_state_that_leads_out_of_its_folder_is_refused(tmp_path, name):
    """It comes from a file that anybody may have written."""
    contents = Contents(tmp_path / "traces")
    digest = contents.put(b"x")
    (tmp_path / "again").mkdir()

    with pytest.raises(StateError, match="leads out"):
        restore({"files": {name: {"digest": digest}}, "folders": []}, tmp_path / "again", contents)


@pytest.mark.parametrize(
    "state", [{}, {"files": [], "folders": []}, {"files": {"a": 1}, "folders": []}]
)
def test_what_is_no_state_is_refused(tmp_path, state):
    """By name, without a traceback."""
    with pytest.raises(StateError, match="no recorded state"):
        restore(state, tmp_path, Contents(tmp_path / "traces"))


def test_a_state_that_is_larger_than_any_is_refused(tmp_path, monkeypatch):
    """A few small contents, named over and over, would fill the disk."""
    contents = Contents(tmp_path / "traces")
    entry = {"digest": contents.put(b"x" * 60), "bytes": 1}
    (tmp_path / "again").mkdir()
    many = {f"work/{number}": entry for number in range(3)}

    monkeypatch.setattr("ci_gate.sandbox.states._MOST_BYTES", 150)
    with pytest.raises(StateError, match="over 150 bytes"):
        restore({"files": many, "folders": []}, tmp_path / "again", contents)
    monkeypatch.setattr("ci_gate.sandbox.states._MOST_FILES", 2)
    with pytest.raises(StateError, match="over 2 files"):
        restore({"files": many, "folders": []}, tmp_path / "again", contents)


def test_names_and_folders_that_cannot_be_kept_make_a_state_that_is_not_whole(tmp_path):
    """An agent decides what they are called and how deep they lie, and must not break the trial."""
    world = tmp_path / "world"
    world.mkdir()
    (world / "ok").write_text("x")
    os.close(os.open(os.fsencode(world) + b"/\xff", os.O_CREAT | os.O_WRONLY))

    state = capture(world, Contents(tmp_path / "traces"), Redactor())

    assert list(state["files"]) == ["ok"]
    assert state["withheld"] == "a name is no text"


def test_a_program_stays_one(world, tmp_path):
    """A grader of a replay may run it."""
    (world / "work" / "run.sh").write_text("#!/bin/sh\n")
    (world / "work" / "run.sh").chmod(0o755)
    contents = Contents(tmp_path / "traces")
    (tmp_path / "again").mkdir()

    restore(capture(world, contents, Redactor()), tmp_path / "again", contents)

    assert os.access(tmp_path / "again" / "work" / "run.sh", os.X_OK)
    assert not os.access(tmp_path / "again" / "work" / "note.txt", os.X_OK)


def test_a_text_without_its_secret_is_no_whole_state(world, tmp_path):
    """A grader would judge another world than the trial ended in."""
    (world / "work" / "note.txt").write_text(f"key {_SECRET}")
    contents = Contents(tmp_path / "traces")

    state = capture(world, contents, Redactor([_SECRET]))

    with pytest.raises(StateError, match="not whole: holds a secret"):
        restore(state, tmp_path, contents)

"""A new task and its fixture get names that nothing has, both or neither."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ci_gate.errors import GateError, UsageError
from ci_gate.store.task_places import NewTask, task_place
from tests.full_disk import largest_file


def _suite(*patterns):
    return SimpleNamespace(name="desk", tasks=patterns)


def _place(root, output=None, task_id="x", suite=None):
    return task_place(output, task_id=task_id, root=root, here=root, suite=suite)


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        ((), "evals/x.toml"),
        (("desk/evals/*.toml",), "desk/evals/x.toml"),
        (("**/*.toml",), "evals/x.toml"),
        (("a*/b.toml", "tasks/*.jsonl"), "tasks/x.toml"),
        (("*.toml",), "x.toml"),
    ],
)
def test_a_task_goes_beside_those_of_its_suite(tmp_path, patterns, expected):
    """In the first folder that a pattern names."""
    place = _place(tmp_path, suite=_suite(*patterns))

    assert place.path == tmp_path / expected


def test_no_id_leads_out_of_the_folder(tmp_path):
    """Its file has a safe name."""
    place = _place(tmp_path, task_id="../../etc/passwd")

    assert place.path.parent == tmp_path / "evals"


def test_a_file_that_no_pattern_matches_is_told(tmp_path, monkeypatch):
    """Nobody would run it."""
    monkeypatch.chdir(tmp_path)

    [remark] = _place(tmp_path, tmp_path / "more/x.toml", suite=_suite("evals/*.toml")).remarks

    assert "add 'more/x.toml'" in remark


@pytest.mark.parametrize("taken", ["evals/x.toml", "evals/x.fixture", "evals/x.db"])
def test_a_name_that_is_taken_is_refused_before_anything_is_written(tmp_path, taken):
    """Also by a link that leads nowhere."""
    (tmp_path / "evals").mkdir()
    (tmp_path / taken).symlink_to(tmp_path / "nowhere")
    (tmp_path / "world").mkdir()
    source = tmp_path / "world"
    if taken.endswith(".db"):
        source = tmp_path / "world.db"
        source.touch()

    with pytest.raises(UsageError, match="is there already"):
        NewTask(_place(tmp_path), source)

    assert len(list((tmp_path / "evals").iterdir())) == 1


def test_both_are_written_and_modes_kept(tmp_path):
    """A program of the fixture stays one."""
    (tmp_path / "world" / "bin").mkdir(parents=True)
    (tmp_path / "world" / "bin" / "x").touch(mode=0o700)

    new = NewTask(_place(tmp_path), tmp_path / "world")
    new.write(b"id = 'x'\n")

    assert (tmp_path / "evals/x.toml").read_bytes() == b"id = 'x'\n"
    assert (tmp_path / "evals/x.fixture/bin/x").stat().st_mode & 0o100
    assert sorted(path.name for path in (tmp_path / "evals").iterdir()) == ["x.fixture", "x.toml"]


@pytest.mark.parametrize("room", [100, 5000])
def test_a_full_disk_leaves_neither(tmp_path, room):
    """Whichever of the two it has no room for."""
    (tmp_path / "world").mkdir()
    (tmp_path / "world" / "x").write_bytes(b"x" * 1000)
    new = NewTask(_place(tmp_path), tmp_path / "world")

    with largest_file(room), pytest.raises(GateError, match="cannot be written"):
        new.write(b"#" * 10_000)

    assert list((tmp_path / "evals").iterdir()) == []

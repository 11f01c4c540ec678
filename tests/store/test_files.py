from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from ci_gate.errors import FileFormatError, UsageError
from ci_gate.store.files import open_regular, read_whole, write_whole

LARGE_WRITE = """
import pathlib, resource, sys
from ci_gate.errors import GateError
from ci_gate.store.files import write_whole

resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    write_whole(pathlib.Path(sys.argv[1]), b"x" * 100_000)
except GateError as error:
    sys.exit(error.exit_code)
"""


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_content_replaces_what_was_there(tmp_path: Path) -> None:
    """A written file has the new content, whether or not it existed."""
    path = tmp_path / "baselines" / "desk.json"

    write_whole(path, b"first")
    write_whole(path, b"second")

    assert path.read_bytes() == b"second"
    assert names(path.parent) == ["desk.json"]


def test_mode_of_an_existing_file_stays(tmp_path: Path) -> None:
    """Replacing a file keeps its mode."""
    path = tmp_path / "desk.json"
    path.write_bytes(b"")
    path.chmod(0o640)

    write_whole(path, b"x")

    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_mode_of_a_new_file_is_the_umask_s(tmp_path: Path) -> None:
    """A new file is as readable as any other that the user makes."""
    before = os.umask(0o027)
    try:
        write_whole(tmp_path / "desk.json", b"x")
    finally:
        os.umask(before)

    assert stat.S_IMODE((tmp_path / "desk.json").stat().st_mode) == 0o640


@pytest.mark.parametrize("kind", ["folder", "link", "pipe"])
def test_only_regular_files_are_replaced(tmp_path: Path, kind: str) -> None:
    """A folder, link or pipe in the file's place is refused and stays."""
    path = tmp_path / "desk.json"
    target = tmp_path / "precious"
    target.write_bytes(b"precious")
    {
        "folder": path.mkdir,
        "link": lambda: path.symlink_to(target),
        "pipe": lambda: os.mkfifo(path),
    }[kind]()

    with pytest.raises(UsageError, match="is a folder, link, pipe or device"):
        write_whole(path, b"x")

    assert target.read_bytes() == b"precious"
    assert names(tmp_path) == ["desk.json", "precious"]


def test_a_file_in_the_folder_s_place_is_said(tmp_path: Path) -> None:
    """A parent that is no folder is a usage error that names the path."""
    (tmp_path / "baselines").write_bytes(b"")

    with pytest.raises(UsageError, match=r"desk\.json: cannot be written"):
        write_whole(tmp_path / "baselines" / "desk.json", b"x")


def test_a_full_disk_leaves_the_former_file(tmp_path: Path) -> None:
    """When the content does not fit, the former file is whole and nothing is left beside it."""
    path = tmp_path / "desk.json"
    write_whole(path, b"former")

    done = subprocess.run([sys.executable, "-c", LARGE_WRITE, path], check=False)

    assert done.returncode == 4
    assert path.read_bytes() == b"former"
    assert names(tmp_path) == ["desk.json"]


@pytest.mark.parametrize("kind", ["missing", "folder", "pipe", "nul"])
def test_only_regular_files_are_read(tmp_path: Path, kind: str) -> None:
    """What is no regular file is refused at once, a pipe without waiting for its writer."""
    path = tmp_path / ("a\0b" if kind == "nul" else "x")
    if kind == "folder":
        path.mkdir()
    if kind == "pipe":
        os.mkfifo(path)

    with pytest.raises(FileFormatError):
        open_regular(path)


def test_a_file_beyond_the_limit_is_refused(tmp_path: Path) -> None:
    """A whole file is read up to its limit and not beyond."""
    path = tmp_path / "x"
    path.write_bytes(b"12345")

    assert read_whole(path, limit=5) == b"12345"
    with pytest.raises(FileFormatError, match="larger than 4 bytes"):
        read_whole(path, limit=4)

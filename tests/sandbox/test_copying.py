"""Copies stay inside themselves, and their digest knows every difference."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from ci_gate.sandbox.copying import copy_file, copy_folder, remove_folder


def folder_in(parent: Path, name: str) -> Path:
    folder = parent / name
    folder.mkdir()
    return folder


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A folder with a file, a program, a nested file, an empty folder and a link."""
    folder = folder_in(tmp_path, "source")
    (folder / "note.txt").write_text("hello")
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "inner").mkdir()
    (folder / "inner" / "deep.bin").write_bytes(bytes(range(256)))
    (folder / "empty").mkdir()
    (folder / "link").symlink_to("inner/deep.bin")
    return folder


def test_a_copy_has_the_same_content(source: Path, tmp_path: Path) -> None:
    """Files, folders, links and executable bits arrive, and permissions are for the owner alone."""
    target = folder_in(tmp_path, "target")
    copy_folder(source, target)
    assert (target / "inner" / "deep.bin").read_bytes() == bytes(range(256))
    assert (target / "link").readlink() == Path("inner/deep.bin")
    assert list((target / "empty").iterdir()) == []
    modes = [
        stat.S_IMODE((target / name).stat().st_mode) for name in ("note.txt", "run.sh", "inner")
    ]
    assert modes == [0o600, 0o700, 0o700]


def test_the_digest_is_the_same_for_the_same_content(source: Path, tmp_path: Path) -> None:
    """Copying twice, and copying a copy, gives one digest."""
    first, second = folder_in(tmp_path, "first"), folder_in(tmp_path, "second")
    assert copy_folder(source, first) == copy_folder(first, second)


def _edit(folder: Path) -> None:
    (folder / "note.txt").write_text("hallo")


def _rename(folder: Path) -> None:
    (folder / "note.txt").rename(folder / "node.txt")


def _make_executable(folder: Path) -> None:
    (folder / "note.txt").chmod(0o755)


def _relink(folder: Path) -> None:
    (folder / "link").unlink()
    (folder / "link").symlink_to("note.txt")


def _add_folder(folder: Path) -> None:
    (folder / "more").mkdir()


def _move_into_folder(folder: Path) -> None:
    (folder / "note.txt").rename(folder / "empty" / "note.txt")


@pytest.mark.parametrize(
    "change", [_edit, _rename, _make_executable, _relink, _add_folder, _move_into_folder]
)
def test_the_digest_sees_every_difference(
    source: Path, tmp_path: Path, change: Callable[[Path], None]
) -> None:
    """A byte, a name, a bit, a link's text, a folder or a place changes the digest."""
    before = copy_folder(source, folder_in(tmp_path, "before"))
    change(source)
    assert copy_folder(source, folder_in(tmp_path, "after")) != before


def test_links_out_are_copied_as_links_and_never_followed(tmp_path: Path) -> None:
    """What a link points at outside is not read, whether it exists or not."""
    secret = tmp_path / "secret"
    secret.write_text("s3cret")
    source, target = folder_in(tmp_path, "source"), folder_in(tmp_path, "target")
    (source / "out").symlink_to(secret)
    (source / "folder").symlink_to(tmp_path)
    (source / "broken").symlink_to("/nowhere/at/all")
    copy_folder(source, target)
    assert {entry.name for entry in target.iterdir() if entry.is_symlink()} == {
        "out",
        "folder",
        "broken",
    }


@pytest.mark.parametrize("kind", ["pipe", "socket"])
def test_what_is_no_file_is_refused_without_waiting(tmp_path: Path, kind: str) -> None:
    """A pipe or socket ends the copy with an error instead of hanging it."""
    source, target = folder_in(tmp_path, "s"), folder_in(tmp_path, "t")
    if kind == "pipe":
        os.mkfifo(source / "x")
    else:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(os.fspath(source / "x"))
    with pytest.raises(OSError, match=r"regular file|No such device"):
        copy_folder(source, target)


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    """A file or link that is already at the target is an error, not a place to write through."""
    source, target = folder_in(tmp_path, "source"), folder_in(tmp_path, "target")
    (source / "a").write_text("new")
    victim = tmp_path / "victim"
    (target / "a").symlink_to(victim)
    with pytest.raises(FileExistsError):
        copy_folder(source, target)
    assert not victim.exists()


def test_a_single_file_is_copied_through_its_own_link(tmp_path: Path) -> None:
    """A task may name its fixture by a link; the file behind it is what counts."""
    (tmp_path / "real.csv").write_text("1,2")
    (tmp_path / "named.csv").symlink_to("real.csv")
    copy_file(tmp_path / "named.csv", tmp_path / "copy.csv")
    assert not (tmp_path / "copy.csv").is_symlink()
    assert (tmp_path / "copy.csv").read_text() == "1,2"


def test_removal_leaves_what_links_point_at(tmp_path: Path) -> None:
    """Removing a folder removes its links and not their targets."""
    kept = folder_in(tmp_path, "kept")
    (kept / "file").write_text("stays")
    folder = folder_in(tmp_path, "folder")
    (folder / "link").symlink_to(kept)
    remove_folder(folder)
    assert not folder.exists()
    assert (kept / "file").read_text() == "stays"


@pytest.mark.slow
def test_removal_copes_with_folders_deeper_than_recursion(tmp_path: Path) -> None:
    """A tower of 1,500 folders goes too."""
    folder = folder_in(tmp_path, "folder")
    here = os.open(folder, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=here)
        inner = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    remove_folder(folder)
    assert not folder.exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="permissions do not bind the superuser")
def test_removal_takes_back_permissions(tmp_path: Path) -> None:
    """A folder that its owner may not enter goes too."""
    folder = folder_in(tmp_path, "folder")
    closed = folder_in(folder, "closed")
    (closed / "file").write_text("")
    closed.chmod(0)
    remove_folder(folder)
    assert not folder.exists()


def test_removing_what_is_gone_is_no_error(tmp_path: Path) -> None:
    """A folder that the agent removed itself needs no removal."""
    remove_folder(tmp_path / "nowhere")
    assert list(tmp_path.iterdir()) == []

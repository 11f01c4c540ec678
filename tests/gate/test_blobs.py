"""Several files of a commit are read at once, by object id."""

from __future__ import annotations

import pytest

from ci_gate.errors import GitError
from ci_gate.gate.repository import find_repository, read_blobs


def everything(files):
    """Want all files."""
    return [path for path, _ in files]


@pytest.fixture
def folder(new_repository):
    """A repository with files, a link and an executable below a folder."""
    folder = new_repository()
    folder.write("kept/a/0.jsonl", "one\n\nblob 3\n")
    folder.write("kept/b c/1.jsonl", "")
    folder.write("kept-not/0.jsonl", "x")
    (folder.path / "kept" / "link").symlink_to("/etc/passwd")
    folder.commit()
    return folder


def test_every_regular_file_below_a_folder(folder):
    """By its path relative to it; links are left out, and so are folders of a like name."""
    repository = find_repository(folder.path)
    commit = folder.git("rev-parse", "HEAD")
    (folder.path / "kept" / "a" / "0.jsonl").write_text("the working tree's")

    found = read_blobs(repository, commit, folder.path / "kept", everything)

    assert found == {"a/0.jsonl": b"one\n\nblob 3\n", "b c/1.jsonl": b""}


def test_sizes_are_known_before_anything_is_read(folder):
    """What is not wanted is not read."""
    repository = find_repository(folder.path)
    seen = []

    found = read_blobs(
        repository,
        folder.git("rev-parse", "HEAD"),
        folder.path / "kept",
        lambda files: seen.extend(files) or ["b c/1.jsonl"],
    )

    assert seen == [("a/0.jsonl", 12), ("b c/1.jsonl", 0)]
    assert found == {"b c/1.jsonl": b""}


@pytest.mark.parametrize("name", ["none", "kept/link", "kept/a/0.jsonl"])
def test_what_is_no_folder_of_the_commit_has_no_files(folder, name):
    """A link is not followed either."""
    repository = find_repository(folder.path)

    assert (
        read_blobs(repository, folder.git("rev-parse", "HEAD"), folder.path / name, everything)
        == {}
    )


def test_a_folder_outside_is_refused(folder):
    """As everywhere."""
    repository = find_repository(folder.path)

    with pytest.raises(GitError, match="outside the repository"):
        read_blobs(repository, folder.git("rev-parse", "HEAD"), "..", everything)

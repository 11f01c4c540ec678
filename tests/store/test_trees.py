from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_gate.store.trees import DiskReader, FileEntry, expand, matching, mistake_in_pattern

NAMES = [
    "a.toml",
    "b.jsonl",
    "evals/a.toml",
    "evals/.a.toml",
    "evals/x/a.toml",
    "evals/x/y/b.toml",
    "evals/[1].toml",
    "evalsx/a.toml",
    "evals/ä.toml",
]
PIECES = [
    "*",
    "**",
    "?",
    "a",
    "evals",
    "x",
    "*.toml",
    "?.toml",
    "[ab].toml",
    "[!a]*",
    "[[]*",
    "e*",
    ".*",
    "[]1]*",
    "*a*.t?ml",
]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tree")
    for name in NAMES:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    return root


@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=3).map("/".join))
def test_names_match_as_files_on_disk_do(tree: Path, pattern: str) -> None:
    """A glob over a list of names finds what the file system's glob finds."""
    if mistake_in_pattern(pattern):
        return
    on_disk = {path.relative_to(tree).as_posix() for path in tree.glob(pattern) if path.is_file()}

    assert set(matching(NAMES, [pattern])) == on_disk
    assert expand(tree, [pattern]) == sorted(on_disk)


def test_a_file_that_two_patterns_match_is_there_once(tree: Path) -> None:
    """Patterns are united, sorted, each file once."""
    assert expand(tree, ["*.toml", "a.*", "evals/x/*"]) == ["a.toml", "evals/x/a.toml"]


@pytest.mark.parametrize("pattern", ["[z-a].toml", "a/../b", "C:/x", "a\\b", "x/"])
def test_impossible_patterns_are_refused(pattern: str) -> None:
    """Ranges that run backwards, parents, drives, backslashes and folders are no globs here."""
    assert mistake_in_pattern(pattern) is not None


def test_the_disk_is_read_below_the_root_alone(tree: Path, tmp_path: Path) -> None:
    """Nothing outside is read, by parents, absolute names, links or names that cannot be."""
    secret = tmp_path / "secret"
    secret.write_text("secret")
    (tree / "evals" / "link").symlink_to(secret)
    reader = DiskReader(tree)
    try:
        assert reader.read("a.toml") == b"a.toml"
        for name in ("../secret", str(secret), "evals/link", "no", "evals", "a\0b", "x" * 5000):
            assert reader.read(name) is None
        assert reader.list("..") == ()
        assert reader.list("no") == ()
    finally:
        (tree / "evals" / "link").unlink()


def test_a_folder_is_listed_whole(tmp_path: Path) -> None:
    """Files at any depth are listed with what a digest needs; links are text."""
    (tmp_path / "w" / "deep").mkdir(parents=True)
    (tmp_path / "w" / "deep" / "run").write_text("")
    (tmp_path / "w" / "deep" / "run").chmod(0o700)
    (tmp_path / "w" / "a").write_text("")
    (tmp_path / "w" / "loop").symlink_to("..")

    assert list(DiskReader(tmp_path).list("w")) == [
        FileEntry("w/a"),
        FileEntry("w/deep/run", executable=True),
        FileEntry("w/loop", target=".."),
    ]

"""A commit checked out beside the working tree, by git alone and without a trace afterwards."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from ci_gate.errors import GitError
from ci_gate.gate.repository import find_repository
from ci_gate.gate.worktree import sweep_lost, work_tree


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder in which temporary ones are made."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_it_holds_the_commit_and_is_gone_afterwards(
    new_repository: Callable[..., object], temporary: Path
) -> None:
    """Files of the commit, not of the working tree; git's list is as it was."""
    folder = new_repository()
    commit = folder.commit({"a/agent.py": "before"})
    folder.commit({"a/agent.py": "after", "new": ""})
    folder.write("a/agent.py", "edited")
    index = folder.git("ls-files", "--stage")

    with work_tree(find_repository(folder.path), commit) as tree:
        found = {p.relative_to(tree.top).as_posix() for p in tree.top.rglob("*") if p.is_file()}
        content = (tree.top / "a/agent.py").read_text()

    assert found == {".git", "a/agent.py"}
    assert content == "before"
    assert not list(temporary.iterdir())
    assert len(folder.git("worktree", "list").splitlines()) == 1
    assert folder.git("ls-files", "--stage") == index
    assert (folder.path / "a/agent.py").read_text() == "edited"


def test_it_is_gone_after_an_error(new_repository: Callable[..., object], temporary: Path) -> None:
    """Whatever happens in it, an interruption among it, nothing is left."""
    folder = new_repository()
    commit = folder.commit({"f": ""})

    with pytest.raises(KeyboardInterrupt), work_tree(find_repository(folder.path), commit):
        raise KeyboardInterrupt

    assert not list(temporary.iterdir())
    assert len(folder.git("worktree", "list").splitlines()) == 1


def test_a_work_tree_of_the_user_stays(
    new_repository: Callable[..., object], temporary: Path, tmp_path: Path
) -> None:
    """What is on git's list and not ours is left alone, even where its folder is missing."""
    folder = new_repository()
    commit = folder.commit({"f": ""})
    folder.git("worktree", "add", "--detach", str(tmp_path / "theirs"))
    (tmp_path / "theirs").rename(tmp_path / "unplugged")

    with work_tree(find_repository(folder.path), commit):
        pass

    assert "theirs" in folder.git("worktree", "list")


@pytest.mark.parametrize("kind", ["smudge", "process", "required"])
def test_no_filter_runs(
    new_repository: Callable[..., object], temporary: Path, tmp_path: Path, kind: str
) -> None:
    """A filter that the commit names and the settings define is switched off, even if required."""
    folder = new_repository()
    commit = folder.commit({".gitattributes": "* filter=Evil.one\n", "f": "content"})
    mark = tmp_path / "ran"
    value = "true" if kind == "required" else f"touch {mark}; cat"
    folder.git("config", f"filter.Evil.one.{kind}", value)

    with work_tree(find_repository(folder.path), commit) as tree:
        content = (tree.top / "f").read_text()

    assert content == "content"
    assert not mark.exists()


def test_a_filter_that_cannot_be_switched_off_is_refused(
    new_repository: Callable[..., object], temporary: Path, tmp_path: Path
) -> None:
    """Its name has a character that no option can hold."""
    folder = new_repository()
    commit = folder.commit({".gitattributes": "* filter=a=b\n", "f": ""})
    folder.git("config", "filter.a=b.smudge", f"touch {tmp_path / 'ran'}; cat")

    with (
        pytest.raises(GitError, match="switched off"),
        work_tree(find_repository(folder.path), commit),
    ):
        pass

    assert not (tmp_path / "ran").exists()
    assert not list(temporary.iterdir())


def test_no_hook_runs(
    new_repository: Callable[..., object], temporary: Path, tmp_path: Path
) -> None:
    """Hooks that git has for a checkout are not asked."""
    folder = new_repository()
    commit = folder.commit({"f": ""})
    hooks = folder.path / ".git/hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("post-checkout", "post-index-change", "reference-transaction"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {tmp_path / 'ran'}\n")
        (hooks / name).chmod(0o755)

    with work_tree(find_repository(folder.path), commit):
        pass

    assert not (tmp_path / "ran").exists()


@pytest.mark.slow
def test_it_works_within_a_linked_work_tree_and_a_submodule(
    new_repository: Callable[..., object], temporary: Path, tmp_path: Path
) -> None:
    """The user's checkout may itself be one of several, or part of another repository."""
    inner = new_repository("inner")
    commit = inner.commit({"f": "content"})
    outer = new_repository("outer")
    outer.git("submodule", "--quiet", "add", str(inner.path), "sub")
    inner.git("worktree", "add", "--quiet", "--detach", str(tmp_path / "linked"))

    for place in (outer.path / "sub", tmp_path / "linked"):
        with work_tree(find_repository(place), commit) as tree:
            assert (tree.top / "f").read_text() == "content"
        assert (place / "f").read_text() == "content"


def test_a_commit_that_is_not_there_is_named(
    new_repository: Callable[..., object], temporary: Path
) -> None:
    """The message says what cannot be checked out."""
    folder = new_repository()
    folder.commit({"f": ""})

    with (
        pytest.raises(GitError, match="cannot be checked out"),
        work_tree(find_repository(folder.path), "0" * 39 + "1"),
    ):
        pass

    assert not list(temporary.iterdir())


@pytest.mark.parametrize("is_linked", [False, True])
def test_what_a_killed_recheck_left_is_swept(
    new_repository: Callable[..., object], temporary: Path, tmp_path: Path, is_linked: bool
) -> None:
    """Folder and entry of git's list, whether or not the next process rechecks anything."""
    folder = new_repository()
    folder.commit({"f": ""})
    top, kept = folder.path, 1
    if is_linked:
        folder.git("worktree", "add", "--detach", str(tmp_path / "linked"))
        top, kept = tmp_path / "linked", 2
    left = temporary / "ci-gate-worlds-x"
    folder.git("worktree", "add", "--detach", str(left / "ci-gate-recheck"))
    (left / "lock").write_text("")

    sweep_lost(find_repository(top))

    assert not list(temporary.iterdir())
    assert len(folder.git("worktree", "list").splitlines()) == kept

"""Reading real git repositories, whatever shape they have and whatever names they are given."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ci_gate.errors import GitError
from ci_gate.gate import repository as repositories
from ci_gate.gate.history import history
from ci_gate.gate.repository import (
    Repository,
    changed_files,
    commit_of,
    find_repository,
    head_commit,
    last_change,
    list_tree,
    object_name,
    path_in,
    read_blob,
    tracked_files,
)

NewRepository = Callable[..., Any]


def found(start: Path) -> Repository:
    """Return the repository of a folder that must have one."""
    repository = find_repository(start)
    assert repository is not None
    return repository


def test_a_subfolder_belongs_to_the_repository_around_it(new_repository: NewRepository) -> None:
    """A project in a folder of a monorepo finds the monorepo."""
    folder = new_repository()
    commit = folder.commit({"apps/desk/ci-gate.toml": "x"})

    repository = found(folder.path / "apps" / "desk")

    assert repository.top == folder.path.resolve()
    assert read_blob(repository, commit, folder.path / "apps/desk/ci-gate.toml") == b"x"
    assert path_in(repository, folder.path / "apps" / ".." / "x") == "x"


def test_no_repository_and_a_bare_one_are_none(
    tmp_path: Path, new_repository: NewRepository
) -> None:
    """Without a working tree there is nothing to compare with; the caller says so."""
    new_repository().commit({"a": "x"})
    bare = tmp_path / "bare.git"
    subprocess.run(["git", "clone", "--quiet", "--bare", tmp_path / "repository", bare], check=True)

    assert find_repository(bare) is None
    assert find_repository(tmp_path) is None


def test_a_folder_that_a_change_dressed_up_as_a_repository_is_not_one(
    new_repository: NewRepository,
) -> None:
    """A bare repository among the files would bring its own baseline; git's own search takes it."""
    folder = new_repository()
    commit = folder.commit({"desk/baselines/desk.json": "real"})
    planted = folder.path / "desk"
    subprocess.run(["git", "init", "--quiet", "--bare", planted], check=True)

    repository = found(planted)

    assert repository.top == folder.path.resolve()
    assert head_commit(repository) == commit


@pytest.mark.slow
def test_worktrees_and_submodules_have_their_own_head(
    tmp_path: Path, new_repository: NewRepository
) -> None:
    """Both have a file in the place of the folder .git."""
    folder = new_repository()
    commit = folder.commit({"a": "main"})
    folder.git("worktree", "add", "--quiet", "-b", "other", str(tmp_path / "tree"))
    tree = type(folder)(tmp_path / "tree")
    other = tree.commit({"a": "other"})
    outer = new_repository("outer")
    outer.commit({"b": "x"})
    outer.git("submodule", "--quiet", "add", f"file://{folder.path}", "libs/desk")
    outer.commit()

    inside = found(outer.path / "libs" / "desk")

    assert head_commit(found(tree.path)) == other
    assert changed_files(found(tree.path), ["."]) == ()
    assert inside.top == (outer.path / "libs" / "desk").resolve()
    assert head_commit(inside) == commit
    assert read_blob(inside, commit, "a") == b"main"


def test_a_repository_without_commits_has_no_head(new_repository: NewRepository) -> None:
    """The first minute of a project is no error."""
    folder = new_repository()
    folder.write("a", "x")
    repository = found(folder.path)

    assert head_commit(repository) is None
    assert last_change(repository, None, "a") is None
    assert changed_files(repository, ["."]) == ("a",)
    assert history(repository, "a") == ()


def test_a_broken_repository_is_an_error_and_not_absent(tmp_path: Path) -> None:
    """To go on as if there were none would judge a change by itself."""
    (tmp_path / ".git").write_text("gitdir: nowhere")

    with pytest.raises(GitError, match="git cannot read the repository"):
        find_repository(tmp_path)


def test_a_checkout_of_another_user_is_read(
    new_repository: NewRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Containers in CI run as another user than the one who checked out; git refuses, we read."""
    folder = new_repository()
    commit = folder.commit({"a": "x"})
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")

    assert head_commit(found(folder.path)) == commit


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root to chown")
def test_a_strangers_repository_around_our_folder_is_refused(
    new_repository: NewRepository,
) -> None:
    """A .git that somebody put into a shared folder above must not decide anything."""
    folder = new_repository()
    folder.commit({"a": "x"})
    os.chown(folder.path / ".git", 12345, 12345)
    (folder.path / "mine").mkdir()

    with pytest.raises(GitError, match="belongs to another user"):
        find_repository(folder.path / "mine")


def test_without_git_the_message_says_so(tmp_path: Path) -> None:
    """Slim images have no git; that is neither a traceback nor an absent repository."""
    (tmp_path / ".git").mkdir()
    code = (
        "from pathlib import Path\n"
        "from ci_gate.gate.repository import find_repository\n"
        "from ci_gate.errors import GitError\n"
        "try: find_repository(Path.cwd())\n"
        "except GitError as error: print(error)\n"
    )
    empty = {**os.environ, "PATH": str(tmp_path)}

    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=empty, capture_output=True, text=True
    )

    assert done.stdout == ("the program git was not found. Install git, or pass --baseline FILE.\n")


def test_what_a_hook_sets_does_not_change_the_answers(
    tmp_path: Path, new_repository: NewRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hook runs with variables that point git at another repository and index."""
    folder = new_repository()
    commit = folder.commit({"a": "x"})
    other = new_repository("other")
    other.commit({"b": "y"})
    monkeypatch.setenv("GIT_DIR", str(other.path / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other.path))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "nowhere"))

    repository = found(folder.path)

    assert head_commit(repository) == commit
    assert tracked_files(repository, repository.top) == ("a",)
    assert changed_files(repository, ["."]) == ()


def test_no_program_of_the_repositorys_configuration_is_run(
    tmp_path: Path, new_repository: NewRepository
) -> None:
    """A file system monitor is a command; asking what changed must not start it."""
    folder = new_repository()
    folder.commit({"a": "x"})
    marker = tmp_path / "ran"
    folder.git("config", "core.fsmonitor", f"touch {marker}; false")

    changed_files(found(folder.path), ["."])

    assert not marker.exists()


@pytest.mark.parametrize(
    "name",
    [
        "--upload-pack=touch x",
        "-x",
        "--all",
        "a..b",
        "HEAD:a",
        "@{-1}",
        "main^{tree}",
        "a b",
        "",
        "a\0b",
        "a\nb",
        "$(touch x)",
        "refs/heads/",
        "x.lock",
        "main~9999999999",
    ],
)
def test_names_that_git_does_not_allow_never_reach_it(
    new_repository: NewRepository, name: str
) -> None:
    """A ref is a name: no option, no range, no expression, no command."""
    folder = new_repository()
    folder.commit({"a": "x"})

    with pytest.raises(GitError) as caught:
        commit_of(found(folder.path), name)

    assert "\n" not in str(caught.value)
    assert sorted(path.name for path in folder.path.iterdir()) == [".git", "a"]


def test_branches_tags_ids_and_ancestors_are_found(new_repository: NewRepository) -> None:
    """What people write for a commit; a tag of a tag's object is its commit."""
    folder = new_repository()
    first = folder.commit({"a": "1"})
    second = folder.commit({"a": "2"})
    folder.git("tag", "-a", "v1", "-m", "one", first)
    folder.git("update-ref", "refs/remotes/origin/topic/x", first)
    repository = found(folder.path)

    names = (
        "main",
        "HEAD",
        "HEAD~1",
        "main^",
        "v1",
        first,
        first[:10],
        "topic/x",
        "origin/topic/x",
    )
    assert [commit_of(repository, name) for name in names] == [
        second, second, first, first, first, first, first, first, first
    ]  # fmt: skip
    assert object_name(repository, "absent") is None
    with pytest.raises(GitError, match='there is no commit "absent"'):
        commit_of(repository, "absent")


def test_a_shallow_clone_says_what_to_fetch(tmp_path: Path, new_repository: NewRepository) -> None:
    """The commit may exist at the origin; the message has the command."""
    folder = new_repository()
    first = folder.commit({"a": "1"})
    folder.commit({"a": "2"})
    repository = found(folder.clone(tmp_path / "shallow", "--depth=1").path)

    with pytest.raises(GitError, match=f"git fetch --depth=1 origin {first}"):
        commit_of(repository, first)


def test_a_file_is_what_the_commit_holds(new_repository: NewRepository) -> None:
    """The working tree, later commits and rewritten branches do not change what was read."""
    folder = new_repository()
    commit = folder.commit({"b/desk.json": "first\n\n", "b/käse.json": "é"})
    folder.commit({"b/desk.json": "second"})
    folder.write("b/desk.json", "third")
    repository = found(folder.path)

    assert read_blob(repository, commit, "b/desk.json") == b"first\n\n"
    assert read_blob(repository, commit, "b/käse.json") == "é".encode()
    assert read_blob(repository, commit, "b/absent.json") is None
    assert read_blob(repository, commit, "absent/desk.json") is None
    assert list_tree(repository, commit, "b") == ("b/desk.json", "b/käse.json")
    assert list_tree(repository, commit, folder.path) == ("b/desk.json", "b/käse.json")
    assert list_tree(repository, commit, "absent") == ()


def test_replaced_objects_are_read_as_they_were(new_repository: NewRepository) -> None:
    """``git replace`` would let a fetched ref put another baseline in the place of the real one."""
    folder = new_repository()
    commit = folder.commit({"a": "real"})
    real, forged = folder.git("rev-parse", "HEAD:a"), folder.write("f", "forged")
    folder.git("replace", real, folder.git("hash-object", "-w", str(forged)))

    assert read_blob(found(folder.path), commit, "a") == b"real"


def test_names_with_pattern_characters_are_names(new_repository: NewRepository) -> None:
    """A path with stars, colons or line breaks is that path and nothing else."""
    folder = new_repository()
    commit = folder.commit({"a/*.json": "star", "a/x.json": "x", ":(top)y": "colon", "n\nl": "nl"})
    repository = found(folder.path)

    assert read_blob(repository, commit, "a/*.json") == b"star"
    assert read_blob(repository, commit, ":(top)y") == b"colon"
    assert read_blob(repository, commit, "n\nl") == b"nl"
    assert read_blob(repository, commit, "a/[x].json") is None


@pytest.mark.slow
def test_links_folders_and_submodules_are_refused_by_name(
    tmp_path: Path, new_repository: NewRepository
) -> None:
    """A baseline that is a link would be read from wherever the change points it."""
    folder = new_repository()
    inner = new_repository("inner")
    inner.commit({"c": "x"})
    folder.commit({"real/desk.json": "x"})
    (folder.path / "link.json").symlink_to(tmp_path / "secret")
    (folder.path / "linked").symlink_to("real")
    folder.git("submodule", "--quiet", "add", f"file://{inner.path}", "sub")
    commit = folder.commit()
    repository = found(folder.path)

    for path, kind in {
        "link.json": "link.json at .* is a symbolic link",
        "linked/desk.json": "linked at .* is a symbolic link",
        "real": "is a folder",
        "sub": "is a submodule",
        "sub/c": "sub at .* is a submodule",
    }.items():
        with pytest.raises(GitError, match=kind.replace(" at .* ", " at .*: ")):
            read_blob(repository, commit, path)
    assert list_tree(repository, commit, ".") == (".gitmodules", "real/desk.json")


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "a/../../x", "a\0b"])
def test_paths_outside_are_refused(new_repository: NewRepository, path: str) -> None:
    """No path leaves the repository."""
    folder = new_repository()
    commit = folder.commit({"a": "x"})

    with pytest.raises(GitError, match="lies outside the repository"):
        read_blob(found(folder.path), commit, path)


def test_large_files_are_refused_before_they_are_read(
    new_repository: NewRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The size is known from the tree."""
    folder = new_repository()
    commit = folder.commit({"a": "x" * 100})
    monkeypatch.setattr(repositories, "MAX_BLOB_BYTES", 99)

    with pytest.raises(GitError, match="is larger than 99 bytes"):
        read_blob(found(folder.path), commit, "a")


def test_the_age_of_a_file_is_that_of_its_last_change(new_repository: NewRepository) -> None:
    """Other commits and the file's own time on disk do not count."""
    folder = new_repository()
    first = folder.commit({"a": "1"}, date=1_700_000_000)
    folder.commit({"a": "2"}, date=1_700_086_400)
    folder.commit({"b": "1"}, date=1_700_172_800)
    repository = found(folder.path)

    assert last_change(repository, None, "a") == "2023-11-15T22:13:20Z"
    assert last_change(repository, first, folder.path / "a") == "2023-11-14T22:13:20Z"
    assert last_change(repository, None, "c") is None


def test_the_end_of_a_shallow_history_is_no_change(
    tmp_path: Path, new_repository: NewRepository
) -> None:
    """There every file seems to be new; the age is unknown and not young."""
    folder = new_repository()
    folder.commit({"a": "1"})
    folder.commit({"b": "1"})
    clone = folder.clone(tmp_path / "shallow", "--depth=1")

    assert last_change(found(clone.path), None, "a") is None
    clone.commit({"a": "2"}, date=1_700_000_100)
    assert last_change(found(clone.path), None, "a") == "2023-11-14T22:15:00Z"


def test_history_has_each_version_once_in_order(new_repository: NewRepository) -> None:
    """Commits that do not touch the file are left out; its removal is a version without content."""
    folder = new_repository()
    first = folder.commit({"a": "1"}, date=1_700_000_000)
    folder.commit({"b": "x"})
    second = folder.commit({"a": "2"}, date=1_700_086_400)
    folder.git("rm", "--quiet", "a")
    removal = folder.commit(date=1_700_172_800)
    repository = found(folder.path)

    versions = history(repository, folder.path / "a")

    assert {version.subject for version in versions} == {folder.git("log", "-1", "--format=%s")}
    assert [(version.commit, version.content) for version in versions] == [
        (first, b"1"),
        (second, b"2"),
        (removal, None),
    ]
    assert versions[0].time == "2023-11-14T22:13:20Z"
    assert [version.commit for version in history(repository, "a", limit=1)] == [removal]


def test_changed_files_are_edits_additions_and_removals(new_repository: NewRepository) -> None:
    """Ignored files do not count; paths restrict the answer."""
    folder = new_repository()
    folder.commit({"a": "1", "gone": "1", "sub/same": "1", ".gitignore": "*.log\n"})
    folder.write("a", "2")
    folder.write("sub/new file", "x")
    folder.write("x.log", "x")
    (folder.path / "gone").unlink()
    repository = found(folder.path)

    assert sorted(changed_files(repository, ["."])) == ["a", "gone", "sub/new file"]
    assert changed_files(repository, [folder.path / "sub"]) == ("sub/new file",)

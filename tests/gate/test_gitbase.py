"""Which commit a change is compared with, in CI and elsewhere."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ci_gate.errors import GitError
from ci_gate.gate.gitbase import Base, find_repository, is_edited, resolve_base

NewRepository = Callable[..., Any]


def base_of(path: Path, *, ref: str | None = None, **environment: str) -> Base:
    """Return the base of a folder under the variables given and no others."""
    return resolve_base(find_repository(path), ref=ref, environment=environment)


def test_work_on_a_branch_is_compared_with_where_it_left(new_repository: NewRepository) -> None:
    """The default branch may have moved on since; what counts is the common commit."""
    folder = new_repository()
    fork = folder.commit({"a": "1"})
    folder.git("checkout", "--quiet", "-b", "topic")
    folder.commit({"a": "2"})
    folder.git("checkout", "--quiet", "main")
    folder.commit({"b": "1"})
    folder.git("checkout", "--quiet", "topic")

    assert base_of(folder.path) == Base(
        kind="merge-base",
        commit=fork,
        ref="main",
        explanation=f"commit {fork[:12]} (where HEAD left main)",
    )


def test_on_the_default_branch_it_is_head(new_repository: NewRepository) -> None:
    """Uncommitted work on main is compared with main's last commit, detached HEAD included."""
    folder = new_repository(branch="master")
    commit = folder.commit({"a": "1"})
    assert base_of(folder.path).commit == commit

    folder.git("checkout", "--quiet", "--detach")
    assert base_of(folder.path).commit == commit


def test_origins_default_branch_comes_first(tmp_path: Path, new_repository: NewRepository) -> None:
    """What was pushed is the bar for what was not, whatever the branch is called."""
    folder = new_repository(branch="trunk")
    pushed = folder.commit({"a": "1"})
    clone = folder.clone(tmp_path / "clone")
    clone.commit({"a": "2"})

    found = base_of(clone.path)

    assert (found.commit, found.ref) == (pushed, "origin/trunk")


@pytest.mark.parametrize("environment", [{}, {"CI": "true"}])
def test_nothing_to_compare_with_is_the_working_tree(
    tmp_path: Path, new_repository: NewRepository, environment: dict[str, str]
) -> None:
    """Without a repository or commits there is no change yet that a gate could judge."""
    plain = tmp_path / "plain"
    plain.mkdir()
    empty = new_repository("empty")

    assert base_of(plain, **environment).explanation == "there is no git repository"
    assert base_of(empty.path, **environment).explanation == "the repository has no commits"


def test_without_a_default_branch_only_ci_refuses(new_repository: NewRepository) -> None:
    """Locally the files serve; in CI they are the change itself and never its own bar."""
    folder = new_repository(branch="trunk")
    folder.commit({"a": "1"})

    assert base_of(folder.path).kind == "working-tree"
    with pytest.raises(GitError, match="there is no default branch, and in CI the working tree"):
        base_of(folder.path, GITHUB_ACTIONS="true")


def test_unrelated_histories_are_said(new_repository: NewRepository) -> None:
    """There is no merge base to be found by fetching more."""
    folder = new_repository()
    folder.commit({"a": "1"})
    folder.git("checkout", "--quiet", "--orphan", "other")
    folder.commit({"a": "2"})

    assert "their histories are unrelated" in base_of(folder.path).explanation


def test_the_ref_a_user_names_wins(new_repository: NewRepository) -> None:
    """``--baseline-ref`` overrides what CI and branches say."""
    folder = new_repository()
    first = folder.commit({"a": "1"})
    folder.git("tag", "v1")
    folder.commit({"a": "2"})

    found = base_of(folder.path, ref="v1", GITHUB_BASE_REF="main", CI="true")

    assert (found.kind, found.commit, found.ref) == ("ref", first, "v1")
    with pytest.raises(GitError, match="is no name that git allows"):
        base_of(folder.path, ref="--upload-pack=touch x")
    assert not (folder.path / "x").exists()


def test_a_named_base_without_a_repository_is_refused(tmp_path: Path) -> None:
    """What was asked for by name is never replaced by something else."""
    for environment in ({"GITHUB_BASE_REF": "main"}, {"CI_GATE_BASE_REF": "main"}):
        with pytest.raises(GitError, match="there is no git repository"):
            base_of(tmp_path, **environment)
    with pytest.raises(GitError, match="pass --baseline FILE"):
        base_of(tmp_path, ref="main")


class Origin:
    """A base branch, a change, and the merge of both that GitHub makes for a pull request."""

    def __init__(self, folder: Any) -> None:
        self.folder = folder
        self.fork = folder.commit({"a": "1", "baseline": "first"})
        folder.git("checkout", "--quiet", "-b", "topic")
        self.head = folder.commit({"a": "2"})
        folder.git("checkout", "--quiet", "main")
        self.base = folder.commit({"b": "1"})
        folder.git("checkout", "--quiet", "--detach")
        folder.git("merge", "--quiet", "--no-ff", "-m", "merge", "topic")
        self.merge = folder.git("rev-parse", "HEAD")
        folder.git("update-ref", "refs/pull/7/merge", self.merge)
        folder.git("checkout", "--quiet", "main")


class PullRequest:
    """A checkout of the merge as a workflow has it, with the variables it sees."""

    def __init__(self, origin: Origin, path: Path, *options: str) -> None:
        self.fork, self.head, self.base = origin.fork, origin.head, origin.base
        self.checkout = origin.folder.clone(path, "--no-checkout", *options)
        pull = "+refs/pull/7/merge:refs/remotes/pull/7/merge"
        self.checkout.git("fetch", "--quiet", *options, "origin", pull)
        self.checkout.git("checkout", "--quiet", "--detach", origin.merge)
        self.environment = {
            "GITHUB_ACTIONS": "true",
            "GITHUB_EVENT_NAME": "pull_request",
            "GITHUB_BASE_REF": "main",
            "GITHUB_REF": "refs/pull/7/merge",
            "GITHUB_SHA": origin.merge,
        }


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory, git_folder: type[Any]) -> Origin:
    """Return a repository that no test changes."""
    folder = git_folder(tmp_path_factory.mktemp("origin"))
    folder.git("init", "--quiet", "--initial-branch=main")
    return Origin(folder)


def test_in_a_pull_request_it_is_what_the_change_was_merged_into(
    tmp_path: Path, origin: Origin
) -> None:
    """The merge that GitHub checks out has the base as its first parent, wherever the branch is."""
    pull = PullRequest(origin, tmp_path / "clone")
    pull.checkout.git("update-ref", "refs/remotes/origin/main", pull.fork)

    found = base_of(pull.checkout.path, **pull.environment)

    assert (found.kind, found.commit, found.ref) == ("pull-request", pull.base, "main")
    assert found.explanation == f"commit {pull.base[:12]} (main, the base of the pull request)"


def test_the_first_parent_of_the_changes_own_commit_is_not_trusted(
    tmp_path: Path, origin: Origin
) -> None:
    """A workflow that checks the head out gets the base branch, not the change's own parent."""
    pull = PullRequest(origin, tmp_path / "clone")
    pull.checkout.git("checkout", "--quiet", "-b", "main-of-fork", pull.head)
    own = pull.checkout.commit({"baseline": "easier"})
    pull.checkout.git("merge", "--quiet", "--no-ff", "-m", "m", "origin/main")

    found = base_of(pull.checkout.path, **pull.environment)

    assert found.commit == pull.base
    assert found.commit != own


def test_a_local_branch_of_the_bases_name_is_not_the_base(tmp_path: Path, origin: Origin) -> None:
    """A fork's branch may be called main too, and be checked out under that name."""
    pull = PullRequest(origin, tmp_path / "clone")
    pull.checkout.git("checkout", "--quiet", "-B", "main", pull.head)
    pull.checkout.commit({"baseline": "easier"})

    assert base_of(pull.checkout.path, **pull.environment).commit == pull.base
    assert base_of(pull.checkout.path, CI_GATE_BASE_REF="main").commit == pull.base
    assert base_of(pull.checkout.path, CI="true", ref="main").commit == pull.base


def test_the_event_file_names_the_base_exactly(tmp_path: Path, origin: Origin) -> None:
    """The branch may have moved on since the event; a broken event file is passed over."""
    pull = PullRequest(origin, tmp_path / "clone")
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"pull_request": {"base": {"sha": pull.fork}}}))
    environment = {**pull.environment, "GITHUB_SHA": pull.head, "GITHUB_EVENT_PATH": str(event)}

    assert base_of(pull.checkout.path, **environment).commit == pull.fork
    for broken in (
        "{",
        "[]",
        '{"pull_request": 5}',
        json.dumps({"pull_request": {"base": {"sha": "--x"}}}),
    ):
        event.write_text(broken)
        assert base_of(pull.checkout.path, **environment).commit == pull.base


def test_a_shallow_checkout_says_what_to_fetch_and_the_command_helps(
    tmp_path: Path, origin: Origin
) -> None:
    """actions/checkout fetches one commit; the message is a command that ends the trouble."""
    pull = PullRequest(origin, tmp_path / "clone", "--depth=1")
    pull.checkout.git("update-ref", "-d", "refs/remotes/origin/main")
    pull.checkout.git("reflog", "expire", "--expire=now", "--all")
    pull.checkout.git("branch", "-D", "main")
    (pull.checkout.path / ".git" / "FETCH_HEAD").unlink()
    pull.checkout.git("gc", "--quiet", "--prune=now")

    with pytest.raises(GitError) as caught:
        base_of(pull.checkout.path, **pull.environment)

    command = "git fetch --no-tags --depth=1 origin +refs/heads/main:refs/remotes/origin/main"
    assert "this shallow clone does not have it" in str(caught.value)
    assert command in str(caught.value)
    pull.checkout.git(*command.split()[1:])
    assert base_of(pull.checkout.path, **pull.environment).commit == pull.base


def test_generic_ci_names_a_branch_a_ref_or_a_commit(tmp_path: Path, origin: Origin) -> None:
    """One variable serves every other CI system."""
    pull = PullRequest(origin, tmp_path / "clone")

    for name in ("main", "origin/main", "refs/remotes/origin/main", pull.base):
        found = base_of(pull.checkout.path, CI_GATE_BASE_REF=name)
        assert (found.kind, found.commit) == ("pull-request", pull.base)
    with pytest.raises(GitError, match="it was not fetched"):
        base_of(pull.checkout.path, CI_GATE_BASE_REF="absent")
    with pytest.raises(GitError, match="is no name that git allows"):
        base_of(pull.checkout.path, CI_GATE_BASE_REF="--upload-pack=touch x")


def test_a_push_in_ci_is_compared_with_where_it_left(tmp_path: Path, origin: Origin) -> None:
    """Without a pull request the merge base serves in CI as well, and its absence is an error."""
    pull = PullRequest(origin, tmp_path / "clone")
    pull.checkout.git("checkout", "--quiet", pull.head)
    assert base_of(pull.checkout.path, GITHUB_ACTIONS="true").commit == pull.fork

    shallow = PullRequest(origin, tmp_path / "shallow", "--depth=1")
    with pytest.raises(GitError, match="this shallow clone lacks it, and in CI"):
        base_of(shallow.checkout.path, GITHUB_ACTIONS="true")


def test_a_file_that_only_the_base_branch_changed_is_not_edited(
    new_repository: NewRepository,
) -> None:
    """A change that is behind its base did not touch the baseline that moved on there."""
    folder = new_repository()
    folder.commit({"baseline": "first"})
    folder.git("checkout", "--quiet", "-b", "topic")
    folder.commit({"a": "1"})
    folder.git("checkout", "--quiet", "main")
    tip = folder.commit({"baseline": "second"})
    folder.git("checkout", "--quiet", "topic")
    repository = find_repository(folder.path)
    assert repository is not None
    base = resolve_base(repository, ref=tip, environment={})
    path = folder.path / "baseline"

    assert not is_edited(repository, base, path, b"first")
    assert not is_edited(repository, base, path, b"second")
    assert is_edited(repository, base, path, b"third")

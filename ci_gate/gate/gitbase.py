"""Which commit a change is compared with.

In a pull request it is the base branch's, as the CI system names it and never as the change could;
elsewhere the place where the work left the default branch; without either, the working tree.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NoReturn

import msgspec

from ci_gate import codec
from ci_gate.errors import GitError, printable
from ci_gate.gate.repository import (
    Repository,
    commit_of,
    find_repository,
    head_commit,
    is_commit_id,
    is_shallow,
    last_change,
    list_tree,
    object_name,
    read_blob,
    run_git,
)

__all__ = [
    "Base",
    "Repository",
    "find_repository",
    "head_commit",
    "is_behind",
    "is_edited",
    "last_change",
    "list_tree",
    "read_blob",
    "resolve_base",
    "working_tree",
]

_ORIGIN_HEAD = "refs/remotes/origin/HEAD"
_MAX_EVENT_BYTES = 16 * 1024 * 1024


class Base(msgspec.Struct, frozen=True, kw_only=True):
    """What a change is compared with.

    Parameters
    ----------
    kind : {"ref", "pull-request", "merge-base", "working-tree"}
        ``ref``: the user named it. ``pull-request``: the CI system did. ``merge-base``: where HEAD
        left the default branch.
    commit : str or None
        Full id; None for the working tree.
    ref : str or None
        The name it was found by.
    explanation : str
        For people: which commit it is, or why it is the working tree.
    """

    kind: Literal["ref", "pull-request", "merge-base", "working-tree"]
    commit: str | None = None
    ref: str | None = None
    explanation: str


def working_tree(why: str) -> Base:
    """Return the base of a comparison with the files as they are."""
    return Base(kind="working-tree", explanation=why)


def resolve_base(
    repository: Repository | None, *, ref: str | None, environment: Mapping[str, str]
) -> Base:
    """Return what a change is compared with.

    Parameters
    ----------
    repository : Repository or None
        None where there is none with a working tree.
    ref : str or None
        A branch, tag or commit that the user names; it wins.
    environment : mapping of str to str
        ``CI_GATE_BASE_REF`` names the base branch or commit in any CI system; GitHub's
        ``GITHUB_BASE_REF`` and event file name it in a pull request.

    Raises
    ------
    GitError
        The commit is asked for and not there; the message says what to fetch. In CI also where no
        commit can be found, because the working tree is the change itself.
    """
    branch = environment.get("CI_GATE_BASE_REF") or environment.get("GITHUB_BASE_REF")
    if repository is None:
        return _without_repository(ref or branch)
    if ref is not None:
        commit = _named_by_user(repository, ref, in_ci=_in_ci(environment))
        return _at("ref", commit, ref, printable(ref))
    if environment.get("CI_GATE_BASE_REF"):
        return _named_by_ci(repository, environment["CI_GATE_BASE_REF"])
    if environment.get("GITHUB_BASE_REF"):
        return _of_pull_request(repository, environment["GITHUB_BASE_REF"], environment)
    return _of_default_branch(repository, in_ci=_in_ci(environment))


def is_edited(repository: Repository, base: Base, path: Path, present: bytes | None) -> bool:
    """Return whether a change edits a file of its base.

    A file that differs from the base's only because the base branch has moved on is not edited.

    Parameters
    ----------
    repository : Repository
    base : Base
        With a commit.
    path : Path
        Of the file.
    present : bytes or None
        Its content in the working tree; None where it has none.
    """
    if base.commit is None or read_blob(repository, base.commit, path) == present:
        return False
    fork = _merge_base(repository, base.commit)
    return fork is None or read_blob(repository, fork, path) != present


def is_behind(repository: Repository | None, base: Base) -> bool:
    """Return whether the base has commits that HEAD does not have; False where that is unknown."""
    if repository is None or base.commit is None:
        return False
    fork = _merge_base(repository, base.commit)
    return fork is not None and fork != base.commit


def _without_repository(name: str | None) -> Base:
    if name is not None:
        raise GitError(
            f'there is no git repository with a working tree to find "{printable(name)}" in',
            hint="Check the repository out, or pass --baseline FILE.",
        )
    return working_tree("there is no git repository")


def _at(
    kind: Literal["ref", "pull-request", "merge-base"], commit: str, ref: str | None, what: str
) -> Base:
    return Base(kind=kind, commit=commit, ref=ref, explanation=f"commit {commit[:12]} ({what})")


def _in_ci(environment: Mapping[str, str]) -> bool:
    return any(
        environment.get(name, "").lower() in ("true", "1") for name in ("CI", "GITHUB_ACTIONS")
    )


def _named_by_user(repository: Repository, ref: str, *, in_ci: bool) -> str:
    # In CI a local branch may be the change's own under the name of the base.
    if in_ci and not ref.startswith("HEAD"):
        commit = _remote_commit(repository, ref)
        if commit is not None:
            return commit
    return commit_of(repository, ref)


def _named_by_ci(repository: Repository, name: str) -> Base:
    """Return the commit of a branch of origin, of a full ref or of an id.

    Never a local branch: a checkout of the change may have made one of the same name.
    """
    commit = _remote_commit(repository, name)
    if commit is None:
        _refuse_missing(repository, name)
    return _at(
        "pull-request", commit, name, f"{printable(name)}, the base named by CI_GATE_BASE_REF"
    )


def _remote_commit(repository: Repository, name: str) -> str | None:
    commit = object_name(repository, f"refs/remotes/origin/{name.removeprefix('origin/')}")
    exact = name.startswith("refs/") or is_commit_id(name)
    return object_name(repository, name) if commit is None and exact else commit


def _refuse_missing(repository: Repository, branch: str) -> NoReturn:
    shown = printable(branch.removeprefix("origin/"))
    target = (
        shown
        if branch.startswith("refs/") or is_commit_id(branch)
        else (f"+refs/heads/{shown}:refs/remotes/origin/{shown}")
    )
    why = "this shallow clone does not have it" if is_shallow(repository) else "it was not fetched"
    raise GitError(
        f'the commit of the base branch "{shown}" is not in the repository: {why}',
        where=printable(repository.top),
        hint=(
            f"Fetch it first: git fetch --no-tags --depth=1 origin {target} "
            "(or actions/checkout with fetch-depth: 0)."
        ),
    )


def _of_pull_request(repository: Repository, branch: str, environment: Mapping[str, str]) -> Base:
    what = f"{printable(branch)}, the base of the pull request"
    candidates = (
        _merged_into(repository, environment),
        _base_of_event(environment),
    )
    for candidate in candidates:
        commit = object_name(repository, candidate) if candidate else None
        if commit is not None:
            return _at("pull-request", commit, branch, what)
    commit = _remote_commit(repository, branch)
    if commit is None:
        _refuse_missing(repository, branch)
    return _at("pull-request", commit, branch, what)


def _merged_into(repository: Repository, environment: Mapping[str, str]) -> str | None:
    """Return the base that GitHub merged the change into for this check.

    The first parent of HEAD is that only where HEAD is the merge that GitHub made itself; else the
    change decides what its parents are.
    """
    merged = environment.get("GITHUB_REF", "").endswith("/merge")
    event = environment.get("GITHUB_EVENT_NAME") == "pull_request"
    head = head_commit(repository)
    if not (merged and event and head and head == environment.get("GITHUB_SHA")):
        return None
    # Read from the object itself: a shallow clone hides parents from rev-parse.
    header = run_git(repository, "cat-file", "commit", head).output.split(b"\n\n", 1)[0]
    parents = [line[7:].decode() for line in header.split(b"\n") if line.startswith(b"parent ")]
    return parents[0] if len(parents) == 2 else None


def _base_of_event(environment: Mapping[str, str]) -> str | None:
    """Return the base commit that the event file names; None where there is none to be read."""
    name = environment.get("GITHUB_EVENT_PATH")
    if not name:
        return None
    try:
        with Path(name).open("rb") as file:
            event = codec.decode(file.read(_MAX_EVENT_BYTES))
    except (OSError, ValueError):
        return None
    commit: Any = event
    for key in ("pull_request", "base", "sha"):
        commit = commit.get(key) if isinstance(commit, dict) else None
    return commit if isinstance(commit, str) and is_commit_id(commit) else None


def _of_default_branch(repository: Repository, *, in_ci: bool) -> Base:
    branch = _default_branch(repository)
    commit = None if branch is None else _merge_base(repository, branch)
    if branch is not None and commit is not None:
        shown = branch.removeprefix("refs/heads/").removeprefix("refs/remotes/")
        return _at("merge-base", commit, shown, f"where HEAD left {printable(shown)}")
    if head_commit(repository) is None:
        return working_tree("the repository has no commits")
    if branch is None:
        return _undecided("there is no default branch", in_ci=in_ci)
    shallow = is_shallow(repository)
    why = "this shallow clone lacks it" if shallow else "their histories are unrelated"
    return _undecided(f"HEAD has no common commit with {branch}: {why}", in_ci=in_ci)


def _undecided(why: str, *, in_ci: bool) -> Base:
    if not in_ci:
        return working_tree(why)
    raise GitError(
        f"{why}, and in CI the working tree is the change itself",
        hint=(
            "Set CI_GATE_BASE_REF to the base branch, pass --baseline-ref or --baseline, or fetch "
            "the history (actions/checkout with fetch-depth: 0)."
        ),
    )


def _default_branch(repository: Repository) -> str | None:
    """Return the full name of the default branch: origin's, else a local main or master."""
    usual = [
        f"{place}/{name}"
        for place in ("refs/remotes/origin", "refs/heads")
        for name in ("main", "master")
    ]
    # One question for all of them: each costs a process. A name that leads nowhere is not listed.
    answer = run_git(
        repository, "for-each-ref", "--format=%(refname) %(symref)", _ORIGIN_HEAD, *usual
    )
    lines = answer.output.decode("utf-8", "replace").splitlines()
    known = dict(line.split(" ", 1) for line in lines)
    named = known.get(_ORIGIN_HEAD)
    return named or next((ref for ref in usual if ref in known), None)


def _merge_base(repository: Repository, other: str) -> str | None:
    answer = run_git(repository, "merge-base", "HEAD", other)
    return None if answer.status else answer.output.decode("ascii").split()[0]

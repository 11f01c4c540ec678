"""A work tree of another commit in a temporary folder, and nothing of it left behind.

Decides how a commit gets onto the disk: no program of the repository runs for it, neither a hook
nor a filter, and what the user has checked out stays as it is. It must not know what the files are
for.

Notes
-----
Filters are named by the commit's ``.gitattributes`` and defined by the repository's settings, which
a job that ran the change may have written. They are looked up under the settings by which the files
are written, and switched off one by one. Files that a filter would have fetched (Git LFS) are
pointers then; submodules are empty folders. ``[agent] setup`` can bring both.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ci_gate.errors import GitError, printable
from ci_gate.gate.repository import Repository, find_repository, is_commit_id, run_git
from ci_gate.sandbox.scratch import Scratch, sweep

__all__ = ["sweep_lost", "work_tree"]

_NAME: Final = "ci-gate-recheck"
_FILTERS: Final = r"^filter\..*\.(clean|smudge|process|required)$"


def sweep_lost(repository: Repository | None) -> None:
    """Remove what killed processes left: worlds and work trees that nobody has locked any more.

    Parameters
    ----------
    repository : Repository or None
        Whose list of work trees is cleared of ours that are gone.
    """
    sweep(Path(tempfile.gettempdir()))
    if repository is not None and _may_have_work_trees(repository):
        _forget_lost(repository)


def _may_have_work_trees(repository: Repository) -> bool:
    """Return whether it is worth asking git, which takes its time."""
    own = repository.git_dir
    return (own / "worktrees").is_dir() or (own / "commondir").is_file()


@contextmanager
def work_tree(repository: Repository, commit: str) -> Iterator[Repository]:
    """Check a commit out into a folder of its own, which is gone afterwards.

    Parameters
    ----------
    repository : Repository
    commit : str
        Full id.

    Yields
    ------
    Repository
        The work tree.

    Raises
    ------
    GitError
        git cannot check it out: an object is missing, the disk is full, a filter cannot be
        switched off.
    """
    sweep_lost(repository)
    scratch = Scratch(Path(tempfile.gettempdir()))
    folder = scratch.folder / _NAME
    try:
        yield _checked_out(repository, commit, folder)
    finally:
        scratch.close()
        _forget(repository, folder)


def _checked_out(repository: Repository, commit: str, folder: Path) -> Repository:
    if not is_commit_id(commit):
        raise GitError(f'"{printable(commit)}" is no commit id')
    # Without files: git would write them by a process that is told of our own index.
    _run(repository, "worktree", "add", "--no-checkout", "--detach", str(folder), commit)
    found = find_repository(folder)
    assert found is not None
    _run(found, *_without_filters(found), "reset", "--hard", "--quiet", "--no-recurse-submodules")
    return found


def _without_filters(repository: Repository) -> list[str]:
    """Return the options by which git runs no filter in this work tree."""
    answer = run_git(repository, "config", "--null", "--name-only", "--get-regexp", _FILTERS)
    names = {os.fsdecode(name) for name in answer.output.split(b"\0") if name}
    for name in names:
        if "=" in name or "\n" in name:
            raise GitError(
                "a filter of the repository cannot be switched off by its name",
                where=printable(name),
                hint="Rename it in the settings of git.",
            )
    off = [f"{name}={'false' if name.endswith('.required') else ''}" for name in sorted(names)]
    return [part for setting in off for part in ("-c", setting)]


def _run(repository: Repository, *arguments: str) -> None:
    answer = run_git(repository, *arguments)
    if answer.status:
        raise GitError(
            f"the base commit cannot be checked out: {printable(answer.message)}",
            where=printable(repository.top),
        )


def _forget(repository: Repository, folder: Path) -> None:
    """Take a work tree whose folder is gone off git's list; only ours, whatever else is lost."""
    run_git(repository, "worktree", "remove", "--force", "--force", str(folder))


def _forget_lost(repository: Repository) -> None:
    listed = run_git(repository, "worktree", "list", "--porcelain").output.splitlines()
    places = (Path(os.fsdecode(line[9:])) for line in listed if line.startswith(b"worktree "))
    for place in places:
        if place.name == _NAME and not place.exists():
            _forget(repository, place)

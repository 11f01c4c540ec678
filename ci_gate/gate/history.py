"""How a file changed over the commits of a branch, for ``baseline history``."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ci_gate.errors import GitError
from ci_gate.gate.repository import (
    Repository,
    head_commit,
    path_in,
    read_blob,
    run_git,
    utc_text,
)

__all__ = ["PastVersion", "history"]


class PastVersion(msgspec.Struct, frozen=True, kw_only=True):
    """What a commit made of a file.

    Parameters
    ----------
    commit : str
        Full id.
    time : str
        Of the commit, ISO 8601 UTC.
    subject : str
        The first line of its message, which anybody may have written.
    content : bytes or None
        None where the commit removed the file, or put something else in its place.
    """

    commit: str
    time: str
    subject: str
    content: bytes | None


def history(
    repository: Repository, path: Path | str, *, limit: int = 1000
) -> tuple[PastVersion, ...]:
    """Return the versions of a file, the earliest first. Renames are not followed.

    Parameters
    ----------
    repository : Repository
    path : Path or str
        Absolute, or relative to the root of the working tree.
    limit : int
        Versions at most, the latest ones.

    Notes
    -----
    In a shallow clone the earliest version is that of the commit at which history ends, which need
    not have changed it.
    """
    head = head_commit(repository)
    if head is None:
        return ()
    name = path_in(repository, path)
    answer = run_git(
        repository,
        "rev-list",
        f"--max-count={limit}",
        "--encoding=UTF-8",
        "--format=%ct %H %s",
        head,
        "--",
        name,
    )
    lines = answer.output.decode("utf-8", "replace").split("\n")
    # In front of each stands a line `commit <id>`, which older versions of git cannot leave out.
    told = [line for line in lines if line and not line.startswith("commit ")]
    return tuple(_version(repository, line, name) for line in reversed(told))


def _version(repository: Repository, line: str, name: str) -> PastVersion:
    seconds, commit, subject = line.split(" ", 2)
    try:
        content = read_blob(repository, commit, name)
    except GitError:
        # A link or folder once stood here; that it is no baseline is all there is to say.
        content = None
    return PastVersion(commit=commit, time=utc_text(int(seconds)), subject=subject, content=content)

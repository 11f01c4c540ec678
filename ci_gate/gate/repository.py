"""Read a git repository: where it is, what a commit holds, which files changed and when.

Every question goes to git by GitPython with a fixed environment, so that what a hook, a user's
configuration or the checked-out change has set cannot turn an answer. Nothing here writes, fetches,
or knows which commit a change is compared with.
"""

from __future__ import annotations

import contextlib
import datetime
import functools
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import msgspec

from ci_gate.errors import GitError, printable

if TYPE_CHECKING:
    import git

__all__ = [
    "MAX_BLOB_BYTES",
    "Repository",
    "changed_files",
    "commit_of",
    "find_repository",
    "head_commit",
    "is_commit_id",
    "is_shallow",
    "last_change",
    "list_tree",
    "object_name",
    "path_in",
    "read_blob",
    "read_blobs",
    "run_git",
    "tracked_files",
]

MAX_BLOB_BYTES = 512 * 1024 * 1024
_KEPT_BYTES = 1024 * 1024
_LAST_SECOND = 253_402_300_799  # 9999-12-31T23:59:59Z
_SYMLINK, _SUBMODULE, _FOLDER = "120000", "160000", "040000"
_COMMIT_ID = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_ANCESTRY = re.compile(r"(?P<name>[^~^]+)(?P<steps>([~^][0-9]{0,6})*)")

# No program of the repository's configuration, no lock, no question, no replaced objects; paths
# are names and never patterns.
_ENVIRONMENT: Mapping[str, str] = {
    "GIT_CONFIG_COUNT": "2",
    "GIT_CONFIG_KEY_0": "core.fsmonitor",
    "GIT_CONFIG_VALUE_0": "false",
    "GIT_CONFIG_KEY_1": "core.hooksPath",
    "GIT_CONFIG_VALUE_1": os.devnull,
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
}


# What a hook or a hostile job may have set: places of objects, settings, ways to read paths.
_FOREIGN = (
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_CEILING_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_CONFIG_PARAMETERS",
    "GIT_EXTERNAL_DIFF",
    "GIT_GLOB_PATHSPECS",
    "GIT_GRAFT_FILE",
    "GIT_ICASE_PATHSPECS",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_NAMESPACE",
    "GIT_NOGLOB_PATHSPECS",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_TRACE",
)


class Repository(msgspec.Struct, frozen=True, kw_only=True):
    """A repository with a working tree.

    Parameters
    ----------
    top : Path
        Absolute root of the working tree, links resolved.
    git_dir : Path
        Absolute folder with this working tree's index and HEAD.
    """

    top: Path
    git_dir: Path


class _Answer(NamedTuple):
    status: int
    output: bytes
    message: str


class _Entry(NamedTuple):
    """A line of ``git ls-tree``; ``size`` is bytes, 0 for what is no file."""

    mode: str
    oid: str
    size: int
    path: str


def find_repository(start: Path) -> Repository | None:
    """Return the repository whose working tree holds a folder.

    The nearest ``.git`` in the folder or above decides; a folder that only looks like a bare
    repository, which a change could bring along, never does.

    Parameters
    ----------
    start : Path
        An existing folder.

    Returns
    -------
    Repository or None
        None where there is no working tree of git: no repository, or a bare one.

    Raises
    ------
    GitError
        There is one and it cannot be read: git is not installed, the files are another user's,
        or ``.git`` is broken.
    """
    folder = start.resolve()
    for top in (folder, *folder.parents):
        marker = top / ".git"
        if marker.exists():
            _check_owner(marker, folder)
            return Repository(top=top, git_dir=_git_dir(top))
    return None


def _check_owner(marker: Path, folder: Path) -> None:
    """Refuse a repository of somebody else around a folder that is not theirs.

    git itself refuses every repository of another user, which containers in CI meet all the time.
    Whoever owns the folder with the configuration already decides what is run.
    """
    trusted = {folder.stat().st_uid, 0}
    if hasattr(os, "geteuid"):
        trusted.add(os.geteuid())
    if marker.lstat().st_uid not in trusted:
        raise GitError(
            "the repository belongs to another user than the folder that is checked",
            where=printable(marker),
            hint="Make both belong to the same user, or pass --baseline FILE.",
        )


def _git_dir(top: Path) -> Path:
    answer = _execute(top, {"GIT_DIR": str(top / ".git")}, "rev-parse", "--absolute-git-dir")
    if answer.status:
        raise GitError(
            f"git cannot read the repository: {printable(answer.message)}", where=printable(top)
        )
    return Path(os.fsdecode(answer.output.rstrip(b"\n")))


def _execute(
    folder: Path, environment: Mapping[str, str], *arguments: str, given: BinaryIO | None = None
) -> _Answer:
    program = _command(folder)
    with _without_foreign_variables():
        status, output, message = program.execute(
            [program.GIT_PYTHON_GIT_EXECUTABLE, *arguments],
            istream=given,
            env={**_ENVIRONMENT, **environment},
            with_extended_output=True,
            with_exceptions=False,
            stdout_as_string=False,
            strip_newline_in_stdout=False,
        )
    return _Answer(status, output if isinstance(output, bytes) else b"", message)


@contextlib.contextmanager
def _without_foreign_variables() -> Iterator[None]:
    """Hide the variables that would point git at other objects or settings for a moment.

    GitPython can add variables to those of the process and not take any away.
    """
    hidden = {name: os.environ.pop(name) for name in _FOREIGN if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(hidden)


def _command(folder: Path) -> git.Git:
    try:
        import git
    except ImportError as error:
        raise GitError(
            "the program git was not found",
            hint="Install git, or pass --baseline FILE.",
        ) from error
    return git.Git(str(folder))


def run_git(repository: Repository, *arguments: str, given: BinaryIO | None = None) -> _Answer:
    """Return status, output and error text of a git command in the working tree's root.

    Arguments from outside must have been checked, so that none is read as an option. ``given`` is
    its standard input.
    """
    places = {
        "GIT_DIR": str(repository.git_dir),
        "GIT_WORK_TREE": str(repository.top),
        # A hook that calls us may have set this to another index.
        "GIT_INDEX_FILE": str(repository.git_dir / "index"),
    }
    return _execute(repository.top, places, *arguments, given=given)


def _output(repository: Repository, *arguments: str, given: BinaryIO | None = None) -> bytes:
    answer = run_git(repository, *arguments, given=given)
    if answer.status:
        raise GitError(
            f"git {arguments[0]} failed: {printable(answer.message)}",
            where=printable(repository.top),
        )
    return answer.output


def object_name(repository: Repository, ref: str) -> str | None:
    """Return the id of the commit a name stands for, or None where there is none.

    Parameters
    ----------
    repository : Repository
    ref : str
        A branch, tag, full ref or commit id, with ``~N`` and ``^N`` after it where wanted.

    Raises
    ------
    GitError
        git does not allow such a name.
    """
    _check_name(repository, ref)
    answer = run_git(repository, "rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}")
    return None if answer.status else answer.output.decode("ascii").strip()


def _check_name(repository: Repository, ref: str) -> None:
    if ref == "HEAD" or is_commit_id(ref):
        return
    found = _ANCESTRY.fullmatch(ref)
    legal = found is not None and not ref.startswith("-") and "\0" not in ref
    # Only a name that cannot be an option reaches git.
    if (
        not legal
        or run_git(
            repository, "check-ref-format", "--allow-onelevel", found["name"] if found else ""
        ).status
    ):
        raise GitError(
            f'"{printable(ref)}" is no name that git allows for a branch, tag or commit',
            hint="Use a name such as main, origin/main, v1.2 or a commit id.",
        )


def is_commit_id(text: str) -> bool:
    """Return whether a text has the form of a full commit id."""
    return _COMMIT_ID.fullmatch(text) is not None


def commit_of(repository: Repository, ref: str) -> str:
    """Return the id of the commit a name stands for; also looked for among origin's branches.

    Raises
    ------
    GitError
        Not a legal name, or no such commit is in the repository.
    """
    commit = object_name(repository, ref)
    if commit is None and not is_commit_id(ref):
        commit = object_name(repository, f"refs/remotes/origin/{ref}")
    if commit is None:
        raise GitError(
            f'there is no commit "{printable(ref)}" in the repository',
            where=printable(repository.top),
            hint=f"Fetch it: git fetch --depth=1 origin {printable(ref)}"
            if is_shallow(repository)
            else "`git branch --all` and `git tag` list the names.",
        )
    return commit


def head_commit(repository: Repository) -> str | None:
    """Return the id of HEAD, or None in a repository without commits."""
    return object_name(repository, "HEAD")


def is_shallow(repository: Repository) -> bool:
    """Return whether the repository lacks a part of its history."""
    return run_git(repository, "rev-parse", "--is-shallow-repository").output.strip() == b"true"


def path_in(repository: Repository, path: Path | str) -> str:
    """Return a path as the repository names it: relative to its root, with slashes.

    Parameters
    ----------
    repository : Repository
    path : Path or str
        Absolute, or relative to the root of the working tree. Links are not followed.

    Raises
    ------
    GitError
        It lies outside the working tree or cannot be a path.
    """
    absolute = os.path.normpath(repository.top / path)
    if "\0" in str(path) or not Path(absolute).is_relative_to(repository.top):
        raise GitError(
            f"{printable(path)} lies outside the repository", where=printable(repository.top)
        )
    return Path(absolute).relative_to(repository.top).as_posix()


def read_blob(repository: Repository, commit: str, path: Path | str) -> bytes | None:
    """Return the content of a file in a commit.

    It is read by the object's id, whatever happens to branches and files meanwhile.

    Parameters
    ----------
    repository : Repository
    commit : str
        Full id.
    path : Path or str
        Absolute, or relative to the root of the working tree.

    Returns
    -------
    bytes or None
        None where the commit has no such file.

    Raises
    ------
    GitError
        The path leads through a symbolic link or into a submodule, is a folder, lies outside, or
        the file is larger than ``MAX_BLOB_BYTES``.
    """
    name = path_in(repository, path)
    entry = _entry(repository, commit, name)
    if entry is None:
        _check_folders(repository, commit, name)
        return None
    _check_file(entry, commit)
    read = _kept_blob if entry.size <= _KEPT_BYTES else _blob
    return read(repository, entry.oid)


def _blob(repository: Repository, oid: str) -> bytes:
    return _output(repository, "cat-file", "blob", oid)


# Each question costs a process, several ask the same, and what an id stands for never changes.
_kept_blob = functools.lru_cache(maxsize=16)(_blob)


@functools.lru_cache(maxsize=256)
def _entry(repository: Repository, commit: str, name: str) -> _Entry | None:
    entries = _entries(repository, commit, name)
    return next((entry for entry in entries if entry.path == name), None)


def _entries(
    repository: Repository, commit: str, name: str, *, recursive: bool = False
) -> tuple[_Entry, ...]:
    if not is_commit_id(commit):
        raise GitError(f'"{printable(commit)}" is no commit id')
    options = ["-r"] if recursive else []
    tree = ["ls-tree", "-z", "--long", "--full-tree", *options, commit, "--"]
    output = _output(repository, *tree, *([] if name == "." else [name]))
    return tuple(_parsed(line) for line in output.split(b"\0") if line)


def _parsed(line: bytes) -> _Entry:
    facts, path = line.split(b"\t", 1)
    mode, _, oid, size = facts.decode("ascii").split()
    return _Entry(mode, oid, 0 if size == "-" else int(size), os.fsdecode(path))


def _check_folders(repository: Repository, commit: str, name: str) -> None:
    """Refuse a path that a link or submodule on its way hides."""
    for folder in reversed(PurePosixPath(name).parents[:-1]):
        entry = _entry(repository, commit, str(folder))
        if entry is None:
            return
        if entry.mode != _FOLDER:
            _check_file(entry, commit)


def _check_file(entry: _Entry, commit: str) -> None:
    kinds = {_SYMLINK: "a symbolic link", _SUBMODULE: "a submodule", _FOLDER: "a folder"}
    where = f"{printable(entry.path)} at {commit[:12]}"
    if entry.mode in kinds:
        raise GitError(
            f"is {kinds[entry.mode]}; only a regular file is read from a commit", where=where
        )
    if entry.size > MAX_BLOB_BYTES:
        raise GitError(f"is larger than {MAX_BLOB_BYTES:,} bytes", where=where)


def read_blobs(
    repository: Repository,
    commit: str,
    folder: Path | str,
    wanted: Callable[[Sequence[tuple[str, int]]], Sequence[str]],
) -> Mapping[str, bytes]:
    """Return files below a folder of a commit, read by their objects' ids in one go.

    Parameters
    ----------
    repository : Repository
    commit : str
        Full id.
    folder : Path or str
        As for ``read_blob``.
    wanted : callable
        Gets the path (relative to the folder) and size in bytes of every regular file there, and
        returns the paths of those that are to be read.

    Returns
    -------
    mapping of str to bytes
        By the path relative to the folder; empty where the commit has no such folder.
    """
    name = path_in(repository, folder)
    entries = {
        entry.path.removeprefix(f"{name}/"): entry
        for entry in _entries(repository, commit, name, recursive=True)
        if entry.mode not in (_SYMLINK, _SUBMODULE) and entry.path != name
    }
    paths = list(wanted([(path, entry.size) for path, entry in entries.items()]))
    contents = _blobs(repository, [entries[path].oid for path in paths])
    return dict(zip(paths, contents, strict=True))


def _blobs(repository: Repository, oids: Sequence[str]) -> list[bytes]:
    if not oids:
        return []
    with tempfile.TemporaryFile() as given:
        given.write("".join(f"{oid}\n" for oid in oids).encode("ascii"))
        given.seek(0)
        output = _output(repository, "cat-file", "--batch", given=given)
    found, place = [], 0
    for oid in oids:
        # ``<oid> blob <size>``, the content, a line break; ``<oid> missing`` where git lacks it.
        end = output.index(b"\n", place)
        facts = output[place:end].split()
        if len(facts) != 3:
            raise GitError(f"the repository lacks the object {oid}", hint="Fetch it.")
        start, size = end + 1, int(facts[2])
        found.append(output[start : start + size])
        place = start + size + 1
    return found


def list_tree(repository: Repository, commit: str, folder: Path | str) -> tuple[str, ...]:
    """Return the regular files below a folder of a commit, relative to the repository's root.

    Links and submodules are left out. Empty where the commit has no such folder.
    """
    name = path_in(repository, folder)
    entries = _entries(repository, commit, name, recursive=True)
    return tuple(entry.path for entry in entries if entry.mode not in (_SYMLINK, _SUBMODULE))


def last_change(repository: Repository, commit: str | None, path: Path | str) -> str | None:
    """Return when a file last changed in the history of a commit.

    Parameters
    ----------
    repository : Repository
    commit : str or None
        Full id; None is HEAD.
    path : Path or str
        As for ``read_blob``.

    Returns
    -------
    str or None
        Time of the commit, ISO 8601 UTC. None where no commit touched it, or where the history
        ends (shallow clone) before one is certain.
    """
    start = commit or head_commit(repository)
    if start is None:
        return None
    name = path_in(repository, path)
    output = _output(repository, "rev-list", "--max-count=1", "--timestamp", start, "--", name)
    if not output:
        return None
    seconds, found = output.decode("ascii").split()
    if found in _shallow_ends(repository):
        return None
    return utc_text(int(seconds))


def utc_text(seconds: int) -> str:
    """Return a time in seconds since 1970 as ISO 8601 UTC."""
    # A commit may claim any time; those that no calendar has are taken for its last.
    bounded = min(max(seconds, 0), _LAST_SECOND)
    return datetime.datetime.fromtimestamp(bounded, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _shallow_ends(repository: Repository) -> frozenset[str]:
    """Return the commits whose parents a shallow clone left out: they seem to touch everything."""
    # A linked working tree keeps the list where its main one does.
    pointer = repository.git_dir / "commondir"
    shared = os.fsdecode(pointer.read_bytes().rstrip(b"\n")) if pointer.is_file() else ""
    file = repository.git_dir / shared / "shallow"
    return frozenset(file.read_text("ascii").split()) if file.is_file() else frozenset()


def changed_files(repository: Repository, paths: Sequence[Path | str]) -> tuple[str, ...]:
    """Return files below some paths that differ from HEAD or are not tracked, ignored ones apart.

    Returns
    -------
    tuple of str
        Relative to the repository's root, in git's order.
    """
    names = [path_in(repository, path) for path in paths]
    output = _output(
        repository, "status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all",
        "--", *names,
    )  # fmt: skip
    return tuple(os.fsdecode(line[3:]) for line in output.split(b"\0") if line)


def tracked_files(repository: Repository, folder: Path) -> tuple[str, ...]:
    """Return the tracked files below a folder, submodules' included, relative to the root."""
    name = path_in(repository, folder)
    output = _output(repository, "ls-files", "-z", "--cached", "--recurse-submodules", "--", name)
    return tuple(os.fsdecode(line) for line in output.split(b"\0") if line)

"""Which agent it is: one digest over the files that make it, and whether they are committed.

Files are hashed as they are on disk, because that is what runs. Links count by their target and
are never followed.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from ci_gate import codec
from ci_gate.config import Config
from ci_gate.errors import AgentSetupError, printable
from ci_gate.gate.repository import Repository, changed_files, tracked_files
from ci_gate.model.agent import AgentSpec
from ci_gate.model.run import AgentRef

__all__ = ["agent_digest", "agent_name", "agent_ref"]

# Never part of an agent, tracked or not.
_SKIPPED_FOLDERS = frozenset(
    {
        *(".git", ".hg", ".svn", ".venv", "venv", "node_modules", "__pycache__", ".tox", ".nox"),
        *(".mypy_cache", ".pytest_cache", ".ruff_cache", ".ci-gate"),
    }
)
# Of the folder with the configuration; what people read about the agent does not change it.
_DOCUMENTS = ("docs/**", "README*", "CHANGELOG*", "LICENSE*", ".github/**")


_Matcher = Callable[[Path], bool]


def agent_ref(
    repository: Repository | None, config: Config, *, output: Path, pristine: bool = False
) -> AgentRef:
    """Return the agent of a configuration.

    Without ``[agent] files`` these are the tracked files under its root, without the
    configuration, task files, baselines, documents and what the gate writes into ``output``.
    ``pristine`` says that nobody has edited a file since the checkout, so that git is not asked.
    """
    below = [
        Path(config.name).name,
        *(glob for suite in config.suites for glob in suite.tasks),
        f"{config.baseline.dir}/**",
        *_DOCUMENTS,
    ]
    return agent_digest(
        repository,
        Path(config.agent.root),
        name=agent_name(config.agent),
        globs=config.agent.files,
        exclude=[*((config.root, glob) for glob in below), (str(output.resolve()), "**")],
        pristine=pristine,
    )


def agent_name(agent: AgentSpec) -> str:
    """Return how a configuration names its agent."""
    return agent.python if agent.python is not None else " ".join(agent.command)


def agent_digest(
    repository: Repository | None,
    root: Path,
    *,
    name: str | None = None,
    globs: Sequence[str] = (),
    exclude: Iterable[tuple[str, str]] = (),
    pristine: bool = False,
) -> AgentRef:
    """Return the agent that a folder holds.

    Parameters
    ----------
    repository : Repository or None
    root : Path
        Absolute folder of the agent.
    name : str or None
        How the configuration names it.
    globs : sequence of str
        Relative to ``root``; what they match is the agent, tracked or not. Empty: the tracked
        files, or all files where none is tracked.
    exclude : iterable of (str, str)
        Absolute folder and glob below it of what is no part; used where ``globs`` is empty.
    pristine : bool
        The folder is as it was checked out: it has no uncommitted changes, and no filter of the
        repository runs in order to find that out.

    Returns
    -------
    AgentRef
        ``dirty`` is None without a repository.
    """
    folder = root.resolve()
    part = _any_of((str(folder), glob) for glob in globs) if globs else _none_of(exclude)
    tracked = () if globs else _tracked(repository, folder)
    chosen = sorted(path for path in tracked or _all_files(folder) if part(path))
    contents = {_named(path.relative_to(folder)): _content(path, folder) for path in chosen}
    return AgentRef(
        name=name,
        digest=codec.digest_of({"files": contents}),
        dirty=None if repository is None else not pristine and _is_dirty(repository, folder, part),
    )


def _any_of(globs: Iterable[tuple[str, str]]) -> _Matcher:
    patterns = [(Path(folder), _parts(glob)) for folder, glob in globs]
    return lambda path: any(
        path.is_relative_to(folder) and _fits(path.relative_to(folder).parts, parts)
        for folder, parts in patterns
    )


def _none_of(globs: Iterable[tuple[str, str]]) -> _Matcher:
    excluded = _any_of(globs)
    return lambda path: not excluded(path)


def _parts(glob: str) -> tuple[str, ...]:
    return tuple(part for part in glob.split("/") if part not in ("", "."))


def _fits(names: Sequence[str], globs: Sequence[str]) -> bool:
    """Return whether a path fits a glob; one that fits a folder means all that is in it."""
    if not globs:
        return True
    if globs[0] == "**":
        return any(_fits(names[skipped:], globs[1:]) for skipped in range(len(names)))
    return bool(names) and fnmatchcase(names[0], globs[0]) and _fits(names[1:], globs[1:])


def _tracked(repository: Repository | None, folder: Path) -> tuple[Path, ...]:
    if repository is None or not folder.is_relative_to(repository.top):
        return ()
    paths = (repository.top / name for name in tracked_files(repository, folder))
    return tuple(
        path
        for path in paths
        if _SKIPPED_FOLDERS.isdisjoint(path.relative_to(folder).parts)
        and (path.is_symlink() or path.exists())
    )


def _all_files(folder: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(folder, followlinks=False):
        here = Path(place)
        links = [name for name in folders if (here / name).is_symlink()]
        folders[:] = [name for name in folders if name not in _SKIPPED_FOLDERS]
        yield from (here / name for name in (*files, *links))


def _named(path: Path) -> str:
    name = path.as_posix()
    try:
        return name.encode("utf-8").decode("utf-8")
    except UnicodeEncodeError:
        return f"bytes:{os.fsencode(name).hex()}"


def _content(path: Path, folder: Path) -> str:
    """Return what stands for a file in the digest; other kinds of files count by their kind."""
    if not path.parent.resolve().is_relative_to(folder):
        return "outside"
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        return f"link:{_named(path.readlink())}"
    if not stat.S_ISREG(mode):
        return "folder" if stat.S_ISDIR(mode) else "special"
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise AgentSetupError(
            f"a file of the agent cannot be read: {error.strerror}",
            where=printable(path),
            hint="Leave it out with [agent] files, or make it readable.",
        ) from error


def _is_dirty(repository: Repository, folder: Path, part: _Matcher) -> bool:
    if not folder.is_relative_to(repository.top):
        return False
    changed = (Path(name) for name in changed_files(repository, [folder]))
    return any(
        part(repository.top / path) and _SKIPPED_FOLDERS.isdisjoint(path.parts) for path in changed
    )

"""Open a project: its configuration, its repository, and whose word counts.

Decides which configuration is in effect. What a change may not set for itself comes from the base
commit, is read by object id, and is in memory before anything of the change runs.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from enum import Enum, auto
from pathlib import Path

import msgspec

from ci_gate import config as configuration
from ci_gate.config import Config, SuiteConfig
from ci_gate.errors import ConfigError, UsageError, printable
from ci_gate.gate import gitbase
from ci_gate.gate.fetching import Fetch, fetch_of
from ci_gate.gate.gitbase import Base, Repository
from ci_gate.store.folders import own_folder

__all__ = [
    "CONFIG_NAME",
    "Project",
    "Word",
    "nearest_config",
    "open_project",
    "refuse_privileged_event",
]

CONFIG_NAME = "ci-gate.toml"
_OUTPUT = ".ci-gate"


class Word(Enum):
    """Whose configuration counts.

    BASE is the base's wherever there is one. OWN_UNLESS_JUDGED is the working tree's, but never in
    a pull request. OWN is the working tree's, for what moves the bar instead of judging by it.
    """

    BASE = auto()
    OWN_UNLESS_JUDGED = auto()
    OWN = auto()


class Project(msgspec.Struct, frozen=True, kw_only=True):
    """A configuration with its surroundings.

    Attributes
    ----------
    path : Path
        The configuration file.
    named_config : Path or None
        The same as the user named it; None where it was found.
    root : Path
        Its folder; tasks and baselines are relative to it.
    config : Config
        In effect.
    head : Config
        As the working tree has it.
    base : Base
        Where the bar comes from.
    repository : Repository or None
    edits : tuple of str
        What the working tree edits of the part that the base decides.
    policy_origin : str
        Whose configuration is in effect, for people.
    starts_as_base : bool
        The agent is started as the base starts it; True where there is no base to ask.
    is_behind : bool
        The base has commits that a pull request does not have.
    labelled : bool
        A pull request that may move the bar: its own configuration is in effect.
    output : Path
        Folder for results.
    fetch : Fetch or None
        How results are brought to another machine, where a run in CI uploads them.
    """

    path: Path
    named_config: Path | None
    root: Path
    config: Config
    head: Config
    base: Base
    repository: Repository | None
    edits: tuple[str, ...]
    policy_origin: str
    starts_as_base: bool
    is_behind: bool
    labelled: bool
    output: Path
    fetch: Fetch | None = None

    @property
    def judges_a_pull_request(self) -> bool:
        """Return whether the bar is that of a base branch which the change cannot touch."""
        return self.base.kind == "pull-request"

    def suites(self, name: str | None) -> tuple[SuiteConfig, ...]:
        """Return the suite of that name, or all.

        Raises
        ------
        UsageError
            There is no such suite.
        """
        return self.config.suites if name is None else (self.config.suite(name),)

    def base_blob(self, path: Path) -> bytes | None:
        """Return a file of the base commit, or None where it or the commit does not exist."""
        if self.repository is None or self.base.commit is None:
            return None
        return gitbase.read_blob(self.repository, self.base.commit, path)


_PRIVILEGED_EVENTS = ("pull_request_target", "workflow_run")


def refuse_privileged_event(environment: Mapping[str, str]) -> None:
    """Refuse to run an agent where GitHub gives a fork's code secrets or a writing token.

    Raises
    ------
    UsageError
        The workflow's event is one of these.
    """
    event = environment.get("GITHUB_EVENT_NAME", "")
    if event in _PRIVILEGED_EVENTS:
        raise UsageError(
            f"the event {event} hands the repository's secrets to the code under test",
            where="GITHUB_EVENT_NAME",
            hint="Run the suite on pull_request; only report on others. See docs/ci.md.",
        )


def open_project(
    path: Path | None,
    *,
    output: Path | None,
    baseline_ref: str | None,
    word: Word,
    environment: Mapping[str, str],
) -> Project:
    """Return the project of a configuration file.

    Parameters
    ----------
    path : Path or None
        None looks here and in the folders above.
    output : Path or None
        None is ``.ci-gate`` beside the configuration.
    baseline_ref : str or None
        The commit or ref that the bar is taken from, instead of the one found.
    word : Word
        Whose configuration counts.
    environment : mapping
        Variables of the process, by which CI is recognised.

    Raises
    ------
    UsageError
        The configuration is missing or impossible, or the base cannot be read.
    """
    found = _found_config(_here()) if path is None else path
    head = configuration.load(found)
    root = Path(head.root)
    # Where git is not installed there is no repository; a base that CI names is missed by name.
    repository = gitbase.find_repository(root) if shutil.which("git") else None
    base = _base(repository, word, baseline_ref, environment)
    in_tree = root / found.name
    before = _base_config(repository, base, in_tree, found.name)
    labelled = base.kind == "pull-request" and _is_set(environment, "CI_GATE_LABELLED")
    if before is None and base.kind == "pull-request" and not labelled:
        _refuse_moved_config(repository, base, in_tree, is_named=path is not None)
    held = () if before is None else _with_baseline(repository, base, before, root)
    own = labelled or (base.kind == "merge-base" and not held)
    bound = None if own else before
    return Project(
        path=found,
        named_config=path,
        root=root,
        config=head if bound is None else configuration.merge_from_base(head, bound, held=held),
        head=head,
        base=base,
        repository=repository,
        edits=() if before is None else configuration.differences(head, before),
        policy_origin="the working tree" if bound is None else base.explanation,
        starts_as_base=before is None or configuration.same_agent(head, before),
        is_behind=base.kind == "pull-request" and gitbase.is_behind(repository, base),
        labelled=labelled,
        output=own_folder(root / _OUTPUT if output is None else output, tree=root),
        fetch=fetch_of(environment),
    )


def _refuse_moved_config(
    repository: Repository | None, base: Base, found: Path, *, is_named: bool
) -> None:
    """Refuse a change that takes the file away which the bar is found by, whatever it brings.

    Raises
    ------
    UsageError
        The base has a configuration of this name that the working tree has no longer, or one
        above that would be found from here, were it not for the new one.
    """
    if repository is None or base.commit is None:
        return
    tracked = gitbase.list_tree(repository, base.commit, repository.top)
    known = [name for name in tracked if Path(name).name == found.name]
    above = [] if is_named else [n for n in known if (repository.top / n).parent in found.parents]
    gone = [name for name in known if not _is_plain_file(repository.top, name)]
    if gone or above:
        name = printable([*gone, *above][0])
        raise UsageError(
            f"this change does not go by {name}, which {base.explanation} would go by",
            where=printable(found),
            hint=f"Leave {name} in its place, name another by --config in the workflow, or let "
            "the update-baseline label move the bar.",
        )


def _is_plain_file(top: Path, name: str) -> bool:
    """Return whether a tracked name is still a file, reached through no link."""
    parts = Path(name).parts
    places = [top.joinpath(*parts[: count + 1]) for count in range(len(parts))]
    return places[-1].is_file() and not any(place.is_symlink() for place in places)


def _is_set(environment: Mapping[str, str], name: str) -> bool:
    return environment.get(name, "").strip().lower() in ("1", "true", "yes", "on")


def _with_baseline(
    repository: Repository | None, base: Base, config: Config, root: Path
) -> tuple[str, ...]:
    """Return the suites that have a baseline at the base commit: what a change is held to."""
    if repository is None or base.commit is None:
        return ()
    folder = root / config.baseline.dir
    return tuple(
        suite.name
        for suite in config.suites
        if gitbase.read_blob(repository, base.commit, folder / f"{suite.name}.json") is not None
    )


def _base(
    repository: Repository | None, word: Word, ref: str | None, environment: Mapping[str, str]
) -> Base:
    if word is Word.OWN:
        return gitbase.working_tree("as it is")
    base = gitbase.resolve_base(repository, ref=ref, environment=environment)
    if word is Word.OWN_UNLESS_JUDGED and base.kind == "merge-base":
        return gitbase.working_tree("a baseline file was named")
    return base


def nearest_config(start: Path) -> Path | None:
    """Return the ``ci-gate.toml`` here or in the nearest folder above, or None."""
    candidates = (folder / CONFIG_NAME for folder in (start, *start.parents))
    return next((path for path in candidates if path.is_file()), None)


def _here() -> Path:
    try:
        return Path.cwd()
    except OSError as error:
        raise UsageError(f"the current folder is gone: {error.strerror}") from error


def _found_config(start: Path) -> Path:
    path = nearest_config(start)
    if path is None:
        raise ConfigError(
            f"there is no {CONFIG_NAME} in {printable(start)} or a folder above",
            hint="`ci-gate init` makes one; --config names another.",
        )
    return path


def _base_config(repository: Repository | None, base: Base, path: Path, name: str) -> Config | None:
    if repository is None or base.commit is None:
        return None
    text = gitbase.read_blob(repository, base.commit, path)
    if text is None:
        return None
    shown = f"{name} of {base.explanation}"
    try:
        return configuration.parse(text, name=shown, root=path.parent)
    except ConfigError as error:
        if base.kind == "merge-base":
            # A repair of a broken file can only be tried where the broken one does not decide.
            return None
        raise UsageError.of(error.problems) from error

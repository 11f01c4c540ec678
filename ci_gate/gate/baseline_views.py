"""``baseline show``, ``diff`` and ``history``: what baselines say, gathered for printing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from ci_gate.config import SuiteConfig
from ci_gate.decision.conditional_rate import baseline_warnings
from ci_gate.decision.summary import counts_by_task, suite_metrics
from ci_gate.errors import BaselineError, GateError, GitError, printable
from ci_gate.gate import gitbase
from ci_gate.gate.bar import baseline_path
from ci_gate.gate.differences import TaskDifference, task_differences
from ci_gate.gate.history import PastVersion, history
from ci_gate.gate.project import Project, Word, open_project
from ci_gate.gate.sides import load_side
from ci_gate.model.run import Side
from ci_gate.model.verdict import Counts
from ci_gate.store.baselines import parse_baseline, to_side
from ci_gate.store.files import is_file

__all__ = [
    "BaselineRequest",
    "Difference",
    "Past",
    "Shown",
    "diff",
    "past",
    "show",
]


class BaselineRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Which project and suite; None is what the user did not say."""

    config_path: Path | None
    suite: str | None
    environment: Mapping[str, str]

    @classmethod
    def of(
        cls, config_path: Path | None, suite: str | None, environment: Mapping[str, str]
    ) -> BaselineRequest:
        """Return the request of a command line."""
        return cls(config_path=config_path, suite=suite, environment=environment)


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """A side with its counts and suite metrics, and what is odd about it as a baseline."""

    title: str
    side: Side
    counts: Mapping[str, Counts]
    metrics: Mapping[str, float | None]
    warnings: tuple[str, ...] = ()


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """What differs between two sides, task by task."""

    baseline: Shown
    candidate: Shown
    tasks: tuple[TaskDifference, ...]


class Past(msgspec.Struct, frozen=True, kw_only=True):
    """A suite's baseline at a commit; ``shown`` is None where it was removed or is unreadable."""

    commit: str
    time: str
    subject: str
    remark: str
    shown: Shown | None


def show(request: BaselineRequest, target: str | None) -> tuple[Shown, ...]:
    """Return the baseline of each suite, or the one that a file or commit has."""
    project = _project(request)
    suites = project.suites(request.suite)
    return tuple(_warned(_shown(project, suite, target), project, suite) for suite in suites)


def _warned(shown: Shown, project: Project, suite: SuiteConfig) -> Shown:
    policy = project.config.policy_of(suite)
    warnings = baseline_warnings(shown.side, policy, trials=suite.trials)
    return msgspec.structs.replace(shown, warnings=warnings)


def diff(request: BaselineRequest, baseline: str, candidate: str | None) -> tuple[Difference, ...]:
    """Return what differs between two files or commits; None is the working tree."""
    project = _project(request)
    return tuple(
        _difference(_shown(project, suite, baseline), _shown(project, suite, candidate))
        for suite in project.suites(request.suite)
    )


def past(request: BaselineRequest) -> tuple[tuple[str, tuple[Past, ...]], ...]:
    """Return, for each suite, its baseline over the commits that touched the file."""
    project = _project(request)
    if project.repository is None:
        raise GitError(
            f"{printable(project.root)} is not in a git repository",
            hint="A history needs commits; `ci-gate baseline show` shows the file.",
        )
    return tuple((suite.name, _past_of(project, suite)) for suite in project.suites(request.suite))


def _project(request: BaselineRequest) -> Project:
    return open_project(
        request.config_path,
        output=None,
        baseline_ref=None,
        word=Word.OWN,
        environment=request.environment,
    )


def _shown(project: Project, suite: SuiteConfig, target: str | None) -> Shown:
    """Return the side that is meant: the working tree's, a file's, or a commit's."""
    path = baseline_path(project, suite.name)
    if target is None:
        return _described(_existing(path), path.name, project, suite)
    if is_file(Path(target)):
        return _described(load_side(Path(target)), target, project, suite)
    repository = project.repository
    if repository is None:
        raise BaselineError(f"there is no file {printable(target)}, and no git repository")
    base = gitbase.resolve_base(repository, ref=target, environment={})
    assert base.commit is not None
    content = gitbase.read_blob(repository, base.commit, path)
    if content is None:
        raise BaselineError(f"{path.name} does not exist at {base.explanation}")
    name = f"{path.name} at {base.explanation}"
    return _described(to_side(parse_baseline(content, name=name)), name, project, suite)


def _existing(path: Path) -> Side:
    if not path.is_file():
        raise BaselineError(
            f"there is no baseline {printable(path)}", hint="`ci-gate baseline update` makes one."
        )
    return load_side(path)


def _described(side: Side, title: str, project: Project, suite: SuiteConfig) -> Shown:
    ks = project.config.policy_of(suite).ks
    return Shown(
        title=title, side=side, counts=counts_by_task(side), metrics=suite_metrics(side, ks)
    )


def _difference(baseline: Shown, candidate: Shown) -> Difference:
    return Difference(
        baseline=baseline,
        candidate=candidate,
        tasks=task_differences(baseline.side, candidate.side),
    )


def _past_of(project: Project, suite: SuiteConfig) -> tuple[Past, ...]:
    assert project.repository is not None
    path = baseline_path(project, suite.name)
    versions = history(project.repository, path)
    return tuple(_version(version, project, suite) for version in versions)


def _version(version: PastVersion, project: Project, suite: SuiteConfig) -> Past:
    past = Past(
        commit=version.commit, time=version.time, subject=version.subject, remark="", shown=None
    )
    if version.content is None:
        return msgspec.structs.replace(past, remark="removed")
    try:
        side = to_side(parse_baseline(version.content, name=version.commit[:12]))
    except GateError:
        return msgspec.structs.replace(past, remark="unreadable")
    return msgspec.structs.replace(
        past, shown=_described(side, version.commit[:12], project, suite)
    )

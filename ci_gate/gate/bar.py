"""Find the baseline a suite is held against, and its anchor, and say where they came from.

In a pull request it is the base commit's, never the one the change brings along; what the change
does to these files is noticed here.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ci_gate.config import SuiteConfig
from ci_gate.errors import BaselineError, Problem, printable
from ci_gate.gate import gitbase
from ci_gate.gate.project import Project
from ci_gate.gate.sides import load_side
from ci_gate.model.policy import Policy
from ci_gate.model.run import Side
from ci_gate.store.baselines import parse_baseline, to_side
from ci_gate.store.files import read_whole
from ci_gate.store.pooling import admit

__all__ = ["Anchor", "Bar", "admitted_ks", "anchor_path", "baseline_path", "find_bar"]


@dataclass(frozen=True, kw_only=True)
class Anchor:
    """An older baseline that stays where it is, so that a slow slide shows.

    Attributes
    ----------
    side : Side
    origin : str
        Which file of which commit, for people.
    """

    side: Side
    origin: str


@dataclass(frozen=True, kw_only=True)
class Bar:
    """The baseline of a suite.

    Attributes
    ----------
    side : Side or None
        None where there is no baseline.
    status : {"found", "absent", "missing"}
        ``missing``: the base has one that the head deleted or whose suite it no longer has.
    edited : bool
        The change edits the file.
    proposed : Side or None
        What the change puts in its place, where it edits it and the label lets it.
    anchor : Anchor or None
        None where there is none, or where the user names a baseline.
    anchor_edited : bool
        The change edits, adds or removes the anchor of a suite that has a baseline.
    origin : str
        Which file of which commit, for people.
    changed_at : str or None
        When the file last changed, ISO 8601, where git knows.
    """

    side: Side | None
    status: Literal["found", "absent", "missing"]
    edited: bool
    origin: str
    changed_at: str | None = None
    proposed: Side | None = None
    anchor: Anchor | None = None
    anchor_edited: bool = False


def anchor_path(project: Project, suite: str) -> Path:
    """Return the file that holds the anchor of a suite in the working tree."""
    return project.root / project.config.baseline.dir / f"{suite}.anchor.json"


def baseline_path(project: Project, suite: str) -> Path:
    """Return the file that holds a suite's baseline in the working tree."""
    return project.root / project.config.baseline.dir / f"{suite}.json"


def find_bar(project: Project, suite: SuiteConfig, *, file: Path | None) -> Bar:
    """Return the baseline that a suite is held against.

    Parameters
    ----------
    project : Project
    suite : SuiteConfig
    file : Path or None
        A file the user names; it wins.

    Raises
    ------
    FileFormatError
        The baseline is not one.
    BaselineError
        The named file does not exist.
    """
    if file is not None:
        return _named(file)
    path = baseline_path(project, suite.name)
    content = project.base_blob(path)
    if content is not None:
        return _of_base(project, suite, path, content)
    if project.judges_a_pull_request or project.base.kind == "ref":
        return Bar(
            side=None,
            status="absent",
            edited=False,
            origin=f"{_shown(project, path)} does not exist at {project.base.explanation}",
        )
    return _of_working_tree(project, suite, path)


def _named(file: Path) -> Bar:
    if not file.exists():
        raise BaselineError(f"there is no file {printable(file)}", hint="Check --baseline.")
    side = load_side(file)
    return Bar(side=side, status="found", edited=False, origin=printable(file))


def _of_base(project: Project, suite: SuiteConfig, path: Path, content: bytes) -> Bar:
    name = f"{_shown(project, path)} of {project.base.explanation}"
    present = read_whole(path) if path.is_file() else None
    gone = present is None or all(other.name != suite.name for other in project.head.suites)
    edited = _is_edited(project, path, present, content)
    anchor_edited = _is_anchor_edited(project, suite)
    assert project.repository is not None
    assert project.base.commit is not None
    return Bar(
        side=to_side(parse_baseline(content, name=name)),
        status="missing" if gone else "found",
        edited=edited,
        origin=name,
        changed_at=gitbase.last_change(project.repository, project.base.commit, path),
        proposed=_proposed(project, suite, path, present) if edited else None,
        anchor=_anchor_of_base(project, suite),
        anchor_edited=anchor_edited,
    )


def _is_anchor_edited(project: Project, suite: SuiteConfig) -> bool:
    """Return whether the change touches the anchor; what it puts there must be able to serve."""
    path = anchor_path(project, suite.name)
    present = read_whole(path) if path.is_file() else None
    assert project.repository is not None
    if not gitbase.is_edited(project.repository, project.base, path, present):
        return False
    _proposed(project, suite, path, present)
    return True


def _anchor_of_base(project: Project, suite: SuiteConfig) -> Anchor | None:
    path = anchor_path(project, suite.name)
    content = project.base_blob(path)
    if content is None:
        return None
    name = f"{_shown(project, path)} of {project.base.explanation}"
    return Anchor(side=to_side(parse_baseline(content, name=name)), origin=name)


def _is_edited(project: Project, path: Path, present: bytes | None, content: bytes) -> bool:
    if present is None or present == content or project.repository is None:
        return False
    return gitbase.is_edited(project.repository, project.base, path, present)


def _proposed(
    project: Project, suite: SuiteConfig, path: Path, present: bytes | None
) -> Side | None:
    """Return the baseline that a labelled change brings; it must be able to serve."""
    if not project.labelled or present is None:
        return None
    shown = f"{_shown(project, path)} of this change"
    baseline = parse_baseline(present, name=shown)
    policy = project.config.policy_of(suite)
    problems = admit(baseline, ks=admitted_ks(policy), max_errored_rate=policy.max_errored_rate)
    if baseline.suite != suite.name:
        what = f"is of suite {printable(baseline.suite)!r}, not of {suite.name!r}"
        problems = [Problem(what=what, where=shown), *problems]
    if problems:
        raise BaselineError.of(problems)
    return to_side(baseline)


def admitted_ks(policy: Policy) -> tuple[int, ...]:
    """Return the k that a baseline must serve: single flips need one trial of a task."""
    return () if policy.deterministic else policy.ks


def _of_working_tree(project: Project, suite: SuiteConfig, path: Path) -> Bar:
    shown = _shown(project, path)
    if not path.is_file():
        return Bar(side=None, status="absent", edited=False, origin=f"there is no {shown}")
    changed = project.repository and gitbase.last_change(project.repository, None, path)
    return Bar(
        side=load_side(path),
        status="found",
        edited=False,
        origin=f"{shown} of the working tree; {_why_not_base(project)}",
        changed_at=changed or None,
        anchor=_anchor_of_working_tree(project, suite),
    )


def _anchor_of_working_tree(project: Project, suite: SuiteConfig) -> Anchor | None:
    path = anchor_path(project, suite.name)
    if not path.is_file():
        return None
    return Anchor(side=load_side(path), origin=f"{_shown(project, path)} of the working tree")


def _why_not_base(project: Project) -> str:
    if project.base.commit is None:
        return project.base.explanation
    return f"{project.base.explanation} has none"


def _shown(project: Project, path: Path) -> str:
    return path.relative_to(project.root).as_posix()

"""``compare``: judge one file against another, with or without a project around them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ci_gate.config import SuiteConfig
from ci_gate.errors import UsageError, printable
from ci_gate.gate.bar import find_bar
from ci_gate.gate.judge import judge, judge_without_project
from ci_gate.gate.project import Project, Word, nearest_config, open_project
from ci_gate.gate.sides import load_side, restricted
from ci_gate.model.policy import Policy
from ci_gate.model.run import Side
from ci_gate.model.verdict import Verdict

__all__ = ["CompareRequest", "compare_files"]


@dataclass(frozen=True, kw_only=True)
class CompareRequest:
    """What ``compare`` was asked; None is what the user did not say."""

    candidate: Path
    baseline: Path | None
    baseline_ref: str | None
    config_path: Path | None
    suite: str | None
    task_filter: str | None
    environment: Mapping[str, str]
    calm: Path | None = None


def compare_files(request: CompareRequest) -> Verdict:
    """Return the verdict on a candidate file.

    Raises
    ------
    UsageError
        A file is not what it should be, or there is neither a configuration nor a baseline file.
    """
    candidate = restricted(load_side(request.candidate), request.task_filter)
    project = _project(request)
    suite = None if project is None else _suite_of(project, request.suite, candidate)
    if project is None or suite is None:
        return _compare_alone(request, candidate)
    bar = find_bar(project, suite, file=request.baseline)
    if bar.side is None and request.baseline_ref is not None:
        raise UsageError(f"no baseline: {bar.origin}", hint="Name another --baseline-ref.")
    bar = replace(bar, side=restricted(bar.side, request.task_filter))
    return judge(project, suite, bar, candidate, calm=_calm(request, candidate))


def _calm(request: CompareRequest, candidate: Side) -> Side | None:
    """Return the candidate without faults, where the user named its file.

    Raises
    ------
    UsageError
        It is of another suite, or was run under faults itself.
    """
    if request.calm is None:
        return None
    side = load_side(request.calm)
    shown = printable(request.calm)
    if side.suite != candidate.suite:
        raise UsageError(
            f"is of suite {printable(side.suite)!r}, and the candidate of "
            f"{printable(candidate.suite)!r}",
            where=shown,
            hint="Give --calm a run of the same suite without faults.",
        )
    if side.faults_digest is not None:
        raise UsageError(
            "was run under faults",
            where=shown,
            hint="Give --calm the run that `check --calm-and-chaos` keeps as SUITE.calm.run.jsonl.",
        )
    _refuse_other_agent(side, candidate, shown)
    return side


def _refuse_other_agent(calm: Side, candidate: Side, shown: str) -> None:
    agents = [{run.agent.digest for run in side.runs} - {None} for side in (calm, candidate)]
    if all(agents) and agents[0] != agents[1]:
        raise UsageError(
            "was run with another agent than the candidate",
            where=shown,
            hint="Give --calm a run of the candidate's own agent.",
        )


def _compare_alone(request: CompareRequest, candidate: Side) -> Verdict:
    if request.baseline is None:
        raise UsageError(
            f"{printable(request.candidate)} is of suite {printable(candidate.suite)!r}, which no "
            "configuration here has, and no baseline file was named",
            hint="Give both files: ci-gate compare BASELINE CANDIDATE.",
        )
    side = restricted(load_side(request.baseline), request.task_filter)
    origin = printable(request.baseline)
    calm = _calm(request, candidate)
    return judge_without_project(side, candidate, Policy(), origin=origin, calm=calm)


def _project(request: CompareRequest) -> Project | None:
    path = request.config_path or nearest_config(Path.cwd())
    if path is None and request.baseline is not None:
        return None
    return open_project(
        path,
        output=None,
        baseline_ref=request.baseline_ref,
        word=Word.BASE if request.baseline is None else Word.OWN_UNLESS_JUDGED,
        environment=request.environment,
    )


def _suite_of(project: Project, name: str | None, candidate: Side) -> SuiteConfig | None:
    if name is not None:
        return project.config.suite(name)
    return next((s for s in project.config.suites if s.name == candidate.suite), None)

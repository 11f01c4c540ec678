"""``power``: what checks of a suite would see, from its baseline, before any money is spent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from ci_gate.config import SuiteConfig
from ci_gate.decision.power import Question, foresee
from ci_gate.engine.settings import default_jobs
from ci_gate.errors import BaselineError, UsageError
from ci_gate.gate.bar import find_bar
from ci_gate.gate.project import Project, Word, nearest_config, open_project
from ci_gate.gate.sides import load_side
from ci_gate.model.policy import Policy
from ci_gate.model.power import Prospect
from ci_gate.store.folders import write_named

__all__ = ["PowerRequest", "power", "prospects_json", "write_prospects"]

_SEVERAL = "ci-gate/powers@1"


class PowerRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What ``power`` was asked; None and empty are what the user did not say."""

    config_path: Path | None
    suite: str | None
    baseline_file: Path | None
    baseline_ref: str | None
    drops: tuple[float, ...]
    power: float
    trials: tuple[int, ...]
    environment: Mapping[str, str]


class _Several(msgspec.Struct, frozen=True, kw_only=True):
    schema: str = _SEVERAL
    suites: tuple[Prospect, ...]


def power(request: PowerRequest) -> tuple[Prospect, ...]:
    """Return what checks would see, for each suite that was asked for.

    Raises
    ------
    UsageError
        The question is impossible, or a baseline cannot answer it.
    BaselineError
        There is no baseline.
    """
    path = request.config_path or nearest_config(Path.cwd())
    if path is None and request.baseline_file is not None:
        return (foresee(load_side(request.baseline_file), Policy(), _question(request)),)
    project = open_project(
        path,
        output=None,
        baseline_ref=request.baseline_ref,
        word=Word.BASE if request.baseline_file is None else Word.OWN_UNLESS_JUDGED,
        environment=request.environment,
    )
    suites = _suites(project, request)
    return tuple(_prospect(project, suite, request) for suite in suites)


def _suites(project: Project, request: PowerRequest) -> tuple[SuiteConfig, ...]:
    """Return the suites that are meant; a named file is of one of them."""
    suites = project.suites(request.suite)
    if request.baseline_file is None or len(suites) == 1:
        return suites
    name = load_side(request.baseline_file).suite
    return project.suites(name)


def _question(request: PowerRequest) -> Question:
    return Question(drops=_drops(request), power=request.power, trials=request.trials)


def _drops(request: PowerRequest) -> tuple[float, ...]:
    return tuple(sorted(set(request.drops))) or Question().drops


def _prospect(project: Project, suite: SuiteConfig, request: PowerRequest) -> Prospect:
    bar = find_bar(project, suite, file=request.baseline_file)
    if bar.side is None:
        raise BaselineError(
            f"suite {suite.name} has no baseline to foresee anything from: {bar.origin}",
            hint="`ci-gate baseline update` makes one.",
        )
    run = project.config.run
    inline = project.config.agent.isolation == "inline"
    question = Question(
        drops=_drops(request),
        power=request.power,
        trials=request.trials,
        configured_trials=suite.trials,
        deep_runs=project.config.baseline.repeats,
        jobs=default_jobs(run.jobs, inline=inline),
        max_per_minute=run.max_per_minute,
    )
    try:
        return foresee(bar.side, project.config.policy_of(suite), question)
    except UsageError as error:
        if len(project.suites(request.suite)) > 1:
            raise UsageError(str(error), where=f"suite {suite.name}") from error
        raise


def prospects_json(prospects: Sequence[Prospect]) -> bytes:
    """Return the JSON of one suite, or of several under one schema."""
    whole = prospects[0] if len(prospects) == 1 else _Several(suites=tuple(prospects))
    return msgspec.json.format(msgspec.json.encode(whole), indent=1) + b"\n"


def write_prospects(target: Path, prospects: Sequence[Prospect]) -> None:
    """Write the JSON into a file."""
    write_named(target, prospects_json(prospects))

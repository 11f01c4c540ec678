"""``run``: measure suites without judging them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ci_gate.gate.bar import find_bar
from ci_gate.gate.calm import calm_path, require_faults, run_in_calm
from ci_gate.gate.measure import Measured, measure
from ci_gate.gate.modes import with_mode
from ci_gate.gate.preparing import Prepared, RunOptions, prepare
from ci_gate.gate.project import Project, Word, open_project, refuse_privileged_event
from ci_gate.gate.run_journal import Watch

__all__ = ["RunRequest", "run"]


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """What ``run`` was asked; None is what the user did not say."""

    config_path: Path | None
    suite: str | None
    output: Path | None
    run: RunOptions
    environment: Mapping[str, str]
    calm_and_chaos: bool = False


def run(request: RunRequest, watch: Watch) -> tuple[Measured, ...]:
    """Measure every suite that was asked for.

    Raises
    ------
    GateError
        The configuration, a suite or the agent cannot be used.
    """
    refuse_privileged_event(request.environment)
    project = open_project(
        request.config_path,
        output=request.output,
        baseline_ref=None,
        word=Word.BASE,
        environment=request.environment,
    )
    project = with_mode(project, request.run.mode, request.run.traces)
    suites = project.suites(request.suite)
    if request.calm_and_chaos:
        for suite in suites:
            require_faults(project, suite.name, request.run)
    prepared = [
        prepare(project, suite, request.run, repeats=1, bar=find_bar(project, suite, file=None))
        for suite in suites
    ]
    return tuple(_measured(project, one, request, watch) for one in prepared)


def _measured(project: Project, prepared: Prepared, request: RunRequest, watch: Watch) -> Measured:
    measured = measure(project, prepared, request.run, watch)
    if not request.calm_and_chaos:
        return measured
    calm = run_in_calm(project, prepared, measured, request.run, watch)
    kept = None if calm.side is None else calm_path(project.output, prepared.suite.name)
    return replace(measured, warnings=(*measured.warnings, *calm.remarks), calm=kept)

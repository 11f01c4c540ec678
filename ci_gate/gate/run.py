"""``run``: measure suites without judging them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ci_gate.gate.bar import find_bar
from ci_gate.gate.measure import Measured, measure
from ci_gate.gate.preparing import RunOptions, prepare
from ci_gate.gate.project import Word, open_project, refuse_privileged_event
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
    prepared = [
        prepare(project, suite, request.run, repeats=1, bar=find_bar(project, suite, file=None))
        for suite in project.suites(request.suite)
    ]
    return tuple(measure(project, one, request.run, watch) for one in prepared)

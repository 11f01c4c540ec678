"""Tasks, planned trials and bare worlds for tests of what happens around one trial."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ci_gate.model.suite import GraderSpec, PlannedTrial, Task
from ci_gate.model.trial import Step, Trajectory
from ci_gate.ports import Observation


def task_of(task_id: str = "refund", **fields: Any) -> Task:
    """Return a task; what is not given is what the test does not care about."""
    fields = {"instruction": "", "base_seed": 0x20261030, "digest": f"sha256:{task_id}"} | fields
    return Task(id=task_id, **fields)


def trial_of(task: Task | None = None, trial: int = 0, *, seed: int = 0x20261030) -> PlannedTrial:
    """Return a first attempt at a task."""
    return PlannedTrial(task=task or task_of(), trial=trial, repeat=0, attempt=1, seed=seed)


def spec_of(kind: str, **options: Any) -> GraderSpec:
    """Return a grader as a task file has it, named as its kind."""
    return GraderSpec(type=kind, name=kind, options=options)


class BareWorld:
    """A sandbox of given places, in which every call succeeds; fills ``ports.TrialSandbox``."""

    def __init__(
        self,
        *,
        folder: Path | None = None,
        workdir: Path | None = None,
        database: Path | None = None,
    ) -> None:
        self.folder = folder
        self.home = folder
        self.workdir = workdir
        self.database = database
        self.postgres: str | None = None
        self.initial_state: str | None = None
        self.now = "2026-01-01T09:00:00Z"
        self.steps: Sequence[Step] = ()

    answers = False

    def observe(
        self,
        kind: str,
        name: str,
        arguments: Any,
        output: Any,
        *,
        is_error: bool,
        turn: int | None,
        lane: str = "main",
        duration_ms: float | None = None,
        determinism: object = None,
        first: object = None,
    ) -> Observation:
        """Return the output as it is."""
        return Observation(output=output, is_error=is_error)

    def note(self, *drawn: Any, at_end: bool = False) -> None:
        """Keep nothing of what was drawn."""

    def answer(self, lane: str, kind: str, name: str, arguments: Any) -> Observation:
        """Answer nothing: every call is made."""
        raise AssertionError("nobody is to be asked")

    def finish(self, trajectory: Trajectory) -> None:
        """Keep no trace."""

    def close(self) -> None:
        """Leave everything where it is."""

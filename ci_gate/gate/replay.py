"""``replay``: run one trial again with its seed, and see it happen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from ci_gate.config import SuiteConfig
from ci_gate.errors import UsageError, printable
from ci_gate.gate.execution import Execution, Work, execute
from ci_gate.gate.measure import RunInterrupted
from ci_gate.gate.project import Project, Word, open_project
from ci_gate.gate.suites import configured_suite
from ci_gate.gate.witness import Witness
from ci_gate.model.run import StopReason
from ci_gate.model.suite import PlannedTrial, Suite, Task
from ci_gate.model.trial import Status, Step, Trajectory, TrialRecord
from ci_gate.model.verdict import ExitCode
from ci_gate.prng import derive_seed

__all__ = ["ReplayRequest", "Replayed", "replay"]

_EXIT = {
    Status.PASSED: ExitCode.PASSED,
    Status.FAILED: ExitCode.REGRESSED,
    Status.ERRORED: ExitCode.INCONCLUSIVE,
}


@dataclass(frozen=True, kw_only=True)
class ReplayRequest:
    """What ``replay`` was asked; None is what the user did not say."""

    config_path: Path | None
    suite: str | None
    task: str
    trial: int
    repeat: int
    environment: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Replayed:
    """What happened.

    Attributes
    ----------
    suite : str
    record : TrialRecord
    trajectory : Trajectory or None
        None where the trial did not come to an agent.
    steps : tuple of Step
    """

    suite: str
    record: TrialRecord
    trajectory: Trajectory | None
    steps: tuple[Step, ...]

    @property
    def exit_code(self) -> ExitCode:
        """Return the status of the process."""
        return _EXIT[self.record.status]


class _LastRecord:
    """Takes records as a journal does and keeps the last."""

    def __init__(self) -> None:
        self.record: TrialRecord | None = None

    def append(self, record: TrialRecord) -> None:
        """Keep the record."""
        self.record = record

    def planned(self, total: int, done: int) -> None:
        """Nobody watches a single trial."""

    def finished(self, record: TrialRecord) -> None:
        """Nobody watches a single trial."""


def replay(request: ReplayRequest) -> Replayed:
    """Run the trial live, with the seed and the faults that ``check`` gives it.

    Raises
    ------
    UsageError
        No suite has the task.
    AgentSetupError
        The agent cannot be started.
    """
    project = open_project(
        request.config_path,
        output=None,
        baseline_ref=None,
        word=Word.BASE,
        environment=request.environment,
    )
    suite, task = _find(project, request)
    planned = PlannedTrial(
        task=task,
        trial=request.trial,
        repeat=request.repeat,
        attempt=1,
        seed=derive_seed(task.base_seed, request.trial),
    )
    return _executed(project, suite, planned)


def _executed(project: Project, suite: Suite, planned: PlannedTrial) -> Replayed:
    witness, kept = Witness(), _LastRecord()
    result = execute(
        Execution(config=project.config, suite=suite, jobs=1, retries=0),
        lambda: Work(trials=[planned], sink=kept, progress=kept),
        witness=witness,
    )
    if result.reason is StopReason.INTERRUPTED or kept.record is None:
        raise RunInterrupted
    return Replayed(
        suite=suite.name,
        record=kept.record,
        trajectory=witness.trajectory,
        steps=tuple(witness.steps),
    )


def _find(project: Project, request: ReplayRequest) -> tuple[Suite, Task]:
    known: list[str] = []
    for config in project.suites(request.suite):
        suite = _whole(project, config)
        for task in suite.tasks:
            if task.id == request.task:
                return Suite(
                    name=suite.name,
                    root_seed=suite.root_seed,
                    trials=suite.trials,
                    tasks=(task,),
                    digest=suite.digest,
                ), task
        known += [task.id for task in suite.tasks]
    near = get_close_matches(request.task, known, 1)
    hint = f"Did you mean {printable(near[0])!r}?" if near else f"It has {len(known)} tasks."
    raise UsageError(
        f"there is no task {printable(request.task)!r}", where=printable(project.path), hint=hint
    )


def _whole(project: Project, config: SuiteConfig) -> Suite:
    return configured_suite(project.config, config, trials=None, task_filter=None)

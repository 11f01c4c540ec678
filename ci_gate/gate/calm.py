"""``check --calm-and-chaos``: the same trials once more without faults, to see what faults change.

Decides which trials those are: as many of each task as the run under faults came to, on the same
seeds. The calm run is shown beside it and decides nothing, so whatever goes wrong here costs its
columns and never the verdict.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from ci_gate.config import without_faults
from ci_gate.engine.real_clock import RealClock
from ci_gate.errors import GateError, UsageError, printable
from ci_gate.gate.execution import Execution, Work, execute
from ci_gate.gate.measure import Measured
from ci_gate.gate.modes import refuse_answered
from ci_gate.gate.planning import Round, plan_of, planned_trials, rounds_of
from ci_gate.gate.preparing import Prepared, RunOptions
from ci_gate.gate.project import Project
from ci_gate.gate.run_journal import RunInterrupted, Watch
from ci_gate.gate.side_journals import SideJournal, read_lines, refuse_unfinished
from ci_gate.model.run import RunHeader, Side, StopReason
from ci_gate.model.suite import Suite
from ci_gate.store.runs import load_run, to_side

__all__ = ["Calm", "calm_path", "require_faults", "run_in_calm"]

_PROBLEM_CHARS: Final = 300


@dataclass(frozen=True, kw_only=True)
class Calm:
    """The candidate without faults.

    Attributes
    ----------
    side : Side or None
        None where it could not be run.
    spent_usd : float
        What it cost, in US dollars.
    remarks : tuple of str
        What was noticed on the way.
    """

    side: Side | None = None
    spent_usd: float = 0.0
    remarks: tuple[str, ...] = ()


def calm_path(folder: Path, suite: str) -> Path:
    """Return where the calm run of a suite is kept."""
    return folder / f"{suite}.calm.run.jsonl"


def require_faults(project: Project, suite: str, options: RunOptions) -> None:
    """Refuse a calm run that would turn out to be impossible after all trials of the check.

    Raises
    ------
    UsageError
        No faults are configured, so that it would be the same run twice; or calls are not made.
    JournalError
        An earlier calm run is unfinished, and neither ``--resume`` nor ``--fresh`` was given.
    """
    refuse_answered(project.config, what="makes further runs", where="--calm-and-chaos")
    if project.config.faults is None:
        raise UsageError(
            "runs the suite with and without faults, and no faults are configured",
            where="--calm-and-chaos",
            hint=f"Add [faults] to {printable(project.path.name)}, or leave the option out.",
        )
    if not (options.resume or options.fresh):
        refuse_unfinished(calm_path(project.output, suite), what="calm run")


def run_in_calm(
    project: Project, prepared: Prepared, measured: Measured, options: RunOptions, watch: Watch
) -> Calm:
    """Run the trials that a run under faults came to without faults.

    Parameters
    ----------
    project : Project
    prepared, measured : Prepared, Measured
        The run under faults.
    options : RunOptions
        ``resume`` continues the calm run that belongs to it.
    watch : Watch

    Raises
    ------
    RunInterrupted
        The user stopped it; ``--resume`` continues it.
    """
    rounds = _finished(prepared.suite, measured)
    if not rounds:
        return Calm(remarks=("Nothing was run in calm: no round under faults was finished.",))
    try:
        return _Run(project, prepared, options, rounds).measured(watch)
    except GateError as error:
        why = error.in_one_line(limit=_PROBLEM_CHARS)
        return Calm(remarks=(f"The suite could not be run in calm: {why}",))


def _finished(suite: Suite, measured: Measured) -> Sequence[Round]:
    """Return the rounds that were finished under faults, of all repeats."""
    plan = measured.run.header.plan
    assert plan is not None
    ran = max(measured.run.repeat_digests, default=0) + 1
    rounds = rounds_of(planned_trials(suite, repeats=max(plan.repeats, ran)))
    return rounds[: measured.stop.round]


class _Run:
    """One calm run: its suite cut to the rounds, its journal and its end."""

    def __init__(
        self, project: Project, prepared: Prepared, options: RunOptions, rounds: Sequence[Round]
    ) -> None:
        self._project = project
        self._prepared = prepared
        self._options = options
        self._suite = _cut(prepared.suite, 1 + max(trial for _, trial in rounds))
        self._repeats = 1 + max(repeat for repeat, _ in rounds)
        self._path = calm_path(prepared.path.parent, prepared.suite.name)

    def measured(self, watch: Watch) -> Calm:
        """Run what is missing and return what the run file holds then."""
        before = read_lines(self._prepared.path)
        since = before.header.created if self._options.resume else None
        with self._journal(since) as journal:
            remarks = self._execute(journal, watch, before.spent_usd)
        tasks = {task.id: task.digest for task in self._suite.tasks}
        side = to_side(load_run(self._path), tasks=tasks)
        return Calm(side=side, spent_usd=read_lines(self._path).spent_usd, remarks=remarks)

    def _journal(self, since: str | None) -> SideJournal:
        retries = self._prepared.retries
        return SideJournal(self._path, self._header(), self._suite, since=since, retries=retries)

    def _header(self) -> RunHeader:
        return msgspec.structs.replace(
            self._prepared.header,
            plan=plan_of(self._suite, repeats=self._repeats, max_repeats=self._repeats),
            baseline_digest=None,
            policy_digest=None,
            faults_digest=None,
            created=RealClock().utc(),
        )

    def _execute(self, journal: SideJournal, watch: Watch, spent_usd: float) -> tuple[str, ...]:
        missing = journal.missing()
        if not missing:
            return ()
        with watch(f"{self._suite.name}, in calm") as progress:
            work = Work(
                trials=missing,
                sink=journal,
                progress=progress,
                spent_usd=spent_usd + journal.spent_usd,
                done=journal.planned - len(missing),
            )
            executed = execute(self._execution(), lambda: work)
        if executed.reason is StopReason.INTERRUPTED:
            raise RunInterrupted
        left = len(journal.missing()) if executed.reason is StopReason.BUDGET else 0
        journal.finish(executed.reason)
        return (*_on_budget(left, journal.planned), *(f"In calm: {w}" for w in executed.warnings))

    def _execution(self) -> Execution:
        return Execution(
            config=without_faults(self._project.config),
            suite=self._suite,
            jobs=self._options.jobs,
            budget_usd=self._prepared.budget_usd,
            determinism=self._options.determinism,
        )


def _on_budget(left: int, planned: int) -> tuple[str, ...]:
    if not left:
        return ()
    return (f"The budget ended the calm run: {left} of its {planned} trials are missing.",)


def _cut(suite: Suite, trials: int) -> Suite:
    """Return a suite with so many trials a task at most."""
    tasks = tuple(
        task
        if task.trials is None
        else msgspec.structs.replace(task, trials=min(task.trials, trials))
        for task in suite.tasks
    )
    return msgspec.structs.replace(suite, trials=min(suite.trials, trials), tasks=tasks)

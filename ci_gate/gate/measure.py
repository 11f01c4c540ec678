"""Measure a suite: journal, recording, agent and worlds wired together around the engine."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ci_gate.gate.asking import KeptBeside
from ci_gate.gate.determinism import require_determinism
from ci_gate.gate.execution import Execution, execute
from ci_gate.gate.planning import (
    planned_trials,
    rounds_of,
)
from ci_gate.gate.preparing import Prepared, RunOptions
from ci_gate.gate.project import Project
from ci_gate.gate.recording import Recording, traces_folder
from ci_gate.gate.run_journal import RunJournal, Watch
from ci_gate.gate.worktree import sweep_lost
from ci_gate.model.policy import Policy
from ci_gate.model.run import Stop, StopReason
from ci_gate.model.suite import PlannedTrial, Suite
from ci_gate.model.trial import Status
from ci_gate.model.verdict import ExitCode
from ci_gate.store.folders import write_beside
from ci_gate.store.journal import require_openable
from ci_gate.store.runs import RunFile, load_run
from ci_gate.store.traces import refuse_obstacles

__all__ = ["Measured", "measure", "require_ready"]

_IGNORE_ALL: Final = b"# Results of ci-gate; nothing here belongs into the repository.\n*\n"


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A finished run.

    Attributes
    ----------
    path : Path
    run : RunFile
        As read back and verified.
    stop : Stop
    warnings : tuple of str
        What was noticed on the way.
    exit_code : ExitCode
        PASSED where the plan ended, INCONCLUSIVE on a budget or too many errors.
    planned, rounds : int
        Trials and rounds of the whole plan, which an extension lets grow.
    calm : Path or None
        The file of the same trials without faults, where they were run as well.
    """

    path: Path
    run: RunFile
    stop: Stop
    planned: int
    rounds: int
    warnings: tuple[str, ...]
    exit_code: ExitCode
    calm: Path | None = None


def measure(project: Project, prepared: Prepared, options: RunOptions, watch: Watch) -> Measured:
    """Run what is missing of the plan and return the verified run file.

    Raises
    ------
    GateError
        The agent cannot be started, the journal cannot be continued, or the disk is full.
    SuiteError
        The suite calls itself deterministic and is not.
    RunInterrupted
        The user stopped it.
    """
    sweep_lost(project.repository)
    require_ready(project, prepared, options)
    _shield_output(project)
    with ExitStack() as stack:
        traces = _traces_folder(project, prepared)
        journal = RunJournal(prepared, options, stack, watch, traces)
        if options.resume and prepared.path.exists():
            journal.open()
        if not journal.is_finished:
            recorded = _traces_of(project, prepared)
            execution = _execution(project, prepared, options, recorded)
            journal.finish(execute(execution, journal.work))
            journal.remarks += [] if recorded is None else recorded.remarks()
            journal.remarks += [] if prepared.answers is None else prepared.answers.remarks
    remarks = journal.remarks
    run = journal.run or load_run(prepared.path)
    require_determinism(run, prepared.policy)
    remarks += _on_retries(run)
    assert run.footer is not None
    planned = _whole(prepared.suite, run)
    return Measured(
        path=prepared.path,
        run=run,
        stop=run.footer.stop,
        warnings=(*remarks, *run.warnings),
        exit_code=_exit_code(run, prepared.policy),
        planned=len(planned),
        rounds=len(rounds_of(planned)),
    )


def require_ready(project: Project, prepared: Prepared, options: RunOptions) -> None:
    """Refuse now what would stop the run before its first trial; nothing is changed.

    Raises
    ------
    JournalError
        There is an unfinished run of which nobody said what becomes of it, or another one.
    UsageError
        What the repository has where results belong is not to be written through or replaced.
    """
    refuse_obstacles(_traces_folder(project, prepared))
    require_openable(prepared.path, prepared.header, resume=options.resume, fresh=options.fresh)


def _traces_folder(project: Project, prepared: Prepared) -> Path:
    return traces_folder(prepared.path.parent, prepared.suite.name, project.config)


def _shield_output(project: Project) -> None:
    """Keep a folder of results that is made here out of git, whatever the repository ignores."""
    if not project.output.exists():
        write_beside(project.output / ".gitignore", _IGNORE_ALL)


def _traces_of(project: Project, prepared: Prepared) -> Recording | None:
    if project.config.run.mode == "live":
        return None
    return Recording(
        traces=_traces_folder(project, prepared),
        header=prepared.header,
        config=project.config,
        environment=os.environ,
        results=prepared.path.parent,
    )


def _execution(
    project: Project, prepared: Prepared, options: RunOptions, traces: Recording | None
) -> Execution:
    answers = prepared.answers
    return Execution(
        config=project.config,
        suite=prepared.suite,
        jobs=options.jobs,
        budget_usd=prepared.budget_usd,
        recorder_of=None if traces is None else traces.recorders(),
        source_of=None if answers is None else answers.source_of,
        around=None if answers is None else answers.around,
        faults_on_top=True,
        replies=None if traces is None else KeptBeside(traces=traces.traces),
        determinism=options.determinism,
    )


def _whole(suite: Suite, run: RunFile) -> Sequence[PlannedTrial]:
    """Return the trials of the plan as it was when the run ended."""
    plan = run.header.plan
    assert plan is not None
    ran = max(run.repeat_digests, default=0) + 1
    return list(planned_trials(suite, repeats=max(plan.repeats, ran)))


def _on_retries(run: RunFile) -> list[str]:
    """Say how much of the result rests on trials that were run again."""
    again = sum(r.attempt > 1 and r.status is not Status.ERRORED for r in run.records)
    if not again:
        return []
    share = f"{again} of {len(run.records)} trials were judged only after errored attempts"
    return [f"{share}: an agent that calls its failures errors looks better than it is."]


def _exit_code(run: RunFile, policy: Policy) -> ExitCode:
    assert run.footer is not None
    apart = {quarantine.task for quarantine in policy.quarantine}
    gated = [record for record in run.records if record.task not in apart]
    errored = sum(record.status is Status.ERRORED for record in gated)
    too_many = policy.errors == "exclude" and not policy.allows_errored(errored, len(gated))
    over_budget = run.footer.stop.reason is StopReason.BUDGET
    return ExitCode.INCONCLUSIVE if too_many or over_budget else ExitCode.PASSED

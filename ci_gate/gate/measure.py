"""Measure a suite: plan, journal, agent, worlds and graders wired together around the engine."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import msgspec

from ci_gate import codec
from ci_gate.agents.strictness import Determinism
from ci_gate.config import Config, SuiteConfig, policy_digest
from ci_gate.engine.real_clock import RealClock
from ci_gate.gate import gitbase
from ci_gate.gate.agent_digest import agent_ref
from ci_gate.gate.bar import Bar
from ci_gate.gate.determinism import repeats_needed, require_determinism
from ci_gate.gate.execution import Executed, Execution, Work, execute
from ci_gate.gate.planning import (
    check_depth,
    finished_rounds,
    plan_of,
    planned_trials,
    rounds_of,
)
from ci_gate.gate.project import Project
from ci_gate.gate.recording import Recording, traces_folder
from ci_gate.gate.sides import restricted
from ci_gate.gate.steering import (
    Measurement,
    Session,
    SteeredRun,
    decisions_of_the_gate,
    may_be_steered,
    steered,
)
from ci_gate.gate.suites import configured_suite, policy_in_effect
from ci_gate.gate.tool import tool_name
from ci_gate.model.policy import Policy
from ci_gate.model.run import BaselineRun, RunHeader, Side, Stop, StopReason
from ci_gate.model.suite import PlannedTrial, Suite
from ci_gate.model.trial import Status, TrialRecord
from ci_gate.model.verdict import ExitCode
from ci_gate.ports import RoundWatcher
from ci_gate.prng import format_seed
from ci_gate.store.folders import write_beside
from ci_gate.store.journal import Journal, TrialKey, require_openable
from ci_gate.store.runs import RunFile, load_run
from ci_gate.store.traces import clear_traces, refuse_obstacles

__all__ = [
    "Measured",
    "Prepared",
    "RunInterrupted",
    "RunOptions",
    "Watch",
    "is_unchanged",
    "measure",
    "nothing_run",
    "prepare",
    "require_ready",
]

Watch = Callable[[str], AbstractContextManager[RoundWatcher]]
"""Begins to show the progress of the suite of that name."""

_IGNORE_ALL: Final = b"# Results of ci-gate; nothing here belongs into the repository.\n*\n"


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What the user says about one run; None is what the configuration says."""

    trials: int | None = None
    jobs: int | None = None
    task_filter: str | None = None
    resume: bool = False
    fresh: bool = False
    determinism: Determinism = "off"


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A run that could start now: nothing of the change has been executed yet.

    Attributes
    ----------
    suite : Suite
    header : RunHeader
    policy : Policy
    budget_usd : float or None
    path : Path
        The run file.
    measurement : Measurement or None
        Against what it is decided when the run is enough; None: its plan is run as it is.
    """

    suite: Suite
    header: RunHeader
    policy: Policy
    budget_usd: float | None
    path: Path
    measurement: Measurement | None = None


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
    """

    path: Path
    run: RunFile
    stop: Stop
    planned: int
    rounds: int
    warnings: tuple[str, ...]
    exit_code: ExitCode


class RunInterrupted(KeyboardInterrupt):
    """The user stopped the run; what finished is in the journal."""


def prepare(
    project: Project,
    suite_config: SuiteConfig,
    options: RunOptions,
    *,
    repeats: int,
    bar: Bar | None,
    folder: Path | None = None,
) -> Prepared:
    """Read the suite and describe the run.

    Parameters
    ----------
    project : Project
    suite_config : SuiteConfig
    options : RunOptions
    repeats : int
        Runs over the same seeds.
    bar : Bar or None
        What the run will be held against.
    folder : Path or None
        Where the run file goes; None is the project's output.

    Raises
    ------
    UsageError
        The suite has mistakes, or its trials are too few for the metrics.
    """
    suite = configured_suite(
        project.config, suite_config, trials=options.trials, task_filter=options.task_filter
    )
    policy = project.config.policy_of(suite_config)
    repeats = repeats_needed(policy, repeats)
    check_depth(suite, policy.ks, deterministic=policy.deterministic)
    header = _header(project, suite, suite_config, policy, repeats, bar, options)
    measurement = _measurement(project, suite, header, policy, bar)
    return Prepared(
        suite=suite,
        header=header if measurement is None else measurement.header,
        policy=policy,
        budget_usd=suite_config.budget_usd,
        path=(folder or project.output) / f"{suite.name}.run.jsonl",
        measurement=measurement,
    )


def _measurement(
    project: Project, suite: Suite, header: RunHeader, policy: Policy, bar: Bar | None
) -> Measurement | None:
    """Return against what a run is decided on its way, None where its plan is run as it is."""
    if bar is None or bar.side is None:
        return None
    baseline = restricted(bar.side, header.task_filter)
    measurement = Measurement(
        suite=suite,
        header=header,
        baseline=baseline,
        policy=policy,
        retries=project.config.run.retries,
    )
    own = policy_in_effect(project.config, policy, baseline, measurement.side(()))
    return may_be_steered(replace(measurement, policy=own))


def _header(
    project: Project,
    suite: Suite,
    suite_config: SuiteConfig,
    policy: Policy,
    repeats: int,
    bar: Bar | None,
    options: RunOptions,
) -> RunHeader:
    config = project.config
    repository = project.repository
    deepest = max(repeats, suite_config.max_repeats) if bar is not None else repeats
    return RunHeader(
        suite=suite.name,
        suite_digest=suite.digest,
        root_seed=format_seed(suite.root_seed),
        plan=plan_of(suite, repeats=repeats, max_repeats=deepest),
        baseline_digest=None if bar is None or bar.side is None else bar.side.digest,
        policy_digest=policy_digest(policy),
        errors=policy.errors,
        agent=agent_ref(repository, config, output=project.output),
        commit=None if repository is None else gitbase.head_commit(repository),
        created=RealClock().utc(),
        faults_digest=_faults_digest(config),
        task_filter=options.task_filter,
        tool=tool_name(),
    )


def _faults_digest(config: Config) -> str | None:
    return None if config.faults is None else codec.digest_of(msgspec.to_builtins(config.faults))


def is_unchanged(project: Project, prepared: Prepared, baseline: Side) -> bool:
    """Return whether policy and digests let the change pass without running.

    Every run of the baseline must be of this agent and this suite, and what a change may set for
    itself, the globs of the digest among it, must be as the base has it.
    """
    digests = {run.agent.digest for run in baseline.runs}
    agent = prepared.header.agent
    return (
        prepared.policy.skip_unchanged
        and project.starts_as_base
        and agent is not None
        and agent.digest is not None
        and digests == {agent.digest}
        and baseline.suite_digest == prepared.suite.digest
        and prepared.header.task_filter is None
    )


def nothing_run(prepared: Prepared) -> Side:
    """Return the side of a run that was not made because nothing changed."""
    header = prepared.header
    assert header.agent is not None
    return Side(
        kind="run",
        suite=header.suite,
        suite_digest=header.suite_digest,
        root_seed=header.root_seed,
        errors=header.errors,
        faults_digest=header.faults_digest,
        tasks={},
        planned={},
        runs=(BaselineRun(agent=header.agent, run_digest=""),),
        created=header.created,
        commit=header.commit,
        tool=header.tool,
    )


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
    require_ready(project, prepared, options)
    _shield_output(project)
    with ExitStack() as stack:
        traces = _traces_folder(project, prepared)
        recording = _Recording(prepared, options, stack, watch, traces)
        if options.resume and prepared.path.exists():
            recording.open()
        if not recording.is_finished:
            recorded = _traces_of(project, prepared)
            execution = _execution(project, prepared, options, recorded)
            recording.finish(execute(execution, recording.work))
            recording.remarks += [] if recorded is None else recorded.remarks()
    remarks = recording.remarks
    run = recording.run or load_run(prepared.path)
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
    if project.config.run.mode != "record":
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
    return Execution(
        config=project.config,
        suite=prepared.suite,
        jobs=options.jobs,
        budget_usd=prepared.budget_usd,
        recorder_of=None if traces is None else traces.recorders(),
        determinism=options.determinism,
    )


class _Recording:
    """The journal of a run, opened when the agent is known to start.

    An agent that cannot start must not cost the finished run that the journal would replace.
    """

    def __init__(
        self,
        prepared: Prepared,
        options: RunOptions,
        stack: ExitStack,
        watch: Watch,
        traces: Path,
    ) -> None:
        self._prepared = prepared
        self._options = options
        self._stack = stack
        self._watch = watch
        self._traces = traces
        self._journal: Journal | None = None
        self._steered: SteeredRun | None = None
        self.remarks: list[str] = []

    def open(self) -> Journal:
        """Open the journal, or return it where it is open."""
        if self._journal is None:
            options, prepared = self._options, self._prepared
            journal = Journal.open(
                prepared.path, prepared.header, resume=options.resume, fresh=options.fresh
            )
            self._journal = self._stack.enter_context(journal)
            self.remarks += _on_resuming(journal)
        return self._journal

    @property
    def is_finished(self) -> bool:
        """Return whether the journal was found finished."""
        return self._journal is not None and self._journal.footer is not None

    @property
    def run(self) -> RunFile | None:
        """Return what the finished journal holds; None where it was finished before."""
        return None if self._journal is None else self._journal.run

    def work(self) -> Work:
        """Return the trials that are missing and where they go."""
        journal = self.open()
        if not journal.records:
            clear_traces(self._traces)
        watcher = self._stack.enter_context(self._watch(self._prepared.suite.name))
        measurement = self._prepared.measurement
        if measurement is None:
            return self._whole_plan(journal, watcher)
        session = Session(
            measurement=replace(measurement, header=journal.header),
            records=journal.records,
            sink=journal,
            watcher=watcher,
            decisions=decisions_of_the_gate(),
        )
        self._steered = steered(session)
        return self._steered_work(self._steered, journal, watcher)

    def _whole_plan(self, journal: Journal, watcher: RoundWatcher) -> Work:
        planned = self._planned(journal)
        missing = _missing(planned, journal.records)
        return Work(
            trials=missing,
            sink=journal,
            progress=watcher,
            spent_usd=journal.spent_usd,
            done=len(planned) - len(missing),
        )

    def _steered_work(self, run: SteeredRun, journal: Journal, watcher: RoundWatcher) -> Work:
        recorded = sum(trial.key in journal.records for trial in (*run.due, *run.late))
        return Work(
            trials=run.due,
            late=run.late,
            steering=run,
            sink=run,
            progress=watcher,
            spent_usd=journal.spent_usd,
            planned=len(run.planned),
            done=len(journal.records) - recorded,
        )

    def _planned(self, journal: Journal) -> Sequence[PlannedTrial]:
        if self._steered is not None:
            return self._steered.planned
        plan = journal.header.plan
        assert plan is not None
        return list(planned_trials(self._prepared.suite, repeats=plan.repeats))

    def finish(self, executed: Executed) -> None:
        """Write the footer, unless the user stopped the run."""
        if executed.reason is StopReason.INTERRUPTED:
            raise RunInterrupted
        journal = self.open()
        journal.finish(self._stop(journal, executed.reason))
        # What was kept for decisions is not needed to read the file.
        self._steered = None
        self.remarks += executed.warnings

    def _stop(self, journal: Journal, reason: StopReason) -> Stop:
        if self._steered is not None and reason is StopReason.COMPLETE:
            return self._steered.stop
        done = finished_rounds(self._planned(journal), journal.recorded)
        return Stop(round=done, reason=reason)


def _whole(suite: Suite, run: RunFile) -> Sequence[PlannedTrial]:
    """Return the trials of the plan as it was when the run ended."""
    plan = run.header.plan
    assert plan is not None
    ran = max(run.repeat_digests, default=0) + 1
    return list(planned_trials(suite, repeats=max(plan.repeats, ran)))


def _on_resuming(journal: Journal) -> list[str]:
    if not journal.dropped_bytes:
        return []
    size = journal.dropped_bytes
    return [f"The journal ended in a torn line of {size} bytes; that trial ran again."]


def _on_retries(run: RunFile) -> list[str]:
    """Say how much of the result rests on trials that were run again."""
    again = sum(r.attempt > 1 and r.status is not Status.ERRORED for r in run.records)
    if not again:
        return []
    share = f"{again} of {len(run.records)} trials were judged only after errored attempts"
    return [f"{share}: an agent that calls its failures errors looks better than it is."]


def _missing(
    trials: Sequence[PlannedTrial], finished: Mapping[TrialKey, TrialRecord]
) -> list[PlannedTrial]:
    """Return the trials without a judgement; an errored one gets another attempt."""
    missing = []
    for trial in trials:
        record = finished.get(trial.key)
        if record is None:
            missing.append(trial)
        elif record.status is Status.ERRORED:
            missing.append(msgspec.structs.replace(trial, attempt=record.attempt + 1))
    return missing


def _exit_code(run: RunFile, policy: Policy) -> ExitCode:
    assert run.footer is not None
    apart = {quarantine.task for quarantine in policy.quarantine}
    gated = [record for record in run.records if record.task not in apart]
    errored = sum(record.status is Status.ERRORED for record in gated)
    too_many = policy.errors == "exclude" and not policy.allows_errored(errored, len(gated))
    over_budget = run.footer.stop.reason is StopReason.BUDGET
    return ExitCode.INCONCLUSIVE if too_many or over_budget else ExitCode.PASSED

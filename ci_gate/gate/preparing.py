"""Describe a run before anything of the change is executed: suite, header, policy, what ends it.

Decides what goes into the header of a run, and whether there is anything to run at all. It must not
know how trials are run or kept.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from ci_gate.agents.strictness import Determinism
from ci_gate.config import Config, SuiteConfig, faults_digest, policy_digest
from ci_gate.engine.real_clock import RealClock
from ci_gate.gate import gitbase
from ci_gate.gate.agent_digest import agent_ref
from ci_gate.gate.answers import SuiteAnswers, answers_of
from ci_gate.gate.bar import Bar
from ci_gate.gate.determinism import repeats_needed
from ci_gate.gate.judges import judge_digest, require_calibrated
from ci_gate.gate.modes import Mode, answered_mode, results_of
from ci_gate.gate.planning import check_depth, plan_of
from ci_gate.gate.project import Project
from ci_gate.gate.sides import restricted
from ci_gate.gate.steering import Measurement, may_be_steered
from ci_gate.gate.suites import configured_suite, policy_in_effect
from ci_gate.gate.tool import tool_name
from ci_gate.model.policy import Policy
from ci_gate.model.run import BaselineRun, RunHeader, Side
from ci_gate.model.suite import Suite
from ci_gate.prng import format_seed

__all__ = ["Prepared", "RunOptions", "is_unchanged", "nothing_run", "prepare"]


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What the user says about one run; None is what the configuration says."""

    trials: int | None = None
    jobs: int | None = None
    task_filter: str | None = None
    resume: bool = False
    fresh: bool = False
    determinism: Determinism = "off"
    mode: Mode | None = None
    traces: Path | None = None


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
    retries : int
        Further attempts at once of a trial that errored.
    measurement : Measurement or None
        Against what it is decided when the run is enough; None: its plan is run as it is.
    answers : SuiteAnswers or None
        What answers the calls of its trials; None: they are made.
    """

    suite: Suite
    header: RunHeader
    policy: Policy
    budget_usd: float | None
    path: Path
    retries: int
    measurement: Measurement | None = None
    answers: SuiteAnswers | None = None


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
        The suite has mistakes, or its trials are too few for the metrics; or its calls are to be
        answered from recordings, and there are not all of them.
    """
    suite = configured_suite(
        project.config, suite_config, trials=options.trials, task_filter=options.task_filter
    )
    policy = project.config.policy_of(suite_config)
    repeats = repeats_needed(policy, repeats)
    check_depth(suite, policy.ks, deterministic=policy.deterministic)
    require_calibrated(project, suite_config, suite, os.environ)
    header = _header(project, suite, suite_config, policy, repeats, bar, options)
    answers = None
    if answered_mode(project.config) is not None:
        answers = answers_of(project, suite, header)
        header = _answered(header, answers)
    measurement = _measurement(project, suite, header, policy, bar)
    header = header if measurement is None else measurement.header
    if answers is not None:
        assert header.plan is not None
        answers.require(header.plan)
    return Prepared(
        suite=suite,
        header=header,
        policy=policy,
        # What is answered from recordings costs nothing.
        budget_usd=suite_config.budget_usd if answers is None else None,
        path=(folder or results_of(project)) / f"{suite.name}.run.jsonl",
        retries=project.config.run.retries,
        measurement=measurement,
        answers=answers,
    )


def _answered(header: RunHeader, answers: SuiteAnswers) -> RunHeader:
    return msgspec.structs.replace(header, mode=answers.mode, faults_digest=answers.faults_digest)


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
        faults_digest=faults_digest(config),
        judge_digest=judge_digest(_whole(config, suite_config, suite, options), config),
        task_filter=options.task_filter,
        tool=tool_name(),
    )


def _whole(config: Config, suite_config: SuiteConfig, suite: Suite, options: RunOptions) -> Suite:
    """Return the suite with the tasks that a filter leaves out."""
    if options.task_filter is None:
        return suite
    return configured_suite(config, suite_config, trials=None, task_filter=None)


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

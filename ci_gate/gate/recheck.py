"""``check --recheck``: run base and candidate again, side by side, after a red test.

Decides what can be rechecked before any trial runs, and how the two fresh runs are made. What they
mean is decided in ``decision.attribution``. Whatever goes wrong here costs the attribution and
never the verdict that there was.

Notes
-----
The base side is the base commit's throughout: its files, its tasks, its ``[agent]``, its setup.
Nothing that a change could have written decides how well the base does, but for the machine that
both run on.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from ci_gate import codec
from ci_gate import config as configuration
from ci_gate.config import Config, SuiteConfig
from ci_gate.decision.attribution import (
    RecheckPlan,
    RecheckSides,
    attribute,
    plan_recheck,
    repeats_for,
)
from ci_gate.decision.wording import named
from ci_gate.engine.real_clock import RealClock
from ci_gate.errors import GateError, SuiteError, UsageError, printable
from ci_gate.gate.agent_digest import agent_ref
from ci_gate.gate.agent_setup import run_setup
from ci_gate.gate.bar import Bar, baseline_path
from ci_gate.gate.execution import Execution
from ci_gate.gate.planning import plan_of
from ci_gate.gate.preparing import Prepared, RunOptions
from ci_gate.gate.project import Project
from ci_gate.gate.repository import Repository, list_tree, tracked_files
from ci_gate.gate.run_journal import RunInterrupted, Watch
from ci_gate.gate.side_by_side import Party, run_side_by_side
from ci_gate.gate.side_journals import SideJournal, read_lines, refuse_unfinished
from ci_gate.gate.suites import configured_suite
from ci_gate.gate.worktree import work_tree
from ci_gate.model.agent import AgentSpec
from ci_gate.model.run import AgentRef, RunHeader, Side, StopReason
from ci_gate.model.suite import Suite
from ci_gate.model.verdict import Recheck, Verdict
from ci_gate.store.runs import load_run, to_side

__all__ = ["Subject", "recheck", "require_recheckable"]

_SIDES: Final = ("base", "candidate")
_PROBLEM_CHARS: Final = 1000


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What is rechecked: a suite's run, and all that it was made with.

    Attributes
    ----------
    project : Project
    suite : SuiteConfig
    bar : Bar
    prepared : Prepared
        Of the run that made the verdict.
    candidate : Side
        What that run said.
    options : RunOptions
    spent_usd : float
        What the check cost besides that run, in US dollars.
    """

    project: Project
    suite: SuiteConfig
    bar: Bar
    prepared: Prepared
    candidate: Side
    options: RunOptions
    spent_usd: float = 0.0


@dataclass(frozen=True, kw_only=True)
class _Fresh:
    """One side that is to be run: by which configuration, from which files."""

    name: str
    config: Config
    suite: Suite
    agent: AgentRef | None
    commit: str | None


def require_recheckable(
    project: Project, suite: SuiteConfig, bar: Bar, options: RunOptions, *, file: Path | None
) -> None:
    """Refuse a recheck that would turn out to be impossible after all trials of the check.

    A suite without a baseline and a deterministic one are never rechecked, and pass here.

    Parameters
    ----------
    project : Project
    suite : SuiteConfig
    bar : Bar
    options : RunOptions
    file : Path or None
        The baseline that the user named.

    Raises
    ------
    UsageError
        The baseline is not of a commit, or the agent of that commit cannot be started from it.
    JournalError
        An earlier recheck is unfinished, and neither ``--resume`` nor ``--fresh`` was given.
    """
    if bar.side is None or suite.deterministic:
        return
    if file is not None or project.base_blob(baseline_path(project, suite.name)) is None:
        raise UsageError(
            f"runs the commit of the baseline again, and the baseline is {bar.origin}",
            where="--recheck",
            hint="Use the baseline of a base commit (--baseline-ref names one), or leave it out.",
        )
    _require_startable(project, _base_agent(project, project.root))
    for path in _paths(project, suite):
        if not (options.resume or options.fresh):
            refuse_unfinished(path, what="recheck")


def _paths(project: Project, suite: SuiteConfig) -> tuple[Path, ...]:
    return tuple(project.output / f"{suite.name}.recheck-{side}.run.jsonl" for side in _SIDES)


def _base_agent(project: Project, root: Path) -> AgentSpec:
    """Return ``[agent]`` of the base commit, with its paths below a folder of that commit.

    Raises
    ------
    UsageError
        The commit has no configuration, or a broken one.
    """
    name = project.path.name
    text = project.base_blob(project.root / name)
    if text is None:
        raise UsageError(
            f"runs the base's agent, and {project.base.explanation} has no {printable(name)}",
            where="--recheck",
            hint="Leave it out until the base has one.",
        )
    shown = f"{name} of {project.base.explanation}"
    return configuration.parse(text, name=shown, root=root).agent


def _require_startable(project: Project, agent: AgentSpec) -> None:
    """Refuse an agent that no checkout of the base commit would hold.

    Raises
    ------
    UsageError
        Its root is outside the repository, or its program is an untracked file that no setup makes.
    """
    repository, commit = project.repository, project.base.commit
    assert repository is not None
    assert commit is not None
    if not Path(agent.root).is_relative_to(repository.top):
        raise UsageError(
            f"[agent] root {printable(agent.root)} lies outside the repository, so that its base "
            "cannot be checked out",
            where="--recheck",
        )
    for program in _programs(agent):
        inside = program.is_relative_to(repository.top) and not agent.setup
        # A link is in no list of regular files, but in that of tracked ones.
        known = inside and (
            list_tree(repository, commit, program) or tracked_files(repository, program)
        )
        if inside and not known:
            raise UsageError(
                f"{printable(program)} is not in {project.base.explanation}, and its [agent] has "
                "no setup that would make it",
                where="--recheck",
                hint="Set [agent] setup on the base branch.",
            )


def _programs(agent: AgentSpec) -> list[Path]:
    """Return the programs that are named by their place."""
    named_so = [agent.interpreter] if agent.protocol == "python" else [*agent.command[:1]]
    return [Path(os.path.normpath(Path(agent.root, name))) for name in named_so if "/" in name]


def recheck(subject: Subject, verdict: Verdict, watch: Watch) -> Recheck | None:
    """Run base and candidate again where the test was red, and say to what that is put down.

    Returns
    -------
    Recheck or None
        None where there is nothing to ask again. Without an attribution it says what went wrong.

    Raises
    ------
    RunInterrupted
        The user stopped it; ``--resume`` continues it.
    """
    policy = subject.prepared.policy
    plan = plan_recheck(verdict, policy)
    if plan is None:
        return None
    suite = _of_tasks(subject.prepared.suite, plan.tasks)
    outline = _outline(subject, suite, plan)
    try:
        sides, remarks = _run_again(subject, suite, watch)
    except GateError as error:
        return msgspec.structs.replace(outline, problem=error.in_one_line(limit=_PROBLEM_CHARS))
    found = attribute(sides, outline, policy)
    return msgspec.structs.replace(found, remarks=(*remarks, *found.remarks))


def _outline(subject: Subject, suite: Suite, plan: RecheckPlan) -> Recheck:
    trials = [suite.trials_of(task) for task in suite.tasks]
    assert subject.project.base.commit is not None
    return Recheck(
        commit=subject.project.base.commit,
        whole_suite=plan.whole_suite,
        trials=repeats_for(trials) * min(trials),
    )


def _of_tasks(suite: Suite, ids: tuple[str, ...]) -> Suite:
    """Return a suite of some tasks, with a digest of its own."""
    tasks = tuple(task for task in suite.tasks if task.id in set(ids))
    digest = codec.digest_of({"tasks": {task.id: task.digest for task in tasks}})
    return msgspec.structs.replace(suite, tasks=tasks, digest=digest)


def _run_again(
    subject: Subject, suite: Suite, watch: Watch
) -> tuple[RecheckSides, tuple[str, ...]]:
    project = subject.project
    assert project.repository is not None
    assert project.base.commit is not None
    with work_tree(project.repository, project.base.commit) as tree:
        base = _base_side(subject, suite, tree)
        candidate = _candidate_side(subject, _of_tasks(suite, _ids(base.suite)))
        run_setup(base.config.agent)
        runs = _measured(subject, (base, candidate), watch)
    assert subject.bar.side is not None
    sides = RecheckSides(
        baseline=subject.bar.side, first=subject.candidate, base=runs[0], candidate=runs[1]
    )
    return sides, tuple(_left_out(suite, base.suite))


def _ids(suite: Suite) -> tuple[str, ...]:
    return tuple(task.id for task in suite.tasks)


def _left_out(wanted: Suite, found: Suite) -> list[str]:
    missing = sorted({*_ids(wanted)} - {*_ids(found)})
    if not missing:
        return []
    return [f"The base commit has other tasks than its baseline, left out: {named(missing)}."]


def _base_side(subject: Subject, wanted: Suite, tree: Repository) -> _Fresh:
    """Return the side of the base commit, with those tasks that are the candidate's."""
    project = subject.project
    assert project.repository is not None
    root = tree.top / project.root.relative_to(project.repository.top)
    config = msgspec.structs.replace(
        project.config, root=str(root), agent=_base_agent(project, root)
    )
    suite = configured_suite(config, subject.suite, trials=subject.options.trials, task_filter=None)
    digests = {task.id: task.digest for task in wanted.tasks}
    same = tuple(task.id for task in suite.tasks if digests.get(task.id) == task.digest)
    if not same:
        raise SuiteError("the base commit has none of the tasks that are to be run again")
    return _Fresh(
        name="base",
        config=config,
        suite=_of_tasks(suite, same),
        agent=agent_ref(tree, config, output=root / project.output.name, pristine=True),
        commit=project.base.commit,
    )


def _candidate_side(subject: Subject, suite: Suite) -> _Fresh:
    header = subject.prepared.header
    return _Fresh(
        name="candidate",
        config=subject.project.config,
        suite=suite,
        agent=header.agent,
        commit=header.commit,
    )


def _measured(subject: Subject, sides: tuple[_Fresh, ...], watch: Watch) -> list[Side]:
    """Run both sides, keep their runs and return them."""
    judged = read_lines(subject.prepared.path)
    since = judged.header.created if subject.options.resume else None
    paths = _paths(subject.project, subject.suite)
    with ExitStack() as stack:
        journals = [
            stack.enter_context(
                SideJournal(
                    path,
                    _header(subject, side),
                    side.suite,
                    since=since,
                    retries=side.config.run.retries,
                )
            )
            for path, side in zip(paths, sides, strict=True)
        ]
        parties = [
            _party(subject, side, journal) for side, journal in zip(sides, journals, strict=True)
        ]
        progress = stack.enter_context(watch(f"{subject.suite.name}, again side by side"))
        planned = sum(journal.planned for journal in journals)
        progress.planned(planned, planned - sum(len(party.trials) for party in parties))
        spent_usd = judged.spent_usd + subject.spent_usd
        spent_usd += sum(journal.spent_usd for journal in journals)
        _finish(journals, run_side_by_side(parties, progress, spent_usd=spent_usd))
    return [
        to_side(load_run(path), tasks={task.id: task.digest for task in side.suite.tasks})
        for path, side in zip(paths, sides, strict=True)
    ]


def _party(subject: Subject, side: _Fresh, journal: SideJournal) -> Party:
    execution = Execution(
        config=side.config,
        suite=side.suite,
        jobs=subject.options.jobs,
        budget_usd=subject.prepared.budget_usd,
        determinism=subject.options.determinism,
    )
    return Party(name=side.name, execution=execution, trials=journal.missing(), sink=journal)


def _finish(journals: Sequence[SideJournal], reason: StopReason) -> None:
    if reason is StopReason.INTERRUPTED:
        raise RunInterrupted
    for journal in journals:
        journal.finish(reason)


def _header(subject: Subject, side: _Fresh) -> RunHeader:
    repeats = repeats_for(side.suite.trials_of(task) for task in side.suite.tasks)
    return msgspec.structs.replace(
        subject.prepared.header,
        suite_digest=side.suite.digest,
        plan=plan_of(side.suite, repeats=repeats, max_repeats=repeats),
        agent=side.agent,
        commit=side.commit,
        created=RealClock().utc(),
        task_filter=None,
    )

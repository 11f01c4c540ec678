"""``check``: run, compare, and keep verdict and report beside the run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ci_gate.config import SuiteConfig
from ci_gate.gate.bar import Bar, find_bar
from ci_gate.gate.calm import Calm, require_faults, run_in_calm
from ci_gate.gate.committed import refuse_committed_runs
from ci_gate.gate.judges import lacks_key
from ci_gate.gate.kept import Kept, find_kept
from ci_gate.gate.measure import Measured, measure, require_ready
from ci_gate.gate.modes import refuse_answered, results_of, with_mode
from ci_gate.gate.preload import preload_judging
from ci_gate.gate.preparing import Prepared, RunOptions, is_unchanged, nothing_run, prepare
from ci_gate.gate.project import Project, Word, open_project, refuse_privileged_event
from ci_gate.gate.reports import write_beside_run
from ci_gate.gate.run_journal import Watch
from ci_gate.gate.sides import restricted
from ci_gate.gate.trace_check import Announce, prelude_of
from ci_gate.model.verdict import Verdict
from ci_gate.store import runs

__all__ = ["CheckRequest", "CheckResult", "check"]


@dataclass(frozen=True, kw_only=True)
class CheckRequest:
    """What ``check`` was asked; None is what the user did not say.

    ``announce`` is told what kept traces show before the first trial of their suite.
    """

    config_path: Path | None
    suite: str | None
    output: Path | None
    baseline_file: Path | None
    baseline_ref: str | None
    run: RunOptions
    environment: Mapping[str, str]
    recheck: bool = False
    calm_and_chaos: bool = False
    announce: Announce | None = None


@dataclass(frozen=True, kw_only=True)
class CheckResult:
    """The verdict of each suite, and the kind and place of each file that was written."""

    verdicts: tuple[Verdict, ...]
    files: tuple[tuple[str, str], ...]


def check(request: CheckRequest, watch: Watch) -> CheckResult:
    """Run and judge every suite that was asked for.

    Raises
    ------
    GateError
        The configuration, the suite, the agent or the baseline cannot be used; nothing is written
        then but what had finished.
    """
    refuse_privileged_event(request.environment)
    project = open_project(
        request.config_path,
        output=request.output,
        baseline_ref=request.baseline_ref,
        word=Word.BASE if request.baseline_file is None else Word.OWN_UNLESS_JUDGED,
        environment=request.environment,
    )
    project = with_mode(project, request.run.mode, request.run.traces)
    if request.run.resume:
        refuse_committed_runs(project)
    suites = project.suites(request.suite)
    # Every bar is in memory before the first trial of any suite runs, and so are kept traces.
    bars = [find_bar(project, suite, file=request.baseline_file) for suite in suites]
    kept = [_kept(project, suite, request) for suite in suites]
    if request.calm_and_chaos:
        for suite in suites:
            require_faults(project, suite.name, request.run)
    if request.recheck:
        from ci_gate.gate.recheck import require_recheckable

        refuse_answered(project.config, what="makes further runs", where="--recheck")
        for suite, bar in zip(suites, bars, strict=True):
            require_recheckable(project, suite, bar, request.run, file=request.baseline_file)
    verdicts: list[Verdict] = []
    files: list[tuple[str, str]] = []
    for suite, bar, traces in zip(suites, bars, kept, strict=True):
        verdict = _check_suite(project, suite, bar, traces, request, watch)
        verdicts.append(verdict)
        places = write_beside_run(results_of(project), verdict)
        files += zip(("verdict", "report"), map(str, places), strict=True)
    return CheckResult(verdicts=tuple(verdicts), files=tuple(files))


def _kept(project: Project, suite: SuiteConfig, request: CheckRequest) -> Kept | None:
    """Return the kept traces; those of the repository do not belong to a file that is named."""
    return None if request.baseline_file is not None else find_kept(project, suite.name)


def _check_suite(
    project: Project,
    suite: SuiteConfig,
    bar: Bar,
    kept: Kept | None,
    request: CheckRequest,
    watch: Watch,
) -> Verdict:
    options = request.run
    bar = replace(bar, side=restricted(bar.side, options.task_filter))
    prepared = prepare(project, suite, options, repeats=1, bar=bar)
    if bar.side is not None and is_unchanged(project, prepared, bar.side):
        from ci_gate.gate.judge import judge

        candidate = nothing_run(prepared)
        return judge(project, suite, bar, candidate, unchanged_agent=True)
    if lacks_key(project, prepared.suite, request.environment):
        return _without_key(project, suite, bar, prepared)
    require_ready(project, prepared, options)
    preload_judging()
    prelude = prelude_of(project, prepared.suite, kept, request.announce)
    measured = measure(project, prepared, options, watch)
    verdict = _judged(project, suite, bar, prepared, measured, request, watch)
    return prelude.onto(verdict, project, measured)


def _without_key(project: Project, suite: SuiteConfig, bar: Bar, prepared: Prepared) -> Verdict:
    from ci_gate.gate.judge import judge

    return judge(project, suite, bar, nothing_run(prepared), no_credentials=True)


def _judged(
    project: Project,
    suite: SuiteConfig,
    bar: Bar,
    prepared: Prepared,
    measured: Measured,
    request: CheckRequest,
    watch: Watch,
) -> Verdict:
    # Tasks that a budget left without a trial are unjudged, not removed.
    digests = {task.id: task.digest for task in prepared.suite.tasks}
    candidate = runs.to_side(measured.run, tasks=digests)
    from ci_gate.gate.judge import judge

    verdict = judge(project, suite, bar, candidate, warnings=measured.warnings)
    if not (request.recheck or request.calm_and_chaos):
        return verdict
    # Whatever becomes of the further runs, the verdict that there is stays.
    write_beside_run(project.output, verdict)
    calm = Calm()
    if request.calm_and_chaos:
        calm = run_in_calm(project, prepared, measured, request.run, watch)
    found = None
    if request.recheck:
        from ci_gate.gate.recheck import Subject, recheck

        subject = Subject(
            project=project,
            suite=suite,
            bar=bar,
            prepared=prepared,
            candidate=candidate,
            options=request.run,
            spent_usd=calm.spent_usd,
        )
        found = recheck(subject, verdict, watch)
    remarks = (*measured.warnings, *calm.remarks)
    return judge(project, suite, bar, candidate, warnings=remarks, recheck=found, calm=calm.side)

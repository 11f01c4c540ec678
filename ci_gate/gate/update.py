"""``baseline update``: set the bar from a deep run, or from runs that are given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from ci_gate.config import SuiteConfig
from ci_gate.decision.conditional_rate import baseline_warnings
from ci_gate.decision.summary import suite_metrics
from ci_gate.errors import BaselineError, Problem, UsageError, printable
from ci_gate.gate.bar import admitted_ks, anchor_path, baseline_path
from ci_gate.gate.determinism import require_determinism
from ci_gate.gate.keeping import Keeping, RunWithTraces, StagedTraces, kept_folder
from ci_gate.gate.measure import measure
from ci_gate.gate.modes import refuse_answered
from ci_gate.gate.preparing import RunOptions, prepare
from ci_gate.gate.project import Project, Word, open_project, refuse_privileged_event
from ci_gate.gate.run_journal import Watch
from ci_gate.model.run import Baseline
from ci_gate.store.baselines import dump_baseline, load_baseline, to_side
from ci_gate.store.files import write_whole
from ci_gate.store.folders import make_real_folder
from ci_gate.store.loading import load
from ci_gate.store.pooling import admit, moves_bar, pool
from ci_gate.store.runs import RunFile

__all__ = ["UpdateRequest", "Updated", "update"]


class UpdateRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What ``baseline update`` was asked; None is what the user did not say.

    ``anchor`` replaces the anchor, which is otherwise written by the first update alone.
    """

    runs: tuple[Path, ...]
    config_path: Path | None
    suite: str | None
    output: Path | None
    run: RunOptions
    forced: bool
    anchor: bool
    environment: Mapping[str, str]


class Updated(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a suite's baseline.

    Attributes
    ----------
    suite : str
    path : Path
    written : bool
        False where the runs changed neither an outcome nor a digest.
    anchor : Path or None
        The anchor's file, where it was written.
    runs : int
        Runs over the seeds that the baseline has now.
    tasks : int
    baseline, candidate : mapping of str to float or None
        Suite metrics before (empty where there was none) and now.
    accepted : tuple of Problem
        Why it would have been refused, had it not been forced.
    warnings : tuple of str
        What is odd about it although it can serve.
    traces : Keeping or None
        The kept traces; None where the configuration keeps none.
    """

    suite: str
    path: Path
    written: bool
    anchor: Path | None
    runs: int
    tasks: int
    baseline: Mapping[str, float | None]
    candidate: Mapping[str, float | None]
    accepted: tuple[Problem, ...]
    warnings: tuple[str, ...] = ()
    traces: Keeping | None = None


def update(request: UpdateRequest, watch: Watch) -> tuple[Updated, ...]:
    """Set the bar of every suite that was asked for.

    The working tree's configuration counts: this moves the bar, it does not judge by it.

    Raises
    ------
    BaselineError
        A baseline that cannot serve was not forced; no file is changed.
    GateError
        As for ``check``.
    """
    refuse_privileged_event(request.environment)
    project = open_project(
        request.config_path,
        output=request.output,
        baseline_ref=None,
        word=Word.OWN,
        environment=request.environment,
    )
    if request.run.task_filter is not None:
        raise UsageError(
            "a baseline of a part of the suite cannot be kept",
            where="--task",
            hint="Leave it out: the whole suite is the bar.",
        )
    if request.runs:
        _refuse_run_options(request.run)
        return (_from_files(project, request),)
    refuse_answered(project.config, what="a baseline is made of calls", where="run.mode")
    suites = project.suites(request.suite)
    return tuple(_from_deep_run(project, suite, request, watch) for suite in suites)


def _given(path: Path) -> RunFile:
    loaded = load(path)
    if isinstance(loaded, RunFile):
        return loaded
    raise BaselineError(
        "is a baseline, and an update takes runs",
        where=printable(path),
        hint="Give .run.jsonl files, or none for a deep run.",
    )


def _refuse_run_options(options: RunOptions) -> None:
    if options != RunOptions():
        raise UsageError(
            "--trials, --jobs, --resume and --fresh say how to run, and runs were given",
            hint="Leave them out, or leave the runs out.",
        )


def _from_files(project: Project, request: UpdateRequest) -> Updated:
    runs = [_given(path) for path in request.runs]
    name = request.suite or runs[0].header.suite
    for run in runs:
        if run.header.suite != name:
            raise BaselineError(
                f"is a run of suite {printable(run.header.suite)!r}, not of {printable(name)!r}",
                where=run.name,
                hint="Give runs of one suite.",
            )
    suite = project.config.suite(name)
    for run in runs:
        require_determinism(run, project.config.policy_of(suite))
    folders = [path.parent for path in request.runs]
    return _kept(project, suite, _with_traces(runs, folders), request)


def _with_traces(runs: Sequence[RunFile], folders: Sequence[Path]) -> list[RunWithTraces]:
    return [RunWithTraces(run=r, folder=f) for r, f in zip(runs, folders, strict=True)]


def _from_deep_run(
    project: Project, suite: SuiteConfig, request: UpdateRequest, watch: Watch
) -> Updated:
    # Further runs of a deterministic suite would be copies; `prepare` asks for those of the proof.
    repeats = 1 if suite.deterministic else project.config.baseline.repeats
    # Apart from the run that `check` keeps, which a deep run must not replace.
    folder = project.output / "deep"
    prepared = prepare(project, suite, request.run, repeats=repeats, bar=None, folder=folder)
    measured = measure(project, prepared, request.run, watch)
    return _kept(project, suite, _with_traces([measured.run], [measured.path.parent]), request)


def _kept(
    project: Project, suite: SuiteConfig, given: list[RunWithTraces], request: UpdateRequest
) -> Updated:
    runs = [one.run for one in given]
    path = baseline_path(project, suite.name)
    before = load_baseline(path) if path.exists() else None
    after = pool(before, runs, forced=request.forced)
    policy = project.config.policy_of(suite)
    problems = admit(
        after, ks=admitted_ks(policy), max_errored_rate=policy.max_errored_rate, runs=runs
    )
    if problems and not request.forced:
        raise _refused(problems)
    written = moves_bar(before, after)
    make_real_folder(path.parent)
    keeping = _written(project, suite, after, given, path if written else None)
    return Updated(
        suite=suite.name,
        path=path,
        written=written,
        anchor=_anchored(project, suite, after if written else before, request),
        runs=len(after.runs),
        tasks=len(after.tasks),
        baseline={} if before is None else suite_metrics(to_side(before), policy.ks),
        candidate=suite_metrics(to_side(after), policy.ks),
        accepted=tuple(problems),
        warnings=(
            *baseline_warnings(to_side(after), policy, trials=suite.trials),
            *_on_left_traces(project, suite),
        ),
        traces=keeping,
    )


def _written(
    project: Project,
    suite: SuiteConfig,
    baseline: Baseline,
    given: Sequence[RunWithTraces],
    path: Path | None,
) -> Keeping | None:
    """Write the baseline where a path is given, and with it the traces that are kept.

    These are complete before the baseline is touched, and are in their place right after it.
    """
    if not project.config.baseline.keep_traces:
        if path is not None:
            write_whole(path, dump_baseline(baseline))
        return None
    with StagedTraces(project, suite.name, baseline, given) as traces:
        if path is not None:
            write_whole(path, dump_baseline(baseline))
        return traces.replace()


def _on_left_traces(project: Project, suite: SuiteConfig) -> list[str]:
    folder = kept_folder(project, suite.name)
    if project.config.baseline.keep_traces or not folder.exists():
        return []
    shown = printable(folder.relative_to(project.root))
    return [f"{shown} holds traces of an earlier baseline: remove it, or set keep_traces = true."]


def _anchored(
    project: Project,
    suite: SuiteConfig,
    baseline: Baseline | None,
    request: UpdateRequest,
) -> Path | None:
    """Keep the baseline that is in its file as the anchor, where one is missing or asked for.

    An update that wrote nothing has made another one, which nobody will be held against.
    """
    path = anchor_path(project, suite.name)
    if baseline is None or (path.exists() and not request.anchor):
        return None
    write_whole(path, dump_baseline(baseline))
    return path


def _refused(problems: list[Problem]) -> UsageError:
    last = problems[-1]
    hint = f"{last.hint} --force keeps it all the same and records that.".strip()
    return BaselineError.of([*problems[:-1], Problem(what=last.what, where=last.where, hint=hint)])

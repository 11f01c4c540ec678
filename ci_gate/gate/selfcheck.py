"""``selfcheck``: find or make whole runs of an unchanged agent and hold the gate against them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from ci_gate.config import SuiteConfig
from ci_gate.decision.selfcheck import WholeRun, self_check, whole_runs
from ci_gate.errors import BaselineError, UsageError, printable
from ci_gate.gate.bar import find_bar
from ci_gate.gate.measure import measure
from ci_gate.gate.modes import refuse_answered
from ci_gate.gate.preparing import RunOptions, prepare
from ci_gate.gate.project import (
    Project,
    Word,
    nearest_config,
    open_project,
    refuse_privileged_event,
)
from ci_gate.gate.run_journal import Watch
from ci_gate.model.policy import Policy
from ci_gate.model.run import Side
from ci_gate.model.selfcheck import SelfCheck
from ci_gate.model.verdict import ExitCode
from ci_gate.store.baselines import to_side as side_of_baseline
from ci_gate.store.folders import write_named
from ci_gate.store.loading import load
from ci_gate.store.runs import RunFile, to_side

__all__ = ["SelfCheckRequest", "exit_code", "json_of", "run_self_check", "write_json"]

_MAKE_MORE = "`ci-gate selfcheck --runs 4` makes runs and measures on them."
_SEVERAL = "ci-gate/selfchecks@1"


class SelfCheckRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What ``selfcheck`` was asked; None is what the user did not say.

    Attributes
    ----------
    files : tuple of Path
        Runs or baselines.
    runs : int or None
        Runs to make.
    run : RunOptions
        How they are made.
    """

    files: tuple[Path, ...]
    runs: int | None
    config_path: Path | None
    suite: str | None
    output: Path | None
    run: RunOptions
    environment: Mapping[str, str]


class _Several(msgspec.Struct, frozen=True, kw_only=True):
    schema: str = _SEVERAL
    suites: tuple[SelfCheck, ...]


def run_self_check(request: SelfCheckRequest, watch: Watch) -> tuple[SelfCheck, ...]:
    """Return what the gate does to runs of an unchanged agent, for each suite asked for.

    Raises
    ------
    UsageError
        Options contradict each other, or runs do not belong together.
    BaselineError
        No file was given, no run is to be made, and there is no baseline.
    GateError
        As for ``run``, where runs are made.
    """
    _refuse_contradictions(request)
    if request.files:
        return (_on_files(request),)
    if request.runs is not None:
        refuse_privileged_event(request.environment)
    project = _project(request, request.config_path)
    return tuple(
        _on_baseline(project, suite)
        if request.runs is None
        else _on_new_runs(project, suite, request, request.runs, watch)
        for suite in project.suites(request.suite)
    )


def _refuse_contradictions(request: SelfCheckRequest) -> None:
    if request.files and request.runs is not None:
        raise UsageError(
            "--runs makes runs, and files were given", hint="Leave one of the two out."
        )
    if request.runs is None and request.run != RunOptions():
        raise UsageError(
            "--jobs, --resume and --fresh say how to run, and nothing is to be run",
            hint="Add --runs 4, or leave them out.",
        )


def _project(request: SelfCheckRequest, path: Path | None) -> Project:
    return open_project(
        path,
        output=request.output,
        baseline_ref=None,
        word=Word.BASE,
        environment=request.environment,
    )


def _on_files(request: SelfCheckRequest) -> SelfCheck:
    runs = [run for path in request.files for run in _loaded(path)]
    name = runs[0].side.suite
    path = request.config_path or nearest_config(Path.cwd())
    project = None if path is None else _project(request, path)
    suite = None if project is None else _suite_of(project, request.suite, name)
    if project is None or suite is None:
        return _checked(runs, Policy(), suite=name, origin="the defaults: no configuration has it")
    return _with_project(project, suite, runs)


def _suite_of(project: Project, asked: str | None, name: str) -> SuiteConfig | None:
    if asked is not None:
        return project.config.suite(asked)
    return next((suite for suite in project.config.suites if suite.name == name), None)


def _loaded(path: Path) -> Sequence[WholeRun]:
    found = load(path)
    if isinstance(found, RunFile):
        return _of_run_file(found, printable(path))
    return _of_baseline(side_of_baseline(found), printable(path))


def _of_run_file(run: RunFile, source: str) -> Sequence[WholeRun]:
    digests = [run.repeat_digests[repeat] for repeat in sorted(run.repeat_digests)]
    if not digests:
        raise UsageError("the run has no trials", where=source, hint="Leave it out.")
    return whole_runs(to_side(run), source, digests)


def _of_baseline(side: Side, source: str) -> Sequence[WholeRun]:
    return whole_runs(side, source, [entry.run_digest for entry in side.runs])


def _on_baseline(project: Project, suite: SuiteConfig) -> SelfCheck:
    bar = find_bar(project, suite, file=None)
    if bar.side is None:
        raise BaselineError(
            f"no runs of {suite.name} were given and there is no baseline: {bar.origin}",
            hint=f"{_MAKE_MORE} `ci-gate baseline update` makes a baseline of several.",
        )
    return _with_project(project, suite, _of_baseline(bar.side, f"{suite.name}.json"))


def _on_new_runs(
    project: Project, suite: SuiteConfig, request: SelfCheckRequest, runs: int, watch: Watch
) -> SelfCheck:
    # Apart from the runs of `check` and of the deep plan, which these must not replace.
    refuse_answered(project.config, what="runs of one agent are compared", where="run.mode")
    folder = project.output / "selfcheck"
    prepared = prepare(project, suite, request.run, repeats=runs, bar=None, folder=folder)
    measured = measure(project, prepared, request.run, watch)
    found = _with_project(project, suite, _of_run_file(measured.run, measured.path.name))
    return msgspec.structs.replace(found, remarks=(*found.remarks, *measured.warnings))


def _with_project(project: Project, suite: SuiteConfig, runs: Sequence[WholeRun]) -> SelfCheck:
    origin = f"{project.path.name} of {project.policy_origin}"
    policy = project.config.policy_of(suite)
    return _checked(runs, policy, suite=suite.name, origin=origin)


def _checked(runs: Sequence[WholeRun], policy: Policy, *, suite: str, origin: str) -> SelfCheck:
    found = self_check(runs, policy, suite=suite, policy_origin=origin)
    if len(found.runs) > 1:
        return found
    return msgspec.structs.replace(found, because=f"{found.because} {_MAKE_MORE}")


def exit_code(found: Sequence[SelfCheck]) -> ExitCode:
    """Return PASSED where every suite could be measured, else INCONCLUSIVE.

    A measured rate, however high, is a result and no failure.
    """
    measured = all(one.measurable for one in found)
    return ExitCode.PASSED if measured else ExitCode.INCONCLUSIVE


def json_of(found: Sequence[SelfCheck]) -> bytes:
    """Return ``ci-gate/selfcheck@1``; of several suites, ``ci-gate/selfchecks@1``."""
    whole = found[0] if len(found) == 1 else _Several(suites=tuple(found))
    return msgspec.json.format(msgspec.json.encode(whole), indent=1) + b"\n"


def write_json(found: Sequence[SelfCheck], path: Path) -> None:
    """Write the JSON to a file, making its folder."""
    write_named(path, json_of(found))

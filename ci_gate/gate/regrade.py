"""``grade``: judge the stored trials of a run by the graders of today, without running the agent.

Decides which trials are graded again, what of their records changes, and where the new run file
goes. It never touches the run that it reads: the new file appears whole, or not at all.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from ci_gate.config import SuiteConfig
from ci_gate.errors import FileFormatError, UsageError, printable
from ci_gate.gate.execution import Execution, Work, execute
from ci_gate.gate.judges import judge_digest, require_calibrated
from ci_gate.gate.planning import restrict
from ci_gate.gate.project import Project, Word, open_project
from ci_gate.gate.run_journal import RunInterrupted, Watch
from ci_gate.gate.stored_trials import StoredTrials
from ci_gate.gate.suites import configured_suite
from ci_gate.gate.tool import tool_name
from ci_gate.machine import failed_write
from ci_gate.model.regrading import Flip, Left, Regraded, flip_of
from ci_gate.model.run import RunHeader, Stop, StopReason
from ci_gate.model.suite import PlannedTrial, Suite, Task
from ci_gate.model.trial import Cause, Status, TrialRecord
from ci_gate.prng import derive_seed, parse_seed
from ci_gate.store.files import sync_folder
from ci_gate.store.folders import refuse_links
from ci_gate.store.journal import Journal, TrialKey
from ci_gate.store.runs import RunFile, load_run

__all__ = ["RegradeRequest", "regrade"]

_SUFFIX: Final = ".run.jsonl"
_NOBODY: Final = frozenset({Cause.HARNESS, Cause.CONTAMINATED})


class RegradeRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked; None is what the user did not say."""

    run: Path
    config_path: Path | None
    environment: Mapping[str, str]
    output: Path | None = None
    task_filter: str | None = None
    jobs: int | None = None


def regrade(request: RegradeRequest, watch: Watch) -> Regraded:
    """Grade the stored trials of a run again and write what came of it as a new run file.

    Raises
    ------
    UsageError
        The configuration has no such suite or task, or the new file would replace another file.
    FileFormatError
        The run file, a trace or a content is not what its digest says.
    JudgeError
        A judge may not gate.
    RunInterrupted
        The user stopped it; nothing is written.
    """
    run = load_run(request.run)
    output = _output(request)
    project = open_project(
        request.config_path,
        output=None,
        baseline_ref=None,
        word=Word.OWN_UNLESS_JUDGED,
        environment=request.environment,
    )
    config = project.config.suite(run.header.suite)
    suite = configured_suite(project.config, config, trials=None, task_filter=None)
    require_calibrated(project, config, suite, request.environment)
    return _Regrading(request, project, config, suite, run, output).made(watch)


def _output(request: RegradeRequest) -> Path:
    path = request.output or _beside(request.run)
    refuse_links(path)
    if path.exists() and not _is_regraded(path):
        raise UsageError(
            "is there already, and is no run that was graded again",
            where=printable(path),
            hint="Choose another --output.",
        )
    return path


def _beside(run: Path) -> Path:
    return run.with_name(f"{run.name.removesuffix(_SUFFIX)}.regraded{_SUFFIX}")


def _is_regraded(path: Path) -> bool:
    try:
        return isinstance(load_run(path).header.regraded, str)
    except FileFormatError:
        return False


class _Regrading:
    """One run that is being graded again; takes the new records as a journal does."""

    def __init__(
        self,
        request: RegradeRequest,
        project: Project,
        config: SuiteConfig,
        suite: Suite,
        run: RunFile,
        output: Path,
    ) -> None:
        self._request = request
        self._project = project
        self._config = config
        self._run = run
        self._output = output
        self._whole = suite
        self._suite = _suite_of(restrict(suite, request.task_filter), run)
        self._tasks: Mapping[str, Task] = {task.id: task for task in self._suite.tasks}
        self._before = {record.key: record for record in run.records}
        self._graded: dict[TrialKey, TrialRecord] = {}
        self._why: dict[TrialKey, str] = {}
        self._flips: list[Flip] = []

    def made(self, watch: Watch) -> Regraded:
        """Grade, and put the new file in its place."""
        with _partial(self._output) as partial:
            with Journal.open(partial, self._header(), fresh=True) as journal:
                self._grade(watch)
                # In the order of the run: which trial was graded first must not be seen.
                for record in self._run.records:
                    journal.append(self._graded.get(record.key) or self._kept(record))
                journal.finish(_stop(self._run))
            _put(partial, self._output)
        return self._found()

    def _grade(self, watch: Watch) -> None:
        stored = StoredTrials(self._suite.name, self._request.run.parent, self._before)
        execution = Execution(
            config=self._project.config,
            suite=self._suite,
            jobs=self._request.jobs,
            retries=0,
            agent=stored,
        )
        trials = self._trials()
        if not trials:
            return
        with watch(self._suite.name) as progress:
            ended = execute(execution, lambda: Work(trials=trials, sink=self, progress=progress))
        if ended.reason is StopReason.INTERRUPTED:
            raise RunInterrupted
        if stored.problems:
            raise FileFormatError.of(stored.problems)

    def _trials(self) -> Sequence[PlannedTrial]:
        return [
            _planned(record, self._tasks[record.task])
            for record in self._run.records
            if record.status is not Status.ERRORED and record.task in self._tasks
        ]

    def append(self, record: TrialRecord) -> None:
        """Keep the new judgement of a trial, with what is known of it from when it ran."""
        key = record.key
        if record.status is Status.ERRORED and record.cause in _NOBODY:
            self._why[key] = record.reason or "it could not be graded"
            return
        before = self._before[key]
        after = _judged(before, record)
        self._graded[key] = after
        flip = flip_of(before, after)
        if flip is not None:
            self._flips.append(flip)

    def _kept(self, record: TrialRecord) -> TrialRecord:
        """Return a record that stays: what errored is judged by no grader, so it is of any."""
        task = self._tasks.get(record.task)
        if task is None or record.status is not Status.ERRORED:
            return record
        return msgspec.structs.replace(record, task_digest=task.digest)

    def _header(self) -> RunHeader:
        is_whole = self._request.task_filter is None
        return msgspec.structs.replace(
            self._run.header,
            suite_digest=self._whole.digest if is_whole else None,
            judge_digest=judge_digest(self._whole, self._project.config),
            regraded=self._run.digest,
            tool=tool_name(),
        )

    def _found(self) -> Regraded:
        known = {task.id for task in self._whole.tasks}
        left = [
            Left(task=one.task, trial=one.trial, repeat=one.repeat, why=why)
            for one in self._run.records
            if (why := self._why_left(one, known)) is not None
        ]
        asked = [one for one in self._run.records if one.task in self._tasks]
        gone = [one for one in left if one.task not in self._tasks]
        return Regraded(
            suite=self._suite.name,
            run=str(self._request.run),
            output=str(self._output),
            graded=len(self._graded),
            errored=sum(one.status is Status.ERRORED for one in asked),
            others=len(self._run.records) - len(asked) - len(gone),
            flips=tuple(sorted(self._flips, key=lambda one: (one.task, one.trial, one.repeat))),
            left=tuple(left),
        )

    def _why_left(self, record: TrialRecord, known: set[str]) -> str | None:
        if self._request.task_filter is None and record.task not in known:
            return "there is no such task any more"
        return self._why.get(record.key)


def _suite_of(suite: Suite, run: RunFile) -> Suite:
    """Return the suite with the tasks that the run has: no other fixture is read."""
    ran = {record.task for record in run.records}
    tasks = tuple(task for task in suite.tasks if task.id in ran)
    return msgspec.structs.replace(suite, tasks=tasks)


def _planned(record: TrialRecord, task: Task) -> PlannedTrial:
    seed = derive_seed(task.base_seed, record.trial)
    return PlannedTrial(
        task=task,
        trial=record.trial,
        repeat=record.repeat,
        attempt=record.attempt,
        seed=seed if record.seed is None else parse_seed(record.seed),
    )


def _judged(before: TrialRecord, now: TrialRecord) -> TrialRecord:
    """Return the record of a trial as it ran, judged as it is now."""
    return msgspec.structs.replace(
        before,
        task_digest=now.task_digest,
        status=now.status,
        reason=now.reason,
        cause=now.cause,
        grades=now.grades,
        process=now.process,
        recovered=now.recovered,
    )


def _stop(run: RunFile) -> Stop:
    if run.footer is not None:
        return run.footer.stop
    is_whole = run.header.plan is None
    return Stop(round=0, reason=StopReason.COMPLETE if is_whole else StopReason.INTERRUPTED)


@contextlib.contextmanager
def _partial(output: Path) -> Iterator[Path]:
    """Yield where the file is written before it is whole; nothing stays there."""
    partial = output.with_name(f".{output.name}.partial")
    try:
        yield partial
    finally:
        partial.unlink(missing_ok=True)


def _put(partial: Path, output: Path) -> None:
    try:
        partial.replace(output)
        sync_folder(output.parent)
    except OSError as error:
        raise failed_write(error, output) from error

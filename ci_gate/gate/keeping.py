"""Which traces an update of the baseline keeps: one of a passing trial for each task.

Decides what is kept and why something is not; it plays nothing. A trace of the same agent and task
that is kept already stays as it is, so that an update moves no more than it must.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from ci_gate.decision.wording import counted, named
from ci_gate.errors import FileFormatError
from ci_gate.gate.project import Project
from ci_gate.gate.recorded import is_trace_of, place_of_trace
from ci_gate.model.run import Baseline
from ci_gate.model.trace import Trace
from ci_gate.model.trial import Status, TrialRecord
from ci_gate.store.contents import Contents
from ci_gate.store.kept import MOST_TASK_BYTES, KeptFolder, kept_file, size_of
from ci_gate.store.runs import RunFile
from ci_gate.store.traces import read_trace

__all__ = ["Keeping", "RunWithTraces", "StagedTraces", "kept_folder"]

_NO_PASS: Final = "no trial passed"
_NO_TRACE: Final = "no passing trial has a whole trace"
_TOO_LARGE: Final = f"the traces take more than {MOST_TASK_BYTES // 2**20} MiB"


class Keeping(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the kept traces of a suite.

    Attributes
    ----------
    place : Path
    changed : bool
    tasks, of : int
        Tasks that have a kept trace, and tasks of the baseline.
    bytes : int
        Of all of them together, with what they refer to.
    remarks : tuple of str
        Of which tasks none is kept, and why.
    """

    place: Path
    changed: bool
    tasks: int
    of: int
    bytes: int
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RunWithTraces:
    """A run and the folder that its traces are named from."""

    run: RunFile
    folder: Path


@dataclass(frozen=True, kw_only=True)
class _Source:
    """A trace that could be kept, where its contents are, and whether it is the right one."""

    path: Path
    traces: Path
    is_right: Callable[[Trace], bool]


def kept_folder(project: Project, suite: str) -> Path:
    """Return the folder of a suite's kept traces in the working tree."""
    return project.root / project.config.baseline.dir / f"{suite}.traces"


class StagedTraces:
    """The kept traces of a baseline, put together beside their place; a context manager.

    What can fail for want of room fails on entry, before the baseline is written; ``replace``
    then puts them in their place, and what is left beside it is gone in the end.

    Parameters
    ----------
    project : Project
    suite : str
    baseline : Baseline
        As it is going to be.
    runs : sequence of RunWithTraces
        Those that the update was given or made.
    """

    def __init__(
        self, project: Project, suite: str, baseline: Baseline, runs: Sequence[RunWithTraces]
    ) -> None:
        self._folder = KeptFolder(kept_folder(project, suite))
        self._baseline = baseline
        self._runs = runs
        self._refused: dict[str, list[str]] = {}

    def __enter__(self) -> StagedTraces:
        try:
            for task in self._baseline.tasks:
                self._keep(task)
        except BaseException:
            self._folder.discard()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.discard()

    def replace(self) -> Keeping:
        """Put the traces in their place and say what is kept."""
        kept = Keeping(
            place=self._folder.place,
            changed=self._folder.differs(),
            tasks=self._folder.tasks,
            of=len(self._baseline.tasks),
            bytes=self._folder.bytes(),
            remarks=tuple(
                f"No trace is kept of {counted(len(tasks), 'task')}, because {why}: {named(tasks)}."
                for why, tasks in sorted(self._refused.items())
            ),
        )
        if kept.changed:
            self._folder.replace()
        return kept

    def _keep(self, task: str) -> None:
        passed = _passed(self._runs, task)
        why = _NO_TRACE if passed else _NO_PASS
        for source in (*self._present(task), *_recorded(passed)):
            refused = self._refusal(task, source)
            if refused is None:
                return
            why = refused or why
        self._refused.setdefault(why, []).append(task)

    def _refusal(self, task: str, source: _Source) -> str | None:
        """Keep a trace, or return why not; an empty text where it is none of the task's."""
        if source.path.stat().st_size > MOST_TASK_BYTES:
            return _TOO_LARGE
        contents = Contents(source.traces)
        try:
            trace = read_trace(source.path)
            if not source.is_right(trace):
                return ""
            if size_of(source.path, trace, contents) > MOST_TASK_BYTES:
                return _TOO_LARGE
            self._folder.add(task, source.path, trace, contents)
        except FileFormatError:
            return ""
        return None

    def _present(self, task: str) -> Iterator[_Source]:
        """Yield the trace that is kept already, right if it is of this agent and this task."""
        path = kept_file(self._folder.place, task)
        agent = self._baseline.runs[-1].agent.digest
        wanted = (task, self._baseline.tasks[task].digest, agent)

        def is_right(trace: Trace) -> bool:
            header = trace.header
            return (header.task, header.task_digest, header.agent_digest) == wanted

        if path is not None and agent is not None:
            yield _Source(path=path, traces=self._folder.place, is_right=is_right)


def _passed(runs: Sequence[RunWithTraces], task: str) -> Sequence[tuple[Path, TrialRecord]]:
    """Return the passing trials of a task with the folder of their run, in the order of trials."""
    found = [
        (one.folder, record)
        for one in runs
        for record in one.run.records
        if record.task == task and record.status is Status.PASSED
    ]
    return sorted(found, key=lambda item: (item[1].repeat, item[1].trial))


def _recorded(passed: Sequence[tuple[Path, TrialRecord]]) -> Iterator[_Source]:
    for folder, record in passed:
        path = place_of_trace(folder, record)
        if path is not None:
            yield _Source(
                path=path, traces=path.parent.parent, is_right=partial(is_trace_of, record=record)
            )

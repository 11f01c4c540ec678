"""The traces of a suite that a run is answered from, and what their run file says of them.

Decides where they are and what is recorded of each trial. How they are played is not known here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ci_gate.config import Config
from ci_gate.errors import UsageError, printable
from ci_gate.gate.modes import answered_mode, results_of
from ci_gate.gate.project import Project
from ci_gate.gate.recording import TRACES, traces_folder
from ci_gate.model.suite import PlannedTrial
from ci_gate.model.trial import TrialRecord
from ci_gate.store.folders import refuse_links
from ci_gate.store.journal import TrialKey
from ci_gate.store.paths import folder_of, trace_file
from ci_gate.store.runs import RunFile, load_run

__all__ = ["Recordings", "edited_remark", "played_from", "recordings_of"]

_TRACE: Final = re.compile(r"(0|[1-9][0-9]{0,8})(?:\.([1-9][0-9]{0,8}))?\.jsonl")
_MOST_NAMED: Final = 3


@dataclass(frozen=True, kw_only=True)
class Recordings:
    """What was recorded of a suite.

    Attributes
    ----------
    suite : str
    traces : Path
        Folder of its traces.
    path : Path
        Of the run file that may name them.
    run : RunFile or None
        None where there is none.
    records : mapping of (task, trial, repeat) to TrialRecord
        Of the run file.
    """

    suite: str
    traces: Path
    path: Path
    run: RunFile | None
    records: Mapping[TrialKey, TrialRecord]

    def trace_of(self, trial: PlannedTrial) -> Path | None:
        """Return where the trace of a trial is, None where there is none.

        Raises
        ------
        UsageError
            A link leads to it.
        """
        path = trace_file(self.traces, trial.task.id, trial.trial, trial.repeat)
        if not os.path.lexists(path):
            return None
        refuse_links(path)
        return path

    def all_of(self, task: str) -> list[tuple[tuple[int, int], Path]]:
        """Return every trace of a task by (trial, repeat), in that order.

        Raises
        ------
        UsageError
            A link leads to one.
        """
        folder = self.traces / folder_of(task)
        refuse_links(folder)
        found = sorted(_numbered(folder))
        for _, path in found:
            refuse_links(path)
        return found

    def made_no_call(self, trial: PlannedTrial) -> bool:
        """Return whether the run file says that a trial without a trace made no call."""
        record = self.records.get(trial.key)
        return record is not None and record.trace is None and not _has_called(record)


def _has_called(record: TrialRecord) -> bool:
    return bool(record.tool_calls or record.tokens or record.cost_usd)


def _numbered(folder: Path) -> Iterator[tuple[tuple[int, int], Path]]:
    for path in folder.iterdir() if folder.is_dir() else ():
        match = _TRACE.fullmatch(path.name)
        if match is not None:
            yield (int(match[1]), int(match[2] or 0)), path


def recordings_of(project: Project, suite: str) -> Recordings:
    """Find what a suite is answered from.

    Raises
    ------
    UsageError
        There is no such folder, or it is the one that the run itself writes to.
    FileFormatError
        The run file cannot be read.
    """
    results = _results(project)
    traces = traces_folder(results, suite, project.config)
    path = results / f"{suite}.run.jsonl"
    _refuse_own(project, suite, traces)
    refuse_links(path)
    run = load_run(path) if path.exists() else None
    records = {} if run is None else {record.key: record for record in run.records}
    return Recordings(suite=suite, traces=traces, path=path, run=run, records=records)


def edited_remark(tasks: Sequence[str]) -> list[str]:
    """Say which tasks are no longer those that were recorded."""
    if not tasks:
        return []
    named = ", ".join(printable(task, limit=80) for task in tasks[:_MOST_NAMED])
    more = f" and {len(tasks) - _MOST_NAMED} more" if len(tasks) > _MOST_NAMED else ""
    return [f"Tasks edited since they were recorded: {named}{more}."]


def _results(project: Project) -> Path:
    """Return the folder that holds ``traces``; the user may name it through a link."""
    named = _named(project.config)
    if named is None:
        return project.output
    folder = named.resolve()
    if folder.name == TRACES and not (folder / TRACES).is_dir():
        folder = folder.parent
    if not ((folder / TRACES).is_dir() or any(folder.glob("*.run.jsonl"))):
        raise UsageError(
            "has no recordings",
            where=f"run.traces: {printable(named)}",
            hint=f"Name the folder that holds `{TRACES}`, as `ci-gate run` wrote it.",
        )
    return folder


def _named(config: Config) -> Path | None:
    return Path(config.root) / config.run.traces if config.run.traces else None


def played_from(config: Config) -> str | None:
    """Return the named folder that the calls of a run were answered from, for its replays."""
    if answered_mode(config) is None or not config.run.traces:
        return None
    named = Path(config.run.traces)
    return str(named.parent if named.name == TRACES else named)


def _refuse_own(project: Project, suite: str, traces: Path) -> None:
    own = traces_folder(results_of(project), suite, project.config)
    if own.resolve() == traces.resolve():
        raise UsageError(
            "holds what this run itself will write",
            where=f"run.traces: {printable(traces)}",
            hint="Copy it to another place, or name what was recorded.",
        )

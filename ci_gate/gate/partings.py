"""On a red gate: where the failing trials of the worst tasks leave what a passing one did.

A passing trial of the baseline, whose trace was kept, is held against a failing one of the
candidate, of the same seed where there is one. What that means is the reader's to judge.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from ci_gate.gate.kept import KeptTrace
from ci_gate.gate.project import Project
from ci_gate.gate.recorded import recorded_trace
from ci_gate.model.ranking import worst_tasks
from ci_gate.model.trace import Trace
from ci_gate.model.trial import Status, TrialRecord
from ci_gate.model.verdict import Decision, TaskResult, Verdict
from ci_gate.model.verdict_traces import TrialParting
from ci_gate.store.runs import RunFile
from ci_gate.tracing.divergence import diff_traces
from ci_gate.tracing.excerpts import excerpt_of

__all__ = ["MOST_TASKS", "partings_of"]

MOST_TASKS: Final = 3
"""Tasks whose trials are compared."""

_MOST_LOOKED_AT: Final = 20
_MOST_BYTES: Final = 32 * 2**20


@dataclass(frozen=True, kw_only=True)
class _Pair:
    task: str
    kept: KeptTrace
    passing: Trace
    record: TrialRecord
    failing: Trace


def partings_of(
    project: Project, verdict: Verdict, run: RunFile, path: Path, kept: Sequence[KeptTrace]
) -> tuple[TrialParting, ...]:
    """Return where up to three of the worst tasks part, where both traces exist.

    Parameters
    ----------
    project : Project
    verdict : Verdict
        Only one that is regressed is looked at.
    run : RunFile
        The candidate's.
    path : Path
        Its file, beside which the traces are.
    kept : sequence of KeptTrace
    """
    if verdict.decision is not Decision.REGRESSED:
        return ()
    passing = {one.task.id: one for one in kept if one.trace is not None}
    worst = [task for task in worst_tasks(verdict) if task.task in passing][:_MOST_LOOKED_AT]
    pairs = _pairs(worst, passing, run, path.parent)
    return tuple(_parting(project, path.parent, pair) for pair in islice(pairs, MOST_TASKS))


def _pairs(
    worst: Iterable[TaskResult], passing: dict[str, KeptTrace], run: RunFile, folder: Path
) -> Iterator[_Pair]:
    for task in worst:
        kept = passing[task.task]
        record = _failing(task, kept, run)
        if record is None or kept.trace is None:
            continue
        failing = recorded_trace(folder, record, most_bytes=_MOST_BYTES)
        if failing is not None:
            yield _Pair(
                task=task.task, kept=kept, passing=kept.trace, record=record, failing=failing
            )


def _failing(task: TaskResult, kept: KeptTrace, run: RunFile) -> TrialRecord | None:
    """Return the failing trial that is shown: of the kept trial's seed, else the first to replay.

    None where no failing trial was recorded.
    """
    assert kept.trace is not None
    first = {(replay.trial, replay.repeat): place for place, replay in enumerate(task.replay)}

    def order(record: TrialRecord) -> tuple[bool, int, int, int]:
        key = record.trial, record.repeat
        return not _is_same(kept.trace, record), first.get(key, len(first)), *key

    failed = (
        record
        for record in run.records
        if record.task == task.task and record.status is Status.FAILED and record.trace is not None
    )
    return min(failed, key=order, default=None)


def _is_same(passing: Trace | None, record: TrialRecord) -> bool:
    assert passing is not None
    header = passing.header
    return (header.trial, header.seed) == (record.trial, record.seed)


def _parting(project: Project, folder: Path, pair: _Pair) -> TrialParting:
    first = diff_traces(pair.passing, pair.failing).first
    candidate = _shown(project, folder / str(pair.record.trace))
    return TrialParting(
        task=pair.task,
        same_seed=_is_same(pair.passing, pair.record),
        baseline_trial=pair.passing.header.trial or 0,
        baseline_trace=pair.kept.place,
        candidate_trial=pair.record.trial,
        candidate_repeat=pair.record.repeat,
        candidate_trace=candidate,
        parting=None if first is None else excerpt_of(first),
        command=_command(project, pair, candidate),
    )


def _command(project: Project, pair: _Pair, candidate: str) -> str:
    fetch = project.fetch
    place = candidate if fetch is None else f"{fetch.folder}/{pair.record.trace}"
    command = shlex.join(["ci-gate", "trace", "diff", pair.kept.place, place])
    return command if fetch is None else fetch.before(command)


def _shown(project: Project, path: Path) -> str:
    below = path.is_relative_to(project.root)
    return (path.relative_to(project.root) if below else path).as_posix()

"""Run files as a whole: loaded and verified, written in sorted order, made into a side.

This module decides when a run file can be believed. It must not know how one is written while
trials run (`ci_gate.store.journal`), nor what the outcomes are compared with.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby, islice
from operator import attrgetter
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec

from ci_gate.errors import FileFormatError, printable
from ci_gate.model.run import (
    NOT_RUN,
    AgentRef,
    BaselineRun,
    Plan,
    RunFooter,
    RunHeader,
    Side,
    SideTask,
    StopReason,
    outcome_char,
)
from ci_gate.model.trial import Cause, Grade, Status, TrialRecord
from ci_gate.prng import format_seed, parse_seed
from ci_gate.store.answers import are_identical, known_answers
from ci_gate.store.files import open_regular
from ci_gate.store.initial_states import in_one_state
from ci_gate.store.judged import judged_by
from ci_gate.store.measures import FaultCounts, counted, measured, process_measured, tool_calls
from ci_gate.store.scan import Scan, check_seed, digests_of, lines_of, scan

__all__ = ["RunFile", "canonical_lines", "load_run", "side_so_far", "to_side", "verified"]

# A character a planned trial; more is not a suite but an attack on memory.
# What the writer writes; every other form is looked at more closely.
_SEED: Final = re.compile("0x[0-9a-f]{16}")
_MOST_DETAILS: Final = 200
_LONGEST_DETAIL: Final = 4096
_MAX_CELLS: Final = 5 * 10**6


class RunFile(msgspec.Struct, frozen=True, kw_only=True):
    """A run file that was read and verified.

    Parameters
    ----------
    name : str
        The file in messages.
    header : RunHeader
    records : tuple of TrialRecord
        The surviving line of each trial, sorted by task, trial and repeat.
    footer : RunFooter or None
        None: written by another tool, or interrupted where the header has a plan.
    digest : str
        Over the surviving lines, whether or not there is a footer.
    repeat_digests : mapping of int to str
        The same for each repeat that has trials: a baseline's ``run_digest``.
    warnings : tuple of str
    extra : mapping
        Unknown fields of the header.
    """

    name: str
    header: RunHeader
    records: tuple[TrialRecord, ...]
    footer: RunFooter | None
    digest: str
    repeat_digests: Mapping[int, str]
    warnings: tuple[str, ...] = ()
    extra: Mapping[str, Any] = msgspec.field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Return whether the run reached an end: no plan, or a footer that is no interruption."""
        if self.footer is None:
            return self.header.plan is None
        return self.footer.stop.reason is not StopReason.INTERRUPTED


def load_run(path: Path, *, name: str | None = None) -> RunFile:
    """Read and verify a run file.

    Parameters
    ----------
    path : Path
    name : str, optional
        What messages call the file; the path by default.

    Raises
    ------
    FileFormatError
        There is no such regular file, ``scan`` refuses it, its end is torn although it is no
        unfinished journal, a seed is not hexadecimal or differs between repeats of a trial, or
        the footer's count or digest is not that of the lines.
    """
    shown = printable(path if name is None else name)
    with open_regular(path) as stream:
        return verified(scan(stream, shown), stream)


def verified(found: Scan, stream: BinaryIO) -> RunFile:
    """Return the run that was scanned, its digests and seeds checked.

    Raises
    ------
    FileFormatError
        As ``load_run``.
    """
    warnings = _torn_end(found)
    order = found.order()
    _check_seeds(found, order)
    digests = digests_of(found, stream, order)
    run = RunFile(
        name=found.name,
        header=found.header,
        records=tuple(found.records[position] for position in order),
        footer=found.footer,
        digest=digests.whole,
        repeat_digests=digests.repeats,
        warnings=warnings,
        extra=found.extra,
    )
    _check_footer(run)
    return run


def _torn_end(found: Scan) -> tuple[str, ...]:
    if not found.torn_bytes:
        return ()
    what = f"the last line is torn after {found.torn_bytes} bytes"
    if found.header.plan is None:
        hint = "The file is truncated; write or fetch it again."
        raise FileFormatError(what, where=found.name, hint=hint)
    return (f"{found.name}: {what}; the run was interrupted while it was written",)


def _check_seeds(found: Scan, order: list[int]) -> None:
    """Check that seeds are hexadecimal and that the repeats of a trial share theirs."""
    before: TrialRecord | None = None
    for position in order:
        record = found.records[position]
        if record.seed is not None and not _SEED.fullmatch(record.seed):
            check_seed(record.seed, found.at(position))
        if before and before.trial == record.trial and before.task == record.task:
            _check_same_seed(before, record, found.at(position))
        before = record


def _check_same_seed(before: TrialRecord, record: TrialRecord, where: str) -> None:
    if before.seed != record.seed and _normal_seed(before.seed) != _normal_seed(record.seed):
        what = f"task {printable(record.task)}, trial {record.trial}: repeat {record.repeat}"
        raise FileFormatError(f"{what} has another seed than repeat {before.repeat}", where=where)


def _normal_seed(seed: str | None) -> str | None:
    return None if seed is None else format_seed(parse_seed(seed))


def _check_footer(run: RunFile) -> None:
    footer = run.footer
    if footer is None:
        return
    if footer.trials != len(run.records):
        what = f"the footer counts {footer.trials} trials, the file has {len(run.records)}"
        raise FileFormatError(what, where=run.name, hint="The file was edited or truncated.")
    if footer.digest != run.digest:
        what = f"the footer's digest {printable(footer.digest)} is not that of the lines"
        hint = f"The file was edited; its lines have {run.digest}."
        raise FileFormatError(what, where=run.name, hint=hint)


def canonical_lines(path: Path) -> Iterator[bytes]:
    """Yield the surviving lines of a run file as they are, sorted by task, trial and repeat.

    The header and the footer are left out. Two runs of the same trials yield the same lines
    whatever the order in which they completed, ``duration_s`` and ``attempt`` aside.

    Raises
    ------
    FileFormatError
        As ``load_run``, but for seeds and footer, which are not looked at.
    """
    with open_regular(path) as stream:
        found = scan(stream, printable(path))
        _torn_end(found)
        for line in lines_of(found, stream, found.order()):
            yield line.rstrip(b"\r\n") + b"\n"


def to_side(run: RunFile, *, tasks: Mapping[str, str | None] | None = None) -> Side:
    """Return the run in the form in which two sides are compared.

    Parameters
    ----------
    run : RunFile
    tasks : mapping of str to (str or None), optional
        Ids and digests of the tasks that were planned. Those without a single line in the file then
        appear as not run instead of being unknown.

    Raises
    ------
    FileFormatError
        The plan, or an index of a file without one, asks for more than 5 million trials.

    Notes
    -----
    Without a plan each task has as many trials as its highest index says, and the file as many
    repeats as its highest.
    """
    return _to_side(run, tasks, measuring=True)


def _to_side(run: RunFile, tasks: Mapping[str, str | None] | None, *, measuring: bool) -> Side:
    by_task = groupby(run.records, key=attrgetter("task"))
    groups = {task: in_one_state(list(lines)) for task, lines in by_task}
    absent: dict[str, list[TrialRecord]] = {task: [] for task in tasks or () if task not in groups}
    groups = dict(sorted({**groups, **absent}.items()))
    repeats = _repeats(run)
    lengths = {task: _trials(run.header.plan, task, lines) for task, lines in groups.items()}
    _check_size(run, sum(lengths.values()) * repeats)
    sides = {
        task: _side_task(lines, lengths[task], repeats, measuring=measuring)
        for task, lines in groups.items()
    }
    for task in absent:
        digest = (tasks or {})[task]
        sides[task] = msgspec.structs.replace(sides[task], digest=digest)
    return _side(run, sides, _planned(run, lengths, repeats))


def side_so_far(
    header: RunHeader,
    records: Iterable[TrialRecord],
    *,
    tasks: Mapping[str, str | None] | None = None,
) -> Side:
    """Return the side of a run that is still going on, without reading its file.

    Parameters
    ----------
    header : RunHeader
    records : iterable of TrialRecord
        The surviving record of each trial, in any order.
    tasks : mapping of str to (str or None), optional
        As ``to_side``.

    Returns
    -------
    Side
        What ``to_side`` makes of the file, but without its digest, and without measures and counts,
        which are most of the work and say nothing of trials to come.
    """
    lines = tuple(sorted(records, key=attrgetter("task", "trial", "repeat")))
    run = RunFile(
        name=header.suite,
        header=header,
        records=lines,
        footer=None,
        digest="",
        repeat_digests=dict.fromkeys({line.repeat for line in lines}, ""),
    )
    return msgspec.structs.replace(_to_side(run, tasks, measuring=False), digest=None)


def _repeats(run: RunFile) -> int:
    ran = max(run.repeat_digests, default=0) + 1
    return ran if run.header.plan is None else max(ran, run.header.plan.repeats)


def _trials(plan: Plan | None, task: str, lines: list[TrialRecord]) -> int:
    if plan is None:
        return max((line.trial for line in lines), default=0) + 1
    return plan.task_trials.get(task, plan.trials)


def _check_size(run: RunFile, cells: int) -> None:
    if cells > _MAX_CELLS:
        what = f"asks for {cells} trials, at most {_MAX_CELLS} are compared"
        raise FileFormatError(what, where=run.name)


def _planned(run: RunFile, lengths: Mapping[str, int], repeats: int) -> dict[str, int]:
    plan = run.header.plan
    # An extended plan has grown to the repeats that were begun.
    asked = repeats if plan is None or plan.extend else plan.repeats
    return {task: length * asked for task, length in lengths.items()}


def _side_task(lines: list[TrialRecord], length: int, repeats: int, *, measuring: bool) -> SideTask:
    grid = [[NOT_RUN] * length for _ in range(repeats)]
    by_repeat: list[list[TrialRecord]] = [[] for _ in range(repeats)]
    for line in lines:
        grid[line.repeat][line.trial] = outcome_char(line.status)
        by_repeat[line.repeat].append(line)
    counts = counted(by_repeat) if measuring else FaultCounts()
    return SideTask(
        digest=next((line.task_digest for line in lines if line.task_digest is not None), None),
        outcomes=tuple("".join(row) for row in grid),
        seeds=_seeds(lines, length),
        measures=measured(by_repeat) if measuring else {},
        process=process_measured(by_repeat) if measuring else {},
        tool_calls=tool_calls(by_repeat) if measuring else None,
        faulted=counts.faulted,
        recovered=counts.recovered,
        looped=counts.looped,
        reasons=_reasons(lines),
        details=_details(lines),
        causes=_causes(lines),
        answers=known_answers(lines),
        identical=measuring and are_identical(lines),
        by_judge=judged_by(lines) if measuring else {},
    )


def _reasons(lines: list[TrialRecord]) -> dict[tuple[int, int], str]:
    return {
        (line.trial, line.repeat): line.reason
        for line in lines
        if line.reason is not None and line.status is not Status.PASSED
    }


def _details(lines: list[TrialRecord]) -> dict[tuple[int, int], str]:
    """Return the details of the first trials that failed; there may be a million."""
    with_grades = (line for line in lines if line.grades and line.status is not Status.PASSED)
    found = (((line.trial, line.repeat), _detail(line.grades or ())) for line in with_grades)
    return dict(islice(((key, text) for key, text in found if text), _MOST_DETAILS))


def _detail(grades: tuple[Grade, ...]) -> str:
    failed = (grade for grade in grades if grade.detail and not grade.passed)
    return "\n".join(f"{grade.grader}: {grade.detail}" for grade in failed)[:_LONGEST_DETAIL]


def _causes(lines: list[TrialRecord]) -> dict[tuple[int, int], Cause]:
    return {
        (line.trial, line.repeat): line.cause
        for line in lines
        if line.cause is not None and line.status is not Status.PASSED
    }


def _seeds(lines: list[TrialRecord], length: int) -> tuple[str | None, ...] | None:
    found: dict[int, str | None] = {}
    for line in lines:
        if line.seed is not None and line.trial not in found:
            seed = line.seed
            found[line.trial] = seed if _SEED.fullmatch(seed) else _normal_seed(seed)
    return tuple(found.get(trial) for trial in range(length)) if found else None


def _side(run: RunFile, tasks: Mapping[str, SideTask], planned: Mapping[str, int]) -> Side:
    header = run.header
    provenance = BaselineRun(
        agent=header.agent or AgentRef(), model=header.model, run_digest=run.digest
    )
    return Side(
        kind="run",
        suite=header.suite,
        suite_digest=header.suite_digest,
        root_seed=_normal_seed(header.root_seed),
        errors=header.errors,
        faults_digest=header.faults_digest,
        judge_digest=header.judge_digest,
        tasks=tasks,
        planned=planned,
        runs=(provenance,),
        plan=header.plan,
        stop=None if run.footer is None else run.footer.stop,
        task_filter=header.task_filter,
        shard=header.shard,
        baseline_digest=header.baseline_digest,
        policy_digest=header.policy_digest,
        mode=header.mode,
        created=header.created,
        commit=header.commit,
        tool=header.tool,
        digest=run.digest,
        complete=run.complete,
        retried=sum(r.attempt > 1 and r.status is not Status.ERRORED for r in run.records),
        extra=run.extra,
    )

"""Baseline files: read with every mistake at once, written in the one form that reviews well.

This module decides what a legal baseline is and which bytes it becomes. It must not know where the
file came from (a commit, the disk), nor how runs become a baseline (`ci_gate.store.pooling`).

Notes
-----
A baseline is written as one line a run and one line a task, tasks sorted by id (code points), keys
in the order of the format's description, line feeds and a final newline. Measures have 3
significant digits; what is counted in whole numbers (tokens) has no decimal point where it is
whole, everything else always has one. Unknown fields come last, sorted by name.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from ci_gate.codec import digest_bytes, encode
from ci_gate.errors import FileFormatError, Problem, printable
from ci_gate.model.run import (
    ERRORED,
    FAILED,
    NOT_RUN,
    PASSED,
    AgentRef,
    Baseline,
    BaselineRun,
    BaselineTask,
    Measure,
    Side,
    SideTask,
)
from ci_gate.prng import format_seed, parse_seed
from ci_gate.store.answers import answer_mistakes, parsed
from ci_gate.store.files import read_whole
from ci_gate.store.formats import BASELINE, check_schema, decode_object, typed, unknown_fields
from ci_gate.store.measures import STANDARD, rounded
from ci_gate.store.paths import mistake_in_id

__all__ = ["digest_of_baseline", "dump_baseline", "load_baseline", "parse_baseline", "to_side"]

_OUTCOMES: Final = frozenset((PASSED, FAILED, ERRORED, NOT_RUN))
_COUNTS: Final = ("faulted", "recovered", "looped")
_WHOLE_MEASURES: Final = frozenset({"tokens"})
_LINE: Final = ",\n"
_MAX_TRIALS: Final = 10**6
_MERGE_HINT: Final = "Take one side's file whole, or run `ci-gate baseline update` again."
_Struct = TypeVar("_Struct", bound=msgspec.Struct)


def load_baseline(path: Path, *, name: str | None = None) -> Baseline:
    """Read a baseline file.

    Parameters
    ----------
    path : Path
    name : str, optional
        What messages call the file; the path by default.

    Raises
    ------
    FileFormatError
        There is no such regular file, or ``parse_baseline`` refuses it.
    """
    return parse_baseline(read_whole(path), name=str(path) if name is None else name)


def parse_baseline(content: bytes, *, name: str) -> Baseline:
    """Return the baseline in the text.

    Parameters
    ----------
    content : bytes
        A whole file, in any layout.
    name : str
        What messages call the file.

    Raises
    ------
    FileFormatError
        Not JSON, of another schema or version, a task that is there twice, or, all at once, every
        field that is missing, of a wrong type or impossible: an outcome string of a wrong length or
        with other characters than ``+-!.``, a list with another length than ``runs``, a seed that
        is not hexadecimal, an illegal task id.
    """
    where = printable(name)
    try:
        fields = decode_object(content, where)
    except FileFormatError:
        if b"\n<<<<<<< " not in content:
            raise
        what = "has conflict markers of a merge"
        raise FileFormatError(what, where=where, hint=_MERGE_HINT) from None
    check_schema(fields, BASELINE, where)
    _check_duplicates(content, where)
    return _Parser(fields, where).baseline()


def _check_duplicates(content: bytes, where: str) -> None:
    """Refuse a key that is there twice: of two lines of a merge, JSON would drop one unsaid."""
    duplicates: list[str] = []

    def unique(pairs: list[tuple[str, Any]]) -> None:
        names = [name for name, _ in pairs]
        if len(set(names)) < len(names):
            duplicates.extend(sorted({name for name in names if names.count(name) > 1}))

    try:
        json.loads(content, object_pairs_hook=unique)
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"is not JSON: {printable(error)}", where=where) from error
    if duplicates:
        shown = ", ".join(repr(printable(name)) for name in duplicates[:5])
        raise FileFormatError(f"has twice: {shown}", where=where, hint=_MERGE_HINT)


class _Parser:
    """Turns the fields of a file into a baseline, collecting mistakes."""

    def __init__(self, fields: Mapping[str, Any], where: str) -> None:
        self._fields = fields
        self._where = where
        self._problems: list[Problem] = []

    def baseline(self) -> Baseline:
        """Return the baseline; raises FileFormatError with every mistake."""
        head = self._head()
        runs = [self._run(at, entry) for at, entry in enumerate(self._runs())]
        entries = sorted(self._tasks().items())
        tasks = {task: self._task(task, entry, head, len(runs)) for task, entry in entries}
        if self._problems or head is None:
            raise FileFormatError.of(self._problems)
        return msgspec.structs.replace(
            head,
            runs=tuple(run for run in runs if run is not None),
            tasks={task: entry for task, entry in tasks.items() if entry is not None},
            extra=unknown_fields(self._fields, Baseline),
        )

    def _head(self) -> Baseline | None:
        head = self._struct({**self._fields, "runs": [], "tasks": {}}, Baseline, "")
        if head is None:
            return None
        if not 1 <= head.trials <= _MAX_TRIALS:
            self._add("trials", f"must be from 1 to {_MAX_TRIALS}, found {head.trials}")
        try:
            parse_seed(head.root_seed or "0x0")
        except ValueError as error:
            self._add("root_seed", printable(error))
        return head

    def _runs(self) -> list[Any]:
        value = self._fields.get("runs")
        if isinstance(value, list) and value:
            return value
        self._add("runs", "must be a list with at least one entry")
        return []

    def _tasks(self) -> dict[str, Any]:
        value = self._fields.get("tasks")
        if isinstance(value, dict) and value:
            return value
        self._add("tasks", "must be an object with at least one task")
        return {}

    def _add(self, path: str, what: str) -> None:
        self._problems.append(Problem(what=what, where=f"{self._where}: {path}"))

    def _struct(self, fields: Any, kind: type[_Struct], path: str) -> _Struct | None:
        if isinstance(fields, dict):
            # A field of the struct, but not of the file: there it is an unknown one.
            fields = {name: value for name, value in fields.items() if name != "extra"}
        try:
            return typed(fields, kind, self._where)
        except FileFormatError as error:
            self._add(path or "the top level", error.problems[0].what)
            return None

    def _run(self, at: int, fields: Any) -> BaselineRun | None:
        run = self._struct(fields, BaselineRun, f"runs[{at}]")
        if run is None:
            return None
        extra = unknown_fields(fields, BaselineRun)
        of_agent = unknown_fields(fields["agent"], AgentRef)
        # `agent` is no unknown field, so its name is free to hold what is unknown in it.
        return msgspec.structs.replace(
            run, extra={**extra, "agent": of_agent} if of_agent else extra
        )

    def _task(
        self, task: str, fields: Any, head: Baseline | None, runs: int
    ) -> BaselineTask | None:
        path = f"tasks['{printable(task)}']"
        mistake = mistake_in_id(task)
        if mistake:
            self._add(path, f"the task id {mistake}")
        entry = self._struct(fields, BaselineTask, path)
        if entry is None or head is None:
            return None
        length = head.trials if entry.trials is None else entry.trials
        mistakes = (
            *_shape_mistakes(entry, runs),
            *_outcome_mistakes(entry, length),
            *answer_mistakes(entry),
        )
        for mistake in mistakes:
            self._add(path, mistake)
        return msgspec.structs.replace(entry, extra=unknown_fields(fields, BaselineTask))


def _shape_mistakes(entry: BaselineTask, runs: int) -> Iterator[str]:
    lists: dict[str, Sequence[Any] | None] = {"outcomes": entry.outcomes, "answers": entry.answers}
    lists |= {name: getattr(entry, name) for name in (*_COUNTS, *STANDARD)}
    for kind in ("measures", "process"):
        named = getattr(entry, kind) or {}
        lists |= {f"{kind}.{printable(name)}": one for name, one in named.items()}
    for name, values in lists.items():
        if values is not None and len(values) != runs:
            yield f"{name} has {len(values)} entries for {runs} runs"


def _outcome_mistakes(entry: BaselineTask, length: int) -> Iterator[str]:
    for at, outcomes in enumerate(entry.outcomes):
        others = sorted(set(outcomes) - _OUTCOMES)
        if others:
            shown = printable("".join(others))
            yield f"outcomes[{at}] contains {shown!r}; outcomes are + - ! and ."
        elif outcomes and len(outcomes) != length:
            yield f"outcomes[{at}] has {len(outcomes)} characters for {length} trials"
    if not any(entry.outcomes):
        yield "is in none of the runs"


def dump_baseline(baseline: Baseline) -> bytes:
    """Return the bytes of a baseline file; the same for the same facts.

    Notes
    -----
    Reading and writing them again changes nothing. The form is that of the module's notes.
    """
    head = {
        "schema": baseline.schema,
        "suite": baseline.suite,
        "suite_digest": baseline.suite_digest,
    }
    conditions = {
        "root_seed": baseline.root_seed,
        "trials": baseline.trials,
        "errors": baseline.errors,
        "faults_digest": baseline.faults_digest,
        "judge_digest": baseline.judge_digest,
    }
    extra = dict(sorted(baseline.extra.items()))
    top = _LINE.join(_members(part) for part in (head, conditions, extra) if part)
    runs = _LINE.join(_text(_run_fields(run)) for run in baseline.runs)
    tasks = _LINE.join(
        f"{_text(task)}:{_text(_task_fields(baseline.tasks[task]))}"
        for task in sorted(baseline.tasks)
    )
    return f'{{{top},\n"runs":[\n{runs}],\n"tasks":{{\n{tasks}}}}}\n'.encode()


def _members(fields: Mapping[str, Any]) -> str:
    return _text(fields)[1:-1]


def _text(value: Any) -> str:
    return encode(value).decode()


def _run_fields(run: BaselineRun) -> dict[str, Any]:
    agent: dict[str, Any] = {"name": run.agent.name, "digest": run.agent.digest}
    if run.agent.dirty is not None:
        agent["dirty"] = run.agent.dirty
    extra = dict(sorted(run.extra.items()))
    return {
        "agent": {**agent, **extra.pop("agent", {})},
        "model": run.model,
        "forced": run.forced,
        "run_digest": run.run_digest,
        **extra,
    }


def _task_fields(task: BaselineTask) -> dict[str, Any]:
    fields: dict[str, Any] = {"digest": task.digest, "outcomes": task.outcomes}
    if task.trials is not None:
        fields["trials"] = task.trials
    fields |= {name: getattr(task, name) for name in _COUNTS}
    fields |= {name: _numbers(getattr(task, name), name) for name in STANDARD}
    if task.measures:
        own = sorted(task.measures.items())
        fields["measures"] = {name: _numbers(values, name) for name, values in own}
    if task.process:
        partly = sorted(task.process.items())
        fields["process"] = {name: _known_numbers(values) for name, values in partly}
    if task.answers is not None:
        fields["answers"] = task.answers
    return {**fields, **dict(sorted(task.extra.items()))}


def _numbers(measures: Sequence[Measure | None] | None, name: str) -> list[Any] | None:
    if measures is None:
        return None
    whole = name in _WHOLE_MEASURES
    return [
        # What only some judged trials know is unknown to a reader who is told three numbers.
        None
        if measure is None or measure.known is not None
        else [_number(value, whole=whole) for value in measure[:3]]
        for measure in map(rounded, measures)
    ]


def _known_numbers(measures: Sequence[Measure | None]) -> list[Any]:
    """Return numbers with, where not all trials know them, that of those that do."""
    return [
        None if measure is None else [*measure[:3], *([measure.known] if measure.known else [])]
        for measure in map(rounded, measures)
    ]


def _number(value: float | None, *, whole: bool) -> float | None:
    return int(value) if value is not None and whole and value.is_integer() else value


def digest_of_baseline(baseline: Baseline) -> str:
    """Return the digest of the baseline's canonical bytes, whatever the layout of its file."""
    return digest_bytes(dump_baseline(baseline))


def to_side(baseline: Baseline) -> Side:
    """Return the baseline in the form in which two sides are compared.

    A run that a task was not in becomes a row of trials that were not run and not planned.
    """
    tasks = {task: _side_task(baseline.tasks[task], baseline) for task in sorted(baseline.tasks)}
    return Side(
        kind="baseline",
        suite=baseline.suite,
        suite_digest=baseline.suite_digest,
        root_seed=None
        if baseline.root_seed is None
        else format_seed(parse_seed(baseline.root_seed)),
        errors=baseline.errors,
        faults_digest=baseline.faults_digest,
        judge_digest=baseline.judge_digest,
        tasks=tasks,
        planned={task: sum(map(len, entry.outcomes)) for task, entry in baseline.tasks.items()},
        runs=baseline.runs,
        digest=digest_of_baseline(baseline),
        extra=baseline.extra,
    )


def _side_task(entry: BaselineTask, baseline: Baseline) -> SideTask:
    length = baseline.trials if entry.trials is None else entry.trials
    measures = {name: getattr(entry, name) for name in STANDARD}
    return SideTask(
        digest=entry.digest,
        outcomes=tuple(outcomes or NOT_RUN * length for outcomes in entry.outcomes),
        measures={
            name: values
            for name, values in {**measures, **(entry.measures or {})}.items()
            if values is not None
        },
        process=entry.process or {},
        faulted=entry.faulted,
        recovered=entry.recovered,
        looped=entry.looped,
        answers=parsed(entry),
    )

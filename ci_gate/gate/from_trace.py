"""``task from-trace``: a recorded incident becomes a task file with its fixture, for a suite.

Decides what the file says and where it goes. It writes two names that nothing has, the task's last,
or none. What the trace says is a stranger's word: it becomes data, and never a place.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from ci_gate.errors import UsageError, printable
from ci_gate.gate.incidents import Incident, Known, incident_of, known_project
from ci_gate.gate.recorded_worlds import fixture_in, state_of, traces_folder_of, world_in
from ci_gate.grading.databases import UnusableError
from ci_gate.grading.proposals import Proposal, of_answer, of_world
from ci_gate.grading.state.snapshot import Places
from ci_gate.model.trace import Trace
from ci_gate.model.trace_meta import STATE, is_draw
from ci_gate.prng import derive_seed, format_seed, parse_seed
from ci_gate.sandbox.fixtures import DATABASE, WORK
from ci_gate.sandbox.states import StateError
from ci_gate.store.contents import Contents
from ci_gate.store.paths import mistake_in_id
from ci_gate.store.task_drafts import DraftGrader, TaskDraft, draft_text
from ci_gate.store.task_places import NewTask, TaskPlace, task_place
from ci_gate.store.traces import read_trace

__all__ = ["FromTrace", "FromTraceRequest", "from_trace"]

_MOST_NAMES: Final = 20
_MOST_ID: Final = 200
_TAG: Final = "incident"
_KEEP: Final = ".keep"
_TODO: Final = (
    "TODO: what stands here is what happened, and what happened was an incident. Say what should",
    "have happened instead: take the marks away from the graders that you keep, correct them, and",
    "remove the rest.",
)
_UNKNOWN: Final = Proposal(
    what="TODO: nothing is known of what it left; ask for something",
    table={"type": "answer", "matches": ".*"},
)


class FromTraceRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked; None is what the user did not say."""

    trace: Path
    here: Path
    id: str | None = None
    output: Path | None = None
    config_path: Path | None = None


class FromTrace(msgspec.Struct, frozen=True, kw_only=True):
    """What was written.

    Attributes
    ----------
    path : Path
        Of the task file.
    fixture : Path or None
    id : str
    proposals : int
        Graders that it proposes.
    remarks : tuple of str
        What is left to do or could not be known.
    """

    path: Path
    fixture: Path | None
    id: str
    proposals: int
    remarks: tuple[str, ...]


class _World(NamedTuple):
    """What became of the recorded world."""

    fixture: Path | None
    proposals: Sequence[Proposal]
    remarks: Sequence[str]


def from_trace(request: FromTraceRequest) -> FromTrace:
    """Write a task file, and beside it the fixture that its trials start in.

    Raises
    ------
    UsageError
        A name is taken or refused, or the suite would take the fixture for tasks.
    FileFormatError
        The trace is none, or it or what it refers to was changed.
    """
    trace = read_trace(request.trace, allow_open_end=True)
    known = known_project(request.config_path, request.here)
    traces = traces_folder_of(request.trace)
    incident = incident_of(trace, request.trace, traces, known)
    task_id = _id(request, trace, known)
    place = task_place(
        request.output,
        task_id=task_id,
        root=known.root,
        here=request.here,
        suite=known.suite(trace.header.suite),
    )
    with tempfile.TemporaryDirectory(prefix="ci-gate-") as folder:
        world = _world(trace, Contents(traces), Path(folder))
        return _written(_Draft(trace, incident, task_id), place, world)


def _id(request: FromTraceRequest, trace: Trace, known: Known) -> str:
    """Return the id of the new task, which no other has."""
    task_id = request.id or _derived_id(request.trace, trace)
    mistake = mistake_in_id(task_id)
    if mistake is not None:
        where, hint = printable(request.trace), "--id names it."
        raise UsageError(f"the id '{printable(task_id)}' {mistake}", where=where, hint=hint)
    taken = {task.id for tasks in known.tasks.values() for task in tasks}
    if task_id in taken:
        what = f"there is a task '{printable(task_id)}' already"
        raise UsageError(what, where=printable(known.root), hint="--id gives it another name.")
    return task_id


def _derived_id(path: Path, trace: Trace) -> str:
    header = trace.header
    if header.task is None:
        return path.stem
    repeat = f"-{header.repeat}" if header.repeat else ""
    return f"{header.task[:_MOST_ID]}-trial-{header.trial or 0}{repeat}"


def _world(trace: Trace, contents: Contents, folder: Path) -> _World:
    before = state_of(trace, "before")
    if before is None:
        return _World(None, (), ())
    (folder / "fixture").mkdir()
    try:
        fixture = fixture_in(folder / "fixture", before, contents)
    except StateError as error:
        return _World(None, (), [f"No fixture could be made: {printable(error)}."])
    proposals, remarks = _compared(before, state_of(trace, "after"), contents, folder)
    return _World(fixture, proposals, [*_with_place_holders(fixture), *remarks])


def _compared(
    before: Mapping[str, Any], after: Mapping[str, Any] | None, contents: Contents, folder: Path
) -> tuple[Sequence[Proposal], Sequence[str]]:
    """Return graders of what changed, or why there are none."""
    if after is None:
        return (), ["The trial was cut short: how it left its world is unknown."]
    for name in ("before", "after"):
        (folder / name).mkdir()
    try:
        first = _places(world_in(folder / "before", before, contents))
        last = _places(world_in(folder / "after", after, contents))
        return of_world(first, last), ()
    except (StateError, UnusableError) as error:
        return (), [f"Its end cannot be compared: {printable(error)}."]


def _with_place_holders(fixture: Path) -> Iterator[str]:
    """Put a file into every empty folder, which git would not keep, and say so."""
    folders = [fixture, *fixture.rglob("*")] if fixture.is_dir() else []
    empty = [one for one in folders if one.is_dir() and not any(one.iterdir())]
    for folder in empty:
        (folder / _KEEP).touch()
    if empty:
        yield f"Empty folders of the fixture have a file {_KEEP}, because git keeps no empty one."


def _places(world: Path) -> Places:
    own, inner = world / DATABASE, world / WORK / DATABASE
    database = own if own.is_file() else inner if inner.is_file() else None
    workdir = world / WORK if (world / WORK).is_dir() else None
    return Places(folder=world, database=database, workdir=workdir)


class _Draft(NamedTuple):
    trace: Trace
    incident: Incident
    task_id: str


def _written(draft: _Draft, place: TaskPlace, world: _World) -> FromTrace:
    proposals = [*world.proposals, *of_answer(draft.incident.answer)]
    new = NewTask(place, world.fixture)
    fixture = new.fixture or draft.incident.fixture
    text, lost = draft_text(_task_draft(draft, fixture, place, proposals), name=str(place.path))
    new.write(text.encode())
    remarks = [*draft.incident.remarks, *world.remarks]
    if fixture != new.fixture:
        remarks.append("It starts in the fixture of the recorded task, as it is now.")
    if lost:
        remarks.append(f"TOML has no null: {len(lost)} left out of what the agent is told.")
    return FromTrace(
        path=place.path,
        fixture=new.fixture,
        id=draft.task_id,
        proposals=len(proposals),
        remarks=(*remarks, *place.remarks),
    )


def _task_draft(
    draft: _Draft, fixture: Path | None, place: TaskPlace, proposals: Sequence[Proposal]
) -> TaskDraft:
    # Both lie below the root, so one is found from the other.
    name = None if fixture is None else Path(os.path.relpath(fixture, place.path.parent)).as_posix()
    return TaskDraft(
        fields=_fields(draft, name),
        remarks=list(_remarks(draft)),
        notes=[*_TODO, *_calls(draft.trace)],
        graders=[DraftGrader(what=p.what, table=p.table) for p in proposals or [_UNKNOWN]],
    )


def _remarks(draft: _Draft) -> Iterator[str]:
    yield f"From a recorded trial: {draft.incident.title}."
    if draft.incident.ended is not None:
        yield f"It ended so: {draft.incident.ended}"
    if draft.trace.header.seed is not None:
        seed = printable(draft.trace.header.seed)
        yield f"The seed is such that trial 0 has that of the recorded one, {seed}: same faults."


def _fields(draft: _Draft, fixture: str | None) -> dict[str, Any]:
    told = dict(draft.incident.told)
    tags = [tag for tag in draft.incident.tags if tag != _TAG]
    return {
        "id": draft.task_id,
        "instruction": told.pop("instruction"),
        "seed": _base_seed(draft.trace.header.seed),
        "fixture": fixture,
        "tags": [*tags, _TAG],
        **told,
    }


def _base_seed(seed: str | None) -> str | None:
    """Return the base seed of a task whose trial 0 has a seed.

    Notes
    -----
    Trial 0 has ``base ^ 0x9E3779B9``, so the same step leads back.
    """
    if seed is None:
        return None
    try:
        return format_seed(derive_seed(parse_seed(seed), 0))
    except ValueError as error:
        raise UsageError(printable(error), where="seed of the trace") from error


def _calls(trace: Trace) -> Iterator[str]:
    counts = Counter(
        (record.kind, record.name)
        for record in trace.records
        if record.kind != STATE and not is_draw(record.kind, record.name)
    )
    if not counts:
        yield "It made no calls."
        return
    yield "It called:"
    for (kind, name), count in list(counts.items())[:_MOST_NAMES]:
        yield f"  {printable(kind, limit=40)} {printable(name, limit=80)}: {count}"
    if len(counts) > _MOST_NAMES:
        yield f"  and {len(counts) - _MOST_NAMES} others"
    faults = Counter(record.fault for record in trace.records if record.fault is not None)
    if faults:
        met = ", ".join(f"{printable(kind, limit=40)} {n}" for kind, n in sorted(faults.items()))
        yield f"Faults that it met: {met}."

"""What a trace and its project know of an incident: what the agent was told, and how it ended.

A trace of a suite names its task, and the project has the rest; one outside any suite says all of
it itself. What cannot be known is said, and left for a person to fill in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from ci_gate import config as configuration
from ci_gate.config import Config, SuiteConfig
from ci_gate.errors import FileFormatError, UsageError, printable
from ci_gate.gate.project import nearest_config
from ci_gate.gate.recorded_worlds import state_of
from ci_gate.gate.suites import configured_suite
from ci_gate.model.suite import Task
from ci_gate.model.trace import Trace, TraceHeader
from ci_gate.model.trace_result import RESULT
from ci_gate.model.trial import TrialRecord
from ci_gate.store.runs import load_run

__all__ = ["Incident", "Known", "incident_of", "known_project"]

_TO_FILL_IN: Final = "TODO: say what the agent is asked; the trace does not."


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """The project that a task is to join.

    Attributes
    ----------
    root : Path
        Its folder.
    config : Config or None
        None where there is no configuration.
    tasks : mapping of str to tuple of Task
        By suite.
    remarks : tuple of str
        Why tasks are not known.
    """

    root: Path
    config: Config | None = None
    tasks: Mapping[str, tuple[Task, ...]] = msgspec.field(default_factory=dict)
    remarks: tuple[str, ...] = ()

    def suite(self, name: str | None) -> SuiteConfig | None:
        """Return the suite of that name, else the first."""
        suites = () if self.config is None else self.config.suites
        return next((one for one in suites if one.name == name), suites[0] if suites else None)


class Incident(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the recorded trial.

    Attributes
    ----------
    title : str
        Which trial it was, for people.
    told : mapping
        ``instruction``, ``input``, ``metadata``, ``limits``, ``identity`` and ``now`` of a task, as
        far as known.
    tags : tuple of str
    fixture : Path or None
        Of the task as it is now.
    answer : str or None
    ended : str or None
        How it ended, in one line.
    remarks : tuple of str
        What could not be known.
    """

    title: str
    told: Mapping[str, Any]
    tags: tuple[str, ...] = ()
    fixture: Path | None = None
    answer: str | None = None
    ended: str | None = None
    remarks: tuple[str, ...] = ()


def known_project(config_path: Path | None, here: Path) -> Known:
    """Return the project around; there need not be one.

    Raises
    ------
    ConfigError
        Its configuration has mistakes.
    """
    found = config_path or nearest_config(here)
    if found is None:
        return Known(root=here.resolve())
    config, tasks, remarks = configuration.load(found), {}, []
    for suite in config.suites:
        try:
            tasks[suite.name] = configured_suite(config, suite, trials=None, task_filter=None).tasks
        except UsageError as error:
            remarks.append(f"Suite {printable(suite.name)} cannot be read: {error.problems[0]}.")
    return Known(root=Path(config.root), config=config, tasks=tasks, remarks=tuple(remarks))


def incident_of(trace: Trace, path: Path, traces: Path, known: Known) -> Incident:
    """Return what is known of a recorded trial.

    Parameters
    ----------
    trace : Trace
    path : Path
        Where it is.
    traces : Path
        The folder of all traces that it belongs to.
    known : Known
    """
    header, result = trace.header, state_of(trace, RESULT) or {}
    if header.task is None:
        return Incident(
            title=f"a run outside any suite, {printable(path.name)}",
            told=_told_alone(header),
            answer=_text(result.get("answer")),
            ended=_ended(result.get("status"), result.get("reason")),
            remarks=known.remarks,
        )
    record = _record(traces, header)
    task, remarks = _task(header, known)
    return Incident(
        title=f"{printable(header.task)}, trial {header.trial or 0}",
        told={"instruction": _TO_FILL_IN} if task is None else _told(task),
        tags=() if task is None else task.tags,
        answer=_text(result.get("answer")),
        fixture=_fixture(task),
        ended=None if record is None else _ended(record.status.value, record.reason),
        remarks=(*known.remarks, *remarks),
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _ended(status: object, reason: object) -> str | None:
    if not isinstance(status, str):
        return None
    return f"{status}: {reason}" if isinstance(reason, str) else status


def _told_alone(header: TraceHeader) -> Mapping[str, Any]:
    origin = header.origin
    if isinstance(origin, msgspec.UnsetType):
        return {"instruction": _TO_FILL_IN}
    return {"instruction": origin.instruction, "input": origin.input}


def _told(task: Task) -> Mapping[str, Any]:
    limits = {key: x for key, x in msgspec.to_builtins(task.limits).items() if x is not None}
    return {
        "instruction": task.instruction,
        "input": task.input,
        "metadata": dict(task.metadata) or None,
        "limits": limits or None,
        "identity": task.identity,
        "now": task.now,
    }


def _fixture(task: Task | None) -> Path | None:
    return None if task is None or task.fixture_path is None else Path(task.fixture_path)


def _task(header: TraceHeader, known: Known) -> tuple[Task | None, Sequence[str]]:
    """Return the task of a trace, and what is odd about it."""
    suites = [header.suite] if header.suite in known.tasks else list(known.tasks)
    tasks = (task for suite in suites if suite is not None for task in known.tasks[suite])
    task = next((one for one in tasks if one.id == header.task), None)
    if task is None:
        what = f"There is no task {printable(header.task)!r} here: say what the agent is asked."
        return None, [what]
    if header.task_digest not in (None, task.digest):
        return task, ["The task was edited since it was recorded: what is said here is as now."]
    return task, []


def _record(traces: Path, header: TraceHeader) -> TrialRecord | None:
    """Return what the run file beside the traces says of the trial; None where there is none."""
    key = (header.task, header.trial or 0, header.repeat or 0)
    for folder in (traces.parent, traces.parent.parent):
        path = folder / f"{header.suite}.run.jsonl"
        try:
            if path.is_file():
                return next((one for one in load_run(path).records if one.key == key), None)
        except (FileFormatError, OSError, ValueError):
            return None
    return None

"""One trial on the screen: its steps, faults, grades and result."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ci_gate.model.calls import TOOL_CALL
from ci_gate.model.trace import TraceRecord
from ci_gate.model.trial import Grade, Status, Step, Trajectory, TrialRecord
from ci_gate.render.detail import detail_lines
from ci_gate.render.escape import inert
from ci_gate.render.screen import print_line
from ci_gate.render.trace import print_call

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["render_stopped", "render_trial"]

_VALUE_CHARS = 160
_ANSWER_CHARS = 600
_TAIL_LINES = 20
_DETAIL_LINES = 60
_SIGN_STYLES = {"- ": "red", "+ ": "green"}
_STYLES = {Status.PASSED: "bold green", Status.FAILED: "bold red", Status.ERRORED: "bold yellow"}


def render_trial(
    record: TrialRecord,
    trajectory: Trajectory | None,
    steps: Sequence[Step],
    console: Console,
    *,
    remarks: Sequence[str] = (),
    hint: str = "",
) -> None:
    """Print what happened in a trial.

    Parameters
    ----------
    record : TrialRecord
    trajectory : Trajectory or None
        None where the trial did not come to an agent.
    steps : sequence of Step
    console : rich.console.Console
        See ``render.screen.console_for``.
    remarks : sequence of str
        How it was run, and what is odd about it.
    hint : str
        What to do next; the last line.
    """
    _print_head(record, console, remarks)
    for number, step in enumerate(steps, start=1):
        _print_step(number, step, console)
    if trajectory is not None:
        _print_end(trajectory, console)
    for grade in record.grades or ():
        _print_grade(grade, console)
    _print_result(record, console)
    if hint:
        print_line(console, f"  {hint}", style="yellow")


def render_stopped(
    record: TrialRecord,
    calls: Sequence[TraceRecord],
    console: Console,
    *,
    remarks: Sequence[str] = (),
    is_walked: bool = False,
) -> None:
    """Print the calls of a replay that was stopped, and no result: the trial was not judged.

    Parameters
    ----------
    record : TrialRecord
    calls : sequence of TraceRecord
        As they stand in the recording.
    console : rich.console.Console
    remarks : sequence of str
    is_walked : bool
        The calls were printed one by one before.
    """
    _print_head(record, console, remarks)
    has_lanes = any(call.lane != "main" for call in calls)
    for call in () if is_walked else calls:
        print_call(call, console, has_lanes=has_lanes)
    after = f"after call {calls[-1].order}" if calls else "before the first call"
    print_line(console, f"stopped {after}: the trial is not judged", style="bold yellow")


def _print_head(record: TrialRecord, console: Console, remarks: Sequence[str]) -> None:
    title = f"{inert(record.task)}  trial {record.trial}"
    if record.repeat:
        title += f"  repeat {record.repeat}"
    print_line(console, f"{title}  seed {record.seed}", style="bold")
    for remark in remarks:
        print_line(console, f"  note: {inert(remark, limit=_ANSWER_CHARS)}", style="yellow")


def _print_step(number: int, step: Step, console: Console) -> None:
    call = f"{inert(step.name)}({_arguments(step.input)})"
    kind = "" if step.kind == TOOL_CALL else f"{inert(step.kind)} "
    print_line(console, f"  {number:>3}  {kind}{call}")
    style = "yellow" if step.fault else "red" if step.is_error else "dim"
    fault = f"[fault {inert(step.fault)}] " if step.fault else ""
    print_line(console, f"       -> {fault}{_value(step.output)}", style=style)


def _arguments(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{inert(name)}={_value(item)}" for name, item in value.items())
    return "" if value is None else _value(value)


def _value(value: Any) -> str:
    return inert(value if isinstance(value, str) else _as_json(value), limit=_VALUE_CHARS)


def _as_json(value: Any) -> str:
    # Not the codec: what an agent said is shown even where it is no valid Unicode.
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def _print_end(trajectory: Trajectory, console: Console) -> None:
    if trajectory.answer is not None:
        print_line(console, f"  answer: {inert(trajectory.answer, limit=_ANSWER_CHARS)}")
    lines = trajectory.output_tail.splitlines()[-_TAIL_LINES:]
    if lines:
        print_line(console, "  printed:", style="dim")
    for line in lines:
        print_line(console, f"    | {inert(line, limit=_ANSWER_CHARS)}", style="dim")


def _print_grade(grade: Grade, console: Console) -> None:
    mark, style = ("ok", "green") if grade.passed else ("NO", "red")
    reason = f": {inert(grade.reason, limit=_ANSWER_CHARS)}" if grade.reason else ""
    print_line(console, f"  {mark}  {inert(grade.grader)}{reason}", style=style)
    for line in detail_lines(grade.detail, most=_DETAIL_LINES) if grade.detail else ():
        print_line(console, f"      {line}", style=_SIGN_STYLES.get(line[:2], ""))


def _print_result(record: TrialRecord, console: Console) -> None:
    reason = f": {inert(record.reason, limit=_ANSWER_CHARS)}" if record.reason else ""
    print_line(console, f"{record.status}{reason}", style=_STYLES[record.status])

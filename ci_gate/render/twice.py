"""One trial run twice on the screen: the same, or the first call that differs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci_gate.model.trace import TraceRecord
from ci_gate.model.trace_meta import STATE
from ci_gate.model.trial import Status
from ci_gate.model.twice import Twice
from ci_gate.render import figures
from ci_gate.render.escape import inert
from ci_gate.render.screen import print_line
from ci_gate.render.trace import render_trace_diff

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["render_twice"]

_REASON_CHARS = 300


def render_twice(found: Twice, console: Console) -> None:
    """Print whether the two runs of a trial did the same, and where they part."""
    print_line(console, f"{inert(found.task)}  trial {found.trial}  run twice", style="bold")
    for title, record in zip(("first", "second"), found.records, strict=True):
        reason = f": {inert(record.reason, limit=_REASON_CHARS)}" if record.reason else ""
        print_line(console, f"  {title}: {record.status.value}{reason}")
    if any(record.status is Status.ERRORED for record in found.records):
        return
    if found.is_same:
        print_line(console, _same(found), style="green")
    elif found.first is None:
        print_line(console, "The calls are the same; the result is not.", style="bold yellow")
        for answer in found.answers:
            print_line(console, f"  answer: {inert(answer, limit=_REASON_CHARS)}")
    else:
        _print_first(*found.first, found, console)


def _same(found: Twice) -> str:
    models = figures.counted(found.models, "model answer")
    head = "" if found.head is None else f", {inert(found.head)}"
    return f"The same twice: {figures.counted(found.calls, 'call')}, {models} held still{head}"


def _print_first(
    one: TraceRecord | None, other: TraceRecord | None, found: Twice, console: Console
) -> None:
    made = one or other
    assert made is not None
    print_line(console, f"The first call that differs is call {made.order}.", style="bold yellow")
    if found.diff.first is not None:
        print_line(console, "Below, the baseline is the first run and the candidate the second.")
        render_trace_diff(found.diff, console)
    elif made.kind == STATE:
        print_line(console, f"  the world {inert(made.name)} the trial is another one")
    else:  # each lane agrees, so their calls lie otherwise between each other
        for title, record in (("first", one), ("second", other)):
            print_line(console, f"  {title}: {_called(record)}")
        print_line(console, "  Each lane makes the same calls; how the lanes alternate differs.")


def _called(record: TraceRecord | None) -> str:
    if record is None:
        return "(no more calls)"
    return f"[{inert(record.lane, limit=30)}] {inert(record.kind)} {inert(record.name)}"

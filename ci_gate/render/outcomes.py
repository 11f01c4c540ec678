"""How commands that do not judge say what they did: runs that ended, baselines that moved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from ci_gate.model.run import Stop
from ci_gate.model.trial import Status
from ci_gate.render import figures
from ci_gate.render.escape import inert
from ci_gate.render.screen import print_line

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["KeptLine", "RunLine", "UpdateLine", "render_runs", "render_updates"]


class RunLine(msgspec.Struct, frozen=True, kw_only=True):
    """A run that ended: the status of each trial, why it stopped, where its file is.

    ``rounds`` and ``planned`` are the rounds and trials of its whole plan, ``calm`` is the file of
    its trials without faults.
    """

    suite: str
    statuses: tuple[Status, ...]
    stop: Stop
    rounds: int
    planned: int
    path: str
    warnings: tuple[str, ...] = ()
    calm: str | None = None


class KeptLine(msgspec.Struct, frozen=True, kw_only=True):
    """The kept traces after an update: of how many of the tasks, their bytes, what is missing."""

    path: str
    changed: bool
    tasks: int
    of: int
    bytes: int
    remarks: tuple[str, ...] = ()


class UpdateLine(msgspec.Struct, frozen=True, kw_only=True):
    """A baseline after an update; each metric before and after, what was accepted by force.

    ``anchor`` is the anchor's file where it was written too.
    """

    suite: str
    path: str
    written: bool
    anchor: str | None = None
    runs: int
    tasks: int
    metrics: Mapping[str, tuple[float | None, float | None]]
    accepted: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    traces: KeptLine | None = None


def render_runs(lines: Sequence[RunLine], console: Console) -> None:
    """Print how runs ended."""
    for line in lines:
        counts = Counter(line.statuses)
        parts = ", ".join(f"{figures.count(counts[status])} {status}" for status in Status)
        title = f"{inert(line.suite)}: {line.stop.reason}, {_trials(line)}"
        print_line(console, f"{title} ({parts})", style="bold")
        if line.stop.predictive is not None:
            chance = figures.percent(line.stop.predictive)
            print_line(console, f"  the whole plan would be red with a chance of {chance}")
        for warning in line.warnings:
            print_line(console, f"  {inert(warning, limit=400)}", style="yellow")
        print_line(console, f"  run: {inert(line.path, limit=400)}")
        if line.calm is not None:
            print_line(console, f"  in calm: {inert(line.calm, limit=400)}")


def _trials(line: RunLine) -> str:
    """Return the trials that were run, and of how many where the plan has more."""
    ran = len(line.statuses)
    if ran >= line.planned:
        return f"{figures.count(ran)} trials"
    rounds = f"{figures.count(line.stop.round)} of {figures.counted(line.rounds, 'round')}"
    return f"{rounds}, {figures.count(ran)} of {figures.count(line.planned)} trials"


def render_updates(lines: Sequence[UpdateLine], console: Console) -> None:
    """Print what became of baselines."""
    for line in lines:
        runs = "1 run" if line.runs == 1 else f"{figures.count(line.runs)} runs"
        size = f"{figures.count(line.tasks)} tasks, {runs} over the seeds"
        did = "baseline written" if line.written else "nothing changed"
        print_line(console, f"{inert(line.suite)}: {did} ({size})", style="bold")
        for name, (before, after) in line.metrics.items():
            movement = f"{figures.percent(before)} → {figures.percent(after)}"
            shown = figures.percent(after) if before is None else movement
            print_line(console, f"  {inert(name)}  {shown}")
        for problem in line.accepted:
            print_line(console, f"  forced: {inert(problem, limit=400)}", style="yellow")
        for warning in line.warnings:
            print_line(console, f"  {inert(warning, limit=600)}", style="yellow")
        print_line(console, f"  file: {inert(line.path, limit=400)}")
        if line.anchor is not None:
            print_line(console, f"  anchor: {inert(line.anchor, limit=400)}")
        if line.traces is not None:
            _print_kept(line.traces, console)
        if line.written or line.anchor is not None or (line.traces and line.traces.changed):
            print_line(console, "  Commit it: a change is judged by what its base branch has.")


def _print_kept(line: KeptLine, console: Console) -> None:
    did = "kept" if line.changed else "kept as they were"
    size = f"{figures.count(line.tasks)} of {figures.count(line.of)} tasks, {_size(line.bytes)}"
    print_line(console, f"  traces: {inert(line.path, limit=400)} ({did}: {size})")
    for remark in line.remarks:
        print_line(console, f"  {inert(remark, limit=400)}", style="yellow")


def _size(count: int) -> str:
    return f"{count / 1000:,.1f} kB" if count < 10**6 else f"{count / 10**6:,.1f} MB"

"""How commands that do not judge say what they did: runs that ended, baselines that moved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from ci_gate.model.run import StopReason
from ci_gate.model.trial import Status
from ci_gate.render import figures
from ci_gate.render.escape import inert
from ci_gate.render.screen import print_line

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["RunLine", "UpdateLine", "render_runs", "render_updates"]


class RunLine(msgspec.Struct, frozen=True, kw_only=True):
    """A run that ended: the status of each trial, why it stopped, where its file is."""

    suite: str
    statuses: tuple[Status, ...]
    stop: StopReason
    path: str
    warnings: tuple[str, ...] = ()


class UpdateLine(msgspec.Struct, frozen=True, kw_only=True):
    """A baseline after an update; each metric before and after, and what was accepted by force.

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


def render_runs(lines: Sequence[RunLine], console: Console) -> None:
    """Print how runs ended."""
    for line in lines:
        counts = Counter(line.statuses)
        parts = ", ".join(f"{figures.count(counts[status])} {status}" for status in Status)
        title = f"{inert(line.suite)}: {line.stop}, {figures.count(len(line.statuses))} trials"
        print_line(console, f"{title} ({parts})", style="bold")
        for warning in line.warnings:
            print_line(console, f"  {inert(warning, limit=400)}", style="yellow")
        print_line(console, f"  run: {inert(line.path, limit=400)}")


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
        print_line(console, f"  file: {inert(line.path, limit=400)}")
        if line.anchor is not None:
            print_line(console, f"  anchor: {inert(line.anchor, limit=400)}")
        if line.written or line.anchor is not None:
            print_line(console, "  Commit it: a change is judged by what its base branch has.")

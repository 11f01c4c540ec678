"""Tables of baselines for a terminal: one baseline, two of them, and their history as a plot.

It takes plain rows and lays them out; it knows neither git nor files, and computes no rate of its
own beyond the counts it is given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from ci_gate.model.verdict import Counts
from ci_gate.render import figures
from ci_gate.render.document import Column
from ci_gate.render.escape import inert
from ci_gate.render.layout import table
from ci_gate.render.screen import print_line, print_table

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    "BaselineLine",
    "DiffLine",
    "HistoryLine",
    "render_baseline",
    "render_diff",
    "render_history",
    "sparkline",
]

_BARS = "▁▂▃▄▅▆▇█"
_ASCII_BARS = "_.-:=+*#"
_GAP = " "


class BaselineLine(msgspec.Struct, frozen=True, kw_only=True):
    """A task of a baseline: its outcome strings, one a run, and its counts."""

    task: str
    outcomes: tuple[str, ...]
    counts: Counts


class DiffLine(msgspec.Struct, frozen=True, kw_only=True):
    """A task in two baselines; None where a side does not have it.

    Parameters
    ----------
    task : str
    baseline, candidate : Counts or None
    remark : str
        What is said of it: new, removed, changed content.
    """

    task: str
    baseline: Counts | None
    candidate: Counts | None
    remark: str = ""


class HistoryLine(msgspec.Struct, frozen=True, kw_only=True):
    """A commit that touched the baseline.

    Parameters
    ----------
    commit, date, subject : str
        As git has them; the commit is abbreviated by the caller.
    metrics : mapping of str to float or None
        Suite metrics by name; None where it is undefined there.
    tasks : int
    """

    commit: str
    date: str
    subject: str
    metrics: Mapping[str, float | None]
    tasks: int


def render_baseline(
    lines: Sequence[BaselineLine],
    metrics: Mapping[str, float | None],
    console: Console,
    *,
    title: str,
    warnings: Sequence[str] = (),
) -> None:
    """Print a baseline: its suite metrics and warnings, then a row a task with its outcomes.

    Parameters
    ----------
    lines : sequence of BaselineLine
    metrics : mapping of str to float or None
    console : rich.console.Console
    title : str
        Which baseline it is.
    warnings : sequence of str
        What is odd about it.
    """
    print_line(console, inert(title, limit=200), style="bold")
    tasks = figures.counted(len(lines), "task")
    for name, share in metrics.items():
        print_line(console, f"  {inert(name)}  {figures.percent(share)}  ({tasks})")
    for warning in warnings:
        print_line(console, f"  {inert(warning, limit=600)}", style="yellow")
    columns = (Column("Task", "code"), Column("Passed", "number"), Column("Outcomes"))
    rows = [(inert(line.task), _rate(line.counts), _outcomes(line)) for line in lines]
    print_table(console, table(columns, rows))


def _rate(counts: Counts | None) -> str:
    if counts is None:
        return figures.UNKNOWN
    errored = f" + {figures.count(counts.errored)} errored" if counts.errored else ""
    return figures.rate(counts.passed, counts.trials) + errored


def _outcomes(line: BaselineLine) -> str:
    return " ".join(inert(outcomes, limit=64) for outcomes in line.outcomes)


def render_diff(
    lines: Sequence[DiffLine],
    metrics: Mapping[str, tuple[float | None, float | None]],
    console: Console,
    *,
    title: str,
) -> None:
    """Print what differs between two baselines, task by task.

    Parameters
    ----------
    lines : sequence of DiffLine
        In the order they are to be read.
    metrics : mapping of str to (float or None, float or None)
        Of the baseline and the candidate.
    console : rich.console.Console
    title : str
        Which two they are.
    """
    print_line(console, inert(title, limit=200), style="bold")
    for name, (baseline, candidate) in metrics.items():
        movement = f"{figures.percent(baseline)} → {figures.percent(candidate)}"
        print_line(console, f"  {inert(name)}  {movement}")
    columns = (
        Column("Task", "code"),
        Column("Baseline", "number"),
        Column("Candidate", "number"),
        Column("Remark"),
    )
    rows = [
        (inert(line.task), _rate(line.baseline), _rate(line.candidate), inert(line.remark))
        for line in lines
    ]
    if rows:
        print_table(console, table(columns, rows, optional=("Remark",)))
    else:
        print_line(console, "  no task differs")


def render_history(lines: Sequence[HistoryLine], console: Console, *, title: str) -> None:
    """Print the commits of a baseline, and each metric over them as a small plot.

    Parameters
    ----------
    lines : sequence of HistoryLine
        The oldest first.
    console : rich.console.Console
    title : str
        Which baseline it is.
    """
    print_line(console, inert(title, limit=200), style="bold")
    if not lines:
        print_line(console, "  no commit has touched it yet")
        return
    metrics = list(dict.fromkeys(name for line in lines for name in line.metrics))
    for name in metrics:
        _print_plot(console, name, [line.metrics.get(name) for line in lines])
    columns = (
        Column("Commit", "code"),
        Column("Date"),
        *(Column(inert(name), "number") for name in metrics),
        Column("Tasks", "number"),
        Column("Subject"),
    )
    print_table(console, table(columns, [_history_row(line, metrics) for line in lines]))


def _print_plot(console: Console, name: str, shares: Sequence[float | None]) -> None:
    known = [share for share in shares if share is not None]
    if not known:
        return
    width = max(10, console.width - 50)
    line = sparkline(shares[-width:], ascii_only=not console.encoding.lower().startswith("utf"))
    span = f"{figures.percent(min(known))} to {figures.percent(max(known))}"
    print_line(console, f"  {inert(name, limit=20)}  {line}  {span}")


def sparkline(shares: Sequence[float | None], *, ascii_only: bool = False) -> str:
    """Return one character a value between the lowest and the highest; unknown is a gap.

    Parameters
    ----------
    shares : sequence of float or None
    ascii_only : bool
        For consoles without block characters.
    """
    bars = _ASCII_BARS if ascii_only else _BARS
    known = [share for share in shares if share is not None]
    low, span = min(known, default=0.0), max(known, default=0.0) - min(known, default=0.0)
    return "".join(_GAP if share is None else bars[_height(share - low, span)] for share in shares)


def _height(above: float, span: float) -> int:
    highest = len(_BARS) - 1
    return round(highest * above / span) if span else highest // 2


def _history_row(line: HistoryLine, metrics: Sequence[str]) -> tuple[str, ...]:
    return (
        inert(line.commit, limit=12),
        inert(line.date, limit=25),
        *(figures.percent(line.metrics.get(name)) for name in metrics),
        figures.count(line.tasks),
        inert(line.subject, limit=60),
    )

"""What a gate does to an unchanged agent, for a terminal: sentences and tables.

Lays out figures that it is given, and rounds them; it computes none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from ci_gate.model.selfcheck import (
    FalseAlarms,
    RunScatter,
    SeedAgreement,
    SelfCheck,
    SelfComparison,
    TaskInformation,
    TaskKind,
)
from ci_gate.model.verdict import Decision
from ci_gate.render import figures
from ci_gate.render.document import Column
from ci_gate.render.escape import inert
from ci_gate.render.layout import table
from ci_gate.render.screen import print_line, print_table

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["render_self_check"]

_MOST_RUNS = 100
_MOST_TASKS = 30
_MOST_NAMED = 10
_MOST_OUTCOMES = 12
_STILL: Final[tuple[tuple[TaskKind, str, str], ...]] = (
    ("passes", "Always passing", "they see a break, and make no noise"),
    ("fails", "Always failing", "they can never drop, so their trials show nothing"),
    ("unjudged", "Never judged", "every trial errored"),
)


def render_self_check(found: SelfCheck, console: Console) -> None:
    """Print how a gate did on runs of one agent.

    Parameters
    ----------
    found : SelfCheck
    console : rich.console.Console
    """
    print_line(console, f"{inert(found.suite)}: {_headline(found)}", style="bold")
    for text in _sentences(found):
        print_line(console, f"  {text}")
    if found.comparisons:
        print_line(console)
        print_line(console, "  Each run held against all others")
        _print_comparisons(found, console)
        _print_metrics(found, console)
        _print_tasks(found.tasks, console)
    for text in _notes(found):
        print_line(console, f"  {text}", style="dim")


def _headline(found: SelfCheck) -> str:
    alarms = found.false_alarms
    if alarms is None:
        return f"not measurable on {figures.counted(len(found.runs), 'run')}"
    compared = figures.counted(alarms.comparisons, "comparison")
    verb = "was a false alarm" if alarms.blocked == 1 else "were false alarms"
    return f"{figures.count(alarms.blocked)} of {compared} {verb}"


def _sentences(found: SelfCheck) -> Iterator[str]:
    if found.because:
        yield inert(found.because, limit=600)
    if found.false_alarms is not None:
        yield _rate(found.false_alarms, found.alpha)
    if found.run_effect is not None:
        yield _runs(found.run_effect, found.alpha)
    if found.seed_effect is not None:
        yield _seeds(found.seed_effect)


def _rate(alarms: FalseAlarms, alpha: float) -> str:
    low, high = map(figures.percent, alarms.interval)
    text = f"Measured rate {figures.percent(alarms.rate)}, 95 % interval {low} to {high}"
    text += f" (as if independent); alpha is {figures.percent(alpha)}"
    if alarms.inconclusive:
        text += f"; {figures.count(alarms.inconclusive)} more inconclusive"
    return f"{text}."


def _runs(effect: RunScatter, alpha: float) -> str:
    shown = f"phi {figures.amount(effect.phi)} (p {figures.p_value(effect.p_value)})"
    if not effect.matters:
        return f"Run effect: {shown}, no sign that days differ by more than their trials explain."
    return (
        f"Run effect: {shown}, whole runs differ by more than their trials explain. An uncorrected "
        f"test of the suite at {figures.percent(alpha)} is really one at "
        f"{figures.percent(effect.implied_alpha)}; make the baseline's repeats on different days."
    )


def _seeds(effect: SeedAgreement) -> str:
    within = "(task, seed)" if effect.strata == "task,seed" else "task"
    sign = "seeds matter" if effect.matters else "no sign that seeds matter"
    z = figures.amount(effect.z_seed)
    return f"Seed effect: z {z} (limit 1.645), {sign}; outcomes are exchanged within a {within}."


def _print_comparisons(found: SelfCheck, console: Console) -> None:
    columns = (
        Column("Run"),
        *(Column(inert(name), "number") for name in found.metrics),
        Column("p", "number"),
        Column("Verdict"),
    )
    rows = [_comparison(one, found) for one in found.comparisons]
    print_table(console, table(columns, rows, most=_MOST_RUNS))


def _comparison(one: SelfComparison, found: SelfCheck) -> tuple[str, ...]:
    return (
        inert(one.run, limit=60),
        *(figures.percent(one.metrics.get(name)) for name in found.metrics),
        figures.p_value(one.p_value, against=found.alpha),
        _verdict(one),
    )


def _verdict(one: SelfComparison) -> str:
    if one.decision is Decision.PASSED:
        return "passed"
    codes = ", ".join(one.reasons)
    named = f": {_named(one.tasks)}" if one.tasks else ""
    return inert(f"{one.decision} ({codes}{named})", limit=200)


def _print_metrics(found: SelfCheck, console: Console) -> None:
    print_line(console)
    baseline = figures.counted(len(found.runs) - 1, "run")
    print_line(console, f"  What it would have caught with 80 % power (a baseline of {baseline})")
    columns = (
        Column("Metric"),
        Column("All runs", "number"),
        Column("Lowest", "number"),
        Column("Highest", "number"),
        Column("Detectable drop", "number"),
    )
    rows = [
        (
            inert(name),
            figures.percent(one.pooled),
            figures.percent(one.lowest),
            figures.percent(one.highest),
            figures.points(one.detectable_drop).lstrip("+"),
        )
        for name, one in found.metrics.items()
    ]
    print_table(console, table(columns, rows))


def _print_tasks(tasks: Sequence[TaskInformation], console: Console) -> None:
    moving = [task for task in tasks if task.kind in {"moves", "fixed"}]
    print_line(console)
    count = f"{figures.count(len(moving))} of {figures.counted(len(tasks), 'task')}"
    print_line(console, f"  Information: {count} sometimes pass and sometimes fail")
    if moving:
        columns = (
            Column("Task", "code"),
            Column("Passed", "number"),
            Column("Share of the noise", "number"),
            Column("Outcomes, a word a run"),
        )
        print_table(console, table(columns, [_task(task) for task in moving], most=_MOST_TASKS))
    for kind, title, meaning in _STILL:
        names = [task.task for task in tasks if task.kind == kind]
        if names:
            print_line(console, f"  {title} ({figures.count(len(names))}): {_named(names)}")
            print_line(console, f"    {meaning}", style="dim")


def _task(task: TaskInformation) -> tuple[str, ...]:
    remark = "  by seed alone" if task.kind == "fixed" else ""
    shown = " ".join(inert(row, limit=32) for row in task.outcomes[:_MOST_OUTCOMES])
    more = len(task.outcomes) - _MOST_OUTCOMES
    return (
        inert(task.task),
        figures.rate(task.passed, task.trials),
        figures.percent(task.noise_share),
        f"{shown}{f' and {more} more' if more > 0 else ''}{remark}",
    )


def _named(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    shown = ", ".join(inert(name, limit=60) for name in names[:_MOST_NAMED])
    return f"{shown} and {figures.count(more)} more" if more > 0 else shown


def _notes(found: SelfCheck) -> Iterator[str]:
    for one in found.left_out[:_MOST_NAMED]:
        yield f"left out: {inert(one.task)} ({inert(one.why)})"
    more = len(found.left_out) - _MOST_NAMED
    if more > 0:
        yield f"left out: {figures.count(more)} more"
    for remark in found.remarks:
        yield inert(remark, limit=600)
    yield f"policy: {inert(found.policy)}"

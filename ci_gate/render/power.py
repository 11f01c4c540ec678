"""What a check would see, for a terminal: a sentence, tables and a plot.

Lays out figures that it is given, and rounds them; it computes none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ci_gate.model.power import Bill, Prospect, ProspectivePlan, ProspectiveShape, Sight
from ci_gate.render import figures
from ci_gate.render.document import Column
from ci_gate.render.escape import inert
from ci_gate.render.layout import table
from ci_gate.render.screen import print_line, print_table

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["render_prospect"]

_SHAPES: dict[ProspectiveShape, str] = {
    "none": "nothing (false alarm)",
    "shift": "every task a little worse",
    "flaky": "tasks over 90 % fail a tenth more",
    "broken": "the best task always fails",
}
_PARTS = " ▏▎▍▌▋▊▉"
_FULL, _MARK = "█", "┊"
_WIDEST_BAR = 40
_ROOMY = 105


def render_prospect(prospect: Prospect, console: Console) -> None:
    """Print what checks of one suite would see.

    Parameters
    ----------
    prospect : Prospect
    console : rich.console.Console
    """
    print_line(console, _headline(prospect), style="bold")
    print_line(console, f"  {_baseline_line(prospect)}")
    print_line(console, f"  {_check_line(prospect)}")
    print_line(console)
    print_line(console, "  Chance that a check as configured blocks a change")
    _print_sights(prospect.sights, console)
    print_line(console)
    print_line(console, "  The same against the drop of pass^1, every task a little worse")
    _print_curve(prospect.curve, console, power=prospect.power)
    print_line(console)
    print_line(console, f"  Fewest trials to see a drop with {_wanted(prospect)} power")
    _print_plans(prospect, console)
    for remark in prospect.remarks:
        print_line(console, f"  {inert(remark, limit=600)}", style="dim")


def _headline(prospect: Prospect) -> str:
    suite, power = inert(prospect.suite), _wanted(prospect)
    if prospect.detectable_drop is None:
        return f"{suite}: no drop that all tasks share is seen with {power} power"
    drop = figures.points(prospect.detectable_drop).lstrip("+")
    return f"{suite}: a drop of {drop} points in pass^1 is seen with {power} power"


def _wanted(prospect: Prospect) -> str:
    return f"{figures.level(100 * prospect.power)} %"


def _baseline_line(prospect: Prospect) -> str:
    known = prospect.baseline
    size = f"{figures.counted(known.tasks, 'task')}, {figures.counted(known.runs, 'run')}"
    strata = "seeds are strata" if known.strata == "task,seed" else "seeds are not strata"
    return (
        f"Baseline: {size} over {figures.counted(known.trials, 'seed')}, pass^1 "
        f"{figures.percent(known.pass_1)}; {strata}; level {figures.level(prospect.level)}"
    )


def _check_line(prospect: Prospect) -> str:
    bill = prospect.check
    return (
        f"A check as configured: {figures.counted(prospect.trials, 'trial')} a task, "
        f"{figures.count(bill.trials)} in all; tokens {_amount(bill.tokens)}, cost "
        f"{_money(bill.cost_usd)}, time {_time(bill.duration_s)} at "
        f"{figures.counted(prospect.jobs, 'job')}"
    )


def _print_sights(sights: Sequence[Sight], console: Console) -> None:
    columns = (
        Column("What changes"),
        Column("pass^1, points", "number"),
        Column("Blocked", "number"),
        Column("Simulated", "number"),
    )
    rows = [
        (
            _SHAPES[sight.shape],
            figures.points(-sight.drop),
            _blocked(sight),
            figures.count(sight.repeats) if sight.repeats else figures.UNKNOWN,
        )
        for sight in sights
    ]
    print_table(console, table(columns, rows))


def _blocked(sight: Sight) -> str:
    if sight.blocked is None or sight.error is None:
        return "cannot fall so far"
    return f"{figures.percent(sight.blocked)} ± {sight.error * 100:.1f}"


def _print_curve(curve: Sequence[Sight], console: Console, *, power: float) -> None:
    width = max(10, min(_WIDEST_BAR, console.width - 30))
    plain = not console.encoding.lower().startswith("utf")
    for sight in curve:
        bar = _bar(sight.blocked or 0.0, width, mark=power, plain=plain)
        drop = figures.points(-sight.drop)
        print_line(console, f"    {drop:>6}  {bar}  {figures.percent(sight.blocked)}")


def _bar(share: float, width: int, *, mark: float, plain: bool) -> str:
    """Return a bar of a share, with a mark at the wanted power where the bar ends before it."""
    eighths = round(share * width * 8)
    whole, part = divmod(eighths, 8)
    bar = _FULL * whole + (_PARTS[part] if part else "")
    if plain:
        bar = "#" * round(share * width)
    at = min(width - 1, round(mark * width))
    line = bar.ljust(width)
    return line if line[at] != " " else f"{line[:at]}{'|' if plain else _MARK}{line[at + 1 :]}"


def _print_plans(prospect: Prospect, console: Console) -> None:
    columns: tuple[Column, ...] = (
        Column("Drop", "number"),
        Column("Trials", "number"),
        Column("Baseline"),
        Column("Blocked", "number"),
        Column("A check", "number"),
        Column("Tokens", "number"),
        Column("Cost", "number"),
        Column("Time", "number"),
        Column("Once"),
        Column(""),
    )
    rows = [_plan_row(plan, prospect) for plan in prospect.plans]
    if console.is_terminal and console.width < _ROOMY:
        columns, rows = _without_tokens(columns, rows)
    if rows:
        print_table(console, table(columns, rows))
    for drop in prospect.unreached:
        most = figures.counted(prospect.most_trials, "trial")
        print_line(console, f"    {figures.points(-drop)}: not with up to {most} a task")


def _without_tokens(
    columns: Sequence[Column], rows: Sequence[tuple[str, ...]]
) -> tuple[tuple[Column, ...], list[tuple[str, ...]]]:
    """Leave out what a narrow terminal can do without."""
    kept = [at for at, column in enumerate(columns) if column.title not in {"Tokens", "Time"}]
    return tuple(columns[at] for at in kept), [tuple(row[at] for at in kept) for row in rows]


def _plan_row(plan: ProspectivePlan, prospect: Prospect) -> tuple[str, ...]:
    return (
        figures.points(-plan.sight.drop),
        figures.count(plan.trials),
        _baseline_of(plan, prospect),
        _blocked(plan.sight),
        figures.count(plan.check.trials),
        _amount(plan.check.tokens),
        _money(plan.check.cost_usd),
        _time(plan.check.duration_s),
        _once(plan.baseline),
        "cheapest" if plan.cheapest else "",
    )


def _baseline_of(plan: ProspectivePlan, prospect: Prospect) -> str:
    if plan.renewed:
        return f"new, {plan.trials} × {plan.runs}"  # noqa: RUF001 - a multiplication
    more = plan.runs - prospect.baseline.runs
    return f"{figures.counted(more, 'run')} more" if more else "as it is"


def _once(bill: Bill) -> str:
    if not bill.trials:
        return "nothing"
    cost = "" if bill.cost_usd is None else f", {_money(bill.cost_usd)}"
    return f"{figures.counted(bill.trials, 'trial')}{cost}"


def _amount(value: float | None) -> str:
    return "unknown" if value is None else figures.amount(float(round(value)))


def _money(value: float | None) -> str:
    if value is None:
        return "unknown"
    return f"${value:,.2f}" if value >= 1 else f"${figures.amount(value)}"


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "unknown"
    if seconds < 60:
        return f"{figures.amount(seconds)} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{figures.count(hours)} h {minutes} min"

"""The verdict in a few lines of a terminal or log.

Decides what is worth a line there: what stands open in the report, the first commands to paste, the
names of the rest. It knows no figures; it lays out the same document as every other writer.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ci_gate.model.verdict import Decision, Verdict
from ci_gate.render.document import (
    Comparison,
    Fold,
    ReportView,
    Section,
    SuiteView,
    TaskReplays,
)
from ci_gate.render.screen import console_for, print_line, print_table
from ci_gate.render.view import ReportOptions, view

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["render_verdict", "standard_error"]

_ROWS = 10
_REPLAYED_TASKS = 5
_COMMANDS = 3
_STYLES = {
    Decision.PASSED: "bold green",
    Decision.REGRESSED: "bold red",
    Decision.INCONCLUSIVE: "bold yellow",
}
_SIGNS = {"-": "red", "+": "green"}


def standard_error(environ: Mapping[str, str] | None = None) -> Console:
    """Return the console on standard error; see ``render.screen.console_for``."""
    return console_for(sys.stderr, environ, lossy=True)


def render_verdict(
    verdicts: Sequence[Verdict], console: Console, options: ReportOptions | None = None
) -> None:
    """Print the verdicts, the worst first.

    Parameters
    ----------
    verdicts : sequence of Verdict
        At least one.
    console : rich.console.Console
        See ``render.screen.console_for``.
    options : ReportOptions or None
        Its ``reports`` are named at the end.

    Raises
    ------
    ValueError
        There is no verdict to report on.
    """
    report = view(verdicts, options)
    if len(report.suites) > 1:
        print_line(console, report.headline, style=_STYLES[report.decision])
        print_table(console, report.overview)
    for suite in report.suites:
        if len(report.suites) > 1:
            print_line(console)
        _print_suite(console, suite)
    _print_reports(console, report)


def _print_suite(console: Console, suite: SuiteView) -> None:
    remark = f" ({suite.remark})" if suite.remark else ""
    headline = f"{suite.verdict}: {suite.name}{remark}"
    print_line(console, headline, style=_STYLES[suite.decision])
    for section in suite.sections:
        if section.fold is not Fold.CLOSED:
            _print_section(console, section.shortened(_ROWS, _REPLAYED_TASKS))
    _print_the_rest(console, suite)


def _print_section(console: Console, section: Section) -> None:
    if section.title:
        print_line(console)
        print_line(console, f"  {section.title}", style="bold")
    for sentence in section.lead:
        print_line(console, f"  - {sentence}")
    if section.table:
        print_table(console, section.table)
    for note in section.notes:
        print_line(console, f"  * {note}", style="dim")
    for replays in section.replays:
        _print_commands(console, replays)
    for comparison in section.comparisons:
        _print_comparison(console, comparison)


def _print_comparison(console: Console, comparison: Comparison) -> None:
    print_line(console, f"  {comparison.task}: {comparison.lead}")
    for line in comparison.lines:
        print_line(console, f"    {line}", style=_SIGNS.get(line[:1], ""))
    if comparison.command is not None:
        print_line(console, f"      {comparison.command}")


def _print_commands(console: Console, replays: TaskReplays) -> None:
    for command in replays.commands[:_COMMANDS]:
        print_line(console, f"      {command}")
    more = len(replays.commands) - _COMMANDS
    if more > 0:
        print_line(console, f"      ... and {more} more")


def _print_the_rest(console: Console, suite: SuiteView) -> None:
    folded = [section.title for section in suite.sections if section.fold is Fold.CLOSED]
    if folded:
        print_line(console)
        print_line(console, f"  The report file also has: {'; '.join(folded)}", style="dim")


def _print_reports(console: Console, report: ReportView) -> None:
    for kind, place in report.reports:
        print_line(console, f"  {kind}: {place}")

"""A run outside any suite on the screen: how it ended, what it answered and what it took."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ci_gate.model.trace_findings import Ledger
from ci_gate.model.trial import Status, Trajectory, TrialRecord
from ci_gate.render.escape import inert
from ci_gate.render.screen import print_line
from ci_gate.render.trace import render_totals

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["render_recorded"]

_CHARS: Final = 600
_TAIL_LINES: Final = 20
_ENDED: Final = {
    Status.PASSED: ("finished", "bold green"),
    Status.FAILED: ("the agent failed", "bold red"),
    Status.ERRORED: ("the environment failed", "bold yellow"),
}


def render_recorded(
    record: TrialRecord, trajectory: Trajectory | None, totals: Ledger | None, console: Console
) -> None:
    """Print how a run ended.

    Parameters
    ----------
    record : TrialRecord
    trajectory : Trajectory or None
        None where it did not come to an agent.
    totals : Ledger or None
        Of its trace; None where it has none.
    console : rich.console.Console
    """
    ended, style = _ENDED[record.status]
    reason = f": {inert(record.reason, limit=_CHARS)}" if record.reason else ""
    print_line(console, f"{ended}{reason}", style=style)
    if trajectory is not None:
        _print_said(trajectory, console)
    if totals is not None:
        render_totals(totals, console)


def _print_said(trajectory: Trajectory, console: Console) -> None:
    if trajectory.answer is not None:
        print_line(console, f"answer: {inert(trajectory.answer, limit=_CHARS)}")
    for line in trajectory.output_tail.splitlines()[-_TAIL_LINES:]:
        print_line(console, f"  | {inert(line, limit=_CHARS)}", style="dim")

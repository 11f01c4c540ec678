"""What the traces of a run add up to, on the screen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ci_gate.model.trace_findings import Reconciled
from ci_gate.render import figures
from ci_gate.render.escape import inert
from ci_gate.render.screen import print_line

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["render_reconciled"]

_MOST: Final = 50


def render_reconciled(found: Reconciled, console: Console) -> None:
    """Print how many traces are whole, what their calls cost, and where a trial says otherwise."""
    tokens = "tokens unknown" if found.tokens is None else f"{found.tokens:,} tokens"
    cost = "cost unknown" if found.cost_usd is None else f"{found.cost_usd:.4g} USD"
    if found.unpriced and found.cost_usd is not None:
        cost += f" and {figures.counted(found.unpriced, 'call')} of unknown price"
    traces = figures.counted(found.traces, "trace")
    calls = figures.counted(found.calls, "call")
    trials = figures.counted(found.trials, "trial")
    print_line(console, f"{traces} of {trials}, all whole: {calls}, {tokens}, {cost}.")
    for one in found.mismatches[:_MOST]:
        repeat = f" repeat {one.repeat}" if one.repeat else ""
        where = f"{inert(one.task)}  trial {one.trial}{repeat}"
        said = f"the trial says {one.said:g}, its calls {one.found:g}"
        print_line(console, f"  {where}  {one.what}: {said}", style="yellow")
    if len(found.mismatches) > _MOST:
        print_line(console, f"  and {len(found.mismatches) - _MOST:,} more")
    for tool in found.unsteady:
        inputs = figures.counted(tool.inputs, "input")
        what = f"is declared deterministic and has several answers to {inputs}"
        print_line(console, f"  tool {inert(tool.tool)}  {what}", style="yellow")

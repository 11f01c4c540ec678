"""The sections of a report that speak of traces: where trials part, which kept traces drifted.

They choose words and how much is shown. What is in a trace was written by an agent, its model and
its tools, so every text is made inert; figures are taken as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ci_gate.model.verdict import Verdict
from ci_gate.model.verdict_traces import (
    CallExcerpt,
    DifferenceExcerpt,
    KeptTraces,
    PartingExcerpt,
    TrialParting,
)
from ci_gate.render import figures
from ci_gate.render.document import Column, Comparison, Fold, Section
from ci_gate.render.escape import inert, inert_command
from ci_gate.render.layout import Limits, table
from ci_gate.render.screen import print_line
from ci_gate.render.trace import PARTED

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["kept_sentences", "kept_traces", "partings", "render_kept"]

_CALL_CHARS = 160
_VALUE_CHARS = 120
_DRIFT_CHARS = 200
_ALL_AGREE = "every call and every answer agrees, so that what differs comes after the last call"
_STYLES = {"ok": "green", "NO": "red", "??": "yellow"}
_MEANING = (
    "A changed call is no regression: nothing here decides. The calls were answered from the "
    "traces and none was made."
)


def partings(verdict: Verdict, limits: Limits) -> Section | None:
    """Return where failing trials leave what a passing trial of the baseline did."""
    found = () if verdict.traces is None else verdict.traces.partings
    if not found:
        return None
    return Section(
        key="partings",
        title="Where a failing trial leaves a passing one",
        comparisons=tuple(map(_comparison, found)),
    )


def _comparison(parting: TrialParting) -> Comparison:
    return Comparison(
        task=inert(parting.task),
        lead=_lead(parting),
        lines=() if parting.parting is None else tuple(_lines(parting.parting)),
        command=inert_command(parting.command),
    )


def _lead(parting: TrialParting) -> str:
    repeat = f" of repeat {parting.candidate_repeat}" if parting.candidate_repeat else ""
    trials = (
        f"trial {parting.candidate_trial}{repeat} beside trial {parting.baseline_trial} of the "
        f"baseline, {'the same seed' if parting.same_seed else 'another seed'}"
    )
    at = parting.parting
    if at is None:
        return f"{trials}: {_ALL_AGREE}."
    lane = "" if at.lane == "main" else f"in lane {inert(at.lane, limit=40)} "
    return f"{trials}: {lane}after {figures.counted(at.place, 'call')} {PARTED[at.kind]}."


def _lines(at: PartingExcerpt) -> Iterator[str]:
    yield f"- {_call(at.baseline)}"
    yield f"+ {_call(at.candidate)}"
    for difference in at.differences:
        yield from _difference(difference)
    if at.hidden:
        yield f"  and {figures.counted(at.hidden, 'more difference')}"


def _call(call: CallExcerpt | None) -> str:
    if call is None:
        return "(no more calls)"
    fault = f" [fault {inert(call.fault, limit=40)}]" if call.fault else ""
    made, answer = inert(call.call, limit=_CALL_CHARS), inert(call.answer, limit=_CALL_CHARS)
    return f"call {call.order}: {made} -> {answer}{fault}"


def _difference(difference: DifferenceExcerpt) -> Iterator[str]:
    yield f"  at {inert(difference.path, limit=_VALUE_CHARS)}"
    if difference.baseline is not None:
        yield f"-   {inert(difference.baseline, limit=_VALUE_CHARS)}"
    if difference.candidate is not None:
        yield f"+   {inert(difference.candidate, limit=_VALUE_CHARS)}"


def kept_traces(verdict: Verdict, limits: Limits) -> Section | None:
    """Return what the kept traces showed before the first trial; open where one drifted."""
    kept = None if verdict.traces is None else verdict.traces.kept
    if kept is None:
        return None
    columns = (Column("Task", "code"), Column("Trial", "number"), Column("First drift"))
    rows = [
        (inert(one.task), figures.count(one.trial), inert(one.drift, limit=_DRIFT_CHARS))
        for one in kept.drifted
    ]
    return Section(
        key="kept-traces",
        title=_kept_title(kept),
        fold=Fold.OPEN if rows else Fold.CLOSED,
        lead=tuple(kept_sentences(kept)),
        table=table(columns, rows, most=limits.rows) if rows else None,
        notes=(inert(f"From {kept.origin}.", limit=300), _MEANING),
    )


def _kept_title(kept: KeptTraces) -> str:
    drifted, of = figures.count(len(kept.drifted)), figures.count(kept.kept)
    return f"Kept traces ({drifted} of {of} drifted)"


def kept_sentences(kept: KeptTraces) -> Iterator[str]:
    """Yield how many kept traces the agent follows, and which were not played."""
    of = figures.counted(kept.kept, "kept trace")
    if kept.drifted:
        first = kept.drifted[0]
        yield (
            f"{figures.count(len(kept.drifted))} of {of}: the agent makes other calls. First "
            f"drift: {inert(first.task)}, {inert(first.drift, limit=_DRIFT_CHARS)}."
        )
    elif kept.played:
        yield f"The agent makes the calls of {figures.count(kept.played)} of {of}, each as it was."
    reasons: dict[str, list[str]] = {}
    for one in kept.unplayed:
        reasons.setdefault(one.why, []).append(one.task)
    for why, tasks in reasons.items():
        shown = ", ".join(inert(task, limit=60) for task in tasks[:5])
        more = f" and {figures.count(len(tasks) - 5)} more" if len(tasks) > 5 else ""
        yield f"Not played, because {inert(why, limit=_DRIFT_CHARS)}: {shown}{more}."


def render_kept(suite: str, tasks: Sequence[str], kept: KeptTraces, console: Console) -> None:
    """Print what became of each kept trace of a suite.

    Parameters
    ----------
    suite : str
    tasks : sequence of str
        Those that have one.
    kept : KeptTraces
    console : rich.console.Console
    """
    print_line(console, f"{inert(suite)}: {inert(kept.origin, limit=300)}", style="bold")
    left = {one.task: one.drift for one in kept.drifted}
    unplayed = {one.task: one.why for one in kept.unplayed}
    for task in tasks:
        mark = "NO" if task in left else "??" if task in unplayed else "ok"
        why = left.get(task) or unplayed.get(task)
        reason = f": {inert(why, limit=_DRIFT_CHARS)}" if why else ""
        print_line(console, f"  {mark}  {inert(task)}{reason}", style=_STYLES[mark])

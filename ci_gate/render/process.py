"""The section of a report on the way trials went: one row a process measure, both sides.

It chooses words and rows, and knows neither other sections nor how one is laid out.
"""

from __future__ import annotations

from typing import Final

from ci_gate.model.process import ProcessResult, ProcessSide
from ci_gate.model.verdict import Verdict
from ci_gate.process.measures import MEASURES
from ci_gate.render import figures
from ci_gate.render.document import Column, Fold, Section
from ci_gate.render.escape import inert
from ci_gate.render.layout import Limits, table

__all__ = ["process"]

_Interval = tuple[float, float] | None
_COLUMNS: Final = (
    Column("Measure"),
    Column("Baseline", "number"),
    Column("Candidate", "number"),
    Column("Candidate's interval", "number"),
    Column("Difference", "number"),
    Column("Difference's interval", "number"),
    Column("Better", "text"),
    Column("Trials", "number"),
)
_OPTIONAL: Final = ("Baseline", "Candidate's interval", "Difference", "Difference's interval")
_NOTE: Final = (
    "Means over the trials that a measure says something of, with 95 % intervals given these "
    "tasks; where both sides know it, over the tasks of both, in the candidate's mix. None of it "
    "decides anything, but where a guard is set on it."
)


def process(verdict: Verdict, limits: Limits) -> Section | None:
    """Return how the trials went, by measure; folded, and nothing where nothing is known."""
    if not verdict.process:
        return None
    rows = [_row(result) for result in verdict.process]
    return Section(
        key="process",
        title="Process measures",
        fold=Fold.CLOSED,
        table=table(_COLUMNS, rows, optional=_OPTIONAL, most=limits.rows),
        notes=(_NOTE,),
    )


def _row(result: ProcessResult) -> tuple[str, ...]:
    candidate, baseline = result.candidate, result.baseline
    is_share = result.unit == "share"
    known = MEASURES.get(result.measure)
    return (
        inert(result.measure) if known is None else known.title,
        _mean(baseline, is_share=is_share),
        _mean(candidate, is_share=is_share),
        _bounds(None if candidate is None else candidate.interval, is_share=is_share),
        figures.points(result.difference) if is_share else _signed(result.difference),
        figures.interval(result.interval) if is_share else _amounts(result.interval),
        result.better,
        figures.UNKNOWN if candidate is None else figures.count(candidate.trials),
    )


def _mean(side: ProcessSide | None, *, is_share: bool) -> str:
    if side is None:
        return figures.UNKNOWN
    return figures.percent(side.mean) if is_share else figures.amount(side.mean)


def _bounds(bounds: _Interval, *, is_share: bool) -> str:
    if bounds is None or not is_share:
        return _amounts(bounds)
    return f"{figures.percent(bounds[0])} to {figures.percent(bounds[1])}"


def _amounts(bounds: _Interval) -> str:
    if bounds is None:
        return figures.UNKNOWN
    return f"{figures.amount(bounds[0])} to {figures.amount(bounds[1])}"


def _signed(difference: float | None) -> str:
    return ("+" if difference is not None and difference > 0 else "") + figures.amount(difference)

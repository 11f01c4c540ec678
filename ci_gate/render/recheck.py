"""The section of a report on a recheck: to what a red test is put down, and on what evidence.

It chooses words, rows and their order, and knows neither other sections nor how one is laid out.
"""

from __future__ import annotations

from collections.abc import Iterator

from ci_gate.model.verdict import Attribution, Counts, Recheck, RecheckTask, RecheckTest, Verdict
from ci_gate.render import figures
from ci_gate.render.document import Column, Section
from ci_gate.render.escape import inert
from ci_gate.render.layout import Limits, table

__all__ = ["recheck"]

_TEXT_CHARS = 1000
_COMMIT_SHOWN = 12
_SIDES = ("baseline", "base", "candidate")
_COLUMNS = (
    Column("Task", "code"),
    Column("Baseline", "number"),
    Column("Base, again", "number"),
    Column("Candidate, again", "number"),
)
_FOUND = {
    Attribution.CHANGE: "It was the change: run again side by side, the candidate is worse than "
    "the commit of the baseline.",
    Attribution.ENVIRONMENT: "It was the environment: run again side by side, the candidate is no "
    "worse than the commit of the baseline, and that commit is worse than its baseline.",
    Attribution.NOISE: "It was noise: run again side by side, the candidate is no worse than the "
    "commit of the baseline, nor that commit than its baseline.",
}


def recheck(verdict: Verdict, limits: Limits) -> Section | None:
    """Return what came out when base and candidate were run again."""
    found = verdict.recheck
    if found is None:
        return None
    rows = [_row(task) for task in sorted(found.tasks, key=_worst_first)]
    return Section(
        key="recheck",
        title=f"Recheck: {found.attribution or 'without a result'}",
        lead=tuple(_sentences(found)),
        table=table(_COLUMNS, rows, most=limits.rows) if rows else None,
        notes=tuple(_notes(found)),
    )


def _worst_first(task: RecheckTask) -> tuple[float, str]:
    return _share(task.candidate) - _share(task.base), task.task


def _share(side: Counts) -> float:
    return side.passed / side.trials if side.trials else 0.0


def _row(task: RecheckTask) -> tuple[str, ...]:
    sides = (task.baseline, task.base, task.candidate)
    return inert(task.task), *(figures.rate(side.passed, side.trials) for side in sides)


def _sentences(found: Recheck) -> Iterator[str]:
    if found.attribution is not None:
        yield _FOUND[found.attribution]
    if found.problem is not None:
        yield f"The verdict stays as it was: {inert(found.problem, limit=_TEXT_CHARS)}"
    yield from (inert(remark, limit=_TEXT_CHARS) for remark in found.remarks)


def _notes(found: Recheck) -> Iterator[str]:
    what = "every compared task" if found.whole_suite else "the tasks with the smallest p"
    yield (
        f"{figures.count(found.trials)} fresh trials a task and side, of {what}, in turns; base is "
        f"commit {inert(found.commit[:_COMMIT_SHOWN])}."
    )
    if found.change is None or found.environment is None:
        return
    rates = ", ".join(f"{side} {figures.percent(found.rates.get(side))}" for side in _SIDES)
    yield (
        f"pass^1 over these tasks: {rates}. One-sided at level "
        f"{figures.level(found.change.level)}: candidate below base {_p(found.change)}, base below "
        f"baseline {_p(found.environment)}."
    )


def _p(test: RecheckTest) -> str:
    return f"p {figures.p_value(test.p_value, against=test.level)}"

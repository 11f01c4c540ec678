"""The section of a report on faults: the candidate beside itself in calm, all tasks and the worst.

It chooses words, rows and their order, and knows neither other sections nor how one is laid out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ci_gate.model.resilience import Conditions, Resilience, TaskResilience, TrialsInCondition
from ci_gate.model.verdict import Verdict
from ci_gate.render import figures
from ci_gate.render.document import Column, Fold, Section
from ci_gate.render.escape import inert
from ci_gate.render.layout import Limits, table

__all__ = ["MOST_TASKS", "resilience"]

MOST_TASKS: Final = 10
"""Tasks that are shown, the worst first."""

_STEPS: Final = {"turns": "Turns", "tool_calls": "Tool calls", None: "Steps"}
_NOT_RUN: Final = TrialsInCondition()
_NOT_COMPARED: Final = Conditions(tasks=0, seeds=0)
_NOTE: Final = (
    "Healed: of the trials that met a fault, those that passed after the goal of each faulted call "
    "was achieved within two further turns. Blind retries: trials that make a call with the same "
    "arguments three times or more. {steps}: means over the trials that passed. None of it decides "
    "anything, but where a guard is set on it."
)


def resilience(verdict: Verdict, limits: Limits) -> Section | None:
    """Return how the agent met faults; it stands open where it ran in calm as well."""
    found = verdict.resilience
    if found.candidate is None or not _tells(found):
        return None
    rows = [
        _row("all tasks", found.candidate, found.calm, found.between),
        *_baseline_rows(found),
        *(_task_row(task) for task in sorted(found.tasks, key=_worst_first)),
    ]
    columns = _columns(found)
    suite_rows = len(rows) - len(found.tasks)
    return Section(
        key="resilience",
        title="Resilience",
        fold=Fold.CLOSED if found.calm is None else Fold.OPEN,
        table=table(
            columns,
            rows,
            optional={column.title for column in columns[1:]},
            most=suite_rows + min(MOST_TASKS, limits.rows),
        ),
        notes=tuple(_notes(found)),
    )


def _tells(found: Resilience) -> bool:
    sides = [side for side in (found.baseline, found.candidate) if side is not None]
    return (
        found.under_faults
        or found.calm is not None
        or any(side.faulted or side.looped for side in sides)
    )


def _columns(found: Resilience) -> tuple[Column, ...]:
    steps, of_one = _STEPS[found.steps_in], not (found.under_faults or found.calm)
    titles = (
        "In calm",
        "Passed" if of_one else "Under faults",
        "Difference",
        "95 % interval",
        "Healed",
        "Blind retries",
        f"{steps} in calm",
        steps if of_one else f"{steps} under faults",
        "Ratio",
    )
    return Column("Task", "code"), *(Column(title, "number") for title in titles)


def _baseline_rows(found: Resilience) -> Iterator[tuple[str, ...]]:
    if found.baseline is not None:
        yield _row("all tasks, baseline", found.baseline)


def _task_row(task: TaskResilience) -> tuple[str, ...]:
    return _row(inert(task.task), task.candidate, task.calm, task.between)


def _row(
    name: str,
    faulted: TrialsInCondition,
    calm: TrialsInCondition | None = None,
    between: Conditions | None = None,
) -> tuple[str, ...]:
    calm, between = calm or _NOT_RUN, between or _NOT_COMPARED
    return (
        name,
        figures.percent(calm.pass_rate),
        figures.percent(faulted.pass_rate),
        figures.points(between.difference),
        figures.interval(between.interval),
        _healed(faulted),
        _looped(faulted),
        figures.amount(calm.steps),
        figures.amount(faulted.steps),
        figures.amount(between.steps_ratio),
    )


def _healed(side: TrialsInCondition) -> str:
    if not side.faulted or side.recovered is None:
        return figures.UNKNOWN
    return figures.rate(side.recovered, side.faulted)


def _looped(side: TrialsInCondition) -> str:
    if side.looped is None:
        return figures.UNKNOWN
    return f"{figures.count(side.looped)} ({figures.percent(side.dead_loop_rate)})"


def _worst_first(task: TaskResilience) -> tuple[float, int, int, str]:
    side, between = task.candidate, task.between
    lost = 0.0 if between is None else between.difference or 0.0
    unhealed = (side.faulted or 0) - (side.recovered or 0)
    return lost, -unhealed, -(side.looped or 0), task.task


def _notes(found: Resilience) -> Iterator[str]:
    if found.candidate is not None and found.candidate.faulted == 0:
        yield "No trial met a fault: only calls that pass the trial's tools do."
    if found.between is not None:
        yield (
            f"pass^1 in calm {_rate_with_interval(found.calm)}, under faults "
            f"{_rate_with_interval(found.candidate)}. Their difference is paired over "
            f"{figures.counted(found.between.seeds, 'seed')} of "
            f"{figures.counted(found.between.tasks, 'task')} that were judged both ways."
        )
    yield _NOTE.format(steps=_STEPS[found.steps_in])


def _rate_with_interval(side: TrialsInCondition | None) -> str:
    if side is None or side.interval is None:
        return figures.UNKNOWN
    low, high = (figures.percent(bound) for bound in side.interval)
    return f"{figures.percent(side.pass_rate)} ({low} to {high})"

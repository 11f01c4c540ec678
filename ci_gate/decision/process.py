"""The process measures of both sides: means over the trials that know one, and their difference.

Decides which trials and tasks a figure is taken over; what it finds decides nothing, unless a guard
is set on it, which then looks at the same trials. What is unknown is None, never 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum

import msgspec

from ci_gate.model.process import ProcessResult, ProcessSide
from ci_gate.model.run import FAILED, PASSED, SideTask
from ci_gate.process.measures import MEASURES
from ci_gate.stats.ratios import Moments, Ratio, absolute_change, mean_interval, ratio_of

__all__ = ["is_share", "moments_of_run", "process_of_sides"]

Tasks = Mapping[str, SideTask]

_ALPHA = 0.025
"""Of each bound of an interval of 95 %."""

_ABSURD = 1e75
"""Amounts beyond it would leave the floats when they are squared, and mean nothing."""


def is_share(name: str) -> bool:
    """Return whether a process measure lies between 0 and 1 in each trial."""
    return MEASURES[name].unit == "share"


def moments_of_run(task: SideTask, name: str, run: int) -> Moments | None:
    """Return a process measure's moments over the trials of one run that know it, None for none."""
    entries = task.process.get(name, ())
    measure = entries[run] if run < len(entries) else None
    judged = task.outcomes[run].count(PASSED) + task.outcomes[run].count(FAILED)
    if measure is None or measure.mean is None or not judged:
        return None
    # A file may claim more than it has trials.
    n = judged if measure.known is None else min(measure.known, judged)
    deviation = 0.0 if n == 1 else measure.sd
    if deviation is None or not max(abs(measure.mean), abs(deviation)) < _ABSURD:
        return None
    mean, deviation = _three_digits(measure.mean), _three_digits(deviation)
    return Moments(n=n, x=mean, y=1.0, xx=(n - 1) * deviation * deviation)


def _three_digits(value: float) -> float:
    """Return a figure as a baseline keeps it, so that an unchanged agent shows no difference."""
    return float(f"{value:.3g}")


def process_of_sides(baseline: Tasks, candidate: Tasks) -> tuple[ProcessResult, ...]:
    """Return each process measure that a trial of the candidate or the baseline knows.

    Parameters
    ----------
    baseline, candidate : mapping of str to SideTask
        The tasks that are shown of each side; nothing where there is no such side.

    Notes
    -----
    Where both sides know a measure of some tasks, both means are over these tasks alone, weighed by
    the candidate's trials, so that they can be compared. Intervals are those of guards
    (``ci_gate.stats.ratios``): given these tasks, over the trials' scatter within each.
    """
    found = (_result(name, _known(baseline, name), _known(candidate, name)) for name in MEASURES)
    return tuple(result for result in found if result.baseline or result.candidate)


def _known(side: Tasks, name: str) -> dict[str, Moments]:
    moments: dict[str, Moments] = {}
    for task_id in sorted(side):
        task = side[task_id]
        runs = (moments_of_run(task, name, run) for run in range(len(task.outcomes)))
        parts = [part for part in runs if part is not None]
        if parts:
            moments[task_id] = Moments.merged(parts)
    return moments


def _result(
    name: str, before: Mapping[str, Moments], after: Mapping[str, Moments]
) -> ProcessResult:
    shared = [task_id for task_id in after if task_id in before]
    alone = ProcessResult(
        measure=name,
        better=MEASURES[name].better,
        unit=MEASURES[name].unit,
        baseline=_side(name, list(before.values())),
        candidate=_side(name, list(after.values())),
    )
    if not shared:
        return alone
    weights = [after[task_id].n for task_id in shared]
    tasks = [[side[task_id] for task_id in shared] for side in (before, after)]
    ratios = [ratio_of(side, weights, yes_or_no=(is_share(name), False)) for side in tasks]
    baseline, candidate = (_side(name, side, weights) for side in tasks)
    assert baseline is not None
    assert candidate is not None
    return msgspec.structs.replace(
        alone,
        baseline=baseline,
        candidate=candidate,
        difference=candidate.mean - baseline.mean,
        interval=_interval(name, ratios[0], ratios[1]),
    )


def _interval(name: str, before: Ratio | None, after: Ratio | None) -> tuple[float, float] | None:
    change = (
        None if before is None or after is None else absolute_change(before, after, alpha=_ALPHA)
    )
    if change is None:
        return None
    return _within(name, (change.low, change.high), -1.0)


def _side(
    name: str, tasks: Sequence[Moments], weights: Sequence[int] | None = None
) -> ProcessSide | None:
    if not tasks:
        return None
    weights = weights or [task.n for task in tasks]
    ratio = ratio_of(tasks, weights, yes_or_no=(is_share(name), False))
    bounds = None if ratio is None else mean_interval(ratio)
    total = fsum(w * task.x for w, task in zip(weights, tasks, strict=True))
    return ProcessSide(
        mean=total / sum(weights),
        interval=None if bounds is None else _within(name, bounds, 0.0),
        tasks=len(tasks),
        trials=sum(task.n for task in tasks),
    )


def _within(name: str, bounds: tuple[float, float], least: float) -> tuple[float, float]:
    """Return bounds cut to what the measure, or a difference of it, can be."""
    low, high = bounds
    if is_share(name):
        return max(low, least), min(high, 1.0)
    return (max(low, 0.0), high) if least == 0 else (low, high)

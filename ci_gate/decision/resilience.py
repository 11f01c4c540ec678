"""How the agent met faults: its sides under faults, and the same trials in calm beside them.

Sums, means and differences; decides nothing, and what it finds decides nothing. What a recovery and
a blind retry are was found when the trial ran. What is unknown is None, never 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import fsum

import msgspec

from ci_gate.decision.accounting import counts_of, scores_of
from ci_gate.decision.pairing import pair_task, seeds_shared
from ci_gate.model.resilience import (
    Conditions,
    Resilience,
    StepUnit,
    TaskResilience,
    TrialsInCondition,
)
from ci_gate.model.run import FAILED, PASSED, ErrorPolicy, Measure, Side, SideTask
from ci_gate.stats.counts import TaskCounts
from ci_gate.stats.paired import paired_interval, pass_rate_interval

__all__ = ["FaultedSides", "resilience_of"]

Tasks = Mapping[str, SideTask]


class FaultedSides(msgspec.Struct, frozen=True, kw_only=True):
    """What is looked at.

    Parameters
    ----------
    baseline, candidate : mapping of str to SideTask
        The tasks whose figures are shown, of both sides under the configured faults; nothing where
        there is no such side.
    whole : Side
        The candidate, for its seeds.
    calm : Side or None
        The candidate without faults.
    errors : {"exclude", "fail"}
    """

    baseline: Tasks
    candidate: Tasks
    whole: Side
    calm: Side | None
    errors: ErrorPolicy

    @property
    def calm_tasks(self) -> Tasks:
        """The shown tasks as they went in calm."""
        calm = {} if self.calm is None else self.calm.tasks
        return {task_id: calm[task_id] for task_id in self.candidate if task_id in calm}

    @property
    def unit(self) -> StepUnit | None:
        """What steps are counted in: turns, where every task says them that passed a trial."""
        tasks = (*self.candidate.values(), *self.calm_tasks.values())
        converged = [task for task in tasks if task.count(PASSED)]
        if converged and all(_steps(task, "turns") is not None for task in converged):
            return "turns"
        known = any(_steps(task, "tool_calls") is not None for task in converged)
        return "tool_calls" if known else None


def resilience_of(sides: FaultedSides) -> Resilience:
    """Return how the agent met faults, over all shown tasks and task by task."""
    unit, calm = sides.unit, sides.calm_tasks
    tasks = (_of_task(task_id, sides, calm, unit) for task_id in sorted(sides.candidate))
    return Resilience(
        under_faults=sides.whole.faults_digest is not None,
        baseline=_condition(sides.baseline, sides.errors, unit),
        candidate=_condition(sides.candidate, sides.errors, unit),
        calm=_condition(calm, sides.errors, unit),
        between=_between(sides, calm, unit),
        steps_in=unit,
        tasks=tuple(task for task in tasks if _tells(task)),
    )


def _of_task(
    task_id: str, sides: FaultedSides, calm: Tasks, unit: StepUnit | None
) -> TaskResilience:
    one = {task_id: sides.candidate[task_id]}
    calm = {task_id: calm[task_id]} if task_id in calm else {}
    only = msgspec.structs.replace(sides, candidate=one)
    candidate = _condition(one, sides.errors, unit)
    assert candidate is not None
    return TaskResilience(
        task=task_id,
        candidate=candidate,
        calm=_condition(calm, sides.errors, unit),
        between=_between(only, calm, unit),
    )


def _tells(task: TaskResilience) -> bool:
    return bool(task.candidate.faulted or task.candidate.looped or task.calm is not None)


def _condition(
    tasks: Tasks, errors: ErrorPolicy, unit: StepUnit | None
) -> TrialsInCondition | None:
    if not tasks:
        return None
    counts = [counts_of(task, errors) for task in tasks.values()]
    passed, trials = [count.passed for count in counts], [count.trials for count in counts]
    faulted = _sum(task.faulted for task in tasks.values())
    recovered = _sum(task.recovered for task in tasks.values())
    looped = _sum(task.looped for task in tasks.values())
    return TrialsInCondition(
        trials=sum(trials),
        passed=sum(passed),
        pass_rate=_mean([c / n for c, n in zip(passed, trials, strict=True) if n]),
        interval=pass_rate_interval(passed, trials),
        faulted=faulted,
        recovered=recovered,
        self_healing_rate=_ratio(recovered, faulted),
        looped=looped,
        dead_loop_rate=_ratio(looped, _trials_with_known_loops(tasks.values())),
        steps=_mean([n for task in tasks.values() if (n := _steps(task, unit)) is not None]),
    )


def _between(sides: FaultedSides, calm: Tasks, unit: StepUnit | None) -> Conditions | None:
    if sides.calm is None or not calm:
        return None
    shared = [_shared(sides.calm, sides.whole, sides.errors, task_id) for task_id in calm]
    differences = [row for counts in shared if (row := list(_differences(counts)))]
    interval = paired_interval(differences)
    return Conditions(
        tasks=len(differences),
        seeds=sum(map(len, differences)),
        difference=_mean([fsum(row) / len(row) for row in differences]),
        interval=None if interval is None else (interval.low, interval.high),
        steps_ratio=_steps_ratio(sides.candidate, calm, unit),
    )


def _shared(calm: Side, faulted: Side, errors: ErrorPolicy, task_id: str) -> TaskCounts:
    """The seeds of a task that were judged both ways, calm in the place of the baseline."""
    pair = pair_task(
        task_id,
        scores_of(calm.tasks[task_id], errors),
        scores_of(faulted.tasks[task_id], errors),
        seeds_shared(calm, faulted, task_id),
    )
    if not pair.shared:
        return TaskCounts(baseline_n=(), baseline_passed=(), candidate_n=(), candidate_passed=())
    return pair.by_seed.shared


def _differences(counts: TaskCounts) -> Iterator[float]:
    rows = (counts.baseline_passed, counts.baseline_n, counts.candidate_passed, counts.candidate_n)
    for calm_passed, calm_n, passed, n in zip(*rows, strict=True):
        yield passed / n - calm_passed / calm_n


def _steps_ratio(faulted: Tasks, calm: Tasks, unit: StepUnit | None) -> float | None:
    pairs = [(_steps(faulted[task_id], unit), _steps(task, unit)) for task_id, task in calm.items()]
    known = [(after, before) for after, before in pairs if after is not None and before is not None]
    return _ratio(fsum(after for after, _ in known), fsum(before for _, before in known))


def _steps(task: SideTask, unit: StepUnit | None) -> float | None:
    """Return the mean over the trials that passed, of the runs in which every trial knows it."""
    rows: Sequence[Measure | None] | None = (
        task.measures.get("turns") if unit == "turns" else task.tool_calls
    )
    weighed = [
        (measure.mean_passed, outcomes.count(PASSED))
        for measure, outcomes in zip(rows or (), task.outcomes, strict=False)
        if measure is not None and measure.known is None and measure.mean_passed is not None
    ]
    passed = sum(n for _, n in weighed)
    return _ratio(fsum(mean * n for mean, n in weighed), passed) if unit else None


def _trials_with_known_loops(tasks: Iterable[SideTask]) -> int:
    return sum(
        outcomes.count(PASSED) + outcomes.count(FAILED)
        for task in tasks
        for looped, outcomes in zip(task.looped or (), task.outcomes, strict=False)
        if looped is not None
    )


def _sum(counts: Iterable[tuple[int | None, ...] | None]) -> int | None:
    known = [count for runs in counts for count in runs or () if count is not None]
    return sum(known) if known else None


def _mean(values: Sequence[float]) -> float | None:
    return fsum(values) / len(values) if values else None


def _ratio(total: float | None, of: float | None) -> float | None:
    return total / of if total is not None and of else None

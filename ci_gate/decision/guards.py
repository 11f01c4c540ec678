"""Guards: what a change may not move too far, although its trials pass.

Decides which trials a guard is judged from, and on which side of its limit the bound lies. How
sure a change is comes from ``ci_gate.stats``; what a broken guard means for the verdict from the
rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import isfinite
from typing import Final, Literal, NamedTuple

from ci_gate.decision.process import is_share, moments_of_run
from ci_gate.model.policy import Guard, Policy
from ci_gate.model.run import FAILED, PASSED, Measure, SideTask
from ci_gate.model.verdict import GuardResult
from ci_gate.process.measures import MEASURES
from ci_gate.stats.ratios import (
    Change,
    Moments,
    Ratio,
    absolute_change,
    ratio_of,
    relative_change,
)

__all__ = ["guards_of", "limits_of"]

Tasks = Mapping[str, SideTask]
_Direction = Literal["increase", "decrease"]
_Reader = Callable[[SideTask, int], Moments | None]
"""The moments of one run of a task with at least one judged trial; None where unknown."""

_ABSURD: Final = 1e75
"""Amounts beyond it would leave the floats when they are squared, and mean nothing."""


def guards_of(baseline: Tasks, candidate: Tasks, policy: Policy) -> tuple[GuardResult, ...]:
    """Hold the candidate's measures against the policy's guards, a result a limit.

    Parameters
    ----------
    baseline, candidate : mapping of str to SideTask
        The compared tasks, the same on both sides.
    policy : Policy
        For its guards, for alpha, which each limit has of its own, and for the share of trials that
        may be unknown (``max_errored_rate``).

    Returns
    -------
    tuple of GuardResult
        Nothing where no task is compared. ``passed`` is None where the measure is unknown on a
        side: in no run of a task every judged trial knows it, for tasks with more of the judged
        trials than the share allows. A process measure is taken over the trials that know it.

    Notes
    -----
    The baseline is shown for the candidate's mix of tasks: each task's mean weighs as many trials
    as the candidate has of it. With equal numbers of trials that is the plain ratio of sums.
    """
    if not candidate:
        return ()
    sides = _Sides(baseline, candidate, policy)
    return tuple(result for guard in policy.guards for result in sides.results(guard))


def limits_of(policy: Policy) -> int:
    """Return how many limits the guards of a policy have, each with an alpha of its own."""
    limits = [
        limit for guard in policy.guards for limit in (guard.max_increase, guard.max_decrease)
    ]
    return sum(limit is not None for limit in limits)


class _Kind(NamedTuple):
    read: _Reader
    change: Callable[..., Change | None]
    yes_or_no: tuple[bool, bool]
    is_partial: bool = False
    """A measure that says something of some trials only: of the others nothing is missing."""


class _Sides(NamedTuple):
    baseline: Tasks
    candidate: Tasks
    policy: Policy

    def results(self, guard: Guard) -> Iterator[GuardResult]:
        """Yield a result for each limit of a guard."""
        kind = _kind(guard.metric)
        before, after = self._known(self.baseline, kind), self._known(self.candidate, kind)
        shared = sorted(before.keys() & after.keys())
        ratios = self._ratios(before, after, shared, kind)
        change = kind.change(*ratios, alpha=self.policy.alpha) if ratios else None
        lacking = () if kind.is_partial else self.candidate.keys() - set(shared)
        excluded = tuple(sorted(lacking))
        for direction, limit in _limits(guard):
            yield _result(guard.metric, direction, limit, ratios, change, excluded)

    def _known(self, side: Tasks, kind: _Kind) -> dict[str, Moments]:
        found = {task_id: _moments(task, kind.read) for task_id, task in side.items()}
        return {task_id: moments for task_id, moments in found.items() if moments is not None}

    def _ratios(
        self,
        before: Mapping[str, Moments],
        after: Mapping[str, Moments],
        shared: list[str],
        kind: _Kind,
    ) -> tuple[Ratio, Ratio] | None:
        if not shared or not (kind.is_partial or self._enough(set(shared))):
            return None
        weights = [after[task_id].n for task_id in shared]
        sides = [
            ratio_of([side[task_id] for task_id in shared], weights, yes_or_no=kind.yes_or_no)
            for side in (before, after)
        ]
        baseline, candidate = sides
        return None if baseline is None or candidate is None else (baseline, candidate)

    def _enough(self, known: set[str]) -> bool:
        return all(
            self.policy.allows_errored(
                sum(task.judged for task_id, task in side.items() if task_id not in known),
                sum(task.judged for task in side.values()),
            )
            for side in (self.baseline, self.candidate)
        )


def _moments(task: SideTask, read: _Reader) -> Moments | None:
    """Return a task's moments over the runs in which every judged trial knows the measure."""
    judged = [run for run, outcomes in enumerate(task.outcomes) if _judged(outcomes)]
    parts = [part for run in judged if (part := read(task, run)) is not None]
    return Moments.merged(parts) if parts else None


def _judged(outcomes: str) -> int:
    return outcomes.count(PASSED) + outcomes.count(FAILED)


def _kind(metric: str) -> _Kind:
    if metric == "cost_per_success_usd":
        return _Kind(_cost_and_success, relative_change, (False, True))
    if metric == "self_healing_rate":
        return _Kind(_recovered_and_faulted, absolute_change, (True, True))
    if metric == "dead_loop_rate":
        return _Kind(_looped, absolute_change, (True, False))
    if metric in MEASURES:
        return _Kind(_of_process(metric), absolute_change, (is_share(metric), False), True)
    relative = metric in {"turns", "tokens", "duration_s"}
    change = relative_change if relative else absolute_change
    return _Kind(_reader_of(metric, signed=not relative), change, (False, False))


def _of_process(name: str) -> _Reader:
    return lambda task, run: moments_of_run(task, name, run)


def _reader_of(name: str, *, signed: bool) -> _Reader:
    def read(task: SideTask, run: int) -> Moments | None:
        n = _judged(task.outcomes[run])
        measure = _whole_measure(task, name, run, n)
        if measure is None or (measure[0] < 0 and not signed):
            return None
        mean, deviation = measure
        return Moments(n=n, x=mean, y=1.0, xx=(n - 1) * deviation * deviation)

    return read


def _whole_measure(task: SideTask, name: str, run: int, n: int) -> tuple[float, float] | None:
    """Return mean and standard deviation over all n judged trials of a run."""
    measure = _measure(task, name, run)
    if measure is None or measure.mean is None or (measure.known or n) < n:
        return None
    deviation = 0.0 if n == 1 else measure.sd
    if deviation is None or not max(abs(measure.mean), abs(deviation)) < _ABSURD:
        return None
    return measure.mean, deviation


def _measure(task: SideTask, name: str, run: int) -> Measure | None:
    measures: tuple[Measure | None, ...] = task.measures.get(name, ())
    return measures[run] if run < len(measures) else None


def _cost_and_success(task: SideTask, run: int) -> Moments | None:
    """Cost of each trial and whether it passed: the mean over passed trials ties the two."""
    cost = _reader_of("cost_usd", signed=False)(task, run)
    passed = task.outcomes[run].count(PASSED)
    measure = _measure(task, "cost_usd", run)
    if cost is None or measure is None:
        return None
    of_passed = measure.mean_passed if passed else 0.0
    if of_passed is None or not 0 <= of_passed < _ABSURD:
        return None
    rate = passed / cost.n
    return Moments(
        n=cost.n,
        x=cost.x,
        y=rate,
        xx=cost.xx,
        yy=passed * (1 - rate),
        xy=passed * (of_passed - cost.x),
    )


def _recovered_and_faulted(task: SideTask, run: int) -> Moments | None:
    n = _judged(task.outcomes[run])
    recovered, faulted = _count(task.recovered, run), _count(task.faulted, run)
    if recovered is None or faulted is None or not 0 <= recovered <= faulted <= n:
        return None
    x, y = recovered / n, faulted / n
    # A trial that recovered was faulted, so the product of the two is the first.
    return Moments(
        n=n, x=x, y=y, xx=recovered * (1 - x), yy=faulted * (1 - y), xy=recovered * (1 - y)
    )


def _looped(task: SideTask, run: int) -> Moments | None:
    n, looped = _judged(task.outcomes[run]), _count(task.looped, run)
    if looped is None or not 0 <= looped <= n:
        return None
    return Moments(n=n, x=looped / n, y=1.0, xx=looped * (1 - looped / n))


def _count(counts: tuple[int | None, ...] | None, run: int) -> int | None:
    return counts[run] if counts is not None and run < len(counts) else None


def _limits(guard: Guard) -> Iterator[tuple[_Direction, float]]:
    if guard.max_increase is not None:
        yield "increase", guard.max_increase
    if guard.max_decrease is not None:
        yield "decrease", -guard.max_decrease


def _result(
    metric: str,
    direction: _Direction,
    limit: float,
    ratios: tuple[Ratio, Ratio] | None,
    change: Change | None,
    excluded: tuple[str, ...],
) -> GuardResult:
    rising = direction == "increase"
    bound = None if change is None else change.low if rising else change.high
    kept = None if bound is None else bound <= limit if rising else bound >= limit
    before, after = (None, None) if ratios is None else (ratios[0].value, ratios[1].value)
    return GuardResult(
        metric=metric,
        direction=direction,
        baseline=_finite(before),
        candidate=_finite(after),
        change=_finite(None if change is None else change.value),
        bound=_finite(bound),
        limit=limit,
        passed=kept,
        excluded=excluded if ratios is not None else (),
    )


def _finite(value: float | None) -> float | None:
    return value if value is not None and isfinite(value) else None

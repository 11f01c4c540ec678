"""The suite metrics as they are printed, and the floors under them.

Numbers only: estimates, intervals, p-values and bounds. Nothing is rounded here, and no verdict
hangs on a printed number: a strict floor is held against the exact estimate.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from fractions import Fraction
from math import comb, fsum, sqrt

import msgspec

from ci_gate.decision.accounting import counts_of
from ci_gate.decision.evidence import Evidence
from ci_gate.model.policy import Policy, as_written
from ci_gate.model.run import ErrorPolicy, SideTask
from ci_gate.model.verdict import FloorResult, MetricResult
from ci_gate.stats.counts import TaskCounts
from ci_gate.stats.intervals import difference_interval, side_upper_bound
from ci_gate.stats.passk import pass_at_k, pass_hat_k, pass_hat_k_by_seed, plug_in_pass_hat_k
from ci_gate.stats.power_bound import detectable_drop

__all__ = ["floors_of", "tested_metrics", "untested_metrics"]

Tasks = Mapping[str, SideTask]
_TaskCounts = tuple[Sequence[int], Sequence[int]]
"""Passed and judged trials of a task, by seed."""
SideCounts = Collection[_TaskCounts]


def tested_metrics(evidence: Evidence, policy: Policy) -> dict[str, MetricResult]:
    """Return each metric of the policy over the tasks that were tested."""
    return {f"pass^{k}": _tested_metric(evidence, k, policy) for k in policy.ks}


def _tested_metric(evidence: Evidence, k: int, policy: Policy) -> MetricResult:
    family = evidence.joint.families[k]
    counts = [evidence.counts[i] for i in family.included]
    by_seed = evidence.choice.strata == "task,seed" and all(seeds_of(task) >= k for task in counts)
    phi = evidence.effect.correction
    interval = difference_interval(counts, k, by_seed=by_seed, phi=phi)
    included = {evidence.tasks[i] for i in family.included}
    excluded = tuple(task for task in evidence.tasks if task not in included)
    if interval is None:
        return metric_of([], [], k, excluded=excluded)
    baseline, candidate = by_side(counts)
    return msgspec.structs.replace(
        metric_of(baseline, candidate, k, by_seed=by_seed, excluded=excluded),
        difference=interval.difference,
        interval=(interval.low, interval.high),
        p_value=family.p_value,
        p_adjusted=family.p_adjusted,
        regressed=family.p_adjusted <= evidence.joint.level,
        exact=family.exact,
        detectable_drop=_detectable_drop(evidence, k, policy),
    )


def _detectable_drop(evidence: Evidence, k: int, policy: Policy) -> float | None:
    """Return the drop that is seen with 80 % power, also where the run effect is corrected for."""
    drop = detectable_drop(
        evidence.counts,
        k,
        level=evidence.joint.level,
        strata=evidence.choice.strata,
        ks=policy.ks,
        margin=policy.margin,
    )
    # Both what is needed to be red and what a run scatters by grow with the square root.
    larger = None if drop is None else drop * sqrt(evidence.effect.correction or 1.0)
    return larger if larger is None or larger <= 1 else None


def seeds_of(task: TaskCounts) -> int:
    return min(sum(map(bool, task.baseline_n)), sum(map(bool, task.candidate_n)))


def by_side(tasks: Sequence[TaskCounts]) -> tuple[SideCounts, SideCounts]:
    return (
        [(task.baseline_passed, task.baseline_n) for task in tasks],
        [(task.candidate_passed, task.candidate_n) for task in tasks],
    )


def untested_metrics(
    baseline: Tasks, candidate: Tasks, policy: Policy, errors: ErrorPolicy
) -> dict[str, MetricResult]:
    """Return each metric's estimates where nothing was tested, side by side.

    Each side has its own tasks here, those with at least k judged trials; the numbers are not for
    comparing, so there is no difference. ``n_tasks`` counts the candidate's.
    """
    before, after = _totals(baseline, errors), _totals(candidate, errors)
    return {
        f"pass^{k}": metric_of(
            _deep(before, k).values(),
            _deep(after, k).values(),
            k,
            excluded=tuple(task for task in after if task not in _deep(after, k)),
        )
        for k in policy.ks
    }


def _deep(tasks: Mapping[str, _TaskCounts], k: int) -> dict[str, _TaskCounts]:
    return {task: counts for task, counts in tasks.items() if sum(counts[1]) >= k}


def _totals(tasks: Tasks, errors: ErrorPolicy) -> dict[str, _TaskCounts]:
    counts = {task: counts_of(tasks[task], errors) for task in sorted(tasks)}
    return {task: ((count.passed,), (count.trials,)) for task, count in counts.items()}


def metric_of(
    baseline: SideCounts,
    candidate: SideCounts,
    k: int,
    *,
    by_seed: bool = False,
    excluded: tuple[str, ...],
) -> MetricResult:
    return MetricResult(
        baseline=_pass_hat(baseline, k, by_seed=by_seed),
        candidate=_pass_hat(candidate, k, by_seed=by_seed),
        difference=None,
        interval=None,
        p_value=None,
        p_adjusted=None,
        exact=None,
        detectable_drop=None,
        n_tasks=len(candidate),
        excluded=excluded,
        baseline_plug_in=_mean(baseline, k, plug_in_pass_hat_k),
        candidate_plug_in=_mean(candidate, k, plug_in_pass_hat_k),
        baseline_pass_at_k=_mean(baseline, k, pass_at_k),
        candidate_pass_at_k=_mean(candidate, k, pass_at_k),
    )


def _pass_hat(side: SideCounts, k: int, *, by_seed: bool) -> float | None:
    if not by_seed or not side:
        return _mean(side, k, pass_hat_k)
    estimates = [pass_hat_k_by_seed(passed, judged, k) for passed, judged in side]
    return fsum(estimates) / len(estimates)


def _mean(side: SideCounts, k: int, estimate: Callable[[int, int, int], float]) -> float | None:
    estimates = [estimate(sum(passed), sum(judged), k) for passed, judged in side]
    return fsum(estimates) / len(estimates) if estimates else None


def floors_of(candidate: Tasks, policy: Policy, errors: ErrorPolicy) -> tuple[FloorResult, ...]:
    """Hold the candidate's suite metrics against the policy's floors.

    A floor is broken where the upper confidence bound lies below it, with ``strict_floors`` where
    the estimate does. Being equal keeps it: an estimate is a fraction of counts and is compared
    exactly with the floor as it was written; a bound is a rounded number and is compared with the
    nearest binary one. Without a task of k judged trials there is neither, and it has not passed.
    """
    counts = list(_totals(candidate, errors).values())
    return tuple(
        _floor(counts, metric, policy.floors[metric], policy) for metric in sorted(policy.floors)
    )


def _floor(counts: SideCounts, metric: str, floor: float, policy: Policy) -> FloorResult:
    k = int(metric.removeprefix("pass^"))
    deep = [task for task in counts if sum(task[1]) >= k]
    estimate = _mean(deep, k, pass_hat_k)
    passed, judged = [sum(task[0]) for task in deep], [sum(task[1]) for task in deep]
    upper = side_upper_bound(passed, judged, k, policy.alpha)
    bound = estimate if policy.strict_floors else upper
    kept = bound is not None and (
        _exact_mean(passed, judged, k) >= as_written(floor)
        if policy.strict_floors
        else bound >= floor
    )
    return FloorResult(
        metric=metric,
        floor=floor,
        candidate=estimate,
        bound=bound,
        passed=kept,
    )


def _exact_mean(passed: Sequence[int], judged: Sequence[int], k: int) -> Fraction:
    """Return the mean of ``C(c, k) / C(n, k)`` over the tasks, without a rounding anywhere."""
    by_trials: dict[int, int] = {}
    for c, n in zip(passed, judged, strict=True):
        by_trials[n] = by_trials.get(n, 0) + comb(c, k)
    parts = (Fraction(chosen, comb(n, k)) for n, chosen in sorted(by_trials.items()))
    return sum(parts, Fraction(0)) / len(passed)

"""What a curtailed run shows in the place of a test: estimates so far, and chances of the plan.

Numbers only, and each claim whose chance is as good as certain. There is no p-value here: the
trials ended because of what they showed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import fsum, sqrt
from typing import Final

import msgspec

from ci_gate.decision.curtailment import Foresight, settled_at
from ci_gate.decision.evidence import contributions
from ci_gate.decision.metrics import by_side, metric_of, seeds_of
from ci_gate.model.policy import Policy
from ci_gate.model.verdict import MetricResult, PredictedMetric
from ci_gate.stats.counts import TaskCounts
from ci_gate.stats.intervals import difference_interval
from ci_gate.stats.passk import pass_hat_k
from ci_gate.stats.power_bound import detectable_drop
from ci_gate.stats.predicted_passk import predict_pass_hat_k

__all__ = ["ForetoldTask", "foretold_metrics", "foretold_tasks"]

_FEWEST_TRIALS: Final = 2


@dataclass(frozen=True, kw_only=True)
class ForetoldTask:
    """What is foretold of one task.

    Attributes
    ----------
    predictive : float
        Chance that the whole plan would claim that it regressed.
    regressed : bool
        That chance is as good as certain.
    contribution : float
        The task's part of the suite's difference in pass^1 so far, candidate - baseline.
    """

    predictive: float
    regressed: bool
    contribution: float


def foretold_tasks(seen: Foresight, policy: Policy) -> dict[str, ForetoldTask]:
    """Return what a look foretells of each compared task, by id."""
    certain = 1 - settled_at(policy)
    parts = contributions(_entered(seen, seen.look.so_far))
    rows = zip(seen.look.matching.compared, seen.prediction.tasks, parts, strict=True)
    return {
        task_id: ForetoldTask(predictive=chance, regressed=chance > certain, contribution=part)
        for task_id, chance, part in rows
    }


def foretold_metrics(seen: Foresight, policy: Policy, *, rounds: int) -> dict[str, MetricResult]:
    """Return each metric of the policy as it stands after some rounds.

    Parameters
    ----------
    seen : Foresight
    policy : Policy
    rounds : int
        That were run.

    Returns
    -------
    dict of str to MetricResult
        Without p-values. A candidate's pass^k for more trials than there are rounds is None, with
        ``predicted`` beside it, and has no difference; the baseline's own stands.
    """
    return {f"pass^{k}": _Metric(seen, policy, k, rounds).result() for k in policy.ks}


def _entered(seen: Foresight, counts: Sequence[TaskCounts]) -> list[TaskCounts]:
    """The trials that the test would read: where strata are seeds, those on shared seeds."""
    by_seed = seen.look.choice.strata == "task,seed"
    return [task.shared if by_seed else task for task in counts]


@dataclass(frozen=True)
class _Metric:
    seen: Foresight
    policy: Policy
    k: int
    rounds: int

    @cached_property
    def planned(self) -> list[TaskCounts]:
        return _entered(self.seen, self.seen.look.planned)

    @cached_property
    def included(self) -> list[int]:
        """The tasks that the whole plan has enough trials of."""
        return [i for i, task in enumerate(self.planned) if _deep(task, self.k)]

    @cached_property
    def now(self) -> list[TaskCounts]:
        """Those with enough trials already."""
        so_far = _entered(self.seen, self.seen.look.so_far)
        return [so_far[i] for i in self.included if _deep(so_far[i], self.k)]

    def result(self) -> MetricResult:
        shown = self._estimates() if self.now else self._baseline_alone()
        predictive = self.seen.prediction.suites[self.k] if self.included else None
        return msgspec.structs.replace(
            shown,
            predictive=predictive,
            predicted=None if self.now else self._predicted(),
            regressed=predictive is not None and predictive > 1 - settled_at(self.policy),
            detectable_drop=self._detectable_drop(),
        )

    def _estimates(self) -> MetricResult:
        interval = difference_interval(
            self.now,
            self.k,
            by_seed=self._by_seed(self.now),
            phi=self.seen.look.effect.correction,
        )
        assert interval is not None, "a task with k trials on both sides qualifies"
        return msgspec.structs.replace(
            metric_of(
                *by_side(self.now), self.k, by_seed=self._by_seed(self.now), excluded=self._excluded
            ),
            difference=interval.difference,
            interval=(interval.low, interval.high),
        )

    def _baseline_alone(self) -> MetricResult:
        tasks = [self.planned[i] for i in self.included]
        baseline, _ = by_side(tasks)
        alone = metric_of(
            baseline, [], self.k, by_seed=self._by_seed(tasks), excluded=self._excluded
        )
        return msgspec.structs.replace(alone, n_tasks=len(tasks))

    def _by_seed(self, tasks: Sequence[TaskCounts]) -> bool:
        strata = self.seen.look.choice.strata
        return strata == "task,seed" and all(seeds_of(task) >= self.k for task in tasks)

    @property
    def _excluded(self) -> tuple[str, ...]:
        """The tasks that the whole plan would leave out, or that lost too many trials to errors."""
        ids = self.seen.look.matching.compared
        so_far = _entered(self.seen, self.seen.look.so_far)
        kept = {i for i in self.included if not self.now or _deep(so_far[i], self.k)}
        return tuple(task_id for i, task_id in enumerate(ids) if i not in kept)

    def _predicted(self) -> PredictedMetric | None:
        tasks = [self.seen.look.so_far[i] for i in self.included]
        passed = [sum(task.candidate_passed) for task in tasks]
        judged = [sum(task.candidate_n) for task in tasks]
        # One trial a task says nothing of how unlike the tasks are, on which pass^k hangs.
        if max(judged, default=0) < _FEWEST_TRIALS:
            return None
        found = predict_pass_hat_k(passed, judged, self.k)
        return PredictedMetric(
            estimate=found.estimate,
            interval=(found.lower, found.upper),
            rounds=self.rounds,
            pass_hat_r=_pass_hat_r(passed, judged, self.rounds),
        )

    def _detectable_drop(self) -> float | None:
        """The plan's: what a pass on the chance to be red could have missed."""
        effect, choice = self.seen.look.effect, self.seen.look.choice
        drop = detectable_drop(
            [_unchanged(task, pooled=choice.strata == "task") for task in self.planned],
            self.k,
            level=self.policy.alpha,
            strata=choice.strata,
            ks=self.policy.ks,
            margin=self.policy.margin,
        )
        larger = None if drop is None else drop * sqrt(effect.correction or 1.0)
        return larger if larger is None or larger <= 1 else None


def _deep(task: TaskCounts, k: int) -> bool:
    return min(sum(task.baseline_n), sum(task.candidate_n)) >= k


def _pass_hat_r(passed: Sequence[int], judged: Sequence[int], r: int) -> float | None:
    whole = [pass_hat_k(c, n, r) for c, n in zip(passed, judged, strict=True) if n >= r]
    return fsum(whole) / len(whole) if whole else None


def _unchanged(task: TaskCounts, *, pooled: bool) -> TaskCounts:
    """The plan as it would end if the candidate passed as often as the baseline."""
    cells = [(task.baseline_n, task.baseline_passed, task.candidate_n)]
    n, c, plan = ((sum(x),) if pooled else x for x in cells[0])
    return TaskCounts(
        baseline_n=n, baseline_passed=c, candidate_n=plan, candidate_passed=_as_often(n, c, plan)
    )


def _as_often(n: Sequence[int], c: Sequence[int], plan: Sequence[int]) -> tuple[int, ...]:
    """Whole passes on each seed whose running total keeps to the expected one."""
    expected, given, passes = 0.0, 0, []
    for judged, passed, trials in zip(n, c, plan, strict=True):
        expected += trials * passed / judged if judged else 0.0
        passes.append(min(trials, max(0, int(expected + 0.5) - given)))
        given += passes[-1]
    return tuple(passes)

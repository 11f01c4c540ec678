"""What a comparison could have seen: the smallest detectable drop, and whether any at all.

Decides neither a verdict nor a plan; both readings rest on the counts alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum, sqrt
from statistics import NormalDist

from ci_gate.stats.counts import Strata, TaskCounts
from ci_gate.stats.exact_null import SuiteTails
from ci_gate.stats.passk import pass_hat_k
from ci_gate.stats.permutation import joint_test
from ci_gate.stats.suite_null import Group, TaskTails, group_tasks, suite_statistic
from ci_gate.stats.variance import pseudo_variance

FAMILY_SHARE = 0.4
"""Share of the gate's level at which one family alone turns it red. Measured for suites of 20 to
300 tasks, 8 and 32 trials against 8: .38 to .65, lowest with a deep baseline."""


def detectable_drop(
    tasks: Sequence[TaskCounts],
    k: int,
    *,
    level: float,
    power: float = 0.8,
    strata: Strata = "task",
) -> float | None:
    """Smallest drop of the suite's pass^k that this comparison sees with the given power.

    Parameters
    ----------
    tasks
        Counts of both sides; tasks with fewer than ``k`` trials on a side do not enter.
    k
        At least 1.
    level
        The gate's level, in (0, 1).
    power
        Wanted chance of detection, in (0, 1).
    strata
        As in :func:`.joint_test`.

    Returns
    -------
    float or None
        In (0, 1]; None where no task enters, or where even the fall of the baseline's whole rate
        would be too small to see.

    Raises
    ------
    ValueError
        If ``level`` or ``power`` is not in (0, 1).

    Notes
    -----
    Normal approximation ``(z_{share x level} + z_power) sqrt(V) / T`` with the test's own
    permutation variance V plus a pseudo-task, for a drop that all tasks share alike through this
    metric's family alone. Drops in few tasks are seen earlier, by the task family.
    """
    if not (0 < level < 1 and 0 < power < 1):
        raise ValueError(f"level and power are between 0 and 1, found {level} and {power}")
    groups = group_tasks(tasks, strata)
    suite = suite_statistic(groups, k)
    if not suite.included:
        return None
    entering = [g for g in groups if min(g.baseline_n, g.candidate_n) >= k]
    size = len(suite.included)
    pseudo = (
        fsum(len(g.members) * pseudo_variance(g.baseline_n, g.candidate_n, k) for g in entering)
        / size
    )
    variance = (suite.deviation(groups) * suite.unit) ** 2 + pseudo
    normal = NormalDist()
    quantiles = normal.inv_cdf(1 - FAMILY_SHARE * level) + normal.inv_cdf(power)
    drop = quantiles * sqrt(variance) / size
    return drop if 0 < drop <= _baseline_rate(entering, k) else None


def can_detect_total_failure(
    baseline_n: Sequence[Sequence[int]],
    baseline_passed: Sequence[Sequence[int]],
    planned_n: Sequence[Sequence[int]],
    *,
    strata: Strata,
    ks: Sequence[int] = (1, 8),
    margin: float = 0.0,
    level: float,
    seed: int,
) -> bool:
    """Whether a candidate that fails every planned trial would turn the gate red.

    Parameters
    ----------
    baseline_n, baseline_passed
        For each task the baseline's judged and passed trials on each seed.
    planned_n
        For each task the candidate's planned trials on each seed. Nothing of what the candidate did
        enters: the answer is known before it runs.
    strata, ks, margin, level, seed
        As in :func:`.joint_test`.

    Returns
    -------
    bool
        False without tasks.

    Raises
    ------
    ValueError
        If lengths differ, or an argument is outside its range.
    """
    tasks = [
        TaskCounts(
            baseline_n=tuple(n),
            baseline_passed=tuple(passed),
            candidate_n=tuple(plan),
            candidate_passed=(0,) * len(plan),
        )
        for n, passed, plan in zip(baseline_n, baseline_passed, planned_n, strict=True)
    ]
    if margin == 0 and _union_bound(tasks, strata, ks) <= level:
        return True
    test = joint_test(tasks, strata=strata, ks=ks, margin=margin, level=level, seed=seed)
    return test.p_value <= level


def _union_bound(tasks: Sequence[TaskCounts], strata: Strata, ks: Sequence[int]) -> float:
    """Bound on the gate's p-value by single families: total failure rarely needs more."""
    groups = group_tasks(tasks, strata)
    families = TaskTails.of(groups)
    smallest = min(
        (float(families.smallest[ranks[0]]) for ranks in families.ranks if len(ranks)), default=1.0
    )
    for k in ks:
        suite = suite_statistic(groups, k)
        tails = SuiteTails.of_suite(suite, groups)
        if suite.informative and tails is not None:
            smallest = min(smallest, tails.of(suite.observed))
    return min(1.0, smallest * (len(ks) + 1))


def _baseline_rate(groups: Sequence[Group], k: int) -> float:
    """The baseline's suite pass^k over the tasks that enter."""
    rates = [pass_hat_k(g.passed - x, g.baseline_n, k) for g in groups for x in g.observed]
    return fsum(rates) / len(rates)

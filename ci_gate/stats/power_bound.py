"""What a comparison could have seen: the smallest detectable drop, and whether any at all.

Decides neither a verdict nor a plan; both readings rest on the counts alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from statistics import NormalDist

from ci_gate.stats.counts import Strata, TaskCounts
from ci_gate.stats.erosion import Erosion
from ci_gate.stats.exact_null import SuiteTails
from ci_gate.stats.permutation import joint_test
from ci_gate.stats.suite_null import TaskTails, group_tasks, suite_statistic

_SHARE_ALONE = 0.6
"""Share of the level that is left to a suite metric beside the single tasks. Measured as power of
the whole gate, with one metric and with pass^1 and pass^2, which see the same."""
_DISTINCT = 4
"""Metrics whose k differ by this factor see different things: what one pays for the company of the
other is about what the other adds in chances to see the change. Measured likewise."""
_HALVINGS = 40
"""Of the chance to fail: to 1e-12."""


def detectable_drop(
    tasks: Sequence[TaskCounts],
    k: int,
    *,
    level: float,
    power: float = 0.8,
    strata: Strata = "task",
    ks: Sequence[int] = (1, 8),
    margin: float = 0.0,
) -> float | None:
    """Drop of the suite's pass^k that the gate sees with the given power, if it is spread evenly.

    Evenly: every trial that passes, of whatever task and seed, begins to fail with one and the same
    chance. The drops named for several ``k`` are those of one such change, seen by the whole gate.

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
    strata, ks, margin
        As in :func:`.joint_test`.

    Returns
    -------
    float or None
        In (0, 1]; None where no task enters or nothing passes, or where even a candidate that fails
        every trial would not be seen with that power.

    Raises
    ------
    ValueError
        If ``level`` or ``power`` is not in (0, 1).

    Notes
    -----
    With ``q`` the chance to fail, pass^k falls by its ``1 - (1 - q)^k``-th part, and ``q`` is the
    smallest at which one suite family alone has the power: at the whole level where pass^1 stands
    beside a pass^k of another kind, else at 0.6 of it. The power is a normal approximation with the
    variances under the change (:class:`.Erosion`). Simulated power of the whole gate at the drop
    named: .75 to .92 for 80 %, whether seeds decide all, something or nothing, for 20 and 50 tasks,
    for one metric and several, and for suites that pass throughout.
    """
    if not (0 < level < 1 and 0 < power < 1):
        raise ValueError(f"level and power are between 0 and 1, found {level} and {power}")
    families, chance = _seen_change(tuple(tasks), strata, tuple(sorted(ks)), level, power, margin)
    metric = families.get(k) or Erosion.of(group_tasks(tasks, strata), k)
    if metric is None or chance is None or metric.rate == 0:
        return None
    return metric.rate * (1 - (1 - chance) ** k)


@lru_cache(maxsize=4)  # the same change is asked about once for each metric
def _seen_change(
    tasks: tuple[TaskCounts, ...],
    strata: Strata,
    ks: tuple[int, ...],
    level: float,
    power: float,
    margin: float,
) -> tuple[Mapping[int, Erosion], float | None]:
    """Return the suite families by k, and the chance to fail that one of them sees."""
    groups = group_tasks(tasks, strata)
    families = {k: found for k in ks if (found := Erosion.of(groups, k))}
    chance = _chance_to_fail(tuple(families.values()), level=level, power=power, margin=margin)
    return families, chance


def _chance_to_fail(
    families: Sequence[Erosion], *, level: float, power: float, margin: float
) -> float | None:
    """Smallest chance to fail, of each passing trial, that some family sees with the power."""
    normal = NormalDist()
    z = normal.inv_cdf(1 - level * _share_of_level(families))
    wanted = normal.inv_cdf(power)

    def seen(chance: float) -> bool:
        return any(each.lead(1 - chance, z=z, margin=margin) >= wanted for each in families)

    if not seen(1.0):
        return None
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if seen(middle) else (middle, high)
    return high


def _share_of_level(families: Sequence[Erosion]) -> float:
    ks = [each.k for each in families if each.rate > 0]
    return 1.0 if ks and max(ks) >= _DISTINCT * min(ks) else _SHARE_ALONE


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

"""The gate's test: suite pass^k for every k and every single task, from one null distribution.

Under "this change altered no task", outcomes are exchangeable between the sides within a stratum.
Given all passes of a task, its candidate's passes are then hypergeometric, independently of the
other tasks. Everything claimed is read off that one distribution:

1. a **family** per ``k``: the suite's pass^k dropped (difference of the suite means);
2. the **task family**: some task dropped (smallest one-sided exact p-value of a task).

Each family's p-value is calibrated to its own null distribution. The gate's p-value is the chance
that the smallest of them is as small as the smallest observed: the joint min-p of Westfall and
Young. Every claim is adjusted over all claims, by the same distribution.

It knows no task ids, files or policies, and decides no verdict: it says how surprising the counts
are if nothing changed.

References
----------
Westfall and Young (1993), Resampling-based multiple testing. Pesarin and Salmaso (2010),
Permutation tests for complex data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import floor, isfinite, sqrt
from typing import get_args

import msgspec

from ci_gate.stats.adjustment import Claims
from ci_gate.stats.counts import Strata, TaskCounts
from ci_gate.stats.exact_null import ExactJoint, SuiteTails
from ci_gate.stats.lattice import SMALLEST_P
from ci_gate.stats.sampled_null import (
    Draws,
    SampledJoint,
    Score,
    Studentised,
    standard_error,
    studentised,
)
from ci_gate.stats.suite_null import (
    Group,
    SuiteStatistic,
    TaskTails,
    group_tasks,
    suite_statistic,
)

FIRST_DRAWS = 1 << 14
MOST_DRAWS = 1 << 22
_GROWTH = 4
_STANDARD_ERRORS = 3
_DIGITS = 12


class FamilyTest(msgspec.Struct, frozen=True, kw_only=True):
    """One suite metric, tested.

    Attributes
    ----------
    k
        Trials that all have to pass.
    included
        Positions of the tasks with at least ``k`` trials on both sides; only those enter.
    difference
        Candidate - baseline of the means over them, of the statistic tested; None if there is none.
    p_value
        One-sided: the candidate is worse. 1 if no task enters.
    p_adjusted
        Over all claims of all families.
    exact
        Whether ``p_value`` was added up in full; otherwise it was drawn.
    standard_error
        Of ``p_value``; 0 if exact.
    """

    k: int
    included: tuple[int, ...]
    difference: float | None
    p_value: float
    p_adjusted: float
    exact: bool
    standard_error: float


class JointTest(msgspec.Struct, frozen=True, kw_only=True):
    """All claims on one pair of sides.

    Attributes
    ----------
    families
        By ``k``, in rising order.
    task_p
        Exact one-sided p-value of each task, in the caller's order; 1 where a task cannot tell.
    task_p_adjusted
        The same over all claims of all families.
    task_family_p
        Chance under the null that the smallest task p-value is as small as observed.
    p_value
        Of the gate: the joint min-p. The smallest of all adjusted p-values.
    exact
        Whether ``p_value`` was added up in full.
    draws
        Draws behind it; 0 if exact.
    standard_error
        Of ``p_value``; 0 if exact.
    undecided
        Whether ``level`` still lay within 3 standard errors when the draws ran out.
    strata, level
        As given.
    """

    families: Mapping[int, FamilyTest]
    task_p: tuple[float, ...]
    task_p_adjusted: tuple[float, ...]
    task_family_p: float
    p_value: float
    exact: bool
    draws: int
    standard_error: float
    undecided: bool
    strata: Strata
    level: float


def joint_test(
    tasks: Sequence[TaskCounts],
    *,
    strata: Strata,
    ks: Sequence[int] = (1, 8),
    margin: float = 0.0,
    level: float,
    seed: int,
    phi: float | None = None,
    max_draws: int = MOST_DRAWS,
) -> JointTest:
    """Test whether the candidate is worse than the baseline, jointly over all claims.

    Parameters
    ----------
    tasks
        Counts of each task on both sides. The result does not depend on their order.
    strata
        "task": all trials of a task are exchangeable. "task,seed": only those on one seed, and only
        seeds that both sides judged enter.
    ks
        The suite metrics, pass^k; distinct, each at least 1.
    margin
        Drop of a suite metric that is accepted, in [0, 1). With a margin the suite statistics are
        studentised, and always drawn; single tasks are still tested against no drop at all.
    level
        The level that ``p_value`` will be compared with, in (0, 1): more draws are made while it is
        close.
    seed
        Of the draws. Equal counts and seeds give equal results, bit for bit.
    phi
        Observed over expected variance between the baseline's whole runs; above 1, the observed
        suite statistics are shrunk towards their null means by its square root.
    max_draws
        Bound on the draws, at least 1.

    Returns
    -------
    JointTest

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    A family is calibrated exactly where its lattice permits, and so is the joint distribution;
    elsewhere by draws with the +1 correction. How claims are adjusted: :mod:`.adjustment`.
    """
    _require_arguments(ks, margin, level, phi, max_draws)
    if strata not in get_args(Strata):
        raise ValueError(f"strata are one of {get_args(Strata)}, found {strata!r}")
    model = _Model.of(tasks, strata, ks)
    null = _exact_null(model, phi) if margin == 0 else None
    if null is None:
        null = _sampled_null(model, margin, phi, seed, level, max_draws)
    return _result(model, null, tasks, strata, level)


class _Model(msgspec.Struct, frozen=True):
    """The null distribution's parts, and every family's statistic."""

    groups: tuple[Group, ...]
    suites: tuple[SuiteStatistic, ...]
    tasks: TaskTails

    @classmethod
    def of(cls, tasks: Sequence[TaskCounts], strata: Strata, ks: Sequence[int]) -> _Model:
        groups = group_tasks(tasks, strata)
        suites = tuple(suite_statistic(groups, k) for k in sorted(ks))
        return cls(groups, suites, TaskTails.of(groups))

    @property
    def telling(self) -> list[SuiteStatistic]:
        """Suites that can come out in more than one way; the others have p-value 1."""
        return [suite for suite in self.suites if suite.informative]


class _Null(msgspec.Struct, frozen=True):
    """The joint null distribution, and where the observed suites lie in it.

    ``suites`` has the p-value of each telling suite by k, ``exact`` the k whose p-value is exact;
    ``draws`` is 0 where the joint distribution itself is exact.
    """

    joint: ExactJoint | SampledJoint
    suites: Mapping[int, float]
    exact: frozenset[int]
    draws: int

    def claims(self, model: _Model) -> Claims:
        return Claims.of(model.groups, model.tasks, self.suites)


def _exact_null(model: _Model, phi: float | None) -> _Null | None:
    """Add the joint distribution up in full, where its lattice permits."""
    joint = ExactJoint.of(model.groups, model.telling, model.tasks)
    if joint is None:
        return None
    p_values = {
        suite.k: tails.of(_shrunk_sum(suite, model.groups, phi))
        for suite, tails in zip(model.telling, joint.tails, strict=True)
    }
    return _Null(joint, p_values, exact=frozenset(p_values), draws=0)


def _sampled_null(
    model: _Model, margin: float, phi: float | None, seed: int, level: float, max_draws: int
) -> _Null:
    """Draw until the level is clear of the gate's p-value, or the draws run out."""
    scores = [_score(suite, model.groups, margin, phi) for suite in model.telling]
    exact = frozenset(score.suite.k for score in scores if score.tails is not None)
    draws = Draws(model.groups, model.tasks, scores, seed)
    draws.extend(min(FIRST_DRAWS, max_draws))
    while True:
        joint = SampledJoint.of(draws, scores)
        p_values = dict(zip((s.suite.k for s in scores), joint.p_values, strict=True))
        null = _Null(joint, p_values, exact, draws.count)
        close = _is_close(null.claims(model).gate_p(joint), level, draws.count)
        if not close or draws.count >= max_draws:
            return null
        draws.extend(min(draws.count * _GROWTH, max_draws))


def _score(
    suite: SuiteStatistic, groups: Sequence[Group], margin: float, phi: float | None
) -> Score:
    """Choose the statistic: against no drop at all the sum itself, else studentised."""
    if margin == 0:
        tails = SuiteTails.of_suite(suite, groups)
        return Score(suite, tails, None, _shrunk_sum(suite, groups, phi))
    student = Studentised.of(suite, groups)
    return Score(suite, None, student, _shrunk_student(suite, student, groups, margin, phi))


def _shrunk_sum(suite: SuiteStatistic, groups: Sequence[Group], phi: float | None) -> int:
    """The observed statistic, drawn towards its null mean where whole runs scatter too much."""
    if phi is None or phi <= 1:
        return suite.observed
    mean = suite.mean(groups)
    shrunk = mean + (suite.observed - mean) / sqrt(phi)
    return floor(shrunk + 1e-9 * max(1.0, abs(shrunk)))


def _shrunk_student(
    suite: SuiteStatistic,
    student: Studentised,
    groups: Sequence[Group],
    margin: float,
    phi: float | None,
) -> float:
    """The same for a studentised statistic, whose null mean is 0."""
    variance = student.observed(groups)
    value = float(studentised(suite, suite.observed, variance, margin))
    return value if phi is None or phi <= 1 else value / sqrt(phi)


def _is_close(p_value: float, level: float, draws: int) -> bool:
    return abs(p_value - level) < _STANDARD_ERRORS * standard_error(p_value, draws)


def _result(
    model: _Model, null: _Null, tasks: Sequence[TaskCounts], strata: Strata, level: float
) -> JointTest:
    claims = null.claims(model)
    adjusted = claims.adjusted(null.joint)
    gate_p = min(adjusted.values(), default=1.0)
    task_p, task_p_adjusted = [1.0] * len(tasks), [1.0] * len(tasks)
    for group, own in zip(model.groups, claims.tasks, strict=True):
        for index, x, q in zip(group.members, group.observed, own.tolist(), strict=True):
            task_p[index] = _rounded(group.null.lower_tails[x - group.first])
            task_p_adjusted[index] = _rounded(adjusted[q])
    return JointTest(
        families={s.k: _family(s, null, adjusted) for s in model.suites},
        task_p=tuple(task_p),
        task_p_adjusted=tuple(task_p_adjusted),
        task_family_p=_rounded(claims.task_family_p),
        p_value=_rounded(gate_p),
        exact=null.draws == 0,
        draws=null.draws,
        standard_error=standard_error(gate_p, null.draws),
        undecided=null.draws > 0 and _is_close(gate_p, level, null.draws),
        strata=strata,
        level=level,
    )


def _family(suite: SuiteStatistic, null: _Null, adjusted: Mapping[float, float]) -> FamilyTest:
    p_value = null.suites.get(suite.k)
    exact = p_value is None or suite.k in null.exact
    return FamilyTest(
        k=suite.k,
        included=suite.included,
        difference=suite.difference,
        p_value=1.0 if p_value is None else _rounded(p_value),
        p_adjusted=1.0 if p_value is None else _rounded(adjusted[p_value]),
        exact=exact,
        standard_error=0.0 if p_value is None or exact else standard_error(p_value, null.draws),
    )


def _rounded(p_value: float) -> float:
    """12 digits: what is left of the last bits' noise, so that 1/20 is 0.05 and not above it."""
    return float(f"{min(1.0, max(p_value, SMALLEST_P)):.{_DIGITS}g}")


def _require_arguments(
    ks: Sequence[int], margin: float, level: float, phi: float | None, max_draws: int
) -> None:
    if len(set(ks)) != len(ks) or any(k < 1 for k in ks):
        raise ValueError(f"each k is at least 1 and given once, found {tuple(ks)}")
    if not 0 <= margin < 1:
        raise ValueError(f"a margin is in [0, 1), found {margin}")
    if not 0 < level < 1:
        raise ValueError(f"a level is between 0 and 1, found {level}")
    if phi is not None and not (isfinite(phi) and phi >= 0):
        raise ValueError(f"phi is a finite ratio of variances, found {phi}")
    if max_draws < 1:
        raise ValueError(f"at least one draw is needed, found max_draws = {max_draws}")

"""One test over all compared tasks, and what follows from it for each of them.

Turns paired outcomes into the counts that ``ci_gate.stats`` reads and its answers back into task
ids. It decides no verdict.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

import msgspec

from ci_gate.decision.guards import limits_of
from ci_gate.decision.pairing import PairedTask
from ci_gate.model.policy import Policy
from ci_gate.model.verdict import Method
from ci_gate.stats.counts import Strata, TaskCounts
from ci_gate.stats.permutation import JointTest, joint_test
from ci_gate.stats.power_bound import can_detect_total_failure
from ci_gate.stats.run_effect import RunEffect, run_effect
from ci_gate.stats.seed_effect import StrataChoice, choose_strata
from ci_gate.stats.suite_null import group_tasks

__all__ = [
    "DRAWS_SEED",
    "Evidence",
    "TaskEvidence",
    "choose",
    "contributions",
    "method_of",
    "sees_total_failure",
    "weigh",
]

DRAWS_SEED: Final = 0x20261030
"""Of the Monte Carlo draws. Fixed: nobody can draw again until the verdict is another one."""


class TaskEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """What the test says of one task.

    Attributes
    ----------
    p_value, p_adjusted : float
        One-sided, the candidate is worse; adjusted over all claims of all families.
    regressed : bool
        ``p_adjusted`` is at most the level.
    improved : bool
        The mirrored p-value, adjusted by Holm over the tasks, is at most alpha.
    contribution : float
        The task's part of the suite's difference in pass^1, candidate - baseline; the parts of all
        tasks add up to it.
    """

    p_value: float
    p_adjusted: float
    regressed: bool
    improved: bool
    contribution: float


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """The joint test with the counts that entered it.

    Attributes
    ----------
    tasks : tuple of str
        Position ``i`` of every other sequence belongs to task ``i``.
    choice : StrataChoice
    effect : RunEffect
        Of the baseline's runs; its correction has gone into ``joint``.
    counts : tuple of TaskCounts
        The trials that enter: where strata are seeds, those on seeds that both sides judged.
    joint : JointTest
    by_task : mapping of str to TaskEvidence
    """

    tasks: tuple[str, ...]
    choice: StrataChoice
    effect: RunEffect
    counts: tuple[TaskCounts, ...]
    joint: JointTest
    by_task: Mapping[str, TaskEvidence]


def weigh(paired: Sequence[PairedTask], policy: Policy, *, level: float | None = None) -> Evidence:
    """Test whether the candidate is worse on these tasks.

    Parameters
    ----------
    paired : sequence of PairedTask
        At least one.
    policy : Policy
        For its metrics, alpha, margin and pairing.
    level : float or None
        What the gate's p-value is held against; None is the policy's alpha.
    """
    choice = choose(paired, policy)
    effect = run_effect([task.baseline for task in paired], strata=choice.strata)
    by_seed = [task.by_seed for task in paired]
    entered = [c.shared for c in by_seed] if choice.strata == "task,seed" else by_seed
    joint = joint_test(
        entered,
        strata=choice.strata,
        ks=policy.ks,
        margin=policy.margin,
        level=policy.alpha if level is None else level,
        seed=DRAWS_SEED,
        phi=effect.correction,
    )
    tasks = tuple(task.task for task in paired)
    return Evidence(
        tasks=tasks,
        choice=choice,
        effect=effect,
        counts=tuple(entered),
        joint=joint,
        by_task=dict(zip(tasks, _task_evidence(entered, choice, joint, policy), strict=True)),
    )


def choose(paired: Sequence[PairedTask], policy: Policy) -> StrataChoice:
    """Decide within what the outcomes of these tasks are exchanged.

    Parameters
    ----------
    paired : sequence of PairedTask
        At least one.
    policy : Policy
        For its pairing.
    """
    # A task whose seeds are its own on each side says nothing about the others' columns.
    sharing = [task for task in paired if task.shared]
    return choose_strata(
        [task.baseline for task in sharing or paired],
        [task.candidate for task in sharing or paired],
        seeded=bool(sharing),
        pairing=policy.pairing,
    )


def _task_evidence(
    counts: Sequence[TaskCounts], choice: StrataChoice, joint: JointTest, policy: Policy
) -> list[TaskEvidence]:
    improved = _improved(counts, choice, policy.alpha)
    return [
        TaskEvidence(
            p_value=p_value,
            p_adjusted=p_adjusted,
            regressed=p_adjusted <= joint.level,
            improved=position in improved,
            contribution=contribution,
        )
        for position, (p_value, p_adjusted, contribution) in enumerate(
            zip(joint.task_p, joint.task_p_adjusted, contributions(counts), strict=True)
        )
    ]


def _improved(counts: Sequence[TaskCounts], choice: StrataChoice, alpha: float) -> set[int]:
    p_values = _rise_p_values(counts, choice)
    found: set[int] = set()
    for rank, position in enumerate(sorted(range(len(counts)), key=p_values.__getitem__)):
        if p_values[position] * (len(counts) - rank) > alpha:
            break
        found.add(position)
    return found


def _rise_p_values(counts: Sequence[TaskCounts], choice: StrataChoice) -> list[float]:
    """Exact one-sided p-values of the mirrored question: is the baseline worse."""
    mirrored = [
        TaskCounts(
            baseline_n=task.candidate_n,
            baseline_passed=task.candidate_passed,
            candidate_n=task.baseline_n,
            candidate_passed=task.baseline_passed,
        )
        for task in counts
    ]
    p_values = [1.0] * len(counts)
    for group in group_tasks(mirrored, choice.strata):
        for position, passed in zip(group.members, group.observed, strict=True):
            p_values[position] = group.null.lower_tails[passed - group.first]
    return p_values


def contributions(counts: Sequence[TaskCounts]) -> list[float]:
    """Return each task's part of the suite's difference in pass^1; the parts add up to it."""
    drops = [_rate_difference(task) for task in counts]
    judged = sum(drop is not None for drop in drops)
    return [drop / judged if drop is not None else 0.0 for drop in drops]


def _rate_difference(task: TaskCounts) -> float | None:
    baseline, candidate = sum(task.baseline_n), sum(task.candidate_n)
    if not baseline or not candidate:
        return None
    return sum(task.candidate_passed) / candidate - sum(task.baseline_passed) / baseline


def sees_total_failure(
    planned: Sequence[PairedTask],
    policy: Policy,
    *,
    strata: Strata,
    phi: float | None,
    level: float,
) -> bool:
    """Return whether a candidate that fails every planned trial would have been seen.

    Parameters
    ----------
    planned : sequence of PairedTask
        The baseline's trials beside the candidate's planned ones.
    policy : Policy
    strata : {"task", "task,seed"}
    phi : float or None
        What the baseline's run effect is corrected by.
    level : float
        What the gate's p-value is held against.
    """
    counts = [task.by_seed for task in planned]
    if phi is not None:
        return _total_failure_p(counts, policy, strata, phi) <= level
    return can_detect_total_failure(
        [task.baseline_n for task in counts],
        [task.baseline_passed for task in counts],
        [task.candidate_n for task in counts],
        strata=strata,
        ks=policy.ks,
        margin=policy.margin,
        level=level,
        seed=DRAWS_SEED,
    )


def _total_failure_p(
    planned: Sequence[TaskCounts], policy: Policy, strata: Strata, phi: float
) -> float:
    """The gate's p-value, corrected, if every planned trial failed."""
    return joint_test(
        planned,
        strata=strata,
        ks=policy.ks,
        margin=policy.margin,
        level=policy.alpha,
        seed=DRAWS_SEED,
        phi=phi,
    ).p_value


def _judgements(policy: Policy, *, anchored: bool) -> int:
    """How many judgements have an alpha of their own: the tests, each floor, each guard's limit."""
    return 1 + anchored + len(policy.floors) + limits_of(policy)


class Exchange(Protocol):
    """What decides within what outcomes are exchanged: evidence, or a look before there is any."""

    @property
    def choice(self) -> StrataChoice: ...

    @property
    def effect(self) -> RunEffect: ...


def method_of(found: Exchange | None, policy: Policy, *, anchored: bool) -> Method:
    """Return how the test was made, and how often all of the gate cries wolf at most.

    A strict floor compares an estimate, which has no level: with one there is no such bound.
    """
    strict = policy.strict_floors and bool(policy.floors)
    bound = None if strict else min(1.0, policy.alpha * _judgements(policy, anchored=anchored))
    if found is None:
        return Method(false_alarm_bound=bound)
    effect, choice = found.effect, found.choice
    joint = found.joint if isinstance(found, Evidence) else None
    return Method(
        strata=choice.strata,
        # Between seeds that have nothing to do with each other agreement means nothing.
        z_seed=None if choice.rule == "no seeds" else choice.z,
        phi=effect.phi,
        phi_p_value=effect.p_value if effect.runs > 1 else None,
        phi_alpha=effect.implied_alpha(policy.alpha) if effect.runs > 1 else None,
        phi_corrected=effect.correction is not None,
        exact=joint.exact if joint else None,
        draws=joint.draws if joint else None,
        rule=choice.rule,
        false_alarm_bound=bound,
    )

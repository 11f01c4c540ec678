"""Whether a run near the border goes on with more repeats, and the level of each of its looks.

Knows the two sides and the policy; how a level allows for several looks is the business of
``ci_gate.stats``, and how repeats are run that of the engine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import fsum
from typing import Final

from ci_gate.decision.accounting import (
    counts_of,
    errors_in_effect,
    first_repeats,
    scores_of,
    stopped_early,
)
from ci_gate.decision.differences import Differences
from ci_gate.decision.evidence import Evidence, weigh
from ci_gate.decision.lookahead import is_trustworthy, matching_of_plan
from ci_gate.decision.metrics import tested_metrics
from ci_gate.decision.pairing import pair_task, seeds_shared
from ci_gate.decision.wording import counted
from ci_gate.model.copies import without_copies
from ci_gate.model.policy import Policy
from ci_gate.model.run import NOT_RUN, Plan, Side, StopReason
from ci_gate.model.verdict import MetricResult
from ci_gate.stats.extension import FUTILITY, gate_level

__all__ = [
    "ExtensibleRun",
    "ExtensionLook",
    "examine_extension",
    "is_inferior",
    "level_of",
    "look_for_extension",
    "why_not_extended",
]

_MOST_LOOKS: Final = 3


@dataclass(frozen=True, kw_only=True)
class ExtensionLook:
    """What a look at the repeats so far says.

    Attributes
    ----------
    p_value : float
        The gate's, over the repeats so far; 1 where nothing can be compared or trusted.
    level : float
        Of every look.
    repeats : int or None
        To go on to; None: the run ends here.
    """

    p_value: float
    level: float
    repeats: int | None


def why_not_extended(baseline: Side | None, candidate: Side, policy: Policy) -> str | None:
    """Return why a run that is to be extended near the border is not, None where it may be.

    Parameters
    ----------
    baseline : Side or None
    candidate : Side
        With its plan; of its outcomes nothing is read.
    policy : Policy

    Returns
    -------
    str or None
        A sentence.
    """
    return next(_obstacles(baseline, candidate, policy), None)


def _obstacles(baseline: Side | None, candidate: Side, policy: Policy) -> Iterator[str]:
    if policy.on_borderline != "extend":
        yield "on_borderline = stop asks for no extension."
    if policy.deterministic:
        yield "The agent is deterministic: every further repeat is a copy."
    if candidate.shard is not None:
        yield "A shard sees only its own tasks, and the verdict is on all of them."
    if candidate.plan is None or len(_looks(candidate.plan)) == 1:
        yield "max_repeats allows no further repeat."
    if baseline is None:
        yield "There is no baseline that the outcomes could be held against."
    elif Differences.between(baseline, candidate):
        yield "The sides are made under different errors, faults or judges, and are not compared."


def _looks(plan: Plan) -> tuple[int, ...]:
    """The repeats at which a run is looked at: each look has twice the trials of the one before."""
    looks = [plan.repeats]
    while looks[-1] < plan.max_repeats and len(looks) < _MOST_LOOKS:
        looks.append(min(2 * looks[-1], plan.max_repeats))
    return tuple(looks)


def level_of(baseline: Side | None, candidate: Side, policy: Policy) -> float:
    """Return what the gate's p-value is held against.

    Parameters
    ----------
    baseline : Side or None
    candidate : Side
    policy : Policy

    Returns
    -------
    float
        The policy's alpha, or, of a run that may be extended, the level of each of its looks,
        whether or not it was.

    Notes
    -----
    The looks are those at 1, 2 and 4 times the plan, as far as its ``max_repeats`` allow. What a
    look knows depends on the baseline's depth as well, which is taken as judged trials a task. A
    run that must show non-inferiority goes on where a plain one ends, so that its level allows for
    every look being taken.
    """
    plan = candidate.plan
    if baseline is None or plan is None or not plan.extend:
        return policy.alpha
    counted = without_copies(baseline)
    judged = [counts_of(task, counted.errors).trials for task in counted.tasks.values()]
    depth = max(1.0, fsum(judged) / len(judged)) if judged else 1.0
    looks = [plan.trials * repeats for repeats in _looks(plan)]
    return gate_level(looks, depth, policy.alpha, binding=policy.require != "non-inferiority")


def look_for_extension(baseline: Side, candidate: Side, policy: Policy) -> ExtensionLook:
    """Decide whether a run whose planned repeats are done goes on with further ones.

    Parameters
    ----------
    baseline : Side
    candidate : Side
        Every trial so far, in whole repeats, with its plan; whether and how it ended is not read.
    policy : Policy

    Returns
    -------
    ExtensionLook
        The same for the same trials, whatever the order of the tasks.

    Notes
    -----
    A run goes on while its p-value lies above the level and below 0.3, to twice the repeats; one
    that must show non-inferiority also while that is unshown. It ends where the errors let no
    verdict be passed.
    """
    level = level_of(baseline, candidate, policy)
    evidence = _evidence(baseline, candidate, policy, level)
    if evidence is None:
        return ExtensionLook(p_value=1.0, level=level, repeats=None)
    p_value = evidence.joint.p_value
    near = level < p_value < FUTILITY
    unshown = p_value > level and is_inferior(tested_metrics(evidence, policy), policy)
    further = _next_look(candidate) if near or unshown else None
    return ExtensionLook(p_value=p_value, level=level, repeats=further)


def _evidence(baseline: Side, candidate: Side, policy: Policy, level: float) -> Evidence | None:
    errors = errors_in_effect(baseline, candidate, policy)
    candidate = without_copies(candidate, baseline)
    baseline = without_copies(baseline)
    matching = matching_of_plan(baseline, candidate, policy, errors)
    comparable = matching.compared and not Differences.between(baseline, candidate)
    if not comparable or not is_trustworthy(candidate, matching, policy, errors):
        return None
    paired = [
        pair_task(
            task_id,
            scores_of(baseline.tasks[task_id], errors),
            scores_of(candidate.tasks[task_id], errors),
            seeds_shared(baseline, candidate, task_id),
        )
        for task_id in matching.compared
    ]
    return weigh(paired, policy, level=level)


def is_inferior(metrics: Mapping[str, MetricResult], policy: Policy) -> bool:
    """Return whether some metric could have dropped by the margin or more, where that matters.

    The end of an interval is a rounded number and is held against the nearest binary one to the
    margin; a pass needs it above, and being equal shows nothing.
    """
    if policy.require != "non-inferiority":
        return False
    intervals = [metric.interval for metric in metrics.values()]
    return any(interval is None or interval[0] <= -policy.margin for interval in intervals)


def _next_look(candidate: Side) -> int | None:
    plan, done = candidate.plan, _repeats_run(candidate)
    if plan is None or not plan.extend:
        return None
    return next((repeats for repeats in _looks(plan) if repeats > done), None)


def _repeats_run(side: Side) -> int:
    return max(
        (
            at + 1
            for task in side.tasks.values()
            for at, row in enumerate(task.outcomes)
            if row.strip(NOT_RUN)
        ),
        default=0,
    )


@dataclass(frozen=True, kw_only=True)
class ExtensibleRun:
    """A run that could be extended, held against its own looks.

    Attributes
    ----------
    repeats, asked_for : int
        Runs over the seeds that were made, and that were planned.
    refusal : str or None
        Why the repeats that were made are not those that the looks ask for, where a verdict cannot
        rest on them.
    remark : str or None
        The same where the verdict is only less sharp, never wrong more often.
    """

    repeats: int
    asked_for: int
    refusal: str | None = None
    remark: str | None = None

    @property
    def extended(self) -> bool:
        """Whether repeats were added."""
        return self.repeats > self.asked_for


def examine_extension(
    baseline: Side | None, candidate: Side, policy: Policy
) -> ExtensibleRun | None:
    """Take the looks of a run again.

    Parameters
    ----------
    baseline, candidate : Side
    policy : Policy

    Returns
    -------
    ExtensibleRun or None
        None where the run could not be extended.

    Notes
    -----
    The level allows for every look, so that a run which ended early is called red too rarely, if
    anything: that is a remark. A run that went on past a look which was to end it is refused: what
    the look said was its verdict, and further trials are no appeal. So is one with repeats between
    the looks, which the level does not allow for.
    """
    plan, done = candidate.plan, _repeats_run(candidate)
    if plan is None or not plan.extend:
        return _not_to_be(candidate, done)
    run = ExtensibleRun(repeats=done, asked_for=plan.repeats)
    if baseline is None or done < plan.repeats:
        return run
    refusal = _refusal(baseline, candidate, policy, plan, done)
    remark = None if refusal else _remark(baseline, candidate, policy)
    return replace(run, refusal=refusal, remark=remark)


def _not_to_be(candidate: Side, done: int) -> ExtensibleRun | None:
    """A run that says it was extended although nothing let it."""
    if candidate.stop is None or candidate.stop.reason is not StopReason.EXTENDED:
        return None
    refusal = "its plan lets no run be extended"
    return ExtensibleRun(repeats=done, asked_for=1, refusal=refusal)


def _refusal(baseline: Side, candidate: Side, policy: Policy, plan: Plan, done: int) -> str | None:
    looks = _looks(plan)
    if done not in looks:
        planned = ", ".join(map(str, looks))
        return f"it has {counted(done, 'repeat')}, and is looked at after {planned}"
    for at in looks[: looks.index(done)]:
        look = look_for_extension(baseline, first_repeats(candidate, at), policy)
        if look.repeats is None:
            how = "red" if look.p_value <= look.level else "without a drop near the border"
            return f"it was to end after {counted(at, 'repeat')}, {how}"
    return None


def _remark(baseline: Side, candidate: Side, policy: Policy) -> str | None:
    further = look_for_extension(baseline, candidate, policy).repeats
    if further is None or stopped_early(candidate):
        return None
    return (
        f"The run lies near the border, and was to go on to {counted(further, 'repeat')}: what "
        "those would have shown is not known."
    )

"""Whether a run may stop before its plan ends, and whether it does after a round.

Knows the two sides so far and the policy; how likely the whole plan is to be red comes from
``ci_gate.stats``, and how rounds are run is the business of the engine. Whatever else would make a
verdict red (a removed task, a floor, an edited baseline) does not depend on trials to come, and
stops nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ci_gate.decision.accounting import errors_in_effect
from ci_gate.decision.differences import Differences
from ci_gate.decision.lookahead import (
    Lookahead,
    is_trustworthy,
    matching_of_plan,
    rounds_done,
    rounds_planned,
)
from ci_gate.model.copies import copies_by_task
from ci_gate.model.policy import Policy
from ci_gate.model.run import Side, StopReason
from ci_gate.stats.prediction import Prediction

__all__ = [
    "Foresight",
    "RoundDecision",
    "decide_round",
    "foresee_round",
    "reason_of",
    "settled_at",
    "why_not_curtailed",
]

_SETTLED: Final = 0.05
"""A chance below it, or as near to 1, is near enough to the verdict of the whole plan."""
_STRICTLY_SETTLED: Final = 0.01
_FEWEST_ROUNDS: Final = 2
"""From two trials a task on it can be told how unlike the tasks are, and pass^k be foretold."""


@dataclass(frozen=True, kw_only=True)
class RoundDecision:
    """What is decided after a round.

    Attributes
    ----------
    predictive : float or None
        Chance that the whole plan would be red by its test; None where nothing can be foretold.
    reason : StopReason or None
        ``CURTAILED_PASS`` or ``CURTAILED_REGRESSED``; None: the run goes on.
    """

    predictive: float | None
    reason: StopReason | None


@dataclass(frozen=True, kw_only=True)
class Foresight:
    """A look, and the chances that it gives to the claims of the whole plan.

    Attributes
    ----------
    look : Lookahead
    prediction : Prediction
        Its tasks in the order of ``look.matching.compared``.
    """

    look: Lookahead
    prediction: Prediction


def settled_at(policy: Policy) -> float:
    """Return how small the chance of the other verdict must be for a run to stop."""
    return _STRICTLY_SETTLED if policy.curtail == "strict" else _SETTLED


def why_not_curtailed(baseline: Side | None, candidate: Side, policy: Policy) -> str | None:
    """Return why the whole plan of a run is run, None where it may be curtailed.

    Parameters
    ----------
    baseline : Side or None
    candidate : Side
        With its plan; of its tasks at most ids, digests and copies are read.
    policy : Policy

    Returns
    -------
    str or None
        A sentence.
    """
    return next(_obstacles(baseline, candidate, policy), None)


def _obstacles(baseline: Side | None, candidate: Side, policy: Policy) -> Iterator[str]:
    yield from _obstacles_of_policy(policy)
    plan = candidate.plan
    if plan is None:
        yield "The run has no plan, so nothing says how much of it is left."
    elif plan.repeats > 1:
        yield "The run is made for a baseline, which is as deep as it was planned."
    if candidate.shard is not None:
        yield "A shard sees only its own tasks, and the verdict is on all of them."
    if baseline is None:
        yield "There is no baseline that the outcomes could be held against."
    else:
        yield from _obstacles_between(baseline, candidate)


def _obstacles_of_policy(policy: Policy) -> Iterator[str]:
    deep = [metric for metric in sorted(policy.floors) if metric != "pass^1"]
    if policy.curtail is False:
        yield "curtail = false asks for the whole plan."
    if policy.deterministic:
        yield "The agent is deterministic: every trial is judged by itself."
    if policy.require == "non-inferiority":
        yield "Non-inferiority is shown by an interval, which the whole plan makes as narrow."
    if policy.on_borderline == "extend":
        yield "on_borderline = extend has a rule of its own for when a run ends."
    if policy.margin:
        yield "With a margin the chance to be red is not foretold."
    if deep:
        yield f"The floor under {' and '.join(deep)} needs every trial of the plan."


def _obstacles_between(baseline: Side, candidate: Side) -> Iterator[str]:
    if Differences.between(baseline, candidate):
        yield "The sides are made under different errors, faults or judges, and are not compared."
    common = baseline.tasks.keys() & candidate.tasks.keys()
    if any(_edited(baseline, candidate, task_id) for task_id in common):
        yield "Tasks were edited since the baseline was made, which no number of trials mends."
    if _has_copies(baseline, candidate):
        yield "Trials on a side are copies, and only the whole plan says of which ones."


def _has_copies(baseline: Side, candidate: Side) -> bool:
    return bool(copies_by_task(baseline) or copies_by_task(candidate, baseline))


def _edited(baseline: Side, candidate: Side, task_id: str) -> bool:
    digests = baseline.tasks[task_id].digest, candidate.tasks[task_id].digest
    return None not in digests and digests[0] != digests[1]


def decide_round(baseline: Side, candidate: Side, policy: Policy) -> RoundDecision:
    """Decide after a round whether a run goes on.

    Parameters
    ----------
    baseline : Side
    candidate : Side
        Every trial so far, in whole rounds, with its plan; whether and how it ended is not read.
    policy : Policy

    Returns
    -------
    RoundDecision
        The same for the same trials, whatever the order of the tasks. No stop where nothing is left
        to run, and none before the errors allow one: while too many trials errored or failed by a
        grader, a world was not in its known state, or a task has no judged trial.

    Notes
    -----
    Not before two rounds are done: one trial a task says nothing of how its trials scatter. A run
    stops where the chance to be red, over all futures of the plan, lies below 0.05 or above
    0.95; with ``curtail = "strict"`` below 0.01 or above 0.99 of a sceptic's average. The draws
    behind it have a fixed seed: nobody can draw again until a run stops.
    """
    seen = foresee_round(baseline, candidate, policy)
    if seen is None:
        return RoundDecision(predictive=None, reason=None)
    return RoundDecision(predictive=seen.prediction.red, reason=reason_of(seen, candidate, policy))


def foresee_round(baseline: Side, candidate: Side, policy: Policy) -> Foresight | None:
    """Return what a round foretells; None where the trials so far let nothing be said.

    So where some of them are copies: which, and how many trials that leaves, all of them say.

    Parameters
    ----------
    baseline, candidate, policy
        As in :func:`decide_round`.
    """
    errors = errors_in_effect(baseline, candidate, policy)
    matching = matching_of_plan(baseline, candidate, policy, errors)
    trusted = is_trustworthy(candidate, matching, policy, errors)
    if not matching.compared or not trusted or _has_copies(baseline, candidate):
        return None
    look = Lookahead.of(baseline, candidate, policy)
    return Foresight(
        look=look, prediction=look.predict(policy, sceptical=policy.curtail == "strict")
    )


def reason_of(seen: Foresight, candidate: Side, policy: Policy) -> StopReason | None:
    """Return as what a run stops for what it foretells; None: it goes on, or is at its end."""
    done = rounds_done(candidate) or 0
    if not _FEWEST_ROUNDS <= done < rounds_planned(candidate):
        return None
    settled = settled_at(policy)
    if seen.prediction.red < settled:
        return StopReason.CURTAILED_PASS
    return StopReason.CURTAILED_REGRESSED if seen.prediction.red > 1 - settled else None

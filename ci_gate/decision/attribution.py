"""Was it the change, or the model? What a recheck asks for, and what its fresh trials say.

Decides which tasks are run again, how often, and to what a regression is put down. It sees sides
alone: where the base is checked out and who runs it is the business of ``gate.recheck``.

Notes
-----
The trials that made a verdict red are never used again: they were looked at because they were bad,
and would be so once more (the winner's curse). Both tests are one-sided at alpha, over the
rechecked tasks alone. Between base and candidate every trial is fresh, so that an unchanged agent
is called a ``change`` with a chance of at most alpha. The stored baseline is not fresh: a red
verdict makes it likely that it had been lucky, so that ``noise`` is called ``environment`` more
often than alpha says, the more so the fewer runs the baseline has. Neither is a pass.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from ci_gate.decision.accounting import (
    contaminated_tasks,
    counts_of,
    errors_in_effect,
    grader_errors,
    scores_of,
    totals_of,
)
from ci_gate.decision.comparison import Comparison
from ci_gate.decision.copied import copied_between
from ci_gate.decision.evidence import weigh
from ci_gate.decision.pairing import pair_task, seeds_shared
from ci_gate.decision.wording import counted, named
from ci_gate.model.copies import without_copies
from ci_gate.model.policy import Policy
from ci_gate.model.run import ErrorPolicy, Side, StopReason
from ci_gate.model.verdict import (
    Attribution,
    Claim,
    Decision,
    ReasonCode,
    Recheck,
    RecheckTask,
    RecheckTest,
    TaskResult,
    Verdict,
)

__all__ = ["RecheckPlan", "RecheckSides", "attribute", "cleared", "plan_recheck", "repeats_for"]

_FEWEST_TASKS: Final = 5
_FEWEST_TRIALS: Final = 16
_BY_TEST: Final = frozenset({ReasonCode.TASK_REGRESSED, ReasonCode.SUITE_REGRESSED})
_RED_WITH_COPIES: Final = (
    "the candidate is worse than the base only if the trials count that it calls copies of earlier "
    "answers: turn off their cache"
)
_TESTED: Final = frozenset({Claim.REGRESSED, Claim.SUSPECT, Claim.UNCHANGED, Claim.IMPROVED})


@dataclass(frozen=True, kw_only=True)
class RecheckPlan:
    """What is run again.

    Attributes
    ----------
    tasks : tuple of str
        Ids, sorted; at least one.
    whole_suite : bool
        A suite metric had dropped, so that every compared task is among them.
    """

    tasks: tuple[str, ...]
    whole_suite: bool


@dataclass(frozen=True, kw_only=True)
class RecheckSides:
    """The stored baseline, the run that was red, and the fresh runs of base and candidate.

    What was red is known here only so that answers of it which are served again are recognised.
    """

    baseline: Side
    first: Side
    base: Side
    candidate: Side

    def without_copies(self) -> RecheckSides:
        """Return the sides as if answers that were given before had never been served again."""
        return replace(
            self,
            baseline=without_copies(self.baseline),
            base=without_copies(self.base, self.baseline),
            candidate=without_copies(self.candidate, self.first),
        )


def plan_recheck(verdict: Verdict, policy: Policy) -> RecheckPlan | None:
    """Return what is to be run again because of a verdict, or None.

    Only what the test against the baseline found is asked about once more. Where a suite metric
    dropped these are all compared tasks; otherwise every task that is claimed to have regressed,
    filled up to five by those with the smallest p. A flip of a deterministic agent is a fact, and
    the way since the anchor is not one change's.
    """
    codes = _BY_TEST & {reason.code for reason in verdict.reasons}
    if verdict.decision is not Decision.REGRESSED or not codes or policy.deterministic:
        return None
    ranked = sorted((task for task in verdict.tasks if task.claim in _TESTED), key=_suspicion)
    whole = ReasonCode.SUITE_REGRESSED in codes
    claimed = sum(task.claim is Claim.REGRESSED for task in ranked)
    chosen = ranked if whole else ranked[: max(claimed, _FEWEST_TASKS)]
    return RecheckPlan(tasks=tuple(sorted(task.task for task in chosen)), whole_suite=whole)


def _suspicion(task: TaskResult) -> tuple[bool, float, float, str]:
    """Order tasks by what speaks against them; a run that was stopped has chances in place of p."""
    p_value = 1 - (task.predictive or 0.0) if task.p_value is None else task.p_value
    return task.claim is not Claim.REGRESSED, p_value, task.contribution or 0.0, task.task


def repeats_for(trials: Iterable[int]) -> int:
    """Return how many runs over their seeds give each task 16 trials.

    Parameters
    ----------
    trials : iterable of int
        Seeds of each task, at least one.
    """
    return math.ceil(_FEWEST_TRIALS / min(trials))


def attribute(sides: RecheckSides, recheck: Recheck, policy: Policy) -> Recheck:
    """Say to what a regression is put down.

    Parameters
    ----------
    sides : RecheckSides
        The fresh sides have the rechecked tasks alone.
    recheck : Recheck
        What was rechecked, without a result.
    policy : Policy
        Under which the verdict was made; for its metrics, alpha, margin, pairing and errors.

    Returns
    -------
    Recheck
        With an attribution, or with the problem for which there is none: too many trials of a side
        are without a judgement, or cannot be trusted.

    Notes
    -----
    The candidate is worse than the base: ``change``, whatever else has happened. Otherwise the base
    is worse than the stored baseline: ``environment``. Otherwise: ``noise``.
    """
    errors = errors_in_effect(sides.baseline, sides.candidate, policy)
    whole, sides = sides, sides.without_copies()
    tasks = _judged_everywhere(sides, errors)
    shown = msgspec.structs.replace(
        recheck,
        tasks=tuple(_task(sides, task_id, errors) for task_id in tasks),
        rates={
            "baseline": _rate(sides.baseline, tasks, errors),
            "base": _rate(sides.base, tasks, errors),
            "candidate": _rate(sides.candidate, tasks, errors),
        },
    )
    problem = _problem(whole, tasks, errors, policy)
    if problem is not None:
        return msgspec.structs.replace(shown, problem=problem)
    change = _test(sides.base, sides.candidate, tasks, errors, policy)
    if not change.regressed and _is_red_with_copies(whole, sides, tasks, errors, policy):
        return msgspec.structs.replace(shown, problem=_RED_WITH_COPIES, change=change)
    environment = _test(sides.baseline, sides.base, tasks, errors, policy)
    return msgspec.structs.replace(
        shown,
        attribution=_attribution(change, environment),
        change=change,
        environment=environment,
        remarks=tuple(_remarks(sides, tasks, change, environment)),
    )


def _is_red_with_copies(
    whole: RecheckSides,
    sides: RecheckSides,
    tasks: Sequence[str],
    errors: ErrorPolicy,
    policy: Policy,
) -> bool:
    """Return whether the candidate is worse only if trials count that it calls copies itself."""
    if whole.candidate == sides.candidate:
        return False
    return _test(sides.base, whole.candidate, tasks, errors, policy).regressed


def _attribution(change: RecheckTest, environment: RecheckTest) -> Attribution:
    if change.regressed:
        return Attribution.CHANGE
    return Attribution.ENVIRONMENT if environment.regressed else Attribution.NOISE


def _judged_everywhere(sides: RecheckSides, errors: ErrorPolicy) -> tuple[str, ...]:
    """Return the rechecked tasks, sorted, of which all three sides have a judged trial."""
    every = (sides.baseline, sides.base, sides.candidate)
    return tuple(
        task_id
        for task_id in sorted(sides.candidate.tasks)
        if all(
            task_id in side.tasks and counts_of(side.tasks[task_id], errors).trials
            for side in every
        )
    )


def _task(sides: RecheckSides, task_id: str, errors: ErrorPolicy) -> RecheckTask:
    return RecheckTask(
        task=task_id,
        baseline=counts_of(sides.baseline.tasks[task_id], errors),
        base=counts_of(sides.base.tasks[task_id], errors),
        candidate=counts_of(sides.candidate.tasks[task_id], errors),
    )


def _rate(side: Side, tasks: Sequence[str], errors: ErrorPolicy) -> float | None:
    counts = [counts_of(side.tasks[task_id], errors) for task_id in tasks]
    return sum(c.passed / c.trials for c in counts) / len(counts) if counts else None


def _problem(
    sides: RecheckSides, tasks: Sequence[str], errors: ErrorPolicy, policy: Policy
) -> str | None:
    """Return why these trials say nothing, by the rules that a check has for its own."""
    fresh = (("base", sides.base, sides.baseline), ("candidate", sides.candidate, sides.first))
    for name, side, before in fresh:
        if side.stop is not None and side.stop.reason is StopReason.BUDGET:
            return "the budget of the suite was reached; raise budget_usd and go on with --resume"
        totals = totals_of(side, errors)
        lost = totals.planned - totals.judged
        if not policy.allows_errored(lost, totals.planned):
            return (
                f"only {totals.judged} of {counted(totals.planned, 'trial')} of the {name} were "
                f"judged, fewer than max_errored_rate = {policy.max_errored_rate:g} allows"
            )
        if copied_between(before, side).no_measurement:
            return f"most trials of the {name} are copies of earlier answers: turn off their cache"
        if contaminated_tasks(side):
            return f"worlds of the {name} were not clean: {named(contaminated_tasks(side))}"
        if not policy.allows_errored(grader_errors(side), totals.run):
            return f"graders raised in {counted(grader_errors(side), 'trial')} of the {name}"
    return None if tasks else "no task was judged on every side"


def _test(
    before: Side, after: Side, tasks: Sequence[str], errors: ErrorPolicy, policy: Policy
) -> RecheckTest:
    evidence = weigh(
        [
            pair_task(
                task_id,
                scores_of(before.tasks[task_id], errors),
                scores_of(after.tasks[task_id], errors),
                seeds_shared(before, after, task_id),
            )
            for task_id in tasks
        ],
        policy,
    )
    joint = evidence.joint
    return RecheckTest(
        regressed=joint.p_value <= joint.level,
        p_value=joint.p_value,
        level=joint.level,
        strata=evidence.choice.strata,
        exact=joint.exact,
        draws=joint.draws,
    )


def _remarks(
    sides: RecheckSides, tasks: Sequence[str], change: RecheckTest, environment: RecheckTest
) -> Iterable[str]:
    if change.regressed and environment.regressed:
        yield (
            "The base is worse than its baseline too: the environment has changed besides, and the "
            "baseline should be made anew."
        )
    if not any(sides.base.tasks[task_id].count("+") for task_id in tasks):
        yield (
            "Not one trial of the base passed: if its work tree lacks something that the agent "
            "needs, [agent] setup must bring it."
        )
    if _is_another_agent(sides.baseline, sides.base):
        yield (
            "The base's agent is not the one that the baseline was made with: where the base is "
            "worse than its baseline, an earlier change may be behind it."
        )


def _is_another_agent(baseline: Side, base: Side) -> bool:
    digests = [side.runs[-1].agent.digest if side.runs else None for side in (baseline, base)]
    return None not in digests and digests[0] != digests[1]


def cleared(comparison: Comparison) -> Comparison:
    """Return a comparison in which what the test found is a suspicion and no more.

    Its p-values stay: they are what the first run said.
    """
    return msgspec.structs.replace(
        comparison,
        tasks=tuple(
            msgspec.structs.replace(task, claim=Claim.SUSPECT)
            if task.claim is Claim.REGRESSED
            else task
            for task in comparison.tasks
        ),
        metrics={
            name: msgspec.structs.replace(metric, regressed=False)
            for name, metric in comparison.metrics.items()
        },
    )

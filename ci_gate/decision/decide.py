"""The verdict: every rule of the gate in one table, and what follows from those that hold.

A rule holds or not by the facts of a comparison alone; its sentence is in ``sentences``. The first
tier with a rule that holds decides, and every rule that holds is a reason.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from ci_gate.decision.attribution import cleared
from ci_gate.decision.circumstances import Circumstances
from ci_gate.decision.comparison import Comparison
from ci_gate.decision.digits import six_digits
from ci_gate.decision.extension import is_inferior
from ci_gate.decision.sentences import sentence_for
from ci_gate.model.policy import Policy
from ci_gate.model.run import StopReason
from ci_gate.model.verdict import Claim, Decision, ExitCode, Reason, SuiteChanges, Verdict
from ci_gate.model.verdict import ReasonCode as Code

__all__ = ["RULES", "Rule", "Tier", "decide"]


class Tier(IntEnum):
    """How a rule ranks, the first tier above all others."""

    UNTRUSTED = 0
    RED = 1
    OPEN = 2
    GREEN = 3


class Rule(NamedTuple):
    """One rule of the gate.

    Attributes
    ----------
    tier : Tier
    code : ReasonCode
    holds : callable
        Of the comparison, the policy and the circumstances.
    against_bar : bool
        It holds the candidate against the present baseline, so that the label which moves the bar
        accepts what it finds.
    """

    tier: Tier
    code: Code
    holds: Callable[[Comparison, Policy, Circumstances], object]
    against_bar: bool = False


_BAR: Final = True
RULES: Final = (
    Rule(Tier.UNTRUSTED, Code.CONTAMINATED, lambda f, p, a: f.contaminated),
    Rule(Tier.UNTRUSTED, Code.GRADER_ERRORS, lambda f, p, a: _broken_graders(f, p)),
    Rule(Tier.UNTRUSTED, Code.TOO_MANY_ERRORS, lambda f, p, a: f.started and _unjudged(f, p)),
    Rule(Tier.RED, Code.BASELINE_MISSING, lambda f, p, a: a.baseline_status == "missing", _BAR),
    Rule(Tier.RED, Code.BASELINE_EDITED, lambda f, p, a: a.baseline_edited, _BAR),
    Rule(Tier.RED, Code.TASKS_REMOVED, lambda f, p, a: f.matching.removed, _BAR),
    Rule(Tier.RED, Code.FLIP, lambda f, p, a: f.flips.tasks, _BAR),
    Rule(Tier.RED, Code.TASK_REGRESSED, lambda f, p, a: f.claimed(Claim.REGRESSED), _BAR),
    Rule(Tier.RED, Code.SUITE_REGRESSED, lambda f, p, a: _suite_fell(f, a), _BAR),
    Rule(Tier.RED, Code.SLIDE, lambda f, p, a: f.slid, _BAR),
    Rule(Tier.RED, Code.FLOOR, lambda f, p, a: f.broken_floors),
    Rule(Tier.RED, Code.GUARD, lambda f, p, a: f.broken_guards, _BAR),
    Rule(Tier.OPEN, Code.RECHECK_ENVIRONMENT, lambda f, p, a: a.attribution == "environment", _BAR),
    Rule(Tier.OPEN, Code.RECHECK_NOISE, lambda f, p, a: a.attribution == "noise", _BAR),
    Rule(Tier.OPEN, Code.NO_CREDENTIALS, lambda f, p, a: a.no_credentials and not f.spared),
    Rule(Tier.OPEN, Code.BUDGET, lambda f, p, a: f.totals.stop == StopReason.BUDGET),
    Rule(Tier.OPEN, Code.CURTAILED, lambda f, p, a: f.stop_refused),
    Rule(Tier.OPEN, Code.EXTENDED, lambda f, p, a: f.extension_refused),
    Rule(Tier.OPEN, Code.SHARD_MISSING, lambda f, p, a: f.shards),
    Rule(Tier.OPEN, Code.TASK_UNJUDGED, lambda f, p, a: _unmeasured(f)),
    Rule(Tier.OPEN, Code.ERROR_POLICY_CHANGED, lambda f, p, a: f.differences.errors, _BAR),
    Rule(Tier.OPEN, Code.FAULTS_CHANGED, lambda f, p, a: f.differences.faults, _BAR),
    Rule(Tier.OPEN, Code.JUDGE_CHANGED, lambda f, p, a: f.differences.judge, _BAR),
    Rule(Tier.OPEN, Code.TASKS_CHANGED, lambda f, p, a: f.matching.changed, _BAR),
    Rule(Tier.OPEN, Code.NOTHING_COMPARED, lambda f, p, a: f.nothing_compared, _BAR),
    Rule(Tier.OPEN, Code.BASELINE_DEAD, lambda f, p, a: f.dead, _BAR),
    Rule(Tier.OPEN, Code.NO_POWER, lambda f, p, a: f.powerless and not f.dead, _BAR),
    Rule(Tier.OPEN, Code.NON_INFERIORITY_UNSHOWN, lambda f, p, a: _inferior(f, p), _BAR),
    Rule(Tier.OPEN, Code.GUARD_UNKNOWN, lambda f, p, a: f.unknown_floors or _unguarded(f, a)),
    Rule(Tier.GREEN, Code.NO_BASELINE, lambda f, p, a: not f.has_baseline and not _lost(a)),
    Rule(Tier.GREEN, Code.BAR_MOVED, lambda f, p, a: a.labelled and (f.has_baseline or _lost(a))),
    Rule(Tier.GREEN, Code.UNCHANGED_AGENT, lambda f, p, a: f.spared),
    Rule(Tier.GREEN, Code.CURTAILED, lambda f, p, a: f.curtailed),
    Rule(Tier.GREEN, Code.EXTENDED, lambda f, p, a: f.extended and not f.extension_refused),
)
_DECISIONS: Final = {
    Tier.UNTRUSTED: Decision.INCONCLUSIVE,
    Tier.RED: Decision.REGRESSED,
    Tier.OPEN: Decision.INCONCLUSIVE,
    Tier.GREEN: Decision.PASSED,
}


def _broken_graders(facts: Comparison, policy: Policy) -> bool:
    return not policy.allows_errored(facts.grader_errors, facts.gated.run)


def _unjudged(facts: Comparison, policy: Policy) -> bool:
    """Nothing was judged, or fewer trials than the policy lets pass, quarantined tasks aside.

    Trials that a run did not come to are the business of the rules on how it ended.
    """
    totals = facts.gated if facts.gated.planned else facts.totals
    expected = totals.run if facts.cut_short or facts.stopped else totals.planned
    lost = expected - totals.judged
    # Where every task is quarantined, none of their errors is held against the run.
    too_many = totals is facts.gated and not policy.allows_errored(lost, expected)
    return totals.judged == 0 or too_many


def _unmeasured(facts: Comparison) -> bool:
    """Trials that the verdict would rest on are absent, or are copies of others."""
    return bool(facts.matching.unjudged) or facts.interrupted or facts.copied.decide_nothing


def _suite_fell(facts: Comparison, around: Circumstances) -> bool:
    """The suite dropped, and no recheck puts that down to something else than the change."""
    fell = bool(facts.regressed_metrics) or facts.red_as_a_whole
    return fell and not around.clears_change


def _inferior(facts: Comparison, policy: Policy) -> bool:
    """Some metric could have dropped by the margin or more."""
    return facts.evidence is not None and is_inferior(facts.metrics, policy)


def _unguarded(facts: Comparison, around: Circumstances) -> bool:
    """A guard could not be judged; the label, which accepts a broken one, accepts that as well."""
    return bool(facts.unknown_guards) and not around.labelled


def _lost(around: Circumstances) -> bool:
    return around.baseline_status == "missing"


def decide(
    comparison: Comparison, policy: Policy, circumstances: Circumstances | None = None
) -> Verdict:
    """Judge a comparison.

    Parameters
    ----------
    comparison : Comparison
    policy : Policy
    circumstances : Circumstances or None
        The same that the comparison was made with.

    Returns
    -------
    Verdict
        Figures with 6 significant digits; the decision was taken before they were rounded.
    """
    around = circumstances or Circumstances()
    if around.clears_change:
        comparison = cleared(comparison)
    holding = [rule for rule in RULES if rule.holds(comparison, policy, around)]
    accepted = [rule for rule in holding if rule.against_bar and around.labelled]
    standing = [rule for rule in holding if rule not in accepted]
    decision = _DECISIONS[min((rule.tier for rule in standing), default=Tier.GREEN)]
    case = comparison, policy, around
    return _verdict(
        case,
        decision,
        reasons=tuple(Reason(code=r.code, text=sentence_for(r.code, *case)) for r in standing),
        accepted=tuple(f"Accepted by the label: {sentence_for(r.code, *case)}" for r in accepted),
    )


def _verdict(
    case: tuple[Comparison, Policy, Circumstances],
    decision: Decision,
    *,
    reasons: tuple[Reason, ...],
    accepted: Sequence[str],
) -> Verdict:
    facts, policy, around = case
    return Verdict(
        suite_name=facts.suite,
        decision=decision,
        exit_code=_exit_code(decision, policy),
        partial=facts.partial,
        mode=policy.mode,
        reasons=reasons,
        warnings=(*accepted, *facts.remarks),
        alpha=policy.alpha,
        level=six_digits(facts.level),
        p_value=six_digits(facts.evidence.joint.p_value) if facts.evidence else None,
        predictive=six_digits(facts.predictive),
        method=six_digits(facts.method),
        metrics=six_digits(facts.metrics),
        tasks=six_digits(facts.tasks),
        floors=six_digits(facts.floors),
        guards=six_digits(facts.guards),
        slide=six_digits(facts.slide),
        recheck=six_digits(around.recheck),
        suite=_changes(facts),
        trials=facts.totals,
        resilience=six_digits(facts.resilience),
        process=six_digits(facts.process),
        economics=six_digits(facts.economics),
        provenance=facts.provenance,
    )


def _exit_code(decision: Decision, policy: Policy) -> ExitCode:
    forgiven = decision is Decision.INCONCLUSIVE and policy.on_inconclusive == "pass"
    if policy.mode == "advisory" or forgiven or decision is Decision.PASSED:
        return ExitCode.PASSED
    return ExitCode.REGRESSED if decision is Decision.REGRESSED else ExitCode.INCONCLUSIVE


def _changes(facts: Comparison) -> SuiteChanges:
    matching = facts.matching
    return SuiteChanges(
        compared=facts.compared,
        new=matching.new,
        removed=tuple(sorted(matching.removed + matching.allowed)),
        changed=matching.changed,
        unjudged=matching.unjudged,
        quarantined=matching.quarantined,
    )

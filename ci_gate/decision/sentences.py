"""The sentence of each reason: what holds, for which tasks, and what to do about it.

One sentence or two a reason, without figures that would have to be rounded. It decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from ci_gate.decision.circumstances import Circumstances
from ci_gate.decision.comparison import Comparison
from ci_gate.decision.copied import why_nothing_follows
from ci_gate.decision.stopped import StoppedRun
from ci_gate.decision.wording import counted, named
from ci_gate.errors import printable
from ci_gate.model.policy import Policy
from ci_gate.model.verdict import Claim, FloorResult, TaskResult, TrialTotals
from ci_gate.model.verdict import ReasonCode as Code

__all__ = ["sentence_for"]

_Sentence = Callable[[Comparison, Policy, Circumstances], str]


def sentence_for(code: Code, facts: Comparison, policy: Policy, around: Circumstances) -> str:
    """Return what a reason says of this comparison."""
    return _SENTENCES[code](facts, policy, around)


def _contaminated(facts: Comparison, policy: Policy, around: Circumstances) -> str:
    return (
        f"The world of {_tasks(facts.contaminated)} was not in its known state before a trial: "
        "nothing that ran in it can be trusted."
    )


def _grader_errors(facts: Comparison, policy: Policy, around: Circumstances) -> str:
    return (
        f"In {counted(facts.grader_errors, 'trial')} of {facts.gated.run} a grader raised, more "
        f"than max_errored_rate = {policy.max_errored_rate:g} allows: repair the grader."
    )


def _too_many_errors(facts: Comparison, policy: Policy, around: Circumstances) -> str:
    totals = facts.gated if facts.gated.planned else facts.totals
    if totals.run == 0:
        return "No trial was run."
    return (
        f"{totals.judged} of {_asked_for(facts, totals)} were judged and "
        f"{totals.errored} errored, more than max_errored_rate = {policy.max_errored_rate:g} "
        "allows: the environment is to be repaired before the agent can be judged."
    )


def _asked_for(facts: Comparison, totals: TrialTotals) -> str:
    """What there was to judge: the plan, or as much of it as a run that stopped came to."""
    if facts.stopped is not None:
        return counted(totals.run, "trial")
    return counted(totals.planned, "planned trial")


def _baseline_missing(facts: Comparison, policy: Policy, around: Circumstances) -> str:
    found = "The base has a baseline that this change no longer matches"
    if around.labelled:
        return f"{found}."
    return (
        f"{found}: restore the suite's name and the baseline's file. Only the update-baseline "
        "label lets a pull request move the bar."
    )


def _baseline_edited(facts: Comparison, policy: Policy, around: Circumstances) -> str:
    found = "This change edits the baseline or its anchor"
    if around.labelled:
        return f"{found}."
    return f"{found} without the update-baseline label: the bar of the base commit holds."


def _tasks_removed(facts: Comparison, policy: Policy, around: Circumstances) -> str:
    removed = facts.matching.removed
    return (
        f"{counted(len(removed), 'task')} of the baseline vanished: {named(removed)}. Restore "
        "them, or list them in allow_removed."
    )


def _flip(facts: Comparison, policy: Policy, around: Circumstances) -> str:
    return (
        "Seeds that passed in the baseline fail, and the agent is deterministic: "
        f"{_tasks(facts.flips.tasks)}."
    )


def _task_regressed(facts: Comparison, policy: Policy, around: Circumstances) -> str:
    worst = sorted(facts.claimed(Claim.REGRESSED), key=lambda t: (t.p_adjusted or 0, t.task))
    return f"{counted(len(worst), 'task')} regressed: {_moved(worst)}."


def _suite_regressed(facts: Comparison, policy: Policy, around: Circumstances) -> str:
    metrics = " and ".join(facts.regressed_metrics)
    if facts.curtailed:
        return _suite_foretold(metrics)
    return f"The suite's {metrics} dropped by more than chance explains."


def _suite_foretold(metrics: str) -> str:
    if not metrics:
        return (
            "The whole plan is as good as certain to be red, by the suite or by some task: which "
            "of them is not settled yet."
        )
    return f"The whole plan is as good as certain to find that the suite's {metrics} dropped."


def _slide(facts: Comparison, policy: Policy, around: Circumstances) -> str:
    slide = facts.slide
    assert slide is not None
    dropped = [name for name, metric in slide.metrics.items() if metric.regressed]
    found = [*dropped, *([_tasks(slide.tasks)] if slide.tasks else [])]
    return (
        f"Worse than the anchor, an older baseline: {' and '.join(found)} dropped by more than "
        "chance explains. Where that is wanted, `ci-gate baseline update --anchor` moves it."
    )


def _floor(facts: Comparison, policy: Policy, around: Circumstances) -> str:
    return f"Below the floor: {_floors(facts.broken_floors)}."


def _guard(facts: Comparison, policy: Policy, around: Circumstances) -> str:
    broken = (
        f"{printable(guard.metric, limit=60)} (max_{guard.direction} {abs(guard.limit):g})"
        for guard in facts.broken_guards
    )
    return f"Beyond a guard, with confidence: {', '.join(broken)}."


def _recheck_environment(facts: Comparison, policy: Policy, around: Circumstances) -> str:
    return (
        f"The test was red, and {_rechecked(around)} puts that down to the environment: the commit "
        "of the baseline is itself worse than its baseline now, and this change is no worse than "
        "it. Where that stays, make the baseline anew."
    )


def _recheck_noise(facts: Comparison, policy: Policy, around: Circumstances) -> str:
    return (
        f"The test was red, and {_rechecked(around)} does not confirm it: this change is no "
        "worse than the commit of the baseline, nor that commit than its baseline. Check again, "
        "with more trials where that happens often."
    )


def _rechecked(around: Circumstances) -> str:
    found = around.recheck
    assert found is not None
    return f"a recheck of {counted(len(found.tasks), 'task')} ({found.trials} fresh trials a side)"


def _no_credentials(facts: Comparison, policy: Policy, around: Circumstances) -> str:
    return (
        "The run lacks the credentials that the agent or its judge needs, and was not started: "
        "somebody with access to them can run it."
    )


def _budget(facts: Comparison, policy: Policy, around: Circumstances) -> str:
    return (
        f"The run reached its budget after {_run(facts)}: raise budget_usd, or plan fewer trials."
    )


def _curtailed(facts: Comparison, policy: Policy, around: Circumstances) -> str:
    stopped = facts.stopped
    assert stopped is not None
    if stopped.seen is not None:
        return _stopped(facts, stopped)
    said = f"stopped by its outcomes after {counted(stopped.stop.round, 'round')} ({_run(facts)})"
    if stopped.refusal is None:
        return (
            f"The run was {said}, against another baseline or policy than this one: run it again "
            "against these."
        )
    return (
        f"The run says it was {said} as {stopped.verdict}, and that is not believed: "
        f"{stopped.refusal}. Run it again."
    )


def _stopped(facts: Comparison, stopped: StoppedRun) -> str:
    rounds = f"{stopped.stop.round} of {counted(stopped.rounds, 'round')}"
    other, rests = ("red", "the pass") if stopped.verdict == "passed" else ("green", "the verdict")
    return (
        f"Stopped after {rounds} ({_run(facts)}): the chance that the whole plan would be {other} "
        f"was below {stopped.settled:g}. On that chance {rests} rests; a run that was stopped by "
        "its outcomes has no p-value."
    )


def _extended(facts: Comparison, policy: Policy, around: Circumstances) -> str:
    run = facts.extensible
    assert run is not None
    if run.refusal is not None:
        return f"The run was extended, and not as its own looks ask: {run.refusal}. Run it again."
    return (
        f"Extended from {run.asked_for} to {counted(run.repeats, 'repeat')} ({_run(facts)}), "
        "because what it had shown lay near the border. Each look has the same level, which allows "
        "for all of them."
    )


def _shard_missing(facts: Comparison, policy: Policy, around: Circumstances) -> str:
    return f"Only {printable(' and '.join(facts.shards))} of the shards is here: merge all of them."


def _task_unjudged(facts: Comparison, policy: Policy, around: Circumstances) -> str:
    if facts.interrupted:
        return f"The run was interrupted after {_run(facts)}: continue it with --resume."
    said = list(why_nothing_follows(facts.copied))
    if facts.matching.unjudged:
        tasks = _tasks(facts.matching.unjudged)
        how = "errored, never ran or are copies" if facts.copied.apart else "errored or never ran"
        said.append(f"No trial was judged of {tasks}: all {how}.")
    return " ".join(said)


def _error_policy_changed(facts: Comparison, policy: Policy, around: Circumstances) -> str:
    return (
        "The two sides count errored trials differently (errors = exclude and errors = fail): "
        "make the baseline anew under the policy of the candidate."
    )


def _faults_changed(facts: Comparison, policy: Policy, around: Circumstances) -> str:
    return (
        "The two sides met different injected faults: make the baseline anew under the present "
        "[faults]."
    )


def _judge_changed(facts: Comparison, policy: Policy, around: Circumstances) -> str:
    return "The two sides were graded by different judges: make the baseline anew."


def _tasks_changed(facts: Comparison, policy: Policy, around: Circumstances) -> str:
    edited = f"Edited since the baseline was made: {_tasks(facts.matching.changed)}."
    if around.labelled:
        return edited
    return (
        f"{edited} What was measured before does not hold for an edited task: make the baseline "
        "anew with `ci-gate baseline update`, in a pull request under the update-baseline label."
    )


def _nothing_compared(facts: Comparison, policy: Policy, around: Circumstances) -> str:
    return "Not one task of the baseline could be compared."


def _baseline_dead(facts: Comparison, policy: Policy, around: Circumstances) -> str:
    return (
        "Not one trial passed on either side: a baseline in which nothing works cannot show that "
        "something broke."
    )


def _no_power(facts: Comparison, policy: Policy, around: Circumstances) -> str:
    return (
        "This plan could not have seen even a candidate that fails everywhere: plan more trials, "
        "or make a baseline that passes."
    )


def _non_inferiority_unshown(facts: Comparison, policy: Policy, around: Circumstances) -> str:
    return (
        f"A drop of more than the margin of {policy.margin:g} could not be ruled out for every "
        "suite metric: more repeats narrow the intervals."
    )


def _guard_unknown(facts: Comparison, policy: Policy, around: Circumstances) -> str:
    sentences = []
    if facts.unknown_floors:
        metrics = ", ".join(floor.metric for floor in facts.unknown_floors)
        sentences.append(f"No task has enough judged trials for the floor under {metrics}.")
    if facts.unknown_guards:
        metrics = named(dict.fromkeys(guard.metric for guard in facts.unknown_guards))
        sentences.append(
            f"Too few trials of a side know what a guard is on, so that its change is unknown: "
            f"{metrics}."
        )
    return " ".join(sentences)


def _no_baseline(facts: Comparison, policy: Policy, around: Circumstances) -> str:
    return (
        "There is no baseline to compare with yet: `ci-gate baseline update` makes one, to be "
        "committed."
    )


def _bar_moved(facts: Comparison, policy: Policy, around: Circumstances) -> str:
    return "The label lets this change move the bar: it was not held against the present baseline."


def _unchanged_agent(facts: Comparison, policy: Policy, around: Circumstances) -> str:
    return "Agent and suite are those of the baseline: nothing was run."


def _tasks(ids: Iterable[str]) -> str:
    every = tuple(ids)
    return f"{counted(len(every), 'task')} ({named(every)})"


def _moved(tasks: Iterable[TaskResult]) -> str:
    return named(f"{printable(task.task, limit=60)} ({_passed(task)})" for task in tasks)


def _passed(task: TaskResult) -> str:
    sides = (task.baseline, task.candidate)
    return " to ".join(f"{side.passed}/{side.trials}" for side in sides if side is not None)


def _floors(floors: Iterable[FloorResult]) -> str:
    return ", ".join(f"{floor.metric} (floor {floor.floor:g})" for floor in floors)


def _run(facts: Comparison) -> str:
    return f"{facts.totals.run} of {counted(facts.totals.planned, 'planned trial')}"


_SENTENCES: Final[dict[Code, _Sentence]] = {
    Code.CONTAMINATED: _contaminated,
    Code.GRADER_ERRORS: _grader_errors,
    Code.TOO_MANY_ERRORS: _too_many_errors,
    Code.BASELINE_MISSING: _baseline_missing,
    Code.BASELINE_EDITED: _baseline_edited,
    Code.TASKS_REMOVED: _tasks_removed,
    Code.FLIP: _flip,
    Code.TASK_REGRESSED: _task_regressed,
    Code.SUITE_REGRESSED: _suite_regressed,
    Code.SLIDE: _slide,
    Code.FLOOR: _floor,
    Code.GUARD: _guard,
    Code.RECHECK_ENVIRONMENT: _recheck_environment,
    Code.RECHECK_NOISE: _recheck_noise,
    Code.NO_CREDENTIALS: _no_credentials,
    Code.BUDGET: _budget,
    Code.CURTAILED: _curtailed,
    Code.EXTENDED: _extended,
    Code.SHARD_MISSING: _shard_missing,
    Code.TASK_UNJUDGED: _task_unjudged,
    Code.ERROR_POLICY_CHANGED: _error_policy_changed,
    Code.FAULTS_CHANGED: _faults_changed,
    Code.JUDGE_CHANGED: _judge_changed,
    Code.TASKS_CHANGED: _tasks_changed,
    Code.NOTHING_COMPARED: _nothing_compared,
    Code.BASELINE_DEAD: _baseline_dead,
    Code.NO_POWER: _no_power,
    Code.NON_INFERIORITY_UNSHOWN: _non_inferiority_unshown,
    Code.GUARD_UNKNOWN: _guard_unknown,
    Code.NO_BASELINE: _no_baseline,
    Code.BAR_MOVED: _bar_moved,
    Code.UNCHANGED_AGENT: _unchanged_agent,
}

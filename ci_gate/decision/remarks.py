"""What a reader of the verdict should know although no rule depends on it.

Sentences from facts; it decides nothing and computes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ci_gate.decision.accounting import CURTAILED, stopped_early
from ci_gate.decision.differences import Differences
from ci_gate.decision.evidence import Evidence
from ci_gate.decision.extension import ExtensibleRun
from ci_gate.decision.flips import Flips
from ci_gate.decision.matching import Matching
from ci_gate.decision.stopped import StoppedRun
from ci_gate.decision.wording import counted, named
from ci_gate.errors import printable
from ci_gate.model.policy import Policy
from ci_gate.model.run import ErrorPolicy, Side
from ci_gate.model.verdict import GuardResult, MetricResult
from ci_gate.stats.run_effect import CORRECTED_BELOW, FEWEST_RUNS, RunEffect
from ci_gate.stats.seed_effect import StrataChoice

__all__ = [
    "on_economics",
    "on_evidence",
    "on_extension",
    "on_guards",
    "on_matching",
    "on_metrics",
    "on_sides",
    "on_stop",
    "on_untested_anchor",
]


def on_sides(
    baseline: Side | None, candidate: Side, policy: Policy, errors: ErrorPolicy
) -> Iterator[str]:
    """Yield what is odd about the two sides."""
    alike = baseline is None or baseline.errors == candidate.errors
    if alike and candidate.errors != policy.errors:
        yield (
            f"The policy says errors = {policy.errors} and the run was made with "
            f"{candidate.errors}: errored trials count under {errors}."
        )
    if candidate.mode is not None:
        yield (
            f"The calls of this run were answered from recordings (mode {candidate.mode}): it "
            "shows what this code makes of them, and is no measurement of the agent with its "
            "models and tools."
        )
    if baseline is not None:
        yield from _on_baseline(baseline, candidate)


def _on_baseline(baseline: Side, candidate: Side) -> Iterator[str]:
    digests = baseline.suite_digest, candidate.suite_digest
    if baseline.suite != candidate.suite:
        yield (
            f"The baseline is of suite {printable(baseline.suite)} and the candidate of "
            f"{printable(candidate.suite)}: tasks were matched by id."
        )
    if None not in digests and digests[0] != digests[1]:
        yield (
            "The suite is not the one that the baseline was made of: tasks that are new, removed "
            "or edited are listed."
        )
    if baseline.mode is not None:
        yield (
            "The run that serves as the baseline was answered from recordings (mode "
            f"{baseline.mode}): it is no measurement to be held to."
        )
    if any(run.forced for run in baseline.runs):
        yield "The baseline was accepted by force although it did not meet what a baseline needs."
    if stopped_early(baseline):
        yield "The run that serves as the baseline ended before its plan."
    if baseline.stop is not None and baseline.stop.reason in CURTAILED:
        yield (
            "The run that serves as the baseline was stopped by its own outcomes: it is no fair "
            "sample, and alpha does not hold against it."
        )


def on_matching(matching: Matching) -> Iterator[str]:
    """Yield what is odd about the tasks."""
    if matching.by_id:
        yield (
            f"{counted(len(matching.by_id), 'task')} matched by id alone, because a file holds no "
            f"digest of the content: {named(matching.by_id)}."
        )
    if matching.unserved:
        yield (
            f"The baseline has no judged trial of {counted(len(matching.unserved), 'task')}, which "
            f"counted as new: {named(matching.unserved)}."
        )
    for quarantine in matching.lapsed:
        yield (
            f"The quarantine of {printable(quarantine.task)} ended on {quarantine.until} and it is "
            f"judged again (owner: {printable(quarantine.owner)})."
        )
    for quarantine in matching.unknown:
        yield f"The quarantine of {printable(quarantine.task)} names no task of this suite."


def on_metrics(metrics: Mapping[str, MetricResult]) -> Iterator[str]:
    """Yield which tasks are too shallow for a metric."""
    for name, result in metrics.items():
        if result.excluded:
            k = name.removeprefix("pass^")
            yield (
                f"{name} leaves out {counted(len(result.excluded), 'task')} with fewer than {k} "
                f"judged trials on a side: {named(result.excluded)}."
            )


def on_stop(stopped: StoppedRun | None, policy: Policy) -> Iterator[str]:
    """Yield what a run that was stopped by its outcomes spent, and judged, differently."""
    if stopped is None or stopped.seen is None:
        return
    if stopped.late_by:
        yield (
            f"The run could have stopped {counted(stopped.late_by, 'round')} earlier, and said the "
            "same."
        )
    yield from _on_run_effect(stopped.seen.look.effect, policy.alpha)
    yield from _on_choice(stopped.seen.look.choice, policy)
    if policy.floors or policy.guards:
        yield (
            "Floors and guards are judged on the trials that were run "
            f"({counted(stopped.stop.round, 'round')}), each at its own alpha."
        )


def on_extension(run: ExtensibleRun | None) -> Iterator[str]:
    """Yield where a run ended before its own looks let it."""
    if run is not None and run.remark is not None:
        yield run.remark


def on_guards(guards: Sequence[GuardResult]) -> Iterator[str]:
    """Yield which tasks a guard leaves out."""
    excluded = {guard.metric: guard.excluded for guard in guards if guard.excluded}
    for metric, tasks in excluded.items():
        yield (
            f"The guard on {printable(metric, limit=60)} leaves out {counted(len(tasks), 'task')} "
            f"with trials that do not know it: {named(tasks)}."
        )


def on_economics(economics: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield what only some trials know, so that its total is not that of the side."""
    for side, figures in economics.items():
        for what in ("cost", "tokens"):
            known, judged = figures[f"{what}_known_trials"], figures["trials"]
            if 0 < known < judged:
                verb = "is" if what == "cost" else "are"
                yield (
                    f"The {side}'s {what} {verb} known for {known} of "
                    f"{counted(judged, 'judged trial')}: the total is theirs alone, and nothing is "
                    "said per success."
                )


def on_untested_anchor(differences: Differences) -> Iterator[str]:
    """Yield why nothing was tested against the anchor."""
    made = {
        "another error policy": differences.errors,
        "other injected faults": differences.faults,
        "another judge": differences.judge,
    }
    under = [what for what, holds in made.items() if holds]
    why = f"was made under {' and '.join(under)}" if under else "has no task that is as it was"
    yield (
        f"The anchor {why}, so a slow slide cannot be seen: `ci-gate baseline update --anchor` "
        "renews it."
    )


def _on_run_effect(effect: RunEffect, alpha: float) -> Iterator[str]:
    if effect.p_value >= CORRECTED_BELOW:
        return
    found = (
        "Whole runs of the baseline scatter more than their trials explain (phi = "
        f"{effect.phi:.3g}, p = {effect.p_value:.2g})"
    )
    if effect.correction is not None:
        yield (
            f"{found}: the suite metrics' differences were shrunk by its square root before they "
            "were tested, and their intervals widened; single tasks were tested as ever."
        )
    elif effect.runs < FEWEST_RUNS:
        yield (
            f"{found}: alpha = {alpha:g} of a suite metric may really be "
            f"{effect.implied_alpha(alpha):.2g}. From {FEWEST_RUNS} runs on, best on different "
            "days, it is corrected for."
        )


def _on_choice(choice: StrataChoice, policy: Policy) -> Iterator[str]:
    if choice.rule == "no seeds" and (policy.pairing == "seed" or policy.deterministic):
        asked = "deterministic = true" if policy.deterministic else "pairing = seed"
        yield f"The policy says {asked}, and the sides share no seeds: nothing was paired."


def on_evidence(evidence: Evidence | None, flips: Flips, policy: Policy) -> Iterator[str]:
    """Yield what is odd about the test."""
    if flips.unsteady:
        yield (
            "deterministic = true, and repeats of one seed disagree in "
            f"{counted(len(flips.unsteady), 'task')}: {named(flips.unsteady)}."
        )
    if evidence is None:
        return
    yield from _on_run_effect(evidence.effect, policy.alpha)
    yield from _on_choice(evidence.choice, policy)
    if evidence.joint.undecided:
        yield (
            f"After {evidence.joint.draws} draws the p-value still lies within 3 standard errors "
            "of the level: the estimate decided."
        )

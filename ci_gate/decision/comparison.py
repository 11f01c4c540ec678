"""Everything that is known of a change before it is judged, in one value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ci_gate.decision.copied import Copied
from ci_gate.decision.differences import Differences
from ci_gate.decision.evidence import Evidence
from ci_gate.decision.extension import ExtensibleRun
from ci_gate.decision.flips import Flips
from ci_gate.decision.matching import Matching
from ci_gate.decision.stopped import StoppedRun
from ci_gate.model.process import ProcessResult
from ci_gate.model.resilience import Resilience
from ci_gate.model.run import StopReason
from ci_gate.model.verdict import (
    Claim,
    FloorResult,
    GuardResult,
    Method,
    MetricResult,
    SlideResult,
    TaskResult,
    TrialTotals,
)

__all__ = ["Comparison"]


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """The facts that the rules of ``decide`` read, and the figures that a verdict shows.

    Attributes
    ----------
    suite : str
    has_baseline : bool
        Whether there was one to compare with.
    started : bool
        False where the run was not made on purpose: an unchanged agent, or no credentials.
    unchanged : bool
        Agent and suite are the baseline's own.
    partial : bool
        A filter or a shard left tasks out.
    shards : tuple of str
        Of sides that are one shard of several.
    cut_short : bool
        The run ended before its plan, and not by a decision on its outcomes.
    stopped : StoppedRun or None
        A run that was stopped by a decision on its outcomes, with that decision taken again.
    extensible : ExtensibleRun or None
        A run that could be extended, with its looks taken again.
    level : float
        What the gate's p-value is held against.
    totals : TrialTotals
        Of the candidate.
    gated : TrialTotals
        The same without the quarantined tasks, which decide nothing.
    contaminated : tuple of str
        Tasks whose world did not start in its known state.
    grader_errors : int
        Trials that failed because a grader raised, of tasks that are not quarantined.
    differences : Differences
    copied : Copied
        Trials that are copies of others, on both sides.
    matching : Matching
    evidence : Evidence or None
        None where nothing was tested.
    flips : Flips
    dead : bool
        No trial of any compared task passed, on either side.
    powerless : bool
        Not even a candidate that fails everywhere would have been seen.
    metrics : mapping of str to MetricResult
    floors : tuple of FloorResult
    guards : tuple of GuardResult
    slide : SlideResult or None
        None where nothing was tested against an anchor.
    tasks : tuple of TaskResult
    method : Method
    resilience : Resilience
    process : tuple of ProcessResult
    economics, provenance : mapping
    remarks : tuple of str
        What a reader should know and no rule depends on.
    """

    suite: str
    has_baseline: bool
    started: bool
    unchanged: bool
    partial: bool
    shards: tuple[str, ...]
    cut_short: bool
    stopped: StoppedRun | None
    extensible: ExtensibleRun | None
    level: float
    totals: TrialTotals
    gated: TrialTotals
    contaminated: tuple[str, ...]
    grader_errors: int
    differences: Differences
    copied: Copied
    matching: Matching
    evidence: Evidence | None
    flips: Flips
    dead: bool
    powerless: bool
    metrics: Mapping[str, MetricResult]
    floors: tuple[FloorResult, ...]
    guards: tuple[GuardResult, ...]
    slide: SlideResult | None
    tasks: tuple[TaskResult, ...]
    method: Method
    resilience: Resilience
    process: tuple[ProcessResult, ...]
    economics: Mapping[str, Any]
    provenance: Mapping[str, Any]
    remarks: tuple[str, ...]

    @property
    def spared(self) -> bool:
        """No trial was run because the agent is the baseline's own."""
        return self.unchanged and not self.started

    @property
    def interrupted(self) -> bool:
        """The run ended before its plan without having reached its budget."""
        return self.cut_short and self.totals.stop != StopReason.BUDGET

    @property
    def nothing_compared(self) -> bool:
        """There is a baseline, and no task of it can be compared, judged or not."""
        comparable = self.matching.compared or self.matching.unjudged
        return self.has_baseline and self.started and not comparable

    @property
    def regressed_metrics(self) -> tuple[str, ...]:
        """Suite metrics that dropped, adjusted over all claims, or are as good as certain to."""
        return tuple(name for name, metric in self.metrics.items() if metric.regressed)

    @property
    def curtailed(self) -> bool:
        """The run was stopped by its outcomes, and the stop is believed."""
        return self.stopped is not None and self.stopped.seen is not None

    @property
    def stop_refused(self) -> bool:
        """The run was stopped by its outcomes, and the stop is not believed."""
        return self.stopped is not None and self.stopped.seen is None

    @property
    def extended(self) -> bool:
        """Repeats were added, because the evidence lay near the border."""
        return self.extensible is not None and self.extensible.extended

    @property
    def extension_refused(self) -> bool:
        """The repeats are not those that the run's own looks ask for."""
        return self.extensible is not None and self.extensible.refusal is not None

    @property
    def predictive(self) -> float | None:
        """Chance that the whole plan would be red, where a believed stop leaves no p-value."""
        seen = self.stopped.seen if self.stopped else None
        return seen.prediction.red if seen else None

    @property
    def compared(self) -> int:
        """Tasks whose outcomes were held against each other."""
        if self.evidence is not None:
            return len(self.evidence.tasks)
        return len(self.matching.compared) if self.curtailed else 0

    @property
    def red_as_a_whole(self) -> bool:
        """The whole plan is as good as certain to be red, and no single claim of it is."""
        alone = self.regressed_metrics or self.claimed(Claim.REGRESSED)
        return self.stopped is not None and self.stopped.red and not alone

    @property
    def broken_floors(self) -> tuple[FloorResult, ...]:
        """Floors that the candidate lies below."""
        return tuple(f for f in self.floors if f.bound is not None and not f.passed)

    @property
    def unknown_floors(self) -> tuple[FloorResult, ...]:
        """Floors that no task is deep enough for."""
        return tuple(floor for floor in self.floors if floor.bound is None)

    @property
    def broken_guards(self) -> tuple[GuardResult, ...]:
        """Limits of guards that the change lies beyond."""
        return tuple(guard for guard in self.guards if guard.passed is False)

    @property
    def unknown_guards(self) -> tuple[GuardResult, ...]:
        """Limits of guards whose measure is unknown on a side."""
        return tuple(guard for guard in self.guards if guard.passed is None)

    @property
    def slid(self) -> bool:
        """The candidate is worse than the anchor."""
        return self.slide is not None and self.slide.regressed

    def claimed(self, claim: Claim) -> tuple[TaskResult, ...]:
        """Return the tasks of which this is claimed."""
        return tuple(task for task in self.tasks if task.claim is claim)

"""Everything that is known of a change before it is judged, in one value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ci_gate.decision.evidence import Evidence
from ci_gate.decision.flips import Flips
from ci_gate.decision.matching import Matching
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

__all__ = ["Comparison", "Differences"]


@dataclass(frozen=True, kw_only=True)
class Differences:
    """In what the two sides were made differently, so that their outcomes cannot be compared."""

    errors: bool = False
    faults: bool = False
    judge: bool = False

    def __bool__(self) -> bool:
        return self.errors or self.faults or self.judge


@dataclass(frozen=True, kw_only=True)
class Comparison:
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
    curtailed : bool
        The run was stopped by a decision on its outcomes.
    curtailed_against_these : bool
        That decision was made against this baseline and this policy.
    totals : TrialTotals
        Of the candidate.
    gated : TrialTotals
        The same without the quarantined tasks, which decide nothing.
    contaminated : tuple of str
        Tasks whose world did not start in its known state.
    grader_errors : int
        Trials that failed because a grader raised, of tasks that are not quarantined.
    differences : Differences
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
    resilience, economics, provenance : mapping
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
    curtailed: bool
    curtailed_against_these: bool
    totals: TrialTotals
    gated: TrialTotals
    contaminated: tuple[str, ...]
    grader_errors: int
    differences: Differences
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
    resilience: Mapping[str, Any]
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
        """Suite metrics that dropped, adjusted over all claims."""
        return self.evidence.regressed_metrics if self.evidence else ()

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

"""From two sides and a policy to all facts of a comparison; nothing is judged here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import msgspec

from ci_gate.decision import remarks
from ci_gate.decision.accounting import (
    contaminated_tasks,
    errors_in_effect,
    first_runs,
    grader_errors,
    scores_of,
    stopped_early,
    totals_of,
    without,
)
from ci_gate.decision.circumstances import Circumstances
from ci_gate.decision.claims import Claims
from ci_gate.decision.comparison import Comparison
from ci_gate.decision.copied import (
    Copied,
    copied_between,
    hold_against_copies,
    on_copies,
)
from ci_gate.decision.curtailment import Foresight
from ci_gate.decision.differences import Differences
from ci_gate.decision.evidence import Evidence, method_of, sees_total_failure, weigh
from ci_gate.decision.extension import ExtensibleRun, examine_extension, level_of
from ci_gate.decision.flips import Flips, flips_of
from ci_gate.decision.foretold import foretold_metrics, foretold_tasks
from ci_gate.decision.guards import guards_of
from ci_gate.decision.matching import Matching, match_tasks, run_day
from ci_gate.decision.measures import economics_of
from ci_gate.decision.metrics import floors_of, tested_metrics, untested_metrics
from ci_gate.decision.pairing import PairedTask, pair_task, planned_scores, seeds_shared
from ci_gate.decision.policy_checks import require_judgeable
from ci_gate.decision.process import process_of_sides
from ci_gate.decision.provenance import provenance_of
from ci_gate.decision.resilience import FaultedSides, resilience_of
from ci_gate.decision.slide import slide_of
from ci_gate.decision.stopped import StoppedRun, examine_stop
from ci_gate.model.copies import without_copies
from ci_gate.model.policy import Policy
from ci_gate.model.resilience import Resilience
from ci_gate.model.run import PASSED, ErrorPolicy, Side, SideTask
from ci_gate.model.verdict import (
    FloorResult,
    GuardResult,
    Method,
    MetricResult,
    SlideResult,
    TaskResult,
)

__all__ = ["compare"]


def compare(
    baseline: Side | None,
    candidate: Side,
    policy: Policy,
    circumstances: Circumstances | None = None,
    *,
    anchor: Side | None = None,
) -> Comparison:
    """Gather all facts on which a verdict rests.

    Parameters
    ----------
    baseline : Side or None
        None where there is none.
    candidate : Side
    policy : Policy
    circumstances : Circumstances or None
        Facts from outside the files; None: nothing is known.
    anchor : Side or None
        An older baseline, against which a slow slide would show.

    Returns
    -------
    Comparison
        The same for the same facts, whatever the order of the tasks.

    Raises
    ------
    UsageError
        The policy is impossible or asks for what this version cannot judge.
    """
    require_judgeable(policy)
    case = _Case(baseline, candidate, policy, circumstances or Circumstances())
    study = _study(case)
    metrics = _metrics(case, study)
    economics = _by_side(case, study.matching, economics_of)
    guards = _guards(case, study.matching)
    slide, slide_remarks = _slide(case, study, anchor)
    gated = without(candidate, study.matching.quarantined)
    copied = _copied(case, study)
    totals = totals_of(candidate, case.errors)
    return Comparison(
        suite=candidate.suite,
        has_baseline=baseline is not None,
        started=case.started,
        unchanged=case.circumstances.unchanged_agent,
        partial=any(side.task_filter or side.shard for side in case.sides),
        shards=tuple(side.shard for side in case.sides if side.shard),
        cut_short=stopped_early(candidate),
        stopped=study.stopped,
        extensible=study.extensible,
        level=case.level,
        totals=msgspec.structs.replace(totals, copies=copied.apart),
        gated=totals_of(gated, case.errors),
        contaminated=contaminated_tasks(candidate),
        grader_errors=grader_errors(gated),
        differences=case.differences,
        copied=copied,
        matching=study.matching,
        evidence=study.evidence,
        flips=study.flips,
        dead=study.judged and _dead(case, study.matching),
        powerless=study.powerless,
        metrics=metrics,
        floors=_floors(case, study.matching),
        guards=guards,
        slide=slide,
        tasks=_claims(case, study),
        method=_method(study, policy, anchored=slide is not None),
        resilience=_resilience(case, study.matching),
        process=process_of_sides(*_tasks_shown(case, study.matching)),
        economics=economics,
        provenance=provenance_of(baseline, candidate, case.circumstances.provenance),
        remarks=(
            *_remarks(case, study, metrics, economics),
            *on_copies(copied, case.whole_candidate),
            *remarks.on_guards(guards),
            *slide_remarks,
        ),
    )


class _Case(msgspec.Struct, frozen=True, dict=True):
    """The arguments of ``compare``, and what follows from them without looking at an outcome.

    ``baseline`` and ``candidate`` are what counts as evidence: of a deterministic agent the first
    run of each task, because the others are copies. Whether they are, all runs say. Of another
    agent it is every trial but those that evidence calls copies.
    """

    whole_baseline: Side | None
    whole_candidate: Side
    policy: Policy
    circumstances: Circumstances

    @cached_property
    def baseline(self) -> Side | None:
        return None if self.whole_baseline is None else self._counted(self.whole_baseline)

    @cached_property
    def candidate(self) -> Side:
        return self._counted(self.whole_candidate, self.whole_baseline)

    def _counted(self, side: Side, before: Side | None = None) -> Side:
        if self.policy.deterministic:
            return first_runs(side, self.errors)
        return without_copies(side, before)

    @cached_property
    def calm(self) -> Side | None:
        calm = self.circumstances.calm
        return None if calm is None else self._counted(calm)

    @property
    def sides(self) -> tuple[Side, ...]:
        return (self.candidate,) if self.baseline is None else (self.baseline, self.candidate)

    @property
    def errors(self) -> ErrorPolicy:
        return errors_in_effect(self.whole_baseline, self.whole_candidate, self.policy)

    @property
    def started(self) -> bool:
        spared = self.circumstances.unchanged_agent or self.circumstances.no_credentials
        return bool(self.candidate.tasks) or not spared

    @cached_property
    def level(self) -> float:
        return level_of(self.baseline, self.candidate, self.policy)

    @property
    def differences(self) -> Differences:
        before, after = self.baseline, self.candidate
        if before is None or not self.started:
            return Differences()
        return Differences.between(before, after)


class _Study(msgspec.Struct, frozen=True, kw_only=True):
    """What the outcomes say; of a run that they stopped, what they foretell."""

    matching: Matching = msgspec.field(default_factory=Matching)
    evidence: Evidence | None = None
    stopped: StoppedRun | None = None
    extensible: ExtensibleRun | None = None
    flips: Flips = msgspec.field(default_factory=Flips)
    powerless: bool = False

    @property
    def seen(self) -> Foresight | None:
        """What a curtailed run foretells, where its stop is believed."""
        return self.stopped.seen if self.stopped else None

    @property
    def judged(self) -> bool:
        """Whether the outcomes of the two sides were held against each other."""
        return self.evidence is not None or self.seen is not None


def _study(case: _Case) -> _Study:
    if not case.started:
        return _Study()
    stopped = examine_stop(
        case.whole_baseline,
        case.whole_candidate,
        case.policy,
        policy_digest=case.circumstances.policy_digest,
    )
    if stopped is not None:
        return _study_of_stopped(case, stopped)
    matching = _matching(case)
    if case.baseline is None or case.differences or not matching.compared:
        return _Study(matching=matching)
    extensible = examine_extension(case.baseline, case.whole_candidate, case.policy)
    if extensible is not None and _is_no_look(case, extensible):
        # Neither red nor green: the level does not allow for a look at such a moment.
        return _Study(matching=matching, extensible=extensible)
    paired = _paired(case.baseline, case.candidate, case, matching)
    evidence = weigh(paired, case.policy, level=case.level)
    flips = _flips(case, matching)
    return _Study(
        matching=matching,
        evidence=evidence,
        extensible=extensible,
        flips=flips,
        powerless=not flips.watched
        and not sees_total_failure(
            _planned(case.baseline, case, matching),
            case.policy,
            strata=evidence.choice.strata,
            phi=evidence.effect.correction,
            level=case.level,
        ),
    )


def _is_no_look(case: _Case, run: ExtensibleRun) -> bool:
    """Whether the repeats of a run are not those at which it was to be looked at."""
    return run.refusal is not None or (run.extended and stopped_early(case.whole_candidate))


def _study_of_stopped(case: _Case, stopped: StoppedRun) -> _Study:
    """Without all its rounds a curtailed run has no p-value."""
    if case.baseline is None or stopped.seen is None:
        return _Study(matching=_matching(case), stopped=stopped)
    look = stopped.seen.look
    planned = _planned(case.baseline, case, look.matching)
    return _Study(
        matching=look.matching,
        stopped=stopped,
        powerless=not sees_total_failure(
            planned,
            case.policy,
            strata=look.choice.strata,
            phi=look.effect.correction,
            level=case.level,
        ),
    )


def _matching(case: _Case) -> Matching:
    return match_tasks(
        case.baseline,
        case.candidate,
        case.policy,
        errors=case.errors,
        today=case.circumstances.today or run_day(case.candidate),
    )


def _paired(
    baseline: Side, candidate: Side, case: _Case, matching: Matching
) -> tuple[PairedTask, ...]:
    return tuple(
        pair_task(
            task_id,
            scores_of(baseline.tasks[task_id], case.errors),
            scores_of(candidate.tasks[task_id], case.errors),
            seeds_shared(baseline, candidate, task_id),
        )
        for task_id in matching.compared
    )


def _flips(case: _Case, matching: Matching) -> Flips:
    if case.whole_baseline is None or not case.policy.deterministic:
        return Flips()
    return flips_of(_paired(case.whole_baseline, case.whole_candidate, case, matching))


def _planned(baseline: Side, case: _Case, matching: Matching) -> list[PairedTask]:
    """What the plan was before a trial ran: a candidate that would fail every one of them."""
    return [
        pair_task(
            task_id,
            scores_of(baseline.tasks[task_id], case.errors),
            planned_scores(case.candidate, task_id),
            seeds_shared(baseline, case.candidate, task_id),
        )
        for task_id in matching.compared
    ]


def _copied(case: _Case, study: _Study) -> Copied:
    if case.policy.deterministic:
        return Copied()
    whole, matching = case.whole_candidate, study.matching
    found = copied_between(case.whole_baseline, whole, quarantined=matching.quarantined)
    if case.baseline is None or study.evidence is None:
        return found
    with_copies = _paired(case.baseline, whole, case, matching)
    return hold_against_copies(found, study.evidence, with_copies, case.policy)


def _dead(case: _Case, matching: Matching) -> bool:
    tasks = [side.tasks[task_id] for side in case.sides for task_id in matching.compared]
    return not any(task.count(PASSED) for task in tasks)


def _metrics(case: _Case, study: _Study) -> dict[str, MetricResult]:
    if study.evidence is not None:
        return tested_metrics(study.evidence, case.policy)
    if study.stopped is not None and study.seen is not None:
        return foretold_metrics(study.seen, case.policy, rounds=study.stopped.stop.round)
    before, after = _tasks_shown(case, study.matching)
    return untested_metrics(before, after, case.policy, case.errors) if case.started else {}


def _tasks_shown(
    case: _Case, matching: Matching
) -> tuple[dict[str, SideTask], dict[str, SideTask]]:
    """The tasks behind the figures of each side: what is compared, else what is not quarantined."""
    if case.baseline is None or not matching.compared:
        return {}, _judged_tasks(case, matching)
    before, after = case.baseline.tasks, case.candidate.tasks
    return {t: before[t] for t in matching.compared}, {t: after[t] for t in matching.compared}


def _judged_tasks(case: _Case, matching: Matching) -> dict[str, SideTask]:
    tasks, held = case.candidate.tasks, set(matching.quarantined)
    return {task_id: tasks[task_id] for task_id in sorted(tasks) if task_id not in held}


def _floors(case: _Case, matching: Matching) -> tuple[FloorResult, ...]:
    if not case.started:
        return ()
    return floors_of(_judged_tasks(case, matching), case.policy, case.errors)


def _guards(case: _Case, matching: Matching) -> tuple[GuardResult, ...]:
    if case.baseline is None or case.differences:
        return ()
    before, after = case.baseline.tasks, case.candidate.tasks
    return guards_of(
        {task_id: before[task_id] for task_id in matching.compared},
        {task_id: after[task_id] for task_id in matching.compared},
        case.policy,
    )


def _slide(
    case: _Case, study: _Study, anchor: Side | None
) -> tuple[SlideResult | None, tuple[str, ...]]:
    """Test the candidate against the anchor, unless that is the baseline itself."""
    same = anchor is None or case.baseline is None or anchor.digest == case.baseline.digest
    refused = study.stopped is not None and study.seen is None
    if anchor is None or same or refused or not case.started:
        return None, ()
    past = _Case(anchor, case.whole_candidate, case.policy, case.circumstances)
    matching = _matching(past)
    assert past.baseline is not None
    if past.differences or not matching.compared:
        return None, tuple(remarks.on_untested_anchor(past.differences))
    policy = _of_rounds_run(case.policy, study.stopped)
    paired = _paired(past.baseline, past.candidate, past, matching)
    evidence = weigh(paired, policy, level=past.level)
    return slide_of(evidence, matching, policy), ()


def _of_rounds_run(policy: Policy, stopped: StoppedRun | None) -> Policy:
    """Leave out the metrics of a curtailed run that do not exist yet.

    The anchor is not what stopped it: a slide is looked for in the trials that there are, so that
    it does not hide behind a short run.
    """
    if stopped is None:
        return policy
    metrics = tuple(f"pass^{k}" for k in policy.ks if k <= stopped.stop.round)
    return msgspec.structs.replace(policy, metrics=metrics or ("pass^1",))


def _method(study: _Study, policy: Policy, *, anchored: bool) -> Method:
    look = study.seen.look if study.seen else None
    return method_of(study.evidence or look, policy, anchored=anchored)


def _claims(case: _Case, study: _Study) -> tuple[TaskResult, ...]:
    return Claims(
        baseline=case.whole_baseline,
        candidate=case.whole_candidate,
        counted=(case.baseline, case.candidate),
        matching=study.matching,
        evidence=study.evidence,
        foretold=foretold_tasks(study.seen, case.policy) if study.seen else {},
        flips=study.flips,
        alpha=case.policy.alpha,
        errors=case.errors,
        replay_command=case.circumstances.replay_command,
    ).results()


def _by_side(
    case: _Case, matching: Matching, measure: Callable[[Mapping[str, SideTask]], dict[str, Any]]
) -> dict[str, Any]:
    before, after = _tasks_shown(case, matching)
    sides = {"baseline": before, "candidate": after}
    return {side: measure(tasks) for side, tasks in sides.items() if tasks}


def _resilience(case: _Case, matching: Matching) -> Resilience:
    before, after = _tasks_shown(case, matching)
    return resilience_of(
        FaultedSides(
            baseline=before,
            candidate=after,
            whole=case.candidate,
            calm=case.calm,
            errors=case.errors,
        )
    )


def _remarks(
    case: _Case,
    study: _Study,
    metrics: Mapping[str, MetricResult],
    economics: Mapping[str, Mapping[str, Any]],
) -> tuple[str, ...]:
    return (
        *case.circumstances.warnings,
        *remarks.on_sides(case.baseline, case.candidate, case.policy, case.errors),
        *remarks.on_matching(study.matching),
        *remarks.on_metrics(metrics),
        *remarks.on_economics(economics),
        *remarks.on_evidence(study.evidence, study.flips, case.policy),
        *remarks.on_stop(study.stopped, case.policy),
        *remarks.on_extension(study.extensible),
    )

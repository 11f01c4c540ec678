"""Decides everything a report shows: which suites and sections, in which order, folded or not.

It turns verdicts into a document of plain strings (``render.document``); writers lay it out and
escape it, nothing more. It takes a verdict as it is: no figure is computed here that a verdict does
not hold, and it knows no output format.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from ci_gate.model.verdict import RED_CLAIMS, Decision, ReasonCode, Verdict
from ci_gate.render import figures, suite_sections, task_sections
from ci_gate.render.document import Column, ReportView, Section, SuiteView, Table
from ci_gate.render.escape import inert
from ci_gate.render.judge import judges
from ci_gate.render.layout import Limits
from ci_gate.render.partings import kept_traces, partings
from ci_gate.render.process import process
from ci_gate.render.recheck import recheck
from ci_gate.render.resilience import resilience

__all__ = ["ReportOptions", "view"]

_WORST_FIRST = (Decision.REGRESSED, Decision.INCONCLUSIVE, Decision.PASSED)

_SECTIONS: tuple[Callable[[Verdict, Limits], Section | None], ...] = (
    suite_sections.summary,
    suite_sections.metrics,
    recheck,
    task_sections.regressed,
    task_sections.flips,
    task_sections.contributors,
    partings,
    task_sections.removed,
    task_sections.changed,
    task_sections.unjudged,
    suite_sections.slide,
    suite_sections.floors,
    suite_sections.guards,
    suite_sections.warnings,
    kept_traces,
    task_sections.suspects,
    task_sections.improved,
    task_sections.new,
    task_sections.quarantined,
    task_sections.errored,
    judges,
    resilience,
    process,
    suite_sections.measures,
    suite_sections.provenance,
)


class ReportOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the caller may choose about a report.

    Parameters
    ----------
    reports : tuple of (str, str)
        Kind and place of the other reports, which the terminal names.
    limits : Limits
        How many rows, tasks and seeds are shown.
    """

    reports: tuple[tuple[str, str], ...] = ()
    limits: Limits = Limits()


def view(verdicts: Sequence[Verdict], options: ReportOptions | None = None) -> ReportView:
    """Return the report on one or more suites, the worst verdict first.

    Parameters
    ----------
    verdicts : sequence of Verdict
        At least one; those of equal rank keep their order.
    options : ReportOptions or None

    Raises
    ------
    ValueError
        There is no verdict to report on.
    """
    if not verdicts:
        raise ValueError("a report needs at least one verdict")
    options = options or ReportOptions()
    ranked = sorted(verdicts, key=lambda verdict: _WORST_FIRST.index(verdict.decision))
    return ReportView(
        decision=ranked[0].decision,
        headline=_headline(ranked),
        overview=_overview(ranked),
        suites=tuple(_suite(verdict, options.limits) for verdict in ranked),
        reports=tuple((inert(kind), inert(place, limit=500)) for kind, place in options.reports),
    )


def _headline(ranked: Sequence[Verdict]) -> str:
    decision = ranked[0].decision
    alike = sum(verdict.decision is decision for verdict in ranked)
    of = f"all {len(ranked)}" if alike == len(ranked) else f"{alike} of {len(ranked)}"
    return f"{decision.capitalize()}: {of} suites"


def _overview(ranked: Sequence[Verdict]) -> Table:
    metrics = list(dict.fromkeys(name for verdict in ranked for name in verdict.metrics))
    titles = [
        Column("Suite", "code"),
        Column("Verdict"),
        *(Column(inert(name), "number") for name in metrics),
    ]
    return Table(
        columns=(*titles, Column("Regressed tasks", "number"), Column("Trials judged", "number")),
        rows=tuple(_overview_row(verdict, metrics) for verdict in ranked),
    )


def _overview_row(verdict: Verdict, metrics: Sequence[str]) -> tuple[str, ...]:
    red = sum(task.claim in RED_CLAIMS for task in verdict.tasks)
    return (
        inert(verdict.suite_name),
        _with_remark(verdict),
        *(_movement(verdict, name) for name in metrics),
        f"{red} of {verdict.suite.compared}",
        f"{figures.count(verdict.trials.judged)} of {figures.count(verdict.trials.planned)}",
    )


def _movement(verdict: Verdict, metric: str) -> str:
    result = verdict.metrics.get(metric)
    if result is None:
        return figures.UNKNOWN
    after = figures.percent(result.candidate)
    if result.candidate is None and result.predicted is not None:
        after = f"{figures.percent(result.predicted.estimate)} (predicted)"
    return f"{figures.percent(result.baseline)} → {after}"


def _with_remark(verdict: Verdict) -> str:
    remark = _remark(verdict)
    return (
        f"{verdict.decision.capitalize()} ({remark})" if remark else verdict.decision.capitalize()
    )


def _suite(verdict: Verdict, limits: Limits) -> SuiteView:
    built = (build(verdict, limits) for build in _SECTIONS)
    return SuiteView(
        name=inert(verdict.suite_name),
        decision=verdict.decision,
        verdict=verdict.decision.capitalize(),
        remark=_remark(verdict),
        sections=tuple(section for section in built if section is not None),
    )


def _remark(verdict: Verdict) -> str:
    codes = {reason.code for reason in verdict.reasons}
    mode = _answered_mode(verdict)
    remarks = {
        f"answers were recorded: {mode}": bool(mode),
        "a part of the suite only": verdict.partial,
        "no baseline yet": ReasonCode.NO_BASELINE in codes,
        "the bar moves": ReasonCode.BAR_MOVED in codes,
        "stopped early": verdict.predictive is not None,
        "does not block": verdict.decision is not Decision.PASSED and verdict.exit_code == 0,
    }
    return ", ".join(text for text, holds in remarks.items() if holds)


def _answered_mode(verdict: Verdict) -> str:
    """Return how the candidate's calls were answered from recordings, empty where not."""
    candidate = verdict.provenance.get("candidate")
    mode = candidate.get("mode") if isinstance(candidate, Mapping) else None
    return inert(mode, limit=20) if isinstance(mode, str) else ""

"""The sections of a report that speak of the suite as a whole, each a function of its verdict.

They choose rows, order and words, and which sections stand open because they explain the verdict;
None where there is nothing to say. They know neither other suites nor how a section is laid out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ci_gate.model.verdict import (
    Decision,
    FloorResult,
    GuardResult,
    Method,
    MetricResult,
    PredictedMetric,
    SlideResult,
    TrialTotals,
    Verdict,
)
from ci_gate.render import figures
from ci_gate.render.document import Column, Fold, Section, Table
from ci_gate.render.escape import inert
from ci_gate.render.layout import Limits, table

__all__ = [
    "floors",
    "guards",
    "measures",
    "metrics",
    "provenance",
    "slide",
    "summary",
    "warnings",
]

_REASON_CHARS = 300
_NAMED = 5
_DIGEST = "sha256:"
_DIGEST_SHOWN = len(_DIGEST) + 12
_RELATIVE = frozenset({"cost_per_success_usd", "turns", "tokens", "duration_s"})
_UNITS = (("_usd", " (USD)"), ("_days", " (days)"), ("_ms", " (ms)"), ("_s", " (s)"))
_FLOORS_NOTE = (
    "What is held against a floor is the upper confidence bound at {alpha}, or the estimate where "
    "floors are strict. Floors stand outside the adjusted p."
)
_GUARDS_NOTE = (
    "What is held against a limit is the bound of the change at {alpha}: being beyond it by the "
    "estimate alone breaks no guard. Each limit has this alpha of its own, outside the adjusted p."
)
_INFINITE = "∞"
_SIDES = ("baseline", "candidate")


def summary(verdict: Verdict, limits: Limits) -> Section | None:
    """Return the reasons; for a pass also what the run could have seen."""
    shown = [inert(reason.text, limit=_REASON_CHARS) for reason in verdict.reasons]
    lead = (*_first(shown, limits.rows, "reasons"), *_foretold(verdict), *_sensitivity(verdict))
    return Section(key="summary", lead=lead) if lead else None


def _first(shown: list[str], most: int, what: str) -> list[str]:
    more = len(shown) - most
    return shown if more <= 0 else [*shown[:most], f"and {more} more {what}"]


def _foretold(verdict: Verdict) -> Iterator[str]:
    if verdict.predictive is not None:
        yield f"The whole plan would be red with {figures.percent(verdict.predictive)} chance."


def _sensitivity(verdict: Verdict) -> Iterator[str]:
    seen = [
        f"{_unsigned(result.detectable_drop)} points of {inert(name)} "
        f"({figures.counted(result.n_tasks, 'task')})"
        for name, result in verdict.metrics.items()
        if result.detectable_drop is not None
    ]
    if verdict.decision is Decision.PASSED and seen:
        what = "this run" if verdict.predictive is None else "the whole plan"
        yield f"With 80 % power {what} would have seen a drop of {' or '.join(seen)}."


def _unsigned(drop: float | None) -> str:
    return figures.points(drop).lstrip(f"+{figures.MINUS}")


def metrics(verdict: Verdict, limits: Limits) -> Section | None:
    """Return the table of the suite metrics with the account of the trials."""
    columns = (
        Column("Metric"),
        Column("Baseline", "number"),
        Column("Candidate", "number"),
        Column("Predicted", "number"),
        Column("Difference", "number"),
        Column("95 % interval", "number"),
        Column("p", "number"),
        Column("Adjusted p", "number"),
        Column("Chance to be red", "number"),
        Column("Detectable drop", "number"),
        Column("Tasks", "number"),
    )
    rows = [_metric_row(name, result, verdict) for name, result in verdict.metrics.items()]
    optional = {column.title for column in columns[3:-1]}
    return Section(
        key="metrics",
        table=table(columns, rows, optional=optional, most=limits.rows) if rows else None,
        notes=tuple(_metric_notes(verdict)),
    )


def _metric_row(name: str, result: MetricResult, verdict: Verdict) -> tuple[str, ...]:
    return (
        inert(name),
        figures.percent(result.baseline),
        figures.percent(result.candidate),
        _predicted(result.predicted),
        *_tested(result, verdict.level),
        figures.percent(result.predictive),
        _unsigned(result.detectable_drop),
        figures.count(result.n_tasks),
    )


def _tested(result: MetricResult, level: float) -> tuple[str, ...]:
    return (
        figures.points(result.difference),
        figures.interval(result.interval),
        figures.p_value(result.p_value, against=level),
        figures.p_value(result.p_adjusted, against=level),
    )


def _predicted(predicted: PredictedMetric | None) -> str:
    if predicted is None:
        return figures.UNKNOWN
    low, high = (figures.percent(end) for end in predicted.interval)
    return f"{figures.percent(predicted.estimate)} ({low} to {high})"


def _metric_notes(verdict: Verdict) -> Iterator[str]:
    yield _trials(verdict.trials)
    yield from _prediction_notes(verdict)
    if verdict.predictive is not None:
        yield (
            "Differences, intervals and detectable drops (80 % power, of the whole plan) are in "
            "percentage points. There is no p-value: the run ended because of what it showed. The "
            "chance to be red is that of the claim in the whole plan."
        )
    elif any(result.difference is not None for result in verdict.metrics.values()):
        yield (
            "Differences, intervals and detectable drops (80 % power) are in percentage points; "
            "p is one-sided and adjusted over every claim made here "
            f"(level {figures.level(verdict.level)})."
        )
    baseline = verdict.provenance.get("baseline")
    if isinstance(baseline, Mapping) and baseline.get("origin"):
        yield f"Baseline: {inert(baseline['origin'], limit=_REASON_CHARS)}."


def _prediction_notes(verdict: Verdict) -> Iterator[str]:
    for name, result in verdict.metrics.items():
        found = result.predicted
        if found is not None:
            rounds = figures.counted(found.rounds, "round")
            yield (
                f"Predicted {inert(name)} (Beta fit, r = {figures.count(found.rounds)}), with a "
                f"95 % interval: after {rounds} {inert(name)} does not exist. "
                f"pass^{figures.count(found.rounds)} of the trials so far: "
                f"{figures.percent(found.pass_hat_r)}."
            )


def _trials(totals: TrialTotals) -> str:
    shares = {"planned": totals.planned, "run": totals.run, "judged": totals.judged}
    counts = ", ".join(f"{figures.count(number)} {what}" for what, number in shares.items())
    stop = f" ({inert(totals.stop)})" if totals.stop else ""
    copies = f" ({figures.count(totals.copies)} of them copies)" if totals.copies else ""
    return f"Trials: {counts}{copies}, {figures.count(totals.errored)} errored{stop}."


def floors(verdict: Verdict, limits: Limits) -> Section | None:
    """Return the floors; they stand open where one is broken."""
    if not verdict.floors:
        return None
    columns = (
        Column("Metric"),
        Column("Floor", "number"),
        Column("Candidate", "number"),
        Column("Held against the floor", "number"),
        Column("Result"),
    )
    rows = [_floor_row(floor) for floor in verdict.floors]
    return _judged_by_itself(
        ("floors", "Floors"),
        table(columns, rows, most=limits.rows),
        _FLOORS_NOTE.format(alpha=figures.level(verdict.alpha)),
        broken=any(not floor.passed for floor in verdict.floors),
    )


def _judged_by_itself(
    name: tuple[str, str], rows: Table, note: str, *, broken: bool, lead: Sequence[str] = ()
) -> Section:
    """Return the section of a judgement with an alpha of its own, open where it is broken."""
    key, title = name
    fold = Fold.OPEN if broken else Fold.CLOSED
    return Section(key=key, title=title, fold=fold, lead=tuple(lead), table=rows, notes=(note,))


def _floor_row(floor: FloorResult) -> tuple[str, ...]:
    return (
        inert(floor.metric),
        figures.percent(floor.floor),
        figures.percent(floor.candidate, against=floor.floor),
        figures.percent(floor.bound, against=floor.floor),
        "kept" if floor.passed else "broken",
    )


def guards(verdict: Verdict, limits: Limits) -> Section | None:
    """Return the guards; they stand open where one is broken or could not be judged."""
    if not verdict.guards:
        return None
    columns = (
        Column("Measure"),
        Column("Baseline", "number"),
        Column("Candidate", "number"),
        Column("Change", "number"),
        Column("Bound", "number"),
        Column("Limit", "number"),
        Column("Result"),
    )
    rows = [_guard_row(guard, verdict) for guard in verdict.guards]
    return _judged_by_itself(
        ("guards", "Guards"),
        table(columns, rows, most=limits.rows),
        _guards_note(verdict),
        broken=any(guard.passed is not True for guard in verdict.guards),
    )


def _guards_note(verdict: Verdict) -> str:
    total = verdict.method.false_alarm_bound
    bound = "" if total is None else f" All judgements together: at most {figures.percent(total)}."
    return _GUARDS_NOTE.format(alpha=figures.level(verdict.alpha)) + bound


def _guard_row(guard: GuardResult, verdict: Verdict) -> tuple[str, ...]:
    result = {True: "kept", False: "broken", None: "unknown"}[guard.passed]
    before, after = (_guard_value(guard, verdict, side) for side in _SIDES)
    risen = after == _INFINITE and guard.passed is not None
    return (
        _label(guard.metric),
        before,
        after,
        _INFINITE if risen else _change(guard.metric, guard.change),
        *(_change(guard.metric, change) for change in (guard.bound, guard.limit)),
        result,
    )


def _guard_value(guard: GuardResult, verdict: Verdict, side: str) -> str:
    """Return a side's measure; paid for without one success it is infinite, null in the file."""
    value, facts = getattr(guard, side), verdict.economics.get(side, {})
    paid = "_per_success" in guard.metric and facts.get("cost_usd")
    if value is None and paid and facts.get("successes") == 0:
        return _INFINITE
    return _measure(guard.metric, value)


def _change(metric: str, change: float | None) -> str:
    if metric in _RELATIVE:
        return _percent_sign(figures.points(change))
    return figures.points(change) if metric.endswith("_rate") else figures.amount(change)


def _percent_sign(shown: str) -> str:
    return shown if shown == figures.UNKNOWN else f"{shown} %"


def _label(key: str) -> str:
    for suffix, unit in _UNITS:
        if key.endswith(suffix):
            return inert(key.removesuffix(suffix).replace("_", " ")) + unit
    return inert(key.replace("_", " "))


def _measure(key: str, value: object) -> str:
    if key.endswith("_rate") and isinstance(value, int | float):
        return figures.percent(float(value))
    return inert(figures.amount(value), limit=60)


def slide(verdict: Verdict, limits: Limits) -> Section | None:
    """Return the comparison with the anchor; it stands open where the candidate is worse."""
    found = verdict.slide
    if found is None:
        return None
    columns = (
        Column("Metric"),
        Column("Anchor", "number"),
        Column("Candidate", "number"),
        Column("Difference", "number"),
        Column("95 % interval", "number"),
        Column("p", "number"),
        Column("Adjusted p", "number"),
        Column("Tasks", "number"),
    )
    rows = [_slide_row(name, result, found.level) for name, result in found.metrics.items()]
    return _judged_by_itself(
        ("slide", "Since the anchor"),
        table(columns, rows, most=limits.rows),
        _slide_note(found),
        broken=found.regressed,
        lead=(f"Tasks that dropped: {_some(found.tasks)}.",) if found.tasks else (),
    )


def _slide_note(found: SlideResult) -> str:
    return (
        "The anchor is an older baseline: small steps, each within what chance explains, show "
        "against it. Tested beside the baseline, with an alpha of its own: joint p "
        f"{figures.p_value(found.p_value, against=found.level)} at level "
        f"{figures.level(found.level)}, over {figures.counted(found.compared, 'task')} whose "
        f"content is the anchor's ({figures.count(found.changed)} edited since)."
    )


def _slide_row(name: str, result: MetricResult, level: float) -> tuple[str, ...]:
    return (
        inert(name),
        figures.percent(result.baseline),
        figures.percent(result.candidate),
        *_tested(result, level),
        figures.count(result.n_tasks),
    )


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(inert(name, limit=60) for name in names[:_NAMED])
    return shown if len(names) <= _NAMED else f"{shown} and {len(names) - _NAMED} more"


def warnings(verdict: Verdict, limits: Limits) -> Section | None:
    """Return what the gate noticed that decides nothing."""
    if not verdict.warnings:
        return None
    shown = [inert(text, limit=_REASON_CHARS) for text in verdict.warnings]
    lead = tuple(_first(shown, limits.rows, "warnings"))
    return Section(key="warnings", title="Warnings", lead=lead)


def measures(verdict: Verdict, limits: Limits) -> Section | None:
    """Return economics and the other estimates of both sides in one table."""
    every = [*_estimates(verdict), *_measure_rows(verdict.economics)]
    # What neither side knows is no row.
    rows = [row for row in every if set(row[1:]) != {figures.UNKNOWN}]
    columns = (Column("Measure"), Column("Baseline", "number"), Column("Candidate", "number"))
    if not rows:
        return None
    return Section(
        key="measures",
        title="Economics and other estimates",
        fold=Fold.CLOSED,
        table=table(columns, rows, optional=("Baseline",), most=limits.rows),
    )


def _estimates(verdict: Verdict) -> Iterator[tuple[str, ...]]:
    for name, result in verdict.metrics.items():
        k = inert(name.removeprefix("pass^"))
        others = {
            f"pass@{k}": (result.baseline_pass_at_k, result.candidate_pass_at_k),
            f"plug-in (c/n)^{k}": (result.baseline_plug_in, result.candidate_plug_in),
        }
        for what, sides in others.items():
            if name != "pass^1" and sides != (None, None):
                yield what, *(figures.percent(share) for share in sides)


def _measure_rows(facts: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yield a row a measure, whether the sides hold measures or the measures hold sides."""
    sides = [facts.get(side) for side in _SIDES]
    if any(isinstance(side, Mapping) for side in sides):
        held = [side if isinstance(side, Mapping) else {} for side in sides]
        keys = dict.fromkeys(key for side in held for key in side)
        yield from ((_label(key), *(_of_side(key, side) for side in held)) for key in keys)
    for key, value in facts.items():
        if key not in _SIDES:
            both = value if isinstance(value, Mapping) else {"candidate": value}
            yield _label(key), *(_measure(key, both.get(side)) for side in _SIDES)


def _of_side(key: str, side: Mapping[str, Any]) -> str:
    """Return a measure of one side; what is divided by no success at all is infinite."""
    if "_per_success" in key and side.get(key) is None and side.get("successes") == 0:
        return _INFINITE
    return _measure(key, side.get(key))


def provenance(verdict: Verdict, limits: Limits) -> Section | None:
    """Return how it was judged and where both sides came from."""
    rows = [*_judged_rows(verdict), *_method_rows(verdict.method), *_flat(verdict.provenance)]
    return Section(
        key="provenance",
        title="How this was judged, and on what",
        fold=Fold.CLOSED,
        table=table((Column("What"), Column("Value", "code")), rows, most=limits.rows),
    )


def _judged_rows(verdict: Verdict) -> Iterator[tuple[str, str]]:
    if verdict.p_value is not None:
        yield "joint p", figures.p_value(verdict.p_value, against=verdict.level)
    yield "alpha", figures.level(verdict.alpha)
    if verdict.level != verdict.alpha:
        yield "level of this look", figures.level(verdict.level)


def _method_rows(method: Method) -> Iterator[tuple[str, str]]:
    known = {
        "strata": method.strata,
        "strata chosen by": method.rule,
        "seed effect z": method.z_seed,
    }
    for name, value in known.items():
        if value is not None:
            yield name, inert(figures.amount(value))
    if method.phi is not None or method.phi_p_value is not None:
        yield "run effect phi", _run_effect(method)
    if method.exact is not None:
        draws = "" if method.draws is None else f", {figures.count(method.draws)} draws"
        yield "joint distribution", "exact" if method.exact else f"seeded Monte Carlo{draws}"
    if method.false_alarm_bound is not None:
        yield "false alarms, all judgements", f"at most {figures.percent(method.false_alarm_bound)}"


def _run_effect(method: Method) -> str:
    if method.phi is None:
        return "not measurable: nothing varies in the baseline"
    known = f"{figures.amount(method.phi)} (p {figures.p_value(method.phi_p_value)})"
    if method.phi_corrected:
        return f"{known}, corrected for"
    if method.phi_alpha is None:
        return known
    return f"{known}, not corrected: alpha of a suite metric as if {method.phi_alpha:.2g}"


def _flat(facts: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, value in facts.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            yield from _flat(value, f"{name} ")
        elif value is not None:
            yield _label(name), _fact(value)


def _fact(value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(_fact(item) for item in value[:5]) + (", ..." if len(value) > 5 else "")
    text = figures.amount(value) if isinstance(value, float) else str(value)
    return inert(text[:_DIGEST_SHOWN] if text.startswith(_DIGEST) else text, limit=200)

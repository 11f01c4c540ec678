"""What is known of judges, for people: a calibration in the terminal, the rates in a report.

Lays out figures that it is given, and rounds them; it computes none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ci_gate.model.judges import Calibration, Figure, JudgedRate, JudgeResult
from ci_gate.model.verdict import Verdict
from ci_gate.render import figures
from ci_gate.render.document import Column, Fold, Section
from ci_gate.render.escape import inert
from ci_gate.render.layout import Limits, table
from ci_gate.render.screen import print_line, print_table

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["judges", "render_calibration"]

_DIGEST_SHOWN = len("sha256:") + 12
_NOTE = (
    "Corrected is the pass rate that the judge's stands for, given its sensitivity and specificity "
    "on people's labels (Rogan and Gladen), with a 95 % interval that counts how few labels there "
    "are (Lang and Reiczigel). The tests are on the outcomes as the judge gave them."
)


def judges(verdict: Verdict, limits: Limits) -> Section | None:
    """Return the rates of the judges with what they stand for."""
    if not isinstance(verdict.judges, tuple) or not verdict.judges:
        return None
    columns = (
        Column("Judge", "code"),
        Column("Model", "code"),
        Column("Tasks", "number"),
        Column("Kappa", "number"),
        Column("Baseline", "number"),
        Column("Baseline, corrected", "number"),
        Column("Candidate", "number"),
        Column("Candidate, corrected", "number"),
    )
    rows = [_row(one) for one in verdict.judges]
    notes = [inert(one.note, limit=300) for one in verdict.judges if one.note]
    return Section(
        key="judges",
        title="Judges",
        fold=Fold.CLOSED,
        lead=tuple(dict.fromkeys(notes)),
        table=table(columns, rows, optional={"Baseline", "Baseline, corrected"}, most=limits.rows),
        notes=(_NOTE,),
    )


def _row(one: JudgeResult) -> tuple[str, ...]:
    return (
        inert(one.digest[:_DIGEST_SHOWN]),
        inert(one.model or figures.UNKNOWN, limit=60),
        figures.count(len(one.tasks)),
        _figure(one.kappa),
        _raw(one.baseline),
        _corrected(one.baseline),
        _raw(one.candidate),
        _corrected(one.candidate),
    )


def _raw(rate: JudgedRate | None) -> str:
    return figures.UNKNOWN if rate is None else figures.rate(rate.passed, rate.asked)


def _corrected(rate: JudgedRate | None) -> str:
    if rate is None or rate.corrected is None or rate.interval is None:
        return figures.UNKNOWN
    low, high = map(figures.percent, rate.interval)
    return f"{figures.percent(rate.corrected)} ({low} to {high})"


def _figure(figure: Figure | None) -> str:
    if figure is None or figure.value is None:
        return figures.UNKNOWN
    if figure.interval is None:
        return f"{figure.value:.2f}"
    low, high = figure.interval
    return f"{figure.value:.2f} ({low:.2f} to {high:.2f})"


def render_calibration(
    found: Calibration,
    console: Console,
    *,
    place: str,
    weakness: str | None,
    remarks: Sequence[str] = (),
) -> None:
    """Print a calibration and whether its judge may gate.

    Parameters
    ----------
    found : Calibration
    console : rich.console.Console
    place : str
        Where it was written.
    weakness : str or None
        Why the judge may not gate.
    remarks : sequence of str
        What was noticed about the labels.
    """
    verb = "may gate" if weakness is None else "cannot gate"
    print_line(console, f"{inert(found.model, limit=60)}: {verb}", style="bold")
    if weakness is not None:
        print_line(console, f"  {inert(weakness, limit=300)}")
    columns = (Column("Figure"), Column("Value", "number"), Column("95 % interval", "number"))
    print_table(console, table(columns, list(_rows(found))))
    for text in (*_sentences(found), *map(inert, remarks)):
        print_line(console, f"  {text}")
    print_line(console, f"  Written to {inert(place, limit=500)}; commit it.", style="dim")


def _rows(found: Calibration) -> Iterator[tuple[str, str, str]]:
    yield _plain("Cohen's kappa", found.kappa)
    yield _share("Agreement", found.agreement)
    yield _share("Sensitivity (passes what people pass)", found.sensitivity)
    yield _share("Specificity (fails what people fail)", found.specificity)
    if found.position is not None:
        yield _share("Grades that the order of the parts changes", found.position.rate)
        yield _points("Change of the pass rate in reverse order", found.position.difference)
    if found.length is not None:
        title = f"Leniency to answers longer than {figures.count(found.length.median)} characters"
        yield _points(title, found.length.difference)
    own = found.self_preference
    if own is not None:
        yield _points(f"Leniency to its own family ({inert(own.family, limit=40)})", own.difference)


def _plain(name: str, figure: Figure) -> tuple[str, str, str]:
    if figure.value is None or figure.interval is None:
        return name, figures.UNKNOWN, figures.UNKNOWN
    low, high = figure.interval
    return name, f"{figure.value:.3f}", f"{low:.3f} to {high:.3f}"


def _share(name: str, figure: Figure) -> tuple[str, str, str]:
    if figure.interval is None:
        return name, figures.percent(figure.value), figures.UNKNOWN
    low, high = map(figures.percent, figure.interval)
    return name, figures.percent(figure.value), f"{low} to {high}"


def _points(name: str, figure: Figure) -> tuple[str, str, str]:
    return name, figures.points(figure.value), figures.interval(figure.interval)


def _sentences(found: Calibration) -> Iterator[str]:
    counts = found.counts
    yield (
        f"Passed by people and judge {figures.count(counts.both_pass)}, by people alone "
        f"{figures.count(counts.missed)}, by the judge alone {figures.count(counts.leaked)}, by "
        f"neither {figures.count(counts.both_fail)}."
    )
    if counts.unsound:
        yield f"{figures.counted(counts.unsound, 'label')} got no grade that could be read."

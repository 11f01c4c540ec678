"""From people's labels and a judge's votes to the judge's calibration; nothing is asked here."""

from __future__ import annotations

import re
from collections.abc import Sequence
from statistics import median_low
from typing import Final

import msgspec

from ci_gate.grading.judge.question import PROMPT_VERSION, Question
from ci_gate.model.judges import (
    Calibration,
    Figure,
    JudgedRate,
    LabelCounts,
    LengthBias,
    PositionBias,
    SelfPreference,
)
from ci_gate.stats.agreement import (
    Estimate,
    Table,
    corrected_rate,
    difference_of_means,
    kappa,
    proportion,
)

__all__ = ["FEWEST_OF_A_KIND", "Compared", "calibration_of", "family_of", "judged_rate", "weakness"]

FEWEST_OF_A_KIND: Final = 5
"""Labels of each kind below which a calibration says nothing."""

_FAMILY: Final = re.compile(r"[a-z]+")


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """A labelled answer and what the judge said of it.

    Parameters
    ----------
    label, judged, swapped : bool
        Passed by people; by the judge; by the judge with the parts in reverse order.
    is_sound : bool
        Whether the judge's majority in order came from replies that could be read.
    length : int
        Characters of the answer.
    family : str or None
        Of the model that gave the answer.
    """

    label: bool
    judged: bool
    swapped: bool
    is_sound: bool = True
    length: int = 0
    family: str | None = None

    @property
    def leniency(self) -> int:
        """1 where only the judge passes it, -1 where only people do, else 0."""
        return int(self.judged) - int(self.label)


def family_of(model: str) -> str:
    """Return the family of a model's name: its first word, after any owner (``a/gpt-4o``: gpt)."""
    found = _FAMILY.search(model.lower().rpartition("/")[2])
    return found[0] if found else model.lower()


def calibration_of(
    question: Question, items: Sequence[Compared], *, labels_digest: str | None = None
) -> Calibration:
    """Return the calibration of a judge.

    Parameters
    ----------
    question : Question
    items : sequence of Compared
        At least one.
    labels_digest : str or None
        Of the file of labels.
    """
    counts = _counts(items)
    table = _table(counts)
    agreed = table.both_pass + table.both_fail
    return Calibration(
        digest=question.digest,
        model=question.model,
        prompt=PROMPT_VERSION,
        votes=question.votes,
        rubric=question.rubric,
        choices=question.choices,
        passing=question.passing,
        shown=question.shown,
        labels_digest=labels_digest,
        counts=counts,
        agreement=_figure(proportion(agreed, table.total)),
        kappa=_figure(kappa(table)),
        sensitivity=_figure(proportion(table.both_pass, table.passes)),
        specificity=_figure(proportion(table.both_fail, table.fails)),
        position=_position(items),
        length=_length(items),
        self_preference=_self_preference(items, family_of(question.model)),
    )


def _counts(items: Sequence[Compared]) -> LabelCounts:
    def count(label: bool, judged: bool) -> int:
        return sum((item.label, item.judged) == (label, judged) for item in items)

    return LabelCounts(
        both_pass=count(True, True),
        missed=count(True, False),
        leaked=count(False, True),
        both_fail=count(False, False),
        unsound=sum(not item.is_sound for item in items),
    )


def _table(counts: LabelCounts) -> Table:
    return Table(
        both_pass=counts.both_pass,
        missed=counts.missed,
        leaked=counts.leaked,
        both_fail=counts.both_fail,
    )


def _figure(estimate: Estimate) -> Figure:
    return Figure(value=estimate.value, interval=estimate.interval)


def _position(items: Sequence[Compared]) -> PositionBias:
    changed = sum(item.judged != item.swapped for item in items)
    return PositionBias(
        changed=changed,
        total=len(items),
        rate=_figure(proportion(changed, len(items))),
        # The same answers twice: the differences are one sample, held against nothing.
        difference=_figure(
            difference_of_means([int(i.swapped) - int(i.judged) for i in items], [0, 0])
        ),
    )


def _length(items: Sequence[Compared]) -> LengthBias:
    median = median_low(item.length for item in items)
    longer = [item.leniency for item in items if item.length > median]
    others = [item.leniency for item in items if item.length <= median]
    return LengthBias(median=median, difference=_figure(difference_of_means(longer, others)))


def _self_preference(items: Sequence[Compared], family: str) -> SelfPreference | None:
    if all(item.family is None for item in items):
        return None
    own = [item.leniency for item in items if item.family == family]
    others = [item.leniency for item in items if item.family not in (family, None)]
    return SelfPreference(
        family=family,
        own=len(own),
        others=len(others),
        difference=_figure(difference_of_means(own, others)),
    )


def weakness(calibration: Calibration, min_kappa: float) -> str | None:
    """Return why a calibrated judge cannot gate, None where it can.

    Parameters
    ----------
    calibration : Calibration
    min_kappa : float
        Held against the estimate of kappa, from the counts.
    """
    table = _table(calibration.counts)
    fewest = min(table.passes, table.fails)
    if fewest < FEWEST_OF_A_KIND:
        return (
            f"its calibration has {table.passes} labels that pass and {table.fails} that fail;"
            f" {FEWEST_OF_A_KIND} of each are needed"
        )
    value = kappa(table).value
    if value is None or value < min_kappa:
        return f"its kappa is {_shown(value)}, and min_kappa is {min_kappa:g}"
    return None


def _shown(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.3f}"


def judged_rate(asked: int, passed: int, calibration: Calibration | None) -> JudgedRate:
    """Return a judge's pass rate with what it stands for.

    Parameters
    ----------
    asked, passed : int
        Trials; at least one was asked about.
    calibration : Calibration or None
        None: there is nothing to correct by.
    """
    found = calibration and corrected_rate(passed, asked, _table(calibration.counts))
    return JudgedRate(
        asked=asked,
        passed=passed,
        rate=passed / asked,
        corrected=found.rate if found else None,
        interval=(found.low, found.high) if found else None,
    )

"""The section on process measures: a row each, shares in per cent and counts as they are."""

from __future__ import annotations

from ci_gate.model.process import ProcessResult, ProcessSide
from ci_gate.render.document import Fold
from ci_gate.render.layout import Limits
from ci_gate.render.process import process
from tests.render.samples import verdict


def side(mean: float, low: float, high: float) -> ProcessSide:
    return ProcessSide(mean=mean, interval=(low, high), tasks=2, trials=16)


def test_a_row_has_both_sides_and_their_difference_with_intervals() -> None:
    """Which way is better is said, and a count is not written in per cent."""
    results = (
        ProcessResult(
            measure="tool_selection",
            better="more",
            unit="share",
            baseline=side(0.9, 0.8, 1.0),
            candidate=side(0.75, 0.6, 0.9),
            difference=-0.15,
            interval=(-0.3, 0.0),
        ),
        ProcessResult(
            measure="useless_retries",
            better="less",
            unit="count",
            baseline=side(0.5, 0.25, 0.75),
            candidate=side(1.5, 1.0, 2.0),
            difference=1.0,
            interval=(0.4, 1.6),
        ),
    )

    section = process(verdict(process=results), Limits())

    assert section is not None
    assert section.fold is Fold.CLOSED
    assert section.table is not None
    assert section.table.rows == (
        (
            *("Tool selection (F1)", "90.0 %", "75.0 %", "60.0 % to 90.0 %"),
            *("−15.0", "−30.0 to 0", "more", "16"),  # noqa: RUF001 - as shown
        ),
        (
            *("Useless retries a trial", "0.5", "1.5", "1 to 2"),
            *("+1", "0.4 to 1.6", "less", "16"),
        ),
    )


def test_without_a_baseline_its_columns_are_left_out() -> None:
    """And without any measure so is the section."""
    result = ProcessResult(
        measure="refusal", better="more", unit="share", baseline=None, candidate=side(1, 0.8, 1)
    )

    section = process(verdict(process=(result,)), Limits())

    assert section is not None
    assert section.table is not None
    titles = [column.title for column in section.table.columns]
    assert titles == ["Measure", "Candidate", "Candidate's interval", "Better", "Trials"]
    assert process(verdict(process=()), Limits()) is None

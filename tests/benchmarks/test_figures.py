"""What the benchmarks print, and when they say that a figure does not hold."""

from __future__ import annotations

import json

import pytest

from benchmarks.simulation.figures import Asked, Mean, Rate, Table, about


def test_a_rate_is_never_without_an_error() -> None:
    """Not one case of 400 is no proof that there is none."""
    assert Rate(20, 400).error == pytest.approx((0.05 * 0.95 / 400) ** 0.5, rel=0.02)
    assert Rate(0, 400).error == pytest.approx(0.5**0.5 / 400, rel=0.01)


@pytest.mark.parametrize(
    ("found", "asked", "holds"),
    [
        (Rate(20, 400), Asked(high=0.05), True),
        (Rate(33, 400), Asked(high=0.05), True),
        (Rate(45, 400), Asked(high=0.05), False),
        (Rate(280, 400), Asked(low=0.74), True),
        (Rate(260, 400), Asked(low=0.74), False),
        (Rate(200, 400), about(0.9), False),
        (Mean(0.66, 0.01), Asked(high=0.6), False),
        (Mean(0.62, 0.01), Asked(high=0.6), True),
    ],
)
def test_a_figure_may_miss_by_three_standard_errors(
    found: Rate | Mean, asked: Asked, holds: bool
) -> None:
    """Hundreds of figures are held at once, and two errors would miss every twentieth."""
    assert asked.holds(found) is holds


TABLE = Table(
    name="demo",
    title="A title, N = 400",
    columns=("level .05", "note"),
    rows={"gate": (Rate(20, 400), "-"), "threshold": (Rate(100, 400), "kept")},
    notes=("A note.",),
    asked={("gate", "level .05"): Asked(high=0.05), ("threshold", "level .05"): Asked(high=0.05)},
)


def test_a_table_is_laid_out_in_columns() -> None:
    """Title, notes, columns, and a line a row, the figures under their column."""
    assert TABLE.text().splitlines() == [
        "A title, N = 400",
        "A note.",
        "                 level .05  note",
        "gate         0.050 (0.011)     -",
        "threshold    0.250 (0.022)  kept",
    ]


def test_a_table_for_a_page_has_the_same_cells() -> None:
    """Markdown: a row of names, a row of dashes, a line a row."""
    assert TABLE.markdown().splitlines()[-4:] == [
        "|  | level .05 | note |",
        "|---|---|---|",
        "| gate | 0.050 (0.011) | - |",
        "| threshold | 0.250 (0.022) | kept |",
    ]


def test_what_is_missed_is_named_with_its_figure() -> None:
    """Row, column, what was found and what is asked."""
    assert TABLE.missed() == ["demo, threshold, level .05: 0.250 (0.022), asked 0.000 to 0.050"]


def test_a_table_as_data_holds_the_errors_and_the_repeats() -> None:
    """Figures that are read by a program need not be parsed out of text."""
    plain = json.loads(json.dumps(TABLE.plain()))

    cell = plain["rows"]["gate"]["level .05"]
    assert (cell["share"], cell["n"]) == (0.05, 400)
    assert cell["standard_error"] == pytest.approx(0.011, abs=1e-3)

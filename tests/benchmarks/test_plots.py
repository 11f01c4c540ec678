"""The plots are well-formed, the same each time, and show every figure."""

from __future__ import annotations

from collections.abc import Callable
from xml.etree import ElementTree

import pytest

from benchmarks.simulation.drawing import Chart, Series, bars, dots, lines

CHART = Chart(
    title="A <title> & more",
    places=("0", "5", "10"),
    value_name="blocked",
    series=[
        Series(name="gate", values=(0.05, 0.5, 1.0), errors=(0.01, 0.02, 0.0)),
        Series(name="a <b>", values=(0.5, None, 0.9)),
    ],
    level=0.05,
    level_name="alpha",
)
COMPLETE = Chart(title="Two", places=CHART.places, value_name="", series=CHART.series[:1])


@pytest.mark.parametrize(("draw", "chart"), [(lines, COMPLETE), (dots, COMPLETE), (bars, CHART)])
def test_a_plot_is_well_formed_and_the_same_again(
    draw: Callable[[Chart], str], chart: Chart
) -> None:
    """Equal figures give equal bytes, and names cannot break out of the picture."""
    picture = draw(chart)

    root = ElementTree.fromstring(picture)
    words = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert draw(chart) == picture
    assert chart.title in words
    assert {one.name for one in chart.series} <= set(words)
    assert "prefers-color-scheme:dark" in picture


def test_a_line_lies_where_its_values_are() -> None:
    """From the lowest value, left and low, to the highest, right and high."""
    root = ElementTree.fromstring(lines(COMPLETE))
    (line,) = root.iter("{http://www.w3.org/2000/svg}polyline")
    points = [tuple(map(float, point.split(","))) for point in line.get("points", "").split()]

    (x0, y0), (x1, y1), (x2, y2) = points
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.11)
    assert (y0 - y1) / (y0 - y2) == pytest.approx(0.45 / 0.95, abs=0.01)


def test_a_missing_value_has_no_bar() -> None:
    """Three values of one series, two of the other, and a box each in the legend."""
    root = ElementTree.fromstring(bars(CHART))
    boxes = [r for r in root.iter("{http://www.w3.org/2000/svg}rect") if r.get("class") != "page"]

    assert len(boxes) == 5 + 2

"""Rounding: never more than is known."""

# ruff: noqa: RUF001 - the typographic minus and dash are what is tested

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_gate.render import figures

SHARES = st.floats(0.0, 1.0, allow_nan=False)


@pytest.mark.parametrize(
    ("share", "shown"),
    [
        (0.0, "0 %"),
        (1.0, "100 %"),
        (0.91, "91.0 %"),
        (0.9996, "> 99.9 %"),
        (0.99949, "99.9 %"),
        (0.0004, "< 0.1 %"),
        (1e-12, "< 0.1 %"),
        (0.0006, "0.1 %"),
        (None, "–"),
        (math.nan, "–"),
    ],
)
def test_percent_table(share: float | None, shown: str) -> None:
    """A share has one decimal, and is 0 or 100 only where it is exactly that."""
    assert figures.percent(share) == shown


@given(SHARES)
def test_percent_is_whole_only_if_exact(share: float) -> None:
    """No share but 0 and 1 is written as 0 % or 100 %."""
    shown = figures.percent(share)

    assert (shown == "0 %") == (share == 0.0)
    assert (shown == "100 %") == (share == 1.0)


@given(SHARES, SHARES)
def test_percent_keeps_order(low: float, high: float) -> None:
    """Of two shares the larger is never written as the smaller."""
    low, high = sorted((low, high))

    assert _number(figures.percent(low)) <= _number(figures.percent(high))


def _number(shown: str) -> float:
    exact = float(shown.strip("<> %"))
    return exact - 0.01 if shown.startswith("<") else exact + 0.01 if shown[0] == ">" else exact


@pytest.mark.parametrize(
    ("share", "limit", "shown"),
    [(0.59996, 0.6, "59.996 %"), (0.6, 0.6, "60.0 %"), (0.8999, 0.9, "89.99 %")],
)
def test_percent_differs_from_its_limit(share: float, limit: float, shown: str) -> None:
    """A figure next to its limit shows on which side of it it lies."""
    assert figures.percent(share, against=limit) == shown


@pytest.mark.parametrize(
    ("difference", "shown"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (-0.07, "−7.0"),
        (0.021, "+2.1"),
        (-0.0004, "−0.04"),
        (1e-9, "+0.001"),
        (-1.0, "−100"),
        (-0.9999, "−99.99"),
        (-0.9999999, "−99.999"),
        (1.5, "+150.0"),
        (None, "–"),
        (math.inf, "–"),
    ],
)
def test_points_table(difference: float | None, shown: str) -> None:
    """A difference is signed and in points, and is 0 or 100 only where it is exactly that."""
    assert figures.points(difference) == shown


@given(st.floats(-1.0, 1.0))
def test_points_are_zero_only_if_exact(difference: float) -> None:
    """No difference but 0 is written as 0."""
    assert (figures.points(difference) == "0") == (difference == 0.0)


@pytest.mark.parametrize(
    ("p", "shown"),
    [
        (0.0, "< 0.001"),
        (1e-9, "< 0.001"),
        (0.001, "0.001"),
        (0.0312, "0.031"),
        (0.9997, "> 0.999"),
        (1.0, "1"),
        (None, "–"),
    ],
)
def test_p_value_table(p: float | None, shown: str) -> None:
    """A p-value has three decimals and is never 0."""
    assert figures.p_value(p) == shown


@pytest.mark.parametrize(
    ("p", "shown"),
    [(0.0499999, "0.050000"), (0.04996, "0.04996"), (0.05004, "0.05004"), (0.05, "0.050")],
)
def test_p_value_differs_from_its_level(p: float, shown: str) -> None:
    """A p-value next to its level keeps digits until both look different."""
    assert figures.p_value(p, against=0.05) == shown


@given(st.floats(0.0, 1.0))
def test_p_value_is_never_zero(p: float) -> None:
    """Whatever the p-value, what is written is not a zero."""
    assert figures.p_value(p).strip("0.") != ""


def test_interval_has_both_bounds_in_points() -> None:
    """An interval is written with the words and figures of its bounds."""
    assert figures.interval((-0.11, 0.03)) == "−11.0 to +3.0"
    assert figures.interval(None) == "–"


@pytest.mark.parametrize(
    ("passed", "trials", "shown"),
    [
        (31, 32, "31/32 (96.9 %)"),
        (0, 8, "0/8 (0 %)"),
        (0, 0, "0/0"),
        (9999, 10000, "9999/10000 (> 99.9 %)"),
    ],
)
def test_rate_carries_its_n(passed: int, trials: int, shown: str) -> None:
    """A rate never stands without the trials it is taken from."""
    assert figures.rate(passed, trials) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1600, "1,600"),
        (0.0023124, "0.00231"),
        (-0.5, "−0.5"),
        (12345.6, "12,346"),
        (True, "True"),
        (None, "–"),
        (math.inf, "–"),
        ("gpt", "gpt"),
    ],
)
def test_amount_table(value: object, shown: str) -> None:
    """A measure has three significant digits, an integer all of them."""
    assert figures.amount(value) == shown

"""What is no amount is unknown, from wherever it comes."""

from __future__ import annotations

import math

import pytest

from ci_gate.model.amounts import amount_within, count_within


@pytest.mark.parametrize(
    "value", [-1, -0.5, 1.7e308, 1e9 + 1, 10**300, math.inf, -math.inf, math.nan, None]
)
def test_what_is_no_amount_is_unknown(value: float | None) -> None:
    """Neither a negative number, nor one beyond the bound, nor one beyond every float counts."""
    assert amount_within(value) is None


def test_an_amount_is_a_float_up_to_its_bound() -> None:
    """Both ends belong to it, and whole numbers become floats."""
    assert [amount_within(value) for value in (0, 2, 0.25, 10**9)] == [0.0, 2.0, 0.25, 1e9]
    assert isinstance(amount_within(2), float)


def test_a_count_is_a_whole_number_up_to_its_bound() -> None:
    """A trillion tokens of one trial are the most that anybody believes."""
    found = [count_within(value) for value in (0, 10**12, 10**12 + 1, -1, 10**5000, None)]
    assert found == [0, 10**12, None, None, None, None]

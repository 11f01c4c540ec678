"""Sums of amounts: exact, and without surprises of binary fractions."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from ci_gate.grading.state.summing import NotANumber, decimal_text, exact, total


@pytest.mark.parametrize(
    ("values", "added"),
    [
        ([], "0"),
        ([1, -3, None], "-2"),
        ([0.1, 0.2], "0.3"),
        ([0.1] * 10, "1"),
        (["45.00", "-0.01"], "44.99"),
        ([2**63, 1], "9223372036854775809"),
        ([1e16, 1, -1e16], "1"),
        ([1e308, 5e-324, -1e308], "0." + "0" * 323 + "5"),
    ],
)
def test_sums_are_exact(values: list[Any], added: str) -> None:
    """Nothing is rounded, whatever the size of the amounts and their order."""
    assert decimal_text(total(values)) == added
    assert total(reversed(values)) == total(values)


@pytest.mark.parametrize(
    "value", [True, "4e5", "", "1.", ".5", "NaN", "9" * 61, b"1", float("inf"), [1], "1\n"]
)
def test_what_is_no_amount_is_refused(value: Any) -> None:
    """A text that only looks like a number, or would be a huge one, is none."""
    with pytest.raises(NotANumber):
        exact(value)


def test_a_decimal_text_is_that_decimal() -> None:
    """A text counts as what it says."""
    assert exact("-12.50") == Fraction(-25, 2)

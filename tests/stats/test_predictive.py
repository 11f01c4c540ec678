"""The chances of counts to come, for as many trials as anybody plans."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest

from ci_gate.stats.predictive import _binomials

CHANCES = np.array([0.001, 0.3, 0.5, 0.97])


@pytest.mark.parametrize("left", [1, 16, 1029, 1030, 1500])
def test_the_chances_of_all_counts_add_up_to_one(left: int) -> None:
    """Beyond 1,029 trials the number of ways to choose among them is beyond every float."""
    assert _binomials(CHANCES, 0, 0, left).sum(axis=-1) == pytest.approx(1, abs=1e-10)


def test_they_are_the_products_of_their_factors() -> None:
    """To the last bit: a verdict is the same bytes, whichever way they are kept in range."""
    done, passed, left = 5, 2, 7
    kept, lost = (
        np.cumprod([np.ones_like(c), *[c] * (done + left)], axis=0) for c in (CHANCES, 1 - CHANCES)
    )
    expected = [
        comb(left, e) * kept[passed + e] * lost[done - passed + left - e] for e in range(left + 1)
    ]

    assert np.array_equal(_binomials(CHANCES, done, passed, left), np.stack(expected, axis=-1))

"""One task's null distribution, against scipy and against enumeration."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from ci_gate.stats.hypergeometric import candidate_null

SIDES = st.integers(1, 6)


@given(SIDES, SIDES, st.data())
def test_single_stratum_is_hypergeometric(nb: int, nc: int, data: st.DataObject) -> None:
    """One stratum gives scipy's hypergeometric distribution and its lower tails."""
    passed = data.draw(st.integers(0, nb + nc))
    null = candidate_null(((nb, nc, passed),))
    oracle = scipy.stats.hypergeom(nb + nc, passed, nc)
    x = np.arange(null.first, null.first + len(null.weights))
    assert null.chances == pytest.approx(oracle.pmf(x), abs=1e-13)
    assert null.lower_tails == pytest.approx(oracle.cdf(x), abs=1e-13)


@pytest.mark.parametrize("table", [(8, 8, 8, 3), (32, 30, 8, 4), (5, 5, 3, 0), (1, 1, 1, 0)])
def test_task_p_is_fishers_one_sided(table: tuple[int, int, int, int]) -> None:
    """A task's p-value is Fisher's exact test against "worse"."""
    nb, cb, nc, cc = table
    null = candidate_null(((nb, nc, cb + cc),))
    fisher = scipy.stats.fisher_exact([[cc, nc - cc], [cb, nb - cb]], alternative="less")
    assert null.lower_tails[cc - null.first] == pytest.approx(fisher.pvalue, abs=1e-14)


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 2)).flatmap(
            lambda n: st.tuples(st.just(n[0]), st.just(n[1]), st.integers(0, n[0] + n[1]))
        ),
        max_size=3,
    )
)
def test_strata_convolve(strata: list[tuple[int, int, int]]) -> None:
    """Several strata give the distribution of the sum over every way to deal each of them."""
    deals: dict[int, Fraction] = {}
    parts = [candidate_null((stratum,)) for stratum in strata]
    for xs in product(*(range(len(part.weights)) for part in parts)):
        total = sum(part.first + x for part, x in zip(parts, xs, strict=True))
        chance = Fraction(1)
        for part, x in zip(parts, xs, strict=True):
            chance *= Fraction(part.weights[x], part.deals)
        deals[total] = deals.get(total, Fraction(0)) + chance
    null = candidate_null(tuple(strata))
    found = {null.first + i: Fraction(w, null.deals) for i, w in enumerate(null.weights)}
    assert found == deals


def test_many_trials_stay_exact() -> None:
    """Two times 10,000 trials: chances sum to 1 and the far tail is positive, not rounded away."""
    null = candidate_null(((10_000, 10_000, 10_000),))
    assert sum(null.weights) == null.deals
    assert null.lower_tails[4_500] == pytest.approx(
        scipy.stats.hypergeom.cdf(4_500, 20_000, 10_000, 10_000), rel=1e-9
    )

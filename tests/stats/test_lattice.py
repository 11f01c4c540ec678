"""Exact sums: against enumeration, far into the tails, and for many equal terms."""

from __future__ import annotations

from itertools import product
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_gate.stats.lattice import SMALLEST_P, Mass, Term, dense_sum, reach, sparse_sum
from tests.speeds import slow

TERMS = st.lists(
    st.tuples(st.lists(st.integers(0, 6), min_size=1, max_size=3, unique=True), st.integers(1, 3)),
    max_size=3,
)


def _chances(mass: Mass) -> dict[int, float]:
    pairs = zip(mass.values.tolist(), mass.chances.tolist(), strict=True)
    return {value: chance for value, chance in pairs if chance}


@pytest.mark.parametrize("way", ["array", "array by squaring", *slow("list")])
@given(shapes=TERMS)
def test_sum_is_the_enumerated_one(way: str, shapes: list[tuple[list[int], int]]) -> None:
    """However it is kept, the sum has the chances of every combination of the terms' values."""
    terms = [Term(tuple(sorted(s)), (1 / len(s),) * len(s), times) for s, times in shapes]
    singles = [term for term in terms for _ in range(term.times)]
    expected: dict[int, float] = {}
    for choice in product(*(range(len(term.shifts)) for term in singles)):
        value = sum(term.shifts[i] for term, i in zip(singles, choice, strict=True))
        chance = float(np.prod([t.chances[i] for t, i in zip(singles, choice, strict=True)]))
        expected[value] = expected.get(value, 0.0) + chance
    mass = sparse_sum(terms) if way == "list" else dense_sum(terms, squaring="squaring" in way)
    assert _chances(mass) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("squaring", [True, False])
@pytest.mark.parametrize("times", [15, 16, 50, 500])
def test_equal_terms_give_the_binomial(times: int, squaring: bool) -> None:
    """Equal terms, added one by one or by squaring, are binomial with a small relative error."""
    chances = _chances(dense_sum([Term((0, 1), (0.75, 0.25), times)], squaring=squaring))
    for value in range(0, times + 1, 7):
        exact = comb(times, value) * 3 ** (times - value) / 4**times
        if exact > SMALLEST_P:
            assert chances[value] == pytest.approx(exact, rel=1e-11)


def test_far_tails_are_cut_off() -> None:
    """Many terms cost their standard deviations, not their range, and less than the bound says."""
    mass = dense_sum([Term((0, 1), (0.5, 0.5), 10_000)], squaring=True)
    assert len(mass.values) < 2 * reach(1, 2500) < 2_000
    assert mass.lower_tails()[0] == SMALLEST_P


def test_rare_large_terms_are_within_reach() -> None:
    """A rare large value is not cut off, and the bound on the width knows it."""
    mass = dense_sum([Term((0, 1000), (1 - 1e-6, 1e-6), 3)], squaring=False)
    assert len(mass.values) == 3001
    assert reach(1000, 3 * 1000**2 * 1e-6) > 3001


def test_terms_may_lack_mass() -> None:
    """Chances that sum to less than 1 give the chance that nothing left out has happened."""
    term = Term((2,), (0.5,), 3)
    for mass in (dense_sum([term], squaring=False), sparse_sum([term])):
        assert _chances(mass) == {6: 0.125}
        assert mass.lower_tails().tolist() == [0.125]

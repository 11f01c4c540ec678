"""pass^k and its relatives: known answers, exactness, and refusals."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import comb, prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_gate.stats.passk import (
    pass_at_k,
    pass_hat_k,
    pass_hat_k_by_seed,
    plug_in_pass_hat_k,
)


@pytest.mark.parametrize(
    ("successes", "trials", "k", "expected"),
    [
        (7, 8, 8, 0.0),
        (8, 8, 8, 1.0),
        (6, 8, 4, 15 / 70),
        (6, 8, 3, 20 / 56),
        (6, 10, 5, 6 / 252),
        (0, 1, 1, 0.0),
        (1, 1, 1, 1.0),
    ],
)
def test_pass_hat_k_known(successes: int, trials: int, k: int, expected: float) -> None:
    """The estimate is the share of k-subsets of the trials in which all pass."""
    assert pass_hat_k(successes, trials, k) == expected


def test_pass_at_k_and_plug_in_known() -> None:
    """Six of ten: any five hold a pass, and the plug-in is the fifth power of the rate."""
    assert pass_at_k(6, 10, 5) == 1.0
    assert plug_in_pass_hat_k(6, 10, 5) == 0.07776


def test_suite_of_published_outcomes() -> None:
    """Published tau-bench airline outcomes (gpt-4o, 50 tasks x 4) give the published pass^k."""
    counts = [c for c, tasks in enumerate((14, 12, 10, 4, 10)) for _ in range(tasks)]
    suite = [sum(pass_hat_k(c, 4, k) for c in counts) / 50 for k in (1, 2, 3, 4)]
    assert suite == pytest.approx([0.42, 0.27333333333, 0.22, 0.2], abs=1e-11)


@pytest.mark.parametrize("estimate", [pass_hat_k, pass_at_k, plug_in_pass_hat_k])
@pytest.mark.parametrize("counts", [(1, 4, 0), (5, 4, 1), (-1, 4, 1), (0, 0, 1)])
def test_impossible_counts_are_refused(estimate, counts: tuple[int, int, int]) -> None:
    """No estimate is made of counts that cannot be."""
    with pytest.raises(ValueError, match="found"):
        estimate(*counts)


@pytest.mark.parametrize("estimate", [pass_hat_k, pass_at_k])
def test_fewer_trials_than_k_are_refused(estimate) -> None:
    """Below k trials the estimate does not exist, and is neither 0 nor 1 nor pass^n."""
    with pytest.raises(ValueError, match="at least 8 judged trials, found 6"):
        estimate(6, 6, 8)


def test_many_trials_keep_every_digit() -> None:
    """Ten thousand trials neither overflow nor lose a digit."""
    exact = Fraction(comb(9_999, 5_000), comb(10_000, 5_000))
    assert pass_hat_k(9_999, 10_000, 5_000) == float(exact)
    assert pass_at_k(1, 10_000, 5_000) == 0.5
    assert plug_in_pass_hat_k(9_999, 10_000, 1_000) == float(Fraction(9_999, 10_000) ** 1_000)


@given(st.integers(1, 12), st.data())
def test_pass_hat_k_is_unbiased(n: int, data: st.DataObject) -> None:
    """Averaged over binomial outcomes the estimate is p^k, and pass@k is 1 - (1 - p)^k, exactly."""
    k = data.draw(st.integers(1, n))
    p = Fraction(data.draw(st.integers(0, 7)), 7)
    chances = [comb(n, c) * p**c * (1 - p) ** (n - c) for c in range(n + 1)]
    mean_hat = sum(w * Fraction(comb(c, k), comb(n, k)) for c, w in enumerate(chances))
    estimated = sum(float(w) * pass_hat_k(c, n, k) for c, w in enumerate(chances))
    any_pass = sum(float(w) * pass_at_k(c, n, k) for c, w in enumerate(chances))
    assert mean_hat == p**k
    assert estimated == pytest.approx(float(p**k), abs=1e-12)
    assert any_pass == pytest.approx(float(1 - (1 - p) ** k), abs=1e-12)


@given(
    st.lists(
        st.integers(1, 4).flatmap(lambda r: st.tuples(st.integers(0, r), st.just(r))),
        min_size=1,
        max_size=6,
    ),
    st.data(),
)
def test_by_seed_is_the_mean_over_choices_of_seeds(
    seeds: list[tuple[int, int]], data: st.DataObject
) -> None:
    """Pass^k by seed averages, over all choices of k seeds, the product of their rates."""
    k = data.draw(st.integers(1, len(seeds)))
    rates = [Fraction(c, r) for c, r in seeds]
    choices = list(combinations(rates, k))
    expected = float(sum(prod(choice, start=Fraction(1)) for choice in choices) / len(choices))
    assert pass_hat_k_by_seed([c for c, _ in seeds], [r for _, r in seeds], k) == expected


@given(st.lists(st.integers(0, 1), min_size=1, max_size=12), st.data())
def test_by_seed_with_one_repeat_is_pass_hat_k(outcomes: list[int], data: st.DataObject) -> None:
    """With one trial a seed, both estimates are the same number."""
    k = data.draw(st.integers(1, len(outcomes)))
    by_seed = pass_hat_k_by_seed(outcomes, [1] * len(outcomes), k)
    assert by_seed == pass_hat_k(sum(outcomes), len(outcomes), k)


def test_by_seed_leaves_unjudged_seeds_out() -> None:
    """A seed without a judged trial is no seed, and too few of the others are refused."""
    assert pass_hat_k_by_seed([1, 0, 2], [2, 0, 2], 2) == 0.5
    with pytest.raises(ValueError, match="at least 3 judged trials, found 2"):
        pass_hat_k_by_seed([1, 0, 2], [2, 0, 2], 3)
    with pytest.raises(ValueError, match="2 passed counts for 1 seeds"):
        pass_hat_k_by_seed([1, 1], [1], 1)

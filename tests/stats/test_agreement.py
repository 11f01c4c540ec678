"""Agreement with people, and pass rates without a judge's known errors."""

from __future__ import annotations

from math import sqrt

import pytest

from ci_gate.prng import Xorshift64Star
from ci_gate.stats.agreement import (
    Table,
    corrected_rate,
    difference_of_means,
    kappa,
    kappa_error,
    proportion,
)


def table(both_pass: int, missed: int, leaked: int, both_fail: int) -> Table:
    return Table(both_pass=both_pass, missed=missed, leaked=leaked, both_fail=both_fail)


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        # po = 35/50, pe = (25*30 + 25*20) / 2500 = 1/2: the textbook table of 50 grant proposals.
        ((20, 5, 10, 15), 0.4),
        # po = 60/100, pe = 54/100 and 46/100: the same agreement, another chance of it.
        ((45, 15, 25, 15), 0.06 / 0.46),
        ((25, 35, 5, 35), 0.14 / 0.54),
        ((10, 0, 0, 10), 1.0),
        ((0, 10, 10, 0), -1.0),
        ((5, 5, 5, 5), 0.0),
    ],
)
def test_kappa_is_agreement_beyond_chance(
    counts: tuple[int, int, int, int], expected: float
) -> None:
    """Kappa is (po - pe) / (1 - pe), as computed by hand for published tables."""
    assert kappa(table(*counts)).value == pytest.approx(expected)


def test_kappa_is_unknown_where_both_say_one_thing() -> None:
    """Where judge and people give every item the same mark, agreement beyond chance is unknown."""
    assert kappa(table(20, 0, 0, 0)).value is None
    assert kappa(table(0, 0, 0, 0)).value is None


def test_kappa_error_is_that_of_the_delta_method() -> None:
    """The standard error equals the delta method's, differentiated numerically at the table."""
    cells, total, step = (0.4, 0.1, 0.2, 0.3), 50, 1e-6

    def value(shares: list[float]) -> float:
        whole = sum(shares)
        a, b, c, d = (share / whole for share in shares)
        chance = (a + b) * (a + c) + (c + d) * (b + d)
        return (a + d - chance) / (1 - chance)

    slopes = []
    for at in range(4):
        up, down = list(cells), list(cells)
        up[at] += step
        down[at] -= step
        slopes.append((value(up) - value(down)) / (2 * step))
    mean = sum(p * g for p, g in zip(cells, slopes, strict=True))
    variance = sum(p * (g - mean) ** 2 for p, g in zip(cells, slopes, strict=True)) / total
    assert kappa_error(cells, total) == pytest.approx(sqrt(variance), rel=1e-6)


def test_agreement_on_few_items_is_not_certain() -> None:
    """Ten items on which all agree leave kappa open below, a thousand hardly."""
    few, many = kappa(table(5, 0, 0, 5)), kappa(table(500, 0, 0, 500))
    assert few.interval is not None
    assert many.interval is not None
    assert few.interval[0] < 0.6
    assert few.interval[1] == 1
    assert many.interval[0] > 0.99


def test_a_proportion_has_the_score_interval() -> None:
    """The interval of 8 of 10 is Wilson's, 0.4902 to 0.9433; none of 10 begins at 0 exactly."""
    found = proportion(8, 10)
    assert found.value == 0.8
    assert found.interval == pytest.approx((0.49016, 0.94332), abs=1e-5)
    assert proportion(0, 10).interval == pytest.approx((0.0, 0.27753), abs=1e-5)
    assert proportion(10, 10).interval == pytest.approx((0.72247, 1.0), abs=1e-5)
    assert proportion(0, 0).value is None


def test_a_rate_is_corrected_for_known_errors() -> None:
    """(p + sp - 1) / (se + sp - 1): 23 of 150 at se 0.96 and sp 0.89 is 5.1 % of a herd."""
    found = corrected_rate(23, 150, table(96, 4, 11, 89))
    assert found is not None
    assert found.rate == pytest.approx((23 / 150 + 0.89 - 1) / (0.96 + 0.89 - 1))
    assert round(found.rate, 3) == 0.051
    assert found.low == 0
    assert 0.1 < found.high < 0.2


def test_a_perfect_judge_needs_no_correction() -> None:
    """Without known errors the rate stays, and its interval is wider than the judge's alone."""
    found = corrected_rate(60, 100, table(50, 0, 0, 50))
    plain = proportion(60, 100).interval
    assert found is not None
    assert plain is not None
    assert found.rate == pytest.approx(0.6)
    assert found.high - found.low > plain[1] - plain[0]


def test_a_corrected_rate_stays_within_its_range() -> None:
    """A rate below the false alarms, or above the sensitivity, is cut to 0 and 1."""
    below, above = (corrected_rate(n, 100, table(80, 20, 20, 80)) for n in (5, 99))
    assert below is not None
    assert above is not None
    assert (below.rate, below.low) == (0, 0)
    assert (above.rate, above.high) == (1, 1)


@pytest.mark.parametrize(
    "of", [table(5, 5, 5, 5), table(4, 6, 5, 5), table(10, 0, 0, 0), table(0, 0, 0, 10)]
)
def test_a_judge_that_says_nothing_corrects_nothing(of: Table) -> None:
    """Where sensitivity + specificity <= 1, or one of them is unknown, so is the rate."""
    assert corrected_rate(5, 10, of) is None
    assert corrected_rate(0, 0, table(9, 1, 1, 9)) is None


def test_a_difference_of_means_has_the_normal_interval() -> None:
    """Means 3/4 and 1/4 of four differ by 1/2 -+ 1.96 sqrt(2 * 0.25 / 4)."""
    found = difference_of_means([1, 1, 1, 0], [0, 0, 0, 1])
    assert found.value == 0.5
    assert found.interval == pytest.approx((0.5 - 0.69296, 0.5 + 0.69296), abs=1e-5)
    assert difference_of_means([], [1]).value is None
    assert difference_of_means([1], [0]).interval is None


class _Draws:
    """Draws of items from shares, by the generator of this project."""

    def __init__(self, seed: int) -> None:
        self._generator = Xorshift64Star(seed)

    def uniform(self) -> float:
        return self._generator.next() / 2**64

    def binomial(self, n: int, p: float) -> int:
        return sum(self.uniform() < p for _ in range(n))


def _drawn(draws: _Draws, n: int, passing: float, se: float, sp: float) -> Table:
    passes = draws.binomial(n, passing)
    hits, rejects = draws.binomial(passes, se), draws.binomial(n - passes, sp)
    return table(hits, passes - hits, n - passes - rejects, rejects)


@pytest.mark.calibration
@pytest.mark.parametrize("n", [30, 50, 100, 200])
@pytest.mark.parametrize(
    ("passing", "se", "sp"),
    [(0.5, 0.9, 0.9), (0.7, 0.95, 0.85), (0.8, 0.98, 0.9), (0.5, 0.7, 0.7), (0.5, 0.99, 0.99)],
)
def test_the_interval_of_kappa_holds_the_truth(
    n: int, passing: float, se: float, sp: float
) -> None:
    """In at least 92 % of simulated calibrations the 95 % interval holds the true kappa."""
    agreed = passing * se + (1 - passing) * sp
    judge = passing * se + (1 - passing) * (1 - sp)
    chance = passing * judge + (1 - passing) * (1 - judge)
    truth = (agreed - chance) / (1 - chance)
    draws, held, rounds = _Draws(n + int(100 * se)), 0, 2000
    for _ in range(rounds):
        interval = kappa(_drawn(draws, n, passing, se, sp)).interval
        held += interval is not None and interval[0] <= truth <= interval[1]
    print(f"kappa n={n} passing={passing} se={se} sp={sp}: {held / rounds:.4f}")
    assert held / rounds >= 0.92


@pytest.mark.calibration
@pytest.mark.parametrize("judged", [40, 200])
@pytest.mark.parametrize("labels", [25, 100])
@pytest.mark.parametrize(
    ("rate", "se", "sp"), [(0.5, 0.9, 0.9), (0.9, 0.95, 0.85), (0.2, 0.8, 0.95)]
)
def test_the_interval_of_a_corrected_rate_holds_the_truth(
    judged: int, labels: int, rate: float, se: float, sp: float
) -> None:
    """In at least 92 % of simulated runs the 95 % interval holds the true pass rate."""
    draws, held, rounds = _Draws(judged + labels), 0, 1000
    for _ in range(rounds):
        hits, rejects = draws.binomial(labels, se), draws.binomial(labels, sp)
        known = table(hits, labels - hits, labels - rejects, rejects)
        right = draws.binomial(judged, rate)
        passed = draws.binomial(right, se) + draws.binomial(judged - right, 1 - sp)
        found = corrected_rate(passed, judged, known)
        held += found is None or found.low <= rate <= found.high
    print(f"rate judged={judged} labels={labels} {rate} {se} {sp}: {held / rounds:.4f}")
    assert held / rounds >= 0.92

"""How well a judge agrees with people, and what its errors make of a pass rate.

Decides estimates and widths from counts; knows neither judges, labels nor gates.
"""

from __future__ import annotations

from math import sqrt
from statistics import NormalDist

import msgspec

__all__ = [
    "Corrected",
    "Estimate",
    "Table",
    "corrected_rate",
    "difference_of_means",
    "kappa",
    "kappa_error",
    "proportion",
]

_PSEUDO = 0.5


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """Judge against people, counted.

    Parameters
    ----------
    both_pass : int
        Passed by the people and by the judge.
    missed : int
        Passed by the people alone.
    leaked : int
        Passed by the judge alone.
    both_fail : int
    """

    both_pass: int
    missed: int
    leaked: int
    both_fail: int

    @property
    def passes(self) -> int:
        """Items that people pass."""
        return self.both_pass + self.missed

    @property
    def fails(self) -> int:
        """Items that people fail."""
        return self.leaked + self.both_fail

    @property
    def total(self) -> int:
        """All items."""
        return self.passes + self.fails


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """A figure with its interval of 95 %; None where the counts do not say."""

    value: float | None
    interval: tuple[float, float] | None = None


class Corrected(msgspec.Struct, frozen=True, kw_only=True):
    """A pass rate without the judge's known errors, within [0, 1]."""

    rate: float
    low: float
    high: float


def proportion(successes: int, total: int, *, level: float = 0.95) -> Estimate:
    """Return a proportion with the score interval.

    Parameters
    ----------
    successes, total : int
        0 <= successes <= total; without any, nothing is known.
    level : float
        Coverage, in (0, 1).

    Notes
    -----
    ``(p + z^2/2n -+ z sqrt(p(1-p)/n + z^2/4n^2)) / (1 + z^2/n)``.

    References
    ----------
    Wilson, E. B. (1927). Probable inference, the law of succession, and statistical inference.
    Journal of the American Statistical Association 22, 209-212.
    """
    if not total:
        return Estimate(value=None)
    z, share = _z(level), successes / total
    spread = z * sqrt(share * (1 - share) / total + (z / (2 * total)) ** 2)
    middle, scale = share + z * z / (2 * total), 1 + z * z / total
    low = 0.0 if not successes else max(0.0, (middle - spread) / scale)
    high = 1.0 if successes == total else min(1.0, (middle + spread) / scale)
    return Estimate(value=share, interval=(low, high))


def kappa(table: Table, *, level: float = 0.95) -> Estimate:
    """Return Cohen's kappa with an interval.

    Parameters
    ----------
    table : Table
    level : float
        Coverage, in (0, 1).

    Returns
    -------
    Estimate
        None where chance alone would agree on everything: all items are of one kind for both.

    Notes
    -----
    ``kappa = (po - pe) / (1 - pe)``. Its variance is the large-sample one of Fleiss, Cohen and
    Everitt, taken at the counts with 1/2 added to each cell: at the counts themselves it is zero
    where judge and people agree on everything, and the interval would claim to know what few items
    cannot show. The interval is centred there as well, widened to hold the estimate, and cut at
    -1 and 1. How often it holds the truth is simulated in the tests.

    References
    ----------
    Cohen, J. (1960). A coefficient of agreement for nominal scales. Educational and Psychological
    Measurement 20, 37-46.
    Fleiss, J. L., Cohen, J. and Everitt, B. S. (1969). Large sample standard errors of kappa and
    weighted kappa. Psychological Bulletin 72, 323-327.
    """
    value = _kappa(_cells(table, 0.0))
    if value is None:
        return Estimate(value=None)
    cells = _cells(table, _PSEUDO)
    centre = _kappa(cells)
    assert centre is not None
    reach = _z(level) * kappa_error(cells, table.total + 4 * _PSEUDO)
    low, high = max(-1.0, centre - reach), min(1.0, centre + reach)
    return Estimate(value=value, interval=(min(low, value), max(high, value)))


def _cells(table: Table, pseudo: float) -> tuple[float, float, float, float]:
    counts = (table.both_pass, table.missed, table.leaked, table.both_fail)
    total = sum(counts) + 4 * pseudo
    first, second, third, last = ((n + pseudo) / total if total else 0.0 for n in counts)
    return first, second, third, last


def _kappa(cells: tuple[float, float, float, float]) -> float | None:
    expected = _by_chance(cells)
    if not sum(cells) or expected >= 1:
        return None
    return (cells[0] + cells[3] - expected) / (1 - expected)


def _by_chance(cells: tuple[float, float, float, float]) -> float:
    both_pass, missed, leaked, _ = cells
    people, judge = both_pass + missed, both_pass + leaked
    return people * judge + (1 - people) * (1 - judge)


def kappa_error(cells: tuple[float, float, float, float], total: float) -> float:
    """Return the standard error of kappa, as Fleiss, Cohen and Everitt (1969) give it.

    Parameters
    ----------
    cells : tuple of float
        Shares: both pass, people alone, judge alone, both fail.
    total : float
        Items.
    """
    both_pass, missed, leaked, both_fail = cells
    people, judge = both_pass + missed, both_pass + leaked
    agreed, chance = both_pass + both_fail, _by_chance(cells)
    off = 1 - agreed
    diagonal = both_pass * ((1 - chance) - (people + judge) * off) ** 2
    diagonal += both_fail * ((1 - chance) - (2 - people - judge) * off) ** 2
    apart = missed * (judge + 1 - people) ** 2 + leaked * (people + 1 - judge) ** 2
    centre = (agreed * chance - 2 * chance + agreed) ** 2
    variance = (diagonal + off**2 * apart - centre) / (total * (1 - chance) ** 4)
    return sqrt(max(0.0, variance))


def corrected_rate(
    passed: float, judged: float, table: Table, *, level: float = 0.95
) -> Corrected | None:
    """Return the pass rate that a judge's rate stands for, given the errors it is known to make.

    Parameters
    ----------
    passed, judged : float
        What the judge passed, and of how many.
    table : Table
        Of its calibration.
    level : float
        Coverage, in (0, 1).

    Returns
    -------
    Corrected or None
        None where nothing was judged, people passed or failed nothing, or sensitivity and
        specificity sum to 1 or less: such a judge says nothing.

    Notes
    -----
    Rogan and Gladen: ``(p + sp - 1) / (se + sp - 1)``, cut to [0, 1]. The interval is that of Lang
    and Reiczigel, which counts the uncertainty of the rate, the sensitivity and the specificity:
    with z^2 trials added half passed, and one item of each kind added to each of the other two,
    ``pi + d -+ z s`` where ``d = 2 z^2 (pi se (1-se)/n_se - (1-pi) sp (1-sp)/n_sp)``, cut likewise.
    Trials are taken to be independent given their tasks.

    References
    ----------
    Rogan, W. J. and Gladen, B. (1978). Estimating prevalence from the results of a screening test.
    American Journal of Epidemiology 107, 71-76.
    Lang, Z. and Reiczigel, J. (2014). Confidence limits for prevalence of disease adjusted for
    estimated sensitivity and specificity. Preventive Veterinary Medicine 113, 13-22.
    """
    if not (judged and table.passes and table.fails):
        return None
    sensitivity, specificity = table.both_pass / table.passes, table.both_fail / table.fails
    if sensitivity + specificity <= 1:
        return None
    rate = _rogan_gladen(passed / judged, sensitivity, specificity)
    low, high = _limits(passed, judged, table, _z(level))
    point = _within(rate)
    return Corrected(rate=point, low=min(_within(low), point), high=max(_within(high), point))


def _rogan_gladen(share: float, sensitivity: float, specificity: float) -> float:
    return (share + specificity - 1) / (sensitivity + specificity - 1)


def _limits(passed: float, judged: float, table: Table, z: float) -> tuple[float, float]:
    n, n_se, n_sp = judged + z * z, table.passes + 2, table.fails + 2
    share = (passed + z * z / 2) / n
    se, sp = (table.both_pass + 1) / n_se, (table.both_fail + 1) / n_sp
    if se + sp <= 1:
        return 0.0, 1.0
    rate = _rogan_gladen(share, se, sp)
    of_se, of_sp = se * (1 - se) / n_se, sp * (1 - sp) / n_sp
    shift = 2 * z * z * (rate * of_se - (1 - rate) * of_sp)
    scatter = share * (1 - share) / n + rate**2 * of_se + (1 - rate) ** 2 * of_sp
    reach = z * sqrt(scatter) / (se + sp - 1)
    return rate + shift - reach, rate + shift + reach


def _within(rate: float) -> float:
    return min(1.0, max(0.0, rate))


def difference_of_means(first: list[int], second: list[int], *, level: float = 0.95) -> Estimate:
    """Return mean(first) - mean(second) of independent samples with the normal interval.

    Parameters
    ----------
    first, second : list of int
        Each needs an item, and two for an interval.
    level : float
        Coverage, in (0, 1).

    Notes
    -----
    ``d -+ z sqrt(s1^2/n1 + s2^2/n2)``.
    """
    if not first or not second:
        return Estimate(value=None)
    value = sum(first) / len(first) - sum(second) / len(second)
    if min(len(first), len(second)) < 2:
        return Estimate(value=value)
    reach = _z(level) * sqrt(_variance(first) / len(first) + _variance(second) / len(second))
    return Estimate(value=value, interval=(value - reach, value + reach))


def _variance(values: list[int]) -> float:
    mean = sum(values) / len(values)
    return sum((value - mean) ** 2 for value in values) / (len(values) - 1)


def _z(level: float) -> float:
    if not 0 < level < 1:
        raise ValueError(f"a level is between 0 and 1, found {level}")
    return NormalDist().inv_cdf((1 + level) / 2)

"""The level of each look when a run may go on with more repeats, so that all looks share alpha.

Between two looks the same trials count twice, so that their p-values are correlated and a level of
alpha each would cry wolf too often (.076 for .05, measured), while a share of alpha each would see
too little. Knows numbers of trials; not the test that is looked at, nor why a run goes on.

References
----------
Armitage, McPherson and Rowe (1969), Repeated significance tests on accumulating data, J. R. Stat.
Soc. A 132. Pocock (1977), Group sequential methods, Biometrika 64 (a constant level).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from math import erfc, isinf, sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]

FUTILITY = 0.3
"""A run is not extended when its p-value is this or more: the stop is binding."""
NORMAL_SHARE = 0.96
"""Share of the normal process's level that the gate uses.

Its joint p-value is no normal process: with this share the plan of 8, 16 and 32 trials against 32
has a level of .025 at alpha .05, of which was measured that an unchanged agent is blocked in .047
of all cases, and .040 to .048 for other suites and baselines.
"""

_FARTHEST = 6.0
_NODES_A_DEVIATION = 3
_FEWEST_NODES, _MOST_NODES = 24, 384
_PRECISION = 1e-9


def information_fractions(looks: Sequence[int], baseline_n: float) -> tuple[float, ...]:
    """Information at each look, relative to the last.

    Parameters
    ----------
    looks
        Candidate trials a task at each look, rising, at least 1.
    baseline_n
        Trials a task in the baseline; infinite where it is known for certain.

    Returns
    -------
    tuple of float
        In (0, 1], rising to 1.

    Raises
    ------
    ValueError
        If there is no look, the looks do not rise from at least 1, or ``baseline_n < 1``.

    Notes
    -----
    The difference of two means has the variance ``1/n + 1/n_b`` in units of a trial's; information
    is its inverse. What the baseline leaves uncertain is the same at all looks.
    """
    if not looks or looks[0] < 1 or any(b <= a for a, b in pairwise(looks)):
        raise ValueError(f"looks rise from at least 1 trial, found {tuple(looks)}")
    if not baseline_n >= 1:
        raise ValueError(f"a baseline has at least 1 trial a task, found {baseline_n}")
    known = [n if isinf(baseline_n) else n * baseline_n / (n + baseline_n) for n in looks]
    return tuple(information / known[-1] for information in known)


def extension_level(fractions: Sequence[float], alpha: float, *, futility: float | None) -> float:
    """Level of every look at which all looks together have alpha, for a normal process.

    Parameters
    ----------
    fractions
        From :func:`information_fractions`.
    alpha
        Chance that the p-value is at most the level at any look although nothing changed, in
        (0, 1).
    futility
        p-value from which on the run ends at any look; None: every look is taken.

    Returns
    -------
    float
        At most ``alpha``, and ``alpha`` for a single look.

    Raises
    ------
    ValueError
        If the fractions do not rise to 1, or alpha or futility is not in (0, 1).

    Notes
    -----
    The score at information ``t`` is normal with variance ``t`` and independent increments. Its
    density where the run goes on is carried from look to look by numerical integration
    (Gauss-Legendre), and the level by the Illinois rule. Right to 1e-6; nothing is drawn.
    """
    if not fractions or fractions[0] <= 0 or any(b <= a for a, b in pairwise(fractions)):
        raise ValueError(f"fractions rise from above 0, found {tuple(fractions)}")
    if abs(fractions[-1] - 1) > _PRECISION:
        raise ValueError(f"the last fraction is 1, found {fractions[-1]}")
    for name, value in (("alpha", alpha), ("futility", futility)):
        if value is not None and not 0 < value < 1:
            raise ValueError(f"{name} is between 0 and 1, found {value}")
    return _solved(tuple(fractions), alpha, futility)


def gate_level(
    looks: Sequence[int], baseline_n: float, alpha: float, *, binding: bool = True
) -> float:
    """Level that the gate's p-value is held against at each look of a run that may be extended.

    Parameters
    ----------
    looks, baseline_n
        As in :func:`information_fractions`.
    alpha
        Of all looks together, in (0, 1).
    binding
        Whether a run ends where its p-value is ``FUTILITY`` or more.

    Returns
    -------
    float
        ``alpha`` where there is one look, since nothing is then looked at twice.

    Raises
    ------
    ValueError
        As the other two.
    """
    fractions = information_fractions(looks, baseline_n)
    level = extension_level(fractions, alpha, futility=FUTILITY if binding else None)
    return level if len(fractions) == 1 else NORMAL_SHARE * level


@lru_cache(maxsize=256)
def _solved(fractions: tuple[float, ...], alpha: float, futility: float | None) -> float:
    if len(fractions) == 1:
        return alpha
    # The looks together are at least as likely to alarm as one, and at most as likely as their sum.
    low, high = alpha / len(fractions), alpha
    below, above = (_alarm(fractions, x, futility) - alpha for x in (low, high))
    while high - low > _PRECISION and above > 0 > below:
        middle = low + (high - low) * below / (below - above)
        off = _alarm(fractions, middle, futility) - alpha
        # The end that stays counts half (the Illinois rule), so that both ends close in.
        low, below, high, above = (
            (middle, off, high, above / 2) if off < 0 else (low, below / 2, middle, off)
        )
        if abs(off) < _PRECISION:
            return middle
    return low if below == 0 else high


def _alarm(fractions: tuple[float, ...], level: float, futility: float | None) -> float:
    """Chance that any look's p-value is at most the level."""
    upper = NormalDist().inv_cdf(1 - level)
    lower = -_FARTHEST if futility is None else NormalDist().inv_cdf(1 - futility)
    scores, mass = np.array([0.0]), np.array([1.0])
    alarm = before = 0.0
    for here, after in zip(fractions, (*fractions[1:], None), strict=True):
        spread = sqrt(here - before)
        alarm += float(mass @ _upper_tails((upper * sqrt(here) - scores) / spread))
        if after is None or lower >= upper:
            break
        nodes, weights = _rule(lower * sqrt(here), upper * sqrt(here), sqrt(after - here), spread)
        distance = (nodes[:, None] - scores) / spread
        density = np.exp(-0.5 * distance * distance) @ mass / (spread * sqrt(2 * np.pi))
        scores, mass, before = nodes, weights * density, here
    return alarm


def _rule(low: float, high: float, *spreads: float) -> tuple[_Floats, _Floats]:
    """Nodes and weights to integrate over what is as wide as the narrowest of these spreads."""
    wanted = _FEWEST_NODES + int(_NODES_A_DEVIATION * (high - low) / min(spreads))
    nodes, weights = _legendre(min(wanted, _MOST_NODES))
    half = (high - low) / 2
    return low + half * (nodes + 1), half * weights


@lru_cache(maxsize=64)
def _legendre(count: int) -> tuple[_Floats, _Floats]:
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return np.asarray(nodes), np.asarray(weights)


def _upper_tails(z: _Floats) -> _Floats:
    """P(Z > z) of the standard normal."""
    return np.array([0.5 * erfc(x / sqrt(2)) for x in z.tolist()])

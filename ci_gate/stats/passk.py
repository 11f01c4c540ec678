"""What a task's trials say about ``k`` fresh trials: pass^k, pass@k and the plug-in.

Integer arithmetic throughout: one correctly rounded division at the end, so that 10,000 trials
neither overflow nor lose a digit. Decides nothing, and knows neither suites nor sides. No numpy,
so that a command which only prints rates does not pay for its import.

References
----------
Yao et al. (2024), tau-bench, arXiv:2406.12045 (pass^k). Chen et al. (2021), arXiv:2107.03374
(pass@k).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import comb, lcm


def pass_hat_k(successes: int, trials: int, k: int) -> float:
    """Estimate the chance that ``k`` fresh trials all pass, ``C(c, k) / C(n, k)``.

    Parameters
    ----------
    successes
        Trials that passed, ``0 <= successes <= trials``.
    trials
        Trials that were judged, at least ``k``.
    k
        Trials that all have to pass, at least 1.

    Returns
    -------
    float
        Between 0 and 1; unbiased for exchangeable trials.

    Raises
    ------
    ValueError
        If ``k < 1``, ``trials < k`` or ``successes`` is not in ``[0, trials]``. Below ``k`` trials
        the unbiased estimate does not exist, and nothing is put in its place.

    Examples
    --------
    >>> pass_hat_k(6, 8, 3) == 20 / 56
    True
    """
    _require_counts(successes, trials, k)
    return comb(successes, k) / comb(trials, k)


def pass_at_k(successes: int, trials: int, k: int) -> float:
    """Estimate the chance that at least one of ``k`` fresh trials passes.

    Parameters
    ----------
    successes, trials, k
        As in :func:`pass_hat_k`.

    Returns
    -------
    float
        ``1 - C(n - c, k) / C(n, k)``, between 0 and 1.

    Raises
    ------
    ValueError
        As :func:`pass_hat_k`.
    """
    _require_counts(successes, trials, k)
    chosen = comb(trials, k)
    return (chosen - comb(trials - successes, k)) / chosen


def plug_in_pass_hat_k(successes: int, trials: int, k: int) -> float:
    """Raise the pass rate to the power ``k``: simple, defined for every ``n``, and biased upwards.

    Parameters
    ----------
    successes, k
        As in :func:`pass_hat_k`.
    trials
        Trials that were judged, at least 1.

    Returns
    -------
    float
        ``(c / n) ** k``.

    Raises
    ------
    ValueError
        If ``k < 1``, ``trials < 1`` or ``successes`` is not in ``[0, trials]``.
    """
    _require_counts(successes, trials, 1)
    _require_k(k)
    numerator: int = successes**k
    denominator: int = trials**k
    return numerator / denominator


def pass_hat_k_by_seed(passed: Sequence[int], repeats: Sequence[int], k: int) -> float:
    """Estimate pass^k over distinct seeds when the same seeds were run several times.

    Parameters
    ----------
    passed, repeats
        Passed and judged trials of each seed. Seeds without a judged trial are left out.
    k
        Distinct seeds that all have to pass, at least 1.

    Returns
    -------
    float
        ``e_k(c_1 / R_1, ..., c_S / R_S) / C(S, k)`` with ``e_k`` the elementary symmetric
        polynomial. One repeat gives ``C(c, k) / C(n, k)``, and ``k = S`` the product of the rates.

    Raises
    ------
    ValueError
        If ``k < 1``, fewer than ``k`` seeds were judged, the lengths differ, or a count is not in
        ``[0, repeats]``.

    Notes
    -----
    ``C(c, k) / C(n, k)`` over all trials would let two trials of one seed stand for two seeds, and
    is biased upwards where seeds matter.
    """
    if len(passed) != len(repeats):
        raise ValueError(f"{len(passed)} passed counts for {len(repeats)} seeds")
    judged = [(c, r) for c, r in zip(passed, repeats, strict=True) if r != 0]
    for c, r in judged:
        _require_counts(c, r, 1)
    _require_counts(0, len(judged), k)
    unit = lcm(*(r for _, r in judged))
    scaled = _elementary_symmetric((c * (unit // r) for c, r in judged), k)
    whole: int = comb(len(judged), k) * unit**k
    return scaled / whole


def _elementary_symmetric(values: Iterable[int], k: int) -> int:
    """Sum the products of all choices of ``k`` of the values."""
    sums = [1] + [0] * k
    for value in values:
        for size in range(k, 0, -1):
            sums[size] += value * sums[size - 1]
    return sums[k]


def _require_counts(successes: int, trials: int, k: int) -> None:
    _require_k(k)
    if trials < k:
        raise ValueError(f"pass^{k} needs at least {k} judged trials, found {trials}")
    if not 0 <= successes <= trials:
        raise ValueError(f"found {successes} passed of {trials} trials")


def _require_k(k: int) -> None:
    if k < 1:
        raise ValueError(f"k is at least 1, found {k}")

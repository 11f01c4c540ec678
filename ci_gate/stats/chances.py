"""What the trials of a suite say of its tasks' chances to pass, so that 8 of 8 is not taken for 1.

Every task has its own distribution over a grid of chances, made of its own trials and of what all
tasks of the suite have in common. Where seeds matter, a task's seeds scatter about its chance. It
knows one side's counts, no test and no plan.

References
----------
Robbins (1956), An empirical Bayes approach to statistics. Skellam (1948), J. R. Stat. Soc. B 10
(the beta-binomial).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import exp, lgamma, log

import msgspec
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_EDGE = 9.0
_STEP = 0.25
_SHAPES = tuple(0.02 * 1000 ** (i / 15) for i in range(16))
_SCATTERS = (0.1, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
_TINY = 1e-300

_LOGITS = np.arange(-_EDGE, _EDGE + _STEP / 2, _STEP)
GRID: Floats = np.concatenate([[0.0], 1 / (1 + np.exp(-_LOGITS)), [1.0]])
"""Chances to pass, rising: even steps of the logit, and the two ends for all that lies beyond."""


class Chances(msgspec.Struct, frozen=True, kw_only=True):
    """Distribution of every task's chance, and of its seeds' about it.

    Attributes
    ----------
    tasks
        Shape (tasks, grid); rows sum to 1.
    within
        Shape (grid, grid): chances of a seed, given its task's. None where seeds do not matter.
    """

    tasks: Floats
    within: Floats | None

    def given(self, judged: int, passed: int) -> Floats:
        """Chances of a seed given its task's and its own trials.

        Parameters
        ----------
        judged, passed
            Of the seed, over the baseline's runs; 0 and 0 for a seed that has not run.

        Returns
        -------
        ndarray, shape (grid, grid)
            Rows sum to 1, or are 0 where the task's chance makes such trials impossible.
        """
        assert self.within is not None
        joint = self.within * _likelihood(judged, passed)
        return np.asarray(joint / joint.sum(axis=1, keepdims=True).clip(_TINY))


def fit_chances(
    judged: Sequence[Sequence[int]], passed: Sequence[Sequence[int]], *, by_seed: bool
) -> Chances:
    """Fit the suite and return what follows for each task.

    Parameters
    ----------
    judged, passed
        Trials of each task on each seed, over the runs.
    by_seed
        Whether a task's seeds may differ in their chances.

    Returns
    -------
    Chances

    Notes
    -----
    Task chances come from a Beta distribution, whose parameters are averaged over a grid of 16 x 16
    between 0.02 and 20 by their likelihood; seeds from Beta(m p, m (1 - p)) with the most likely m.
    """
    if not by_seed:
        likelihood = _by_class([((sum(n), sum(c)),) for n, c in zip(judged, passed, strict=True)])
        return Chances(tasks=_posterior(likelihood)[0], within=None)
    cells = [_cells(n, c) for n, c in zip(judged, passed, strict=True)]
    fits = [(_posterior(_by_class(cells, _scatter(m))), m) for m in _SCATTERS]
    (tasks, _), scatter = max(fits, key=lambda fit: fit[0][1])
    return Chances(tasks=tasks, within=_scatter(scatter))


_Cells = tuple[tuple[int, int], ...]
"""Judged and passed trials of the seeds of a task."""


def _cells(judged: Sequence[int], passed: Sequence[int]) -> _Cells:
    return tuple(sorted((n, c) for n, c in zip(judged, passed, strict=True) if n))


def _likelihood(judged: int, passed: int) -> Floats:
    """Chance of one order of the outcomes, at each point of the grid."""
    return np.asarray(GRID**passed * (1 - GRID) ** (judged - passed))


def _by_class(tasks: Sequence[_Cells], within: Floats | None = None) -> Floats:
    """Likelihood of each task's trials over the grid; equal tasks are computed once."""
    known: dict[_Cells, Floats] = {}
    for cells in tasks:
        if cells not in known:
            terms = [_likelihood(n, c) for n, c in cells]
            seen = terms if within is None else [within @ term for term in terms]
            known[cells] = np.prod(seen, axis=0) if seen else np.ones(len(GRID))
    return np.array([known[cells] for cells in tasks])


def _posterior(likelihood: Floats) -> tuple[Floats, float]:
    """Chances of each task averaged over the suite's shapes, and the log evidence."""
    priors = _priors()
    evidence = np.log((priors @ likelihood.T).clip(_TINY)).sum(axis=1)
    best = float(evidence.max())
    weights = np.exp(evidence - best)
    # A task weighs the shapes by all tasks, itself included; each shape has its own posterior.
    parts = likelihood @ priors.T
    shares = (weights / weights.sum()) / parts.clip(_TINY)
    tasks = likelihood * (shares @ priors)
    return tasks / tasks.sum(axis=1, keepdims=True), best + log(float(weights.sum()))


@lru_cache(maxsize=1)
def _priors() -> Floats:
    return np.array([_beta(a, b) for a in _SHAPES for b in _SHAPES])


@lru_cache(maxsize=len(_SCATTERS))
def _scatter(weight: float) -> Floats:
    """Seeds' chances for every chance of their task; at 0 and 1 there is nothing to scatter."""
    rows = [_beta(weight * p, weight * (1 - p)) for p in GRID[1:-1].tolist()]
    ends = np.eye(len(GRID))
    return np.array([ends[0], *rows, ends[-1]])


def _beta(a: float, b: float) -> Floats:
    """Mass of a Beta distribution on the grid; the ends take what lies beyond it."""
    log_constant = lgamma(a + b) - lgamma(a) - lgamma(b)
    p = GRID[1:-1]
    inner = np.exp(a * np.log(p) + b * np.log1p(-p) + log_constant) * _STEP
    low = exp(log_constant - a * (_EDGE + _STEP / 2)) / a
    high = exp(log_constant - b * (_EDGE + _STEP / 2)) / b
    mass = np.concatenate([[low], inner, [high]])
    return np.asarray(mass / mass.sum())

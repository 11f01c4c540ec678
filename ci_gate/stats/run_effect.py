"""Did a bad day shift whole runs of the baseline? Scatter of run means over what trials explain.

Decides whether the gate's suite statistics are to be shrunk; the shrinking itself is in
``permutation``. Knows one side's outcomes by task, run and seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum, sqrt
from statistics import NormalDist

import msgspec

from ci_gate.stats.counts import Outcomes, Strata
from ci_gate.stats.seed_effect import chi_squared_tail

FEWEST_RUNS = 4
"""With fewer runs phi is too uncertain for a correction by it to hold any level."""
CORRECTED_BELOW = 0.1
"""p-value of phi below which the correction is made."""


class RunEffect(msgspec.Struct, frozen=True, kw_only=True):
    """Scatter between whole runs.

    Attributes
    ----------
    runs
        Runs with any judged trial.
    phi
        Observed over expected variance of the runs' suite pass^1; mean 1 if runs are exchangeable.
        None with fewer than two runs or where nothing varies.
    p_value
        Chi-squared tail of ``(runs - 1) phi``; 1 where phi is None.
    """

    runs: int
    phi: float | None
    p_value: float

    @property
    def correction(self) -> float | None:
        """The phi to shrink by, or None where it is not called for or could not be trusted."""
        if self.phi is None or self.runs < FEWEST_RUNS or self.p_value >= CORRECTED_BELOW:
            return None
        return self.phi if self.phi > 1 else None

    def implied_alpha(self, alpha: float) -> float:
        """What an uncorrected suite test at ``alpha`` really has, if phi is the truth.

        Parameters
        ----------
        alpha
            One-sided level, in (0, 1).

        Returns
        -------
        float
            ``alpha`` where phi is 1 or less, or unknown.
        """
        if self.phi is None or self.phi <= 1:
            return alpha
        normal = NormalDist()
        return normal.cdf(normal.inv_cdf(alpha) / sqrt(self.phi))


def run_effect(tasks: Sequence[Outcomes], *, strata: Strata) -> RunEffect:
    """Measure the scatter between the runs of one side.

    Parameters
    ----------
    tasks
        Each runs x seeds.
    strata
        "task": a run's trials are a sample of the task's. "task,seed": of each seed's, so that the
        seeds' own scatter is not taken for the runs'.

    Returns
    -------
    RunEffect

    Notes
    -----
    ``phi = sum_r d_r^2 / sum_r V_r``, ``d_r`` the mean over tasks of the run's rate less the pooled
    one, ``V_r`` its variance when the pooled outcomes are dealt to the runs at random within a
    stratum. For complete runs this is ``sum_r (S_r - S)^2 / (R V_0)``.
    """
    runs = max((len(task) for task in tasks), default=0)
    judged = [r for r in range(runs) if any(_judged(task, r) for task in tasks)]
    parts = [part for task in tasks for part in _parts(task, judged, strata)]
    expected = fsum(variance for _, _, variance in parts)
    if len(judged) < 2 or expected <= 0:
        return RunEffect(runs=len(judged), phi=None, p_value=1.0)
    shifts = (fsum(shift for r, shift, _ in parts if r == run) for run in judged)
    phi = fsum(shift * shift for shift in shifts) / expected
    freedom = len(judged) - 1
    return RunEffect(runs=len(judged), phi=phi, p_value=chi_squared_tail(freedom * phi, freedom))


_Part = tuple[int, float, float]
"""A run, its shift in one stratum, and the shift's variance, both as part of the task's rate."""


def _judged(task: Outcomes, run: int) -> bool:
    return run < len(task) and any(outcome is not None for outcome in task[run])


def _parts(task: Outcomes, runs: Sequence[int], strata: Strata) -> list[_Part]:
    """Each run's share in the scatter of one task."""
    present = [(r, task[r]) for r in runs if _judged(task, r)]
    if strata == "task":
        cells = [(r, [x for x in run if x is not None], 1.0) for r, run in present]
        return _stratum_parts(cells)
    seeds = max((len(run) for _, run in present), default=0)
    parts: list[_Part] = []
    for seed in range(seeds):
        here = [(r, run) for r, run in present if seed < len(run) and run[seed] is not None]
        weights = {r: 1 / sum(x is not None for x in run) for r, run in here}
        parts += _stratum_parts([(r, [run[seed] or 0], weights[r]) for r, run in here])
    return parts


def _stratum_parts(cells: Sequence[tuple[int, Sequence[int], float]]) -> list[_Part]:
    """Shift and variance of each run within one stratum, times the run's weight."""
    total = sum(len(outcomes) for _, outcomes, _ in cells)
    passed = sum(sum(outcomes) for _, outcomes, _ in cells)
    if len(cells) < 2:
        return []
    rate = passed / total
    spread = rate * (1 - rate) / (total - 1)
    return [
        (
            run,
            weight * (sum(outcomes) / len(outcomes) - rate),
            weight * weight * spread * (total - len(outcomes)) / len(outcomes),
        )
        for run, outcomes, weight in cells
    ]

"""What turns red: the gate's own code, and the rules that people use today.

A rule gets pairs and says of each whether it blocks. It knows neither chances nor changes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt
from typing import Literal, Protocol

import numpy as np
import scipy  # its parts when they are used: tests of what needs none import this too
from numpy.typing import NDArray

from benchmarks.simulation.populations import Outcomes, Pair
from ci_gate.stats.counts import Strata, TaskCounts
from ci_gate.stats.passk import pass_hat_k
from ci_gate.stats.permutation import JointTest, joint_test
from ci_gate.stats.quick_verdict import SimulatedRuns, blocked
from ci_gate.stats.run_effect import run_effect
from ci_gate.stats.seed_effect import Pairing, choose_strata

LEVEL = 0.05
GATE_SEED = 20261030
_NORMAL_975 = 1.959963984540054

Counts = NDArray[np.int64]
Flags = NDArray[np.bool_]


class Rule(Protocol):
    """Says of each pair whether it is blocked."""

    def blocks(self, pairs: Sequence[Pair]) -> Flags:
        """Judge pairs of one design."""


# The gate.


@dataclass(frozen=True, kw_only=True)
class Gate:
    """The gate's test, with the strata it chooses.

    Attributes
    ----------
    judge
        "test": ``joint_test`` itself, pair by pair. "quick": ``quick_verdict.blocked``, which
        judges many pairs at once; the table "agreement" says how often the two differ.
    seeded
        Whether equal columns are equal seeds.
    days
        Whether a run effect of the baseline is corrected for, as the gate does.
    """

    judge: Literal["test", "quick"] = "quick"
    pairing: Pairing = "auto"
    seeded: bool = True
    days: bool = True
    ks: tuple[int, ...] = (1, 8)
    level: float = LEVEL

    def blocks(self, pairs: Sequence[Pair]) -> Flags:
        """Judge pairs of one design, each with the strata and the correction it calls for."""
        models = [self.model(pair) for pair in pairs]
        red = np.zeros(len(pairs), dtype=bool)
        for model in sorted(set(models), key=str):
            members = [at for at, own in enumerate(models) if own == model]
            red[members] = self._blocks_alike([pairs[at] for at in members], *model)
        return red

    def model(self, pair: Pair) -> tuple[Strata, float | None]:
        """Choose strata, and phi where the correction for bad days is made."""
        baseline, candidate = _nested(pair.baseline), _nested(pair.candidate)
        strata = choose_strata(baseline, candidate, seeded=self.seeded, pairing=self.pairing).strata
        return strata, run_effect(baseline, strata=strata).correction if self.days else None

    def test(self, pair: Pair, strata: Strata, phi: float | None = None) -> JointTest:
        """Run the gate's test on one pair."""
        left, right = _nested(pair.baseline), _nested(pair.candidate)
        tasks = [TaskCounts.of_outcomes(b, c) for b, c in zip(left, right, strict=True)]
        return joint_test(
            tasks, strata=strata, ks=self.ks, level=self.level, seed=GATE_SEED, phi=phi
        )

    def _blocks_alike(self, pairs: Sequence[Pair], strata: Strata, phi: float | None) -> Flags:
        if self.judge == "test" or phi is not None:
            return np.array([self.test(pair, strata, phi).p_value <= self.level for pair in pairs])
        runs = simulated_runs(pairs)
        return blocked(runs, strata=strata, ks=self.ks, level=self.level, seed=GATE_SEED)


def _nested(side: Outcomes) -> list[list[list[int | None]]]:
    if (side >= 0).all():
        nested: list[list[list[int | None]]] = side.tolist()
        return nested
    return [[[None if x < 0 else x for x in run] for run in task] for task in side.tolist()]


def simulated_runs(pairs: Sequence[Pair]) -> SimulatedRuns:
    """Count pairs of one design, whose judged trials are the same ones."""
    seeds = max(pairs[0].baseline.shape[2], pairs[0].candidate.shape[2])
    baseline = np.stack([_widened(pair.baseline, seeds) for pair in pairs])
    candidate = np.stack([_widened(pair.candidate, seeds) for pair in pairs])
    judged = (baseline >= 0).sum(axis=2), (candidate >= 0).sum(axis=2)
    assert all((side == side[:1]).all() for side in judged)
    return SimulatedRuns(
        baseline_n=judged[0][0],
        baseline_passed=(baseline == 1).sum(axis=2),
        candidate_n=judged[1][0],
        candidate_passed=(candidate == 1).sum(axis=2),
    )


def _widened(side: Outcomes, seeds: int) -> Outcomes:
    return np.pad(side, ((0, 0), (0, 0), (0, seeds - side.shape[2])), constant_values=-1)


# The rules of today. None of them looks at seeds.


@dataclass(frozen=True)
class Passes:
    """Passed and judged trials of each task, on both sides."""

    baseline: Counts
    baseline_n: Counts
    candidate: Counts
    candidate_n: Counts

    @classmethod
    def of(cls, pair: Pair) -> Passes:
        """Count the trials; tasks that were not judged on both sides are left out."""
        sides = pair.baseline, pair.candidate
        passed = [(side == 1).sum(axis=(1, 2)) for side in sides]
        judged = [(side >= 0).sum(axis=(1, 2)) for side in sides]
        both = (judged[0] > 0) & (judged[1] > 0)
        return cls(passed[0][both], judged[0][both], passed[1][both], judged[1][both])

    @property
    def rates(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Each task's share of passed trials."""
        return self.baseline / self.baseline_n, self.candidate / self.candidate_n

    @property
    def totals(self) -> tuple[int, int, int, int]:
        """Passed and judged trials of the whole suite, baseline first."""
        sides = (self.baseline, self.baseline_n, self.candidate, self.candidate_n)
        passed, judged, after, after_n = (int(side.sum()) for side in sides)
        return passed, judged, after, after_n


@dataclass(frozen=True)
class Today:
    """A rule that judges passes and trials, named and pair by pair."""

    name: str

    def blocks(self, pairs: Sequence[Pair]) -> Flags:
        """Judge each pair by itself."""
        rule = RULES_OF_TODAY[self.name]
        return np.array([rule(Passes.of(pair)) for pair in pairs])


def suite_pass_hat_k(passed: Counts, judged: Counts, k: int) -> float:
    """Mean pass^k over the tasks with enough trials; 0 without one."""
    enough = [(c, n) for c, n in zip(passed.tolist(), judged.tolist(), strict=True) if n >= k]
    return sum(_pass_hat_k(c, n, k) for c, n in enough) / len(enough) if enough else 0.0


_pass_hat_k = lru_cache(maxsize=None)(pass_hat_k)


def lower_pass_1(passes: Passes) -> bool:
    """Block whenever the candidate's mean pass rate is lower."""
    before, after = passes.rates
    return bool(after.mean() < before.mean() - 1e-12)


def lower_pass_8(passes: Passes) -> bool:
    """Block whenever the candidate's pass^8 is lower, or of fewer trials where there are fewer."""
    k = _reachable_k(passes)
    return suite_pass_hat_k(passes.candidate, passes.candidate_n, k) < (
        suite_pass_hat_k(passes.baseline, passes.baseline_n, k) - 1e-12
    )


def _reachable_k(passes: Passes) -> int:
    return min(8, int(passes.baseline_n.max()), int(passes.candidate_n.max()))


def fixed_threshold(passes: Passes) -> bool:
    """Block if the candidate's pass^1 is below .60 or its pass^8 below .25, whatever was before."""
    k = _reachable_k(passes)
    return bool(passes.rates[1].mean() < 0.60) or (
        suite_pass_hat_k(passes.candidate, passes.candidate_n, k) < 0.25
    )


def paired_t_test(passes: Passes) -> bool:
    """Block on a drop that the two-sided paired t-test over tasks calls significant."""
    before, after = passes.rates
    drops = after - before
    error = drops.std(ddof=1) / sqrt(len(drops))
    return bool(error > 0 and scipy.stats.t.cdf(drops.mean() / error, len(drops) - 1) <= LEVEL / 2)


def pooled_fisher(passes: Passes) -> bool:
    """Block on a drop that Fisher's two-sided test on the pooled counts calls significant."""
    passed, judged, after, after_n = passes.totals
    return after / after_n < passed / judged and _fisher(passed, judged, after, after_n) <= LEVEL


def any_task_fisher(passes: Passes) -> bool:
    """Block if any task alone dropped by Fisher's two-sided test, uncorrected."""
    sides = (passes.baseline, passes.baseline_n, passes.candidate, passes.candidate_n)
    return any(
        after / after_n < before / n and _fisher(before, n, after, after_n) <= LEVEL
        for before, n, after, after_n in zip(*(side.tolist() for side in sides), strict=True)
    )


@lru_cache(maxsize=1 << 16)
def _fisher(passed: int, judged: int, after: int, after_n: int) -> float:
    table = [[passed, judged - passed], [after, after_n - after]]
    return float(scipy.stats.fisher_exact(table).pvalue)


def wilson_apart(passes: Passes) -> bool:
    """Block if the candidate's pooled 95 % Wilson interval lies wholly below the baseline's."""
    passed, judged, after, after_n = passes.totals
    return _wilson(after, after_n)[1] < _wilson(passed, judged)[0]


def _wilson(passed: int, judged: int) -> tuple[float, float]:
    z, rate = _NORMAL_975, passed / judged
    middle = rate + z * z / (2 * judged)
    reach = z * sqrt(rate * (1 - rate) / judged + z * z / (4 * judged * judged))
    return (middle - reach) / (1 + z * z / judged), (middle + reach) / (1 + z * z / judged)


RULES_OF_TODAY: dict[str, Callable[[Passes], bool]] = {
    "pass^1 lower": lower_pass_1,
    "pass^8 lower": lower_pass_8,
    "fixed .60 / .25": fixed_threshold,
    "paired t-test": paired_t_test,
    "Fisher, pooled": pooled_fisher,
    "Wilson apart": wilson_apart,
    "Fisher, any task": any_task_fisher,
}
TODAY = {name: Today(name) for name in RULES_OF_TODAY}

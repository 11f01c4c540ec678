"""The counts that every test of this package reads: passed and judged trials, a seed at a time.

Holds and checks them; decides nothing. It knows neither task ids nor why a trial is missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

Strata = Literal["task", "task,seed"]
"""What outcomes are exchangeable within: a task's trials, or a task's trials on one seed."""

Outcomes = Sequence[Sequence[int | None]]
"""One task on one side, runs x seeds: 1 passed, 0 failed, None errored or not run."""


class TaskCounts(msgspec.Struct, frozen=True, kw_only=True):
    """One task on both sides; position ``s`` of every tuple belongs to seed index ``s``.

    Attributes
    ----------
    baseline_n, candidate_n
        Judged trials on each seed, over the repeats; 0 where a side did not run the seed.
    baseline_passed, candidate_passed
        How many of them passed.

    Notes
    -----
    Sides that share no seeds are given as a single position with all their trials.
    """

    baseline_n: tuple[int, ...]
    baseline_passed: tuple[int, ...]
    candidate_n: tuple[int, ...]
    candidate_passed: tuple[int, ...]

    def __post_init__(self) -> None:
        for name in ("baseline_n", "baseline_passed", "candidate_n", "candidate_passed"):
            msgspec.structs.force_setattr(self, name, tuple(map(int, getattr(self, name))))
        _require_side("baseline", self.baseline_n, self.baseline_passed)
        _require_side("candidate", self.candidate_n, self.candidate_passed)
        if len(self.baseline_n) != len(self.candidate_n):
            raise ValueError(
                f"{len(self.baseline_n)} seeds in the baseline, {len(self.candidate_n)} in the "
                "candidate: pad the shorter side with 0 judged trials"
            )

    @classmethod
    def of_outcomes(cls, baseline: Outcomes, candidate: Outcomes) -> TaskCounts:
        """Count a task's outcomes, both sides padded to the same seeds.

        Parameters
        ----------
        baseline, candidate
            Runs x seeds; rows may differ in length.

        Returns
        -------
        TaskCounts
        """
        seeds = max((len(run) for run in (*baseline, *candidate)), default=0)
        baseline_n, baseline_passed = _count_side(baseline, seeds)
        candidate_n, candidate_passed = _count_side(candidate, seeds)
        return cls(
            baseline_n=baseline_n,
            baseline_passed=baseline_passed,
            candidate_n=candidate_n,
            candidate_passed=candidate_passed,
        )

    @property
    def shared(self) -> TaskCounts:
        """The seeds that both sides judged, the only ones that strata by seed can use."""
        keep = [
            s
            for s, (b, c) in enumerate(zip(self.baseline_n, self.candidate_n, strict=True))
            if b and c
        ]
        if len(keep) == len(self.baseline_n):
            return self
        return TaskCounts(
            baseline_n=tuple(self.baseline_n[s] for s in keep),
            baseline_passed=tuple(self.baseline_passed[s] for s in keep),
            candidate_n=tuple(self.candidate_n[s] for s in keep),
            candidate_passed=tuple(self.candidate_passed[s] for s in keep),
        )


def _count_side(runs: Outcomes, seeds: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    judged, passed = [0] * seeds, [0] * seeds
    for run in runs:
        for seed, outcome in enumerate(run):
            if outcome is not None:
                judged[seed] += 1
                passed[seed] += outcome
    return tuple(judged), tuple(passed)


def _require_side(side: str, judged: tuple[int, ...], passed: tuple[int, ...]) -> None:
    if len(judged) != len(passed):
        raise ValueError(f"{side}: {len(passed)} passed counts for {len(judged)} seeds")
    for seed, (n, c) in enumerate(zip(judged, passed, strict=True)):
        if not 0 <= c <= n:
            raise ValueError(f"{side}, seed {seed}: found {c} passed of {n} trials")

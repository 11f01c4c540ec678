"""Which trials of the two sides ran on the same seed, and the counts that follow from it.

Decides what shares a seed; whether seeds matter is decided by ``ci_gate.stats``.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ci_gate.decision.accounting import Scores
from ci_gate.model.run import Side
from ci_gate.prng import parse_seed
from ci_gate.stats.counts import TaskCounts

__all__ = ["PairedTask", "pair_task", "planned_scores", "seeds_shared"]

SharesSeed = Callable[[int], bool]


class PairedTask(msgspec.Struct, frozen=True, kw_only=True):
    """A task's trials on both sides, runs x columns; a column is one seed on both sides.

    Attributes
    ----------
    task : str
    baseline, candidate : Scores
        A seed that one side did not run has a column of None there.
    shared : bool
        Whether any seed was run on both sides.
    """

    task: str
    baseline: Scores
    candidate: Scores
    shared: bool

    @property
    def by_seed(self) -> TaskCounts:
        """The counts seed by seed; a task without shared seeds is one stratum."""
        counts = TaskCounts.of_outcomes(self.baseline, self.candidate)
        return counts if self.shared else _pooled(counts)


def seeds_shared(baseline: Side, candidate: Side, task_id: str) -> SharesSeed:
    """Return which seed indices of a task are the same seed on both sides.

    Seeds that the files hold are compared one by one; where a side does not hold them, equal root
    seeds (with equal task content) mean equal seeds, and a side without a root seed shares none.
    """
    before, after = baseline.tasks[task_id].seeds, candidate.tasks[task_id].seeds
    by_root = _same(baseline.root_seed, candidate.root_seed)

    def shared(index: int) -> bool:
        left, right = _seed_at(before, index), _seed_at(after, index)
        return by_root if left is None or right is None else _same(left, right)

    return shared


def _same(left: str | None, right: str | None) -> bool:
    if left is None or right is None:
        return False
    # Other tools may leave the leading zeros out.
    return left == right or parse_seed(left) == parse_seed(right)


def _seed_at(seeds: tuple[str | None, ...] | None, index: int) -> str | None:
    return seeds[index] if seeds is not None and index < len(seeds) else None


def pair_task(task_id: str, baseline: Scores, candidate: Scores, shared: SharesSeed) -> PairedTask:
    """Lay the trials of a task side by side, a column a seed.

    A candidate's trial on another seed moves to a column of its own, behind the baseline's.
    """
    before, after = _width(baseline), _width(candidate)
    common = {s for s in range(min(before, after)) if shared(s)}
    if not common or len(common) == after:
        return PairedTask(task=task_id, baseline=baseline, candidate=candidate, shared=bool(common))
    apart = [s for s in range(after) if s not in common]
    moved = tuple(_moved(run, common, apart, before) for run in candidate)
    return PairedTask(task=task_id, baseline=baseline, candidate=moved, shared=True)


def _width(scores: Scores) -> int:
    return max((len(run) for run in scores), default=0)


def _moved(
    run: tuple[int | None, ...], common: set[int], apart: list[int], before: int
) -> tuple[int | None, ...]:
    columns: list[int | None] = [None] * (before + len(apart))
    for seed in common:
        columns[seed] = run[seed] if seed < len(run) else None
    for place, seed in enumerate(apart):
        columns[before + place] = run[seed] if seed < len(run) else None
    return tuple(columns)


def _pooled(counts: TaskCounts) -> TaskCounts:
    return TaskCounts(
        baseline_n=(sum(counts.baseline_n),),
        baseline_passed=(sum(counts.baseline_passed),),
        candidate_n=(sum(counts.candidate_n),),
        candidate_passed=(sum(counts.candidate_passed),),
    )


def planned_scores(side: Side, task_id: str) -> Scores:
    """Return the trials that a side planned for a task, as if each had failed."""
    seeds = _planned_seeds(side, task_id)
    total = side.planned.get(task_id, len(side.tasks[task_id].outcomes) * seeds)
    return tuple((0,) * min(seeds, total - done) for done in range(0, total, max(seeds, 1)))


def _planned_seeds(side: Side, task_id: str) -> int:
    if side.plan is not None:
        return side.plan.task_trials.get(task_id, side.plan.trials)
    return max((len(outcomes) for outcomes in side.tasks[task_id].outcomes), default=0)

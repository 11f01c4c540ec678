"""What one side says of itself: counts and suite metrics without anything to compare it with."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum

from ci_gate.decision.accounting import Scores, counts_of, scores_of
from ci_gate.model.run import Side
from ci_gate.model.verdict import Counts
from ci_gate.stats.passk import pass_hat_k, pass_hat_k_by_seed
from ci_gate.stats.seed_effect import CRITICAL_Z, z_seed

__all__ = ["counts_by_task", "suite_metrics"]


def counts_by_task(side: Side) -> dict[str, Counts]:
    """Return how many trials of each task were judged, passed and errored."""
    return {name: counts_of(task, side.errors) for name, task in side.tasks.items()}


def suite_metrics(side: Side, ks: Sequence[int]) -> dict[str, float | None]:
    """Return ``pass^K`` of a side for each K: the mean over the tasks with enough judged trials.

    Where seeds matter, repeats of a seed do not stand for further seeds, as in a comparison.
    """
    tasks = [scores_of(task, side.errors) for task in side.tasks.values()]
    by_seed = side.root_seed is not None and z_seed(tasks) > CRITICAL_Z
    return {f"pass^{k}": _suite_metric(tasks, k, by_seed=by_seed) for k in ks}


def _suite_metric(tasks: Sequence[Scores], k: int, *, by_seed: bool) -> float | None:
    columns = [list(zip(*task, strict=True)) for task in tasks]
    judged = [[_judged(column) for column in task] for task in columns]
    enough = [task for task in judged if sum(bool(n) if by_seed else n for _, n in task) >= k]
    if not enough:
        return None
    return fsum(_estimate(task, k, by_seed=by_seed) for task in enough) / len(enough)


def _judged(column: tuple[int | None, ...]) -> tuple[int, int]:
    scores = [score for score in column if score is not None]
    return sum(scores), len(scores)


def _estimate(seeds: Sequence[tuple[int, int]], k: int, *, by_seed: bool) -> float:
    passed, judged = [p for p, _ in seeds], [n for _, n in seeds]
    if by_seed and k > 1:
        return pass_hat_k_by_seed(passed, judged, k)
    return pass_hat_k(sum(passed), sum(judged), k)

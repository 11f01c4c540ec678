"""A baseline as the counts that simulations start from; it knows no plans and no policies."""

from __future__ import annotations

from collections.abc import Sequence

from ci_gate.decision.accounting import Scores
from ci_gate.stats.power import KnownSuite

__all__ = ["any_judged", "known_suite"]


def any_judged(runs: Scores) -> bool:
    """Return whether any trial of a task was judged."""
    return any(score is not None for run in runs for score in run)


def known_suite(tasks: Sequence[Scores], *, by_seed: bool) -> KnownSuite:
    """Return the counts of tasks, each with a judged trial.

    Parameters
    ----------
    tasks : sequence of Scores
    by_seed : bool
        Whether a task's seeds differ in their chances.
    """
    cells = [_by_seed(runs) for runs in tasks]
    return KnownSuite(
        judged=tuple(tuple(n for n, _ in task) for task in cells),
        passed=tuple(tuple(c for _, c in task) for task in cells),
        runs=max(len(runs) for runs in tasks),
        by_seed=by_seed,
    )


def _by_seed(runs: Scores) -> list[tuple[int, int]]:
    """Judged and passed trials of each seed."""
    columns = [
        [run[s] for run in runs if s < len(run) and run[s] is not None]
        for s in range(max(map(len, runs)))
    ]
    return [(len(column), sum(score or 0 for score in column)) for column in columns]

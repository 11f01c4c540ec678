"""The counts of a look in the middle of a plan, laid out for ``prediction``.

Decides which trials are exchanged for each other: all of a task, or those on one seed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from ci_gate.stats.counts import Strata, TaskCounts
from ci_gate.stats.prediction import Look

Ints = NDArray[np.int64]


def look_of(so_far: Sequence[TaskCounts], planned: Sequence[TaskCounts], *, strata: Strata) -> Look:
    """Lay out the trials so far beside those that the whole plan will have judged.

    Parameters
    ----------
    so_far
        Counts of both sides, a task each.
    planned
        The same tasks; ``candidate_n`` counts the trials that are still to come as well.
    strata
        "task": one position a task. "task,seed": a position for each seed that both sides will have
        run; the others do not enter, as in the test.

    Returns
    -------
    Look

    Raises
    ------
    ValueError
        If the numbers of tasks differ.
    """
    pairs = list(zip(so_far, planned, strict=True))
    if strata == "task":
        cells = [(_pooled(now), sum(plan.candidate_n)) for now, plan in pairs]
        rows = [([now], [total]) for now, total in cells]
    else:
        rows = [_by_seed(now, plan) for now, plan in pairs]
    width = max((len(cells) for cells, _ in rows), default=0)
    return Look(
        baseline_n=_array(rows, width, lambda cell: cell[0]),
        baseline_passed=_array(rows, width, lambda cell: cell[1]),
        candidate_n=_array(rows, width, lambda cell: cell[2]),
        candidate_passed=_array(rows, width, lambda cell: cell[3]),
        planned_n=_padded([totals for _, totals in rows], width),
    )


_Cell = tuple[int, int, int, int]
"""Baseline judged and passed, candidate judged and passed."""
_Row = tuple[list[_Cell], list[int]]


def _pooled(task: TaskCounts) -> _Cell:
    return (
        sum(task.baseline_n),
        sum(task.baseline_passed),
        sum(task.candidate_n),
        sum(task.candidate_passed),
    )


def _by_seed(now: TaskCounts, plan: TaskCounts) -> _Row:
    cells = zip(
        now.baseline_n, now.baseline_passed, now.candidate_n, now.candidate_passed, strict=True
    )
    kept = [(cell, n) for cell, n in zip(cells, plan.candidate_n, strict=True) if cell[0] and n]
    return [cell for cell, _ in kept], [n for _, n in kept]


def _array(rows: Sequence[_Row], width: int, part: Callable[[_Cell], int]) -> Ints:
    return _padded([[part(cell) for cell in cells] for cells, _ in rows], width)


def _padded(rows: Sequence[Sequence[int]], width: int) -> Ints:
    return np.array([[*row, *(0,) * (width - len(row))] for row in rows], dtype=np.int64)

"""Counting outcomes by seed, and refusing counts that cannot be."""

from __future__ import annotations

import numpy as np
import pytest

from ci_gate.stats.counts import TaskCounts


def test_outcomes_are_counted_by_seed() -> None:
    """Repeats add up on their seed, what was not judged counts nowhere, sides are padded."""
    task = TaskCounts.of_outcomes([[1, None, 0], [1, 1]], [[0, 1, None, 1]])
    assert task == TaskCounts(
        baseline_n=(2, 1, 1, 0),
        baseline_passed=(2, 1, 0, 0),
        candidate_n=(1, 1, 0, 1),
        candidate_passed=(0, 1, 0, 1),
    )


def test_shared_keeps_seeds_of_both_sides() -> None:
    """Seeds that one side did not judge are dropped, and nothing else."""
    task = TaskCounts.of_outcomes([[1, None, 0]], [[0, 1, 1]])
    assert task.shared == TaskCounts.of_outcomes([[1, 0]], [[0, 1]])
    assert task.shared.shared == task.shared


def test_arrays_are_taken_as_tuples() -> None:
    """Arrays are accepted, and kept as plain integers."""
    side = np.array([2, 1])
    task = TaskCounts(
        baseline_n=side, baseline_passed=side, candidate_n=side, candidate_passed=side
    )
    assert task.baseline_n == (2, 1)
    assert hash(task) == hash(TaskCounts.of_outcomes([[1, 1], [1]], [[1, 1], [1]]))


def test_a_task_that_never_ran_has_no_seeds() -> None:
    """No outcomes at all are counts of length 0, not an error."""
    assert TaskCounts.of_outcomes([], []).baseline_n == ()


@pytest.mark.parametrize(
    "counts",
    [
        {"baseline_passed": (3,)},
        {"candidate_passed": (-1,)},
        {"baseline_passed": (1, 1)},
        {"candidate_n": (2, 2), "candidate_passed": (1, 1)},
    ],
)
def test_impossible_counts_are_refused(counts: dict[str, tuple[int, ...]]) -> None:
    """More passes than trials, negative passes and sides of different lengths are named."""
    possible = {
        "baseline_n": (2,),
        "baseline_passed": (2,),
        "candidate_n": (2,),
        "candidate_passed": (2,),
    }
    with pytest.raises(ValueError, match=r"found|seeds"):
        TaskCounts(**{**possible, **counts})

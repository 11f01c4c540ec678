"""The counts of a look, a position a stratum."""

from __future__ import annotations

import pytest

from ci_gate.stats.counts import TaskCounts
from ci_gate.stats.looks import look_of


def counts(baseline: str, candidate: str) -> TaskCounts:
    """Return a task's counts, a word ``passed/judged`` a seed."""
    sides = [
        [tuple(map(int, w.split("/"))) for w in side.split()] for side in (baseline, candidate)
    ]
    (b, c) = sides
    return TaskCounts(
        baseline_n=tuple(n for _, n in b),
        baseline_passed=tuple(x for x, _ in b),
        candidate_n=tuple(n for _, n in c),
        candidate_passed=tuple(x for x, _ in c),
    )


NOW = [counts("4/4 1/4 0/0", "1/1 0/0 1/1"), counts("3/4", "0/1")]
PLAN = [counts("4/4 1/4 0/0", "1/1 0/1 1/1"), counts("3/4", "0/2")]


def test_a_task_is_one_position() -> None:
    """All of its trials are exchanged for each other."""
    look = look_of(NOW, PLAN, strata="task")

    assert look.baseline_n.tolist() == [[8], [4]]
    assert look.baseline_passed.tolist() == [[5], [3]]
    assert look.candidate_n.tolist() == [[2], [1]]
    assert look.candidate_passed.tolist() == [[2], [0]]
    assert look.planned_n.tolist() == [[3], [2]]


def test_seeds_are_positions_where_both_sides_will_have_run_them() -> None:
    """A seed that the baseline lacks does not enter; one that is still to come does."""
    look = look_of(NOW, PLAN, strata="task,seed")

    assert look.baseline_n.tolist() == [[4, 4], [4, 0]]
    assert look.candidate_n.tolist() == [[1, 0], [1, 0]]
    assert look.planned_n.tolist() == [[1, 1], [2, 0]]


def test_sides_have_the_same_tasks() -> None:
    """A task without its plan is a mistake."""
    with pytest.raises(ValueError, match="zip"):
        look_of(NOW, PLAN[:1], strata="task")

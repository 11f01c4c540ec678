"""The rules that the benchmarks hold the gate against are what they are called."""

from __future__ import annotations

import numpy as np
import pytest
import scipy

from benchmarks.simulation.populations import Design, Pair, shift
from benchmarks.simulation.rules import TODAY, Gate, Passes, suite_pass_hat_k

# They import scipy, which takes longer than all of them.
pytestmark = pytest.mark.slow


def pair(baseline: list[str], candidate: list[str]) -> Pair:
    """Two sides of one run each, a string a task: + passed, - failed, ! not judged."""
    sides = (
        np.array([[["-+".find(mark) for mark in task]] for task in side], dtype=np.int8)
        for side in (baseline, candidate)
    )
    return Pair(*sides)


def blocks(rule: str, judged: Pair) -> bool:
    """Whether one of today's rules blocks."""
    return bool(TODAY[rule].blocks([judged])[0])


HIGH = ["++++++++"] * 6


@pytest.mark.parametrize(
    ("rule", "candidate", "red"),
    [
        ("pass^1 lower", ["+++++++-", *HIGH[1:]], True),
        ("pass^1 lower", HIGH, False),
        ("pass^8 lower", ["+++++++-", *HIGH[1:]], True),
        ("pass^8 lower", HIGH, False),
        ("fixed .60 / .25", ["++++----"] * 6, True),
        ("fixed .60 / .25", ["+++++++-"] * 6, True),
        ("fixed .60 / .25", ["--------", "--------", *HIGH[2:]], False),
        ("Fisher, any task", ["---+++++", *HIGH[1:]], False),
        ("Fisher, any task", ["-----+++", *HIGH[1:]], True),
    ],
)
def test_a_rule_blocks_what_it_says(rule: str, candidate: list[str], red: bool) -> None:
    """Against a suite that passes throughout."""
    assert blocks(rule, pair(HIGH, candidate)) is red


def some_pairs() -> list[Pair]:
    """Forty pairs, some of them far apart."""
    return [Design(change=shift).draw(repeat) for repeat in range(40)]


def test_the_t_test_is_scipys() -> None:
    """Paired over tasks, two-sided at 5 %, red where the mean fell."""
    for judged in some_pairs():
        before, after = Passes.of(judged).rates
        found = scipy.stats.ttest_rel(after, before)

        assert blocks("paired t-test", judged) == (found.statistic < 0 and found.pvalue <= 0.05)


def test_wilson_intervals_are_scipys() -> None:
    """Red where the candidate's upper end lies below the baseline's lower one."""
    for judged in some_pairs():
        passed, n, after, after_n = Passes.of(judged).totals
        low = scipy.stats.binomtest(passed, n).proportion_ci(method="wilson").low
        high = scipy.stats.binomtest(after, after_n).proportion_ci(method="wilson").high

        assert blocks("Wilson apart", judged) == (high < low)


def test_trials_that_were_not_judged_count_nowhere() -> None:
    """Passes are of the judged trials, and a task without any on a side is left out."""
    passes = Passes.of(pair(["++!-", "!!!!"], ["+-!!", "++++"]))

    assert passes.totals == (2, 3, 1, 2)
    assert suite_pass_hat_k(passes.baseline, passes.baseline_n, 2) == 1 / 3


def test_the_quick_verdict_stands_in_for_the_test() -> None:
    """On 12 pairs of which some are red, both say the same."""
    pairs = [Design(change=shift).draw(repeat) for repeat in range(12)]

    quick = Gate(days=False).blocks(pairs)
    test = Gate(judge="test", days=False).blocks(pairs)

    assert 0 < test.sum() < 12
    assert (quick == test).all()


def test_a_bad_day_of_the_baseline_is_corrected_for() -> None:
    """Four runs of which one fell by half: phi is large, and the gate takes it into account."""
    runs = np.ones((30, 4, 8), dtype=np.int8)
    runs[:, 3, ::2] = 0
    candidate = np.ones((30, 1, 8), dtype=np.int8)

    strata, phi = Gate().model(Pair(runs, candidate))

    assert strata == "task"
    assert phi is not None
    assert phi > 10
    assert Gate(days=False).model(Pair(runs, candidate)) == ("task", None)

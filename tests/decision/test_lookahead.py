"""A look in the middle of a plan is laid out as the test of the whole plan would be."""

from __future__ import annotations

import pytest

from ci_gate.decision.lookahead import Lookahead, rounds_done, rounds_planned
from ci_gate.model.policy import Policy
from ci_gate.model.run import Plan, Side
from tests.decision.rounds import alike, baseline_of, so_far
from tests.notation import side_of

SEEDED = "++++----/++++----/++++----/++++----"


def look(baseline: Side, candidate: Side, **policy: str) -> Lookahead:
    """Look at a run."""
    return Lookahead.of(baseline, candidate, Policy(**policy))  # type: ignore[arg-type]


def test_deep_baselines_choose_the_strata_by_themselves() -> None:
    """Agreement among the baseline's runs, whatever the candidate did so far."""
    choice = look(baseline_of(4, SEEDED), so_far(alike(4, "+"))).choice

    assert (choice.strata, choice.rule) == ("task,seed", "baseline repeats")


def test_a_pair_is_asked_for_the_trials_there_are() -> None:
    """With one run in the baseline agreement is that of the seeds run on both sides."""
    baseline = baseline_of(6, "+-+-+-+-")

    early, later = (look(baseline, so_far(alike(6, row))).choice for row in ("+", "+-+-"))

    assert (early.rule, early.z, early.strata) == ("pair", 0.0, "task")
    assert (later.rule, later.strata) == ("pair", "task,seed")
    assert later.z > 1.645


def test_trials_to_come_are_no_evidence_of_hard_seeds() -> None:
    """Where the candidate has more seeds than the baseline, only those that were run are asked."""
    baseline = baseline_of(6, "++++")

    choice = look(baseline, so_far(alike(6, "++++++"))).choice

    assert (choice.rule, choice.strata) == ("many seeds", "task")


def test_hard_seeds_of_a_wide_candidate_are_seen() -> None:
    """Columns that fail in every task are, by Cochran's Q."""
    choice = look(baseline_of(6, "++++"), so_far(alike(6, "+++++--"))).choice

    assert (choice.rule, choice.strata) == ("many seeds", "task,seed")


def test_errored_trials_are_neither_judged_nor_to_come() -> None:
    """Trials planned: what was judged, and what was not run yet."""
    seen = look(baseline_of(1), so_far({"t00": "+!-"}))

    (now,), (planned,) = seen.so_far, seen.planned
    assert sum(now.candidate_n) == 2
    assert sum(planned.candidate_n) == 7


def test_errors_that_fail_are_judged() -> None:
    """Under errors = fail nothing is lost."""
    seen = look(baseline_of(1, errors="fail"), so_far({"t00": "+!-"}, errors="fail"))

    assert sum(seen.planned[0].candidate_n) == 8
    assert sum(seen.so_far[0].candidate_n) == 3


@pytest.mark.parametrize(
    ("rows", "done"),
    [
        ("a ++...... b --......", 2),
        ("a ++++++++ b ++++++++", 8),
        ("a ........ b ........", 0),
        ("a ++...... b -.......", None),
        ("a +++..... b +.", None),
        ("a +++..... b ++", 3),
        ("a +++..... b +++", 3),
        ("a !!...... b +-......", 2),
    ],
)
def test_rounds_are_whole_or_there_are_none(rows: str, done: int | None) -> None:
    """A task with fewer trials than the others is done before them."""
    side = side_of(rows, plan=Plan(trials=8))

    assert rounds_done(side) == done
    assert rounds_planned(side) == 8

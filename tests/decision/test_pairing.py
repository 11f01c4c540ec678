"""Which trials share a seed, and the counts that follow."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ci_gate.decision.accounting import Scores, scores_of
from ci_gate.decision.pairing import pair_task, planned_scores, seeds_shared
from ci_gate.model.run import Plan
from ci_gate.stats.counts import TaskCounts
from tests.notation import side_of
from tests.speeds import examples


@pytest.mark.parametrize(
    ("baseline", "candidate", "shared"),
    [
        ("0x0000000000000007", "0x0000000000000007", True),
        ("0x0000000000000007", "0x7", True),
        ("0x0000000000000007", "0x0000000000000008", False),
        (None, "0x0000000000000007", False),
        (None, None, False),
    ],
)
def test_equal_root_seeds_mean_equal_seeds(
    baseline: str | None, candidate: str | None, shared: bool
) -> None:
    """Sides share seeds by their root seeds; without one a side shares nothing."""
    before = side_of("refund ++", root_seed=baseline)
    after = side_of("refund ++", root_seed=candidate)

    assert seeds_shared(before, after, "refund")(1) is shared


def test_seeds_that_the_files_hold_decide() -> None:
    """A task's own seeds make trials equal under other root seeds, and unequal under equal ones."""
    before = side_of("refund ++", root_seed="0x1", refund={"seeds": ("0x0a", "0x0b")})
    after = side_of("refund ++", root_seed="0x2", refund={"seeds": ("0x0a", "0x0c")})

    shared = seeds_shared(before, after, "refund")

    assert (shared(0), shared(1)) == (True, False)


def test_a_seed_that_one_side_does_not_hold_falls_back_to_the_root() -> None:
    """A baseline holds no seeds of single trials: its root seed speaks for them."""
    before = side_of("refund ++")
    after = side_of("refund ++", refund={"seeds": ("0x0a", "0x0b")})

    assert seeds_shared(before, after, "refund")(0) is True


def test_a_column_is_one_seed_on_both_sides() -> None:
    """Repeats stay below each other and the shorter side is padded."""
    baseline: Scores = ((1, 0, 1), (1, 1, None))
    candidate: Scores = ((1, 0),)

    paired = pair_task("refund", baseline, candidate, lambda _: True)

    assert paired.shared
    assert paired.by_seed == TaskCounts(
        baseline_n=(2, 2, 1),
        baseline_passed=(2, 1, 1),
        candidate_n=(1, 1, 0),
        candidate_passed=(1, 0, 0),
    )


def test_a_trial_on_another_seed_gets_a_column_of_its_own() -> None:
    """Index 1 is another seed on each side: neither trial is put beside the other."""
    paired = pair_task("refund", ((1, 1),), ((0, 0),), lambda index: index == 0)

    assert paired.by_seed == TaskCounts(
        baseline_n=(1, 1, 0),
        baseline_passed=(1, 1, 0),
        candidate_n=(1, 0, 1),
        candidate_passed=(0, 0, 0),
    )


def test_a_task_without_shared_seeds_is_one_stratum() -> None:
    """All its trials are pooled, so that it still enters a test whose strata are seeds."""
    paired = pair_task("refund", ((1, 1, 0),), ((0, 0),), lambda _: False)

    assert not paired.shared
    assert paired.by_seed == TaskCounts(
        baseline_n=(3,), baseline_passed=(2,), candidate_n=(2,), candidate_passed=(0,)
    )


_RUN = st.lists(st.sampled_from([0, 1, None]), max_size=6).map(tuple)
_SCORES = st.lists(_RUN, min_size=1, max_size=3).map(tuple)


@settings(max_examples=examples(50))
@given(_SCORES, _SCORES, st.sets(st.integers(0, 6)))
def test_no_trial_is_lost_or_counted_twice(
    baseline: Scores, candidate: Scores, same: set[int]
) -> None:
    """However seeds are shared, the counts hold every judged trial of both sides."""
    counts = pair_task("refund", baseline, candidate, same.__contains__).by_seed

    for judged, passed, scores in (
        (counts.baseline_n, counts.baseline_passed, baseline),
        (counts.candidate_n, counts.candidate_passed, candidate),
    ):
        found = [x for run in scores for x in run if x is not None]
        assert (sum(judged), sum(passed)) == (len(found), sum(found))


def test_planned_trials_count_whether_they_ran_or_not() -> None:
    """What a plan could have seen does not depend on what the candidate did."""
    plan = Plan(trials=4, task_trials={"refund": 3}, repeats=2)
    side = side_of("refund +.. cancel ....", plan=plan, planned={"refund": 6, "cancel": 8})

    assert planned_scores(side, "refund") == ((0, 0, 0), (0, 0, 0))
    assert planned_scores(side, "cancel") == ((0, 0, 0, 0), (0, 0, 0, 0))


def test_a_file_without_plan_planned_what_its_indices_say() -> None:
    """Another tool's file holds its trials and no plan."""
    side = side_of("refund ++-/+++")

    assert planned_scores(side, "refund") == ((0, 0, 0), (0, 0, 0))
    assert scores_of(side.tasks["refund"], "exclude") == ((1, 1, 0), (1, 1, 1))

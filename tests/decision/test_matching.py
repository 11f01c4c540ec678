"""Which tasks are compared, and what becomes of the others."""

from __future__ import annotations

import datetime

import pytest

from ci_gate.decision.matching import Matching, match_tasks, run_day
from ci_gate.model.policy import Policy, Quarantine
from ci_gate.model.run import Side, Stop, StopReason
from ci_gate.model.verdict import Claim
from tests.notation import side_of

TODAY = datetime.date(2026, 11, 30)


def matched(
    baseline: Side | None,
    candidate: Side,
    *,
    today: datetime.date | None = TODAY,
    **policy: object,
) -> Matching:
    """Match under a policy with these settings."""
    return match_tasks(
        baseline,
        candidate,
        Policy(**policy),  # type: ignore[arg-type]
        errors="exclude",
        today=today,
    )


def held(task: str, until: datetime.date = TODAY) -> tuple[Quarantine, ...]:
    """Return a quarantine of one task."""
    return (Quarantine(task=task, owner="payments", until=until),)


def test_tasks_of_equal_content_are_compared() -> None:
    """A task is compared when both sides have it with the same digest and a judged trial."""
    found = matched(side_of("refund ++ cancel +-"), side_of("cancel -- refund !+"))

    assert found == Matching(compared=("cancel", "refund"))


def test_each_task_that_cannot_be_compared_has_its_claim() -> None:
    """New, removed, edited and unjudged tasks are told apart and none is lost."""
    baseline = side_of("same + gone + edited + broken +")
    candidate = side_of("same + fresh + edited + broken !", digests={"edited": "sha256:other"})

    found = matched(baseline, candidate)

    assert found.compared == ("same",)
    assert found.claims == {
        "fresh": Claim.NEW,
        "gone": Claim.REMOVED,
        "edited": Claim.CHANGED,
        "broken": Claim.UNJUDGED,
    }


def test_without_a_baseline_every_task_is_new() -> None:
    """Nothing can be removed or edited where there was nothing before."""
    assert matched(None, side_of("refund ++ cancel !!")).new == ("cancel", "refund")


@pytest.mark.parametrize("side", ["baseline", "candidate"])
def test_a_missing_digest_is_matched_by_id_and_said(side: str) -> None:
    """A file of another tool holds no digest: the id decides, and the task is named."""
    digests = {"baseline": {}, "candidate": {}} | {side: {"refund": None}}

    found = matched(
        side_of("refund ++ cancel ++", digests=digests["baseline"]),
        side_of("refund ++ cancel ++", digests=digests["candidate"]),
    )

    assert found.compared == ("cancel", "refund")
    assert found.by_id == ("refund",)


def test_tasks_that_may_vanish_are_listed_and_not_held_against_the_change() -> None:
    """`allow_removed` takes globs; what it matches is still shown as removed."""
    baseline = side_of("old-1 + old-2 + keep + core +")

    found = matched(baseline, side_of("keep +"), allow_removed=("old-*",))

    assert found.removed == ("core",)
    assert found.allowed == ("old-1", "old-2")
    assert found.claims["old-1"] is Claim.REMOVED


def test_a_filter_restricts_both_sides() -> None:
    """A task that the candidate was not asked to run is not a removed one."""
    baseline = side_of("refund-1 + refund-2 + cancel +")

    found = matched(baseline, side_of("refund-1 +", task_filter="refund-*"))

    assert found.compared == ("refund-1",)
    assert found.removed == ("refund-2",)


def test_a_filtered_baseline_restricts_the_candidate() -> None:
    """The other way round: what the baseline left out by its filter is not new."""
    baseline = side_of("refund-1 +", task_filter="refund-*")

    found = matched(baseline, side_of("refund-1 + cancel +"))

    assert found == Matching(compared=("refund-1",))


@pytest.mark.parametrize("filtered", ["refund-* && *-1", "refund-1 && refund-* && *"])
def test_every_filter_of_a_side_restricts_both(filtered: str) -> None:
    """A task that any filter of the candidate left out is neither removed nor new."""
    baseline = side_of("refund-1 + refund-2 + cancel-1 +")

    found = matched(baseline, side_of("refund-1 +", task_filter=filtered))

    assert found == Matching(compared=("refund-1",))


def test_filters_of_both_sides_hold_together() -> None:
    """Only what passes the filters of baseline and candidate can be missed on either side."""
    baseline = side_of("refund-1 + refund-2 +", task_filter="refund-*")

    found = matched(baseline, side_of("refund-1 + cancel-1 +", task_filter="*-1"))

    assert found == Matching(compared=("refund-1",))


@pytest.mark.parametrize("filtered", ["baseline", "candidate"])
def test_a_side_that_holds_more_than_its_filter_is_held_to_it(filtered: str) -> None:
    """What a file's own filter left out is on neither side, though the file has it."""
    filters = {"baseline": None, "candidate": None} | {filtered: "refund-*"}
    sides = (side_of("refund-1 + cancel +", task_filter=filters[side]) for side in filters)

    assert matched(*sides) == Matching(compared=("refund-1",))


def test_a_shard_removes_nothing() -> None:
    """A shard holds some of the tasks; the others are elsewhere and not gone."""
    found = matched(side_of("refund + cancel +"), side_of("refund +", shard="1/2"))

    assert found == Matching(compared=("refund",))


def test_a_run_that_was_cut_short_leaves_tasks_unjudged() -> None:
    """A task that a stopped run did not come to is not removed."""
    stop = Stop(round=1, reason=StopReason.BUDGET)

    found = matched(side_of("refund + cancel +"), side_of("refund +", stop=stop))

    assert found.unjudged == ("cancel",)
    assert found.removed == ()


def test_a_task_without_a_judged_trial_in_the_baseline_is_new() -> None:
    """Where the baseline knows nothing of a task there is nothing to compare, and that is said."""
    found = matched(side_of("refund + cancel !!"), side_of("refund + cancel ++"))

    assert found.new == ("cancel",)
    assert found.unserved == ("cancel",)


def test_a_quarantined_task_is_listed_and_not_judged() -> None:
    """Until and on its last day a quarantine keeps its task out, edited or not."""
    baseline, candidate = side_of("refund ++ flaky ++"), side_of("refund ++ flaky --")

    found = matched(baseline, candidate, quarantine=held("flaky"))

    assert found.quarantined == ("flaky",)
    assert found.compared == ("refund",)


def test_a_lapsed_quarantine_judges_its_task_again() -> None:
    """The day after its last day the task counts, and the lapse is said."""
    yesterday = TODAY - datetime.timedelta(days=1)

    found = matched(side_of("flaky +"), side_of("flaky -"), quarantine=held("flaky", yesterday))

    assert found.compared == ("flaky",)
    assert [q.task for q in found.lapsed] == ["flaky"]


def test_a_quarantine_holds_where_the_day_is_unknown() -> None:
    """Without a date nothing lapses."""
    found = matched(
        side_of("flaky +"),
        side_of("flaky -"),
        today=None,
        quarantine=held("flaky", datetime.date(2000, 1, 1)),
    )

    assert found.quarantined == ("flaky",)


def test_a_quarantined_task_that_vanishes_is_removed() -> None:
    """A quarantine does not let a task disappear."""
    found = matched(side_of("flaky + core +"), side_of("core +"), quarantine=held("flaky"))

    assert found.removed == ("flaky",)


def test_a_quarantined_task_that_a_stopped_run_did_not_reach_stays_quarantined() -> None:
    """It would not have been judged anyway."""
    found = matched(
        side_of("flaky + core +"),
        side_of("core +", complete=False),
        quarantine=held("flaky"),
    )

    assert found.quarantined == ("flaky",)
    assert found.unjudged == ()


def test_a_quarantine_of_no_task_is_said() -> None:
    """A quarantine whose task neither side has is a misspelling or a leftover."""
    found = matched(side_of("core +"), side_of("core +"), quarantine=held("cor"))

    assert [q.task for q in found.unknown] == ["cor"]


@pytest.mark.parametrize(
    ("created", "day"),
    [
        ("2026-11-30T12:00:00Z", TODAY),
        (None, None),
        ("yesterday", None),
        ("", None),
        ("2026-13-01", None),
    ],
)
def test_the_day_of_a_run_is_read_from_its_file(
    created: str | None, day: datetime.date | None
) -> None:
    """What is no date is unknown."""
    assert run_day(side_of("refund +", created=created)) == day

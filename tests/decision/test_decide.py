"""What follows from the rules: exit statuses, the label, what is named, and for whom."""

from __future__ import annotations

import datetime
from typing import Any

import msgspec
import pytest

from ci_gate.decision.circumstances import Circumstances
from ci_gate.decision.compare import compare
from ci_gate.decision.decide import decide
from ci_gate.model.policy import Policy, Quarantine
from ci_gate.model.run import AgentRef, BaselineRun, Measure, Plan, Side, Stop, StopReason
from ci_gate.model.trial import Cause
from ci_gate.model.verdict import Claim, Decision, TaskResult, Verdict
from tests.notation import side_of

BROKEN = "a ++++++++ b ++++++++ c ++++++++", "a ++++++++ b -------- c ++++++++"


def judged(
    baseline: Side | str | None,
    candidate: Side | str,
    around: Circumstances | None = None,
    **policy: Any,
) -> Verdict:
    """Judge two sides or their notations."""
    before = side_of(baseline) if isinstance(baseline, str) else baseline
    after = side_of(candidate) if isinstance(candidate, str) else candidate
    chosen = Policy(**policy)
    return decide(compare(before, after, chosen, around), chosen, around)


def codes(verdict: Verdict) -> list[str]:
    """Return the reasons' codes in order."""
    return [str(reason.code) for reason in verdict.reasons]


def test_a_regression_exits_1_and_names_its_task_with_counts() -> None:
    """The first thing a reader sees is which task fell from what to what."""
    verdict = judged(*BROKEN)

    assert (verdict.decision, verdict.exit_code) == (Decision.REGRESSED, 1)
    assert verdict.reasons[0].text == "1 task regressed: b (8/8 to 0/8)."
    assert verdict.p_value == min(t.p_adjusted for t in verdict.tasks if t.p_adjusted)


@pytest.mark.parametrize(
    ("candidate", "settings", "decision", "status"),
    [
        (BROKEN[1], {"mode": "advisory"}, Decision.REGRESSED, 0),
        (BROKEN[0].replace("b", "z"), {"mode": "advisory"}, Decision.REGRESSED, 0),
        ("a !!!!!!!!", {"mode": "advisory"}, Decision.INCONCLUSIVE, 0),
        ("a !!!!!!!!", {"on_inconclusive": "pass"}, Decision.INCONCLUSIVE, 0),
        ("a !!!!!!!!", {}, Decision.INCONCLUSIVE, 3),
        (BROKEN[1], {"on_inconclusive": "pass"}, Decision.REGRESSED, 1),
    ],
)
def test_the_mode_changes_the_status_and_never_the_decision(
    candidate: str, settings: dict[str, Any], decision: Decision, status: int
) -> None:
    """An advisory gate reports everything and exits 0."""
    verdict = judged(BROKEN[0], candidate, **settings)

    assert (verdict.decision, verdict.exit_code) == (decision, status)
    assert verdict.mode == settings.get("mode", "blocking")


def test_the_label_accepts_what_is_held_against_the_bar() -> None:
    """A labelled regression passes as `bar-moved`, and what was accepted is still said."""
    verdict = judged(*BROKEN, Circumstances(labelled=True))

    assert (verdict.decision, codes(verdict)) == (Decision.PASSED, ["bar-moved"])
    assert "Accepted by the label: 1 task regressed: b (8/8 to 0/8)." in verdict.warnings
    assert verdict.tasks[1].claim is Claim.REGRESSED


@pytest.mark.parametrize(
    ("candidate", "around"),
    [
        ("a ++++++++ b ++++++++ c ++++++++", {"baseline_edited": True}),
        ("a ++++++++ b ++++++++ c ++++++++", {"baseline_status": "missing"}),
        (side_of("a ++++++++", digests={"a": "sha256:edited"}), {}),
    ],
    ids=["edited", "missing", "changed"],
)
def test_what_the_label_accepts_is_not_said_to_lack_it(
    candidate: Side | str, around: dict[str, Any]
) -> None:
    """A sentence that asks for the label is shown only where there is none."""
    plain = judged(BROKEN[0], candidate, Circumstances(**around))
    labelled = judged(BROKEN[0], candidate, Circumstances(labelled=True, **around))

    assert any("label" in reason.text for reason in plain.reasons)
    accepted = [text for text in labelled.warnings if text.startswith("Accepted by the label: ")]
    assert accepted
    assert not any("label" in text.removeprefix("Accepted by the label: ") for text in accepted)


@pytest.mark.parametrize(
    ("candidate", "settings", "code"),
    [
        ("a ++++++++ b !!!!!!!! c ++++++++", {"max_errored_rate": 0.5}, "task-unjudged"),
        ("a !!!!!!!! b !!!!!!!! c ++++++++", {}, "too-many-errors"),
        (BROKEN[1], {"floors": {"pass^1": 0.99}}, "floor"),
    ],
)
def test_the_label_does_not_accept_what_is_wrong_in_itself(
    candidate: str, settings: dict[str, Any], code: str
) -> None:
    """Errors, unjudged tasks and floors stand, whatever the bar is."""
    verdict = judged(BROKEN[0], candidate, Circumstances(labelled=True), **settings)

    assert codes(verdict)[0] == code
    assert verdict.decision is not Decision.PASSED


def test_no_baseline_passes_and_says_how_to_make_one() -> None:
    """The first run of a suite is not a failure; every task is new."""
    verdict = judged(None, "a ++++ b ----")

    assert (verdict.decision, verdict.exit_code) == (Decision.PASSED, 0)
    assert codes(verdict) == ["no-baseline"]
    assert "ci-gate baseline update" in verdict.reasons[0].text
    assert {task.claim for task in verdict.tasks} == {Claim.NEW}
    assert verdict.metrics["pass^1"].candidate == 0.5
    assert verdict.metrics["pass^1"].baseline is None
    assert verdict.p_value is None


def test_floors_are_judged_without_a_baseline() -> None:
    """A floor needs no comparison."""
    verdict = judged(None, "a -------- b --------", floors={"pass^1": 0.5})

    assert codes(verdict) == ["floor", "no-baseline"]
    assert verdict.decision is Decision.REGRESSED


def test_errors_are_judged_without_a_baseline() -> None:
    """A first run in which nothing worked is not green."""
    assert codes(judged(None, "a !!!!!!!!"))[0] == "too-many-errors"


@pytest.mark.parametrize(
    ("errored", "rate", "inconclusive"),
    [(1, 0.05, False), (2, 0.05, True), (29, 0.29, False), (30, 0.29, True)],
)
def test_the_errored_share_may_equal_its_limit(
    errored: int, rate: float, inconclusive: bool
) -> None:
    """The limit is exact: of 32 and of 100 trials the allowed number is allowed."""
    total = 32 if rate == 0.05 else 100
    outcomes = "+" * (total - errored) + "!" * errored

    verdict = judged(f"a {'+' * total}", f"a {outcomes}", max_errored_rate=rate)

    assert ("too-many-errors" in codes(verdict)) is inconclusive


def test_trials_that_a_plan_promised_and_nobody_ran_count_as_lost() -> None:
    """A complete run in which trials are absent was not judged as planned."""
    verdict = judged("a ++++++++", "a +++++...")

    assert codes(verdict) == ["too-many-errors"]
    assert verdict.trials.planned == 8
    assert verdict.trials.run == 5


def test_errored_trials_are_failures_under_fail() -> None:
    """With `errors = fail` on both sides, errors regress the agent instead of excusing it."""
    verdict = judged(
        side_of("a ++++++++", errors="fail"),
        side_of("a !!!!!!!!", errors="fail"),
        errors="fail",
    )

    assert codes(verdict) == ["task-regressed", "suite-regressed"]
    assert verdict.tasks[0].candidate is not None
    assert verdict.tasks[0].candidate.errored == 8


def test_sides_made_under_different_error_policies_are_not_compared() -> None:
    """No p-value, no claim: only that they differ."""
    verdict = judged(side_of(BROKEN[0], errors="fail"), BROKEN[1])

    assert codes(verdict) == ["error-policy-changed"]
    assert verdict.p_value is None
    assert {task.claim for task in verdict.tasks} == {Claim.UNCHANGED}
    assert verdict.suite.compared == 0


@pytest.mark.parametrize("reason", [StopReason.BUDGET, StopReason.INTERRUPTED])
def test_an_unfinished_run_is_never_green(reason: StopReason) -> None:
    """What was run passed, and the rest was not run: inconclusive, though little is missing."""
    plan = Plan(trials=8)
    candidate = side_of("a ++++++++ b +++++++.", plan=plan, stop=Stop(round=7, reason=reason))

    verdict = judged("a ++++++++ b ++++++++", candidate)

    assert verdict.decision is Decision.INCONCLUSIVE
    assert codes(verdict) == ["budget" if reason is StopReason.BUDGET else "task-unjudged"]


def test_an_unfinished_run_can_be_red() -> None:
    """A task that is proven broken is broken, however the run ended."""
    candidate = side_of(BROKEN[1], complete=False)

    assert judged(BROKEN[0], candidate).decision is Decision.REGRESSED


@pytest.mark.parametrize(
    ("known", "told"),
    [
        ({"baseline_digest": "sha256:b", "policy_digest": "sha256:p"}, "is not believed"),
        ({"baseline_digest": "sha256:x", "policy_digest": "sha256:p"}, "another baseline"),
        ({"baseline_digest": "sha256:b", "policy_digest": "sha256:x"}, "another baseline"),
        ({}, "another baseline"),
    ],
)
def test_a_curtailed_run_is_not_believed(known: dict[str, str], told: str) -> None:
    """A stop that its trials do not bear out leaves no p-value and no verdict but inconclusive."""
    candidate = side_of(
        BROKEN[1], stop=Stop(round=8, reason=StopReason.CURTAILED_REGRESSED), **known
    )
    around = Circumstances(policy_digest="sha256:p")

    verdict = judged(side_of(BROKEN[0], digest="sha256:b"), candidate, around)

    assert codes(verdict) == ["curtailed"]
    assert told in verdict.reasons[0].text
    assert verdict.p_value is None
    assert verdict.metrics["pass^1"].p_adjusted is None


def test_an_unchanged_agent_passes_without_a_run() -> None:
    """Nothing was run on purpose, so nothing is missing, removed or errored."""
    verdict = judged(BROKEN[0], side_of(""), Circumstances(unchanged_agent=True))

    assert (verdict.decision, codes(verdict)) == (Decision.PASSED, ["unchanged-agent"])
    assert verdict.metrics == {}


def test_an_unchanged_agent_that_ran_is_judged_by_its_run() -> None:
    """Outcomes outrank the digests."""
    verdict = judged(*BROKEN, Circumstances(unchanged_agent=True))

    assert verdict.decision is Decision.REGRESSED


def test_a_run_without_credentials_is_inconclusive_for_that_reason_alone() -> None:
    """It was not started: there are no errors and no removed tasks to speak of."""
    verdict = judged(BROKEN[0], side_of(""), Circumstances(no_credentials=True))

    assert (verdict.exit_code, codes(verdict)) == (3, ["no-credentials"])


def test_an_unchanged_agent_needs_no_credentials() -> None:
    """What was not to be run lacks nothing."""
    around = Circumstances(unchanged_agent=True, no_credentials=True)

    assert codes(judged(BROKEN[0], side_of(""), around)) == ["unchanged-agent"]


def test_one_flip_is_enough_for_a_deterministic_agent() -> None:
    """One trial, one pass that became a failure on the same seed: regressed, with its seed."""
    verdict = judged("a + b + c +", "a + b - c +", deterministic=True)

    assert codes(verdict) == ["flip"]
    flipped = verdict.tasks[1]
    assert flipped.claim is Claim.FLIP
    assert [replay.trial for replay in flipped.replay] == [0]


def test_a_deterministic_suite_needs_one_trial_only() -> None:
    """One is enough: without a flip it passes, though no test could have seen anything."""
    assert judged("a + b -", "a + b -", deterministic=True).decision is Decision.PASSED


def test_a_deterministic_suite_on_other_seeds_has_no_power() -> None:
    """Nothing was watched for flips, which is said, and one trial a task proves nothing."""
    verdict = judged("a + b -", side_of("a + b -", root_seed="0x9"), deterministic=True)

    assert codes(verdict) == ["no-power"]
    assert any("share no seeds" in text for text in verdict.warnings)


def test_a_seed_whose_repeats_disagree_is_no_witness_of_a_flip() -> None:
    """An agent that is not deterministic after all is said to be so, and not called a flip."""
    verdict = judged("a ++/+-", "a +-", deterministic=True, metrics=("pass^1",))

    assert "flip" not in codes(verdict)
    assert any("repeats of one seed disagree in 1 task: a" in text for text in verdict.warnings)


def test_copies_of_a_deterministic_run_are_no_evidence() -> None:
    """A second run over the seeds proves determinism and moves no figure of the verdict."""
    tasks = [f"t{i}" for i in range(8)]
    before = {1: " ".join(f"{t} +-" for t in tasks), 2: " ".join(f"{t} +-/+-" for t in tasks)}
    cost = Measure(mean=1.0, sd=0.0, mean_passed=1.0)
    measures = {
        n: {"t0": {"measures": {"cost_usd": (cost,) * n, "tokens": (cost,) * n}}} for n in (1, 2)
    }
    floor = {"floors": {"pass^1": 0.5}, "deterministic": True, "metrics": ("pass^1",)}

    single, double = (
        judged(
            side_of(before[n], root_seed="0x1"),
            side_of(before[n].replace("+-", "--"), root_seed="0x2", **measures[n]),
            **floor,
        )
        for n in (1, 2)
    )

    assert double.metrics == single.metrics
    assert double.p_value == single.p_value
    assert double.floors == single.floors
    assert double.economics == single.economics
    assert without_replays(double) == without_replays(single)
    assert double.decision is single.decision
    assert double.trials.run == 2 * single.trials.run


def without_replays(verdict: Verdict) -> list[TaskResult]:
    """Return what is said of each task but for the trials to repeat, which are of all runs."""
    return [msgspec.structs.replace(task, replay=()) for task in verdict.tasks]


def test_a_flip_in_any_run_of_a_deterministic_suite_is_seen() -> None:
    """All runs are watched for flips, though only the first is counted."""
    assert codes(judged("a +/+", "a +/-", deterministic=True)) == ["flip"]


def test_a_dead_baseline_shows_nothing() -> None:
    """Where not one trial passes on either side, nothing could have broken."""
    assert codes(judged("a -------- b --------", "a -------- b --------")) == ["baseline-dead"]


def test_a_candidate_that_rises_from_a_dead_baseline_is_not_green() -> None:
    """The plan could not have seen a regression: that is `no-power`, not a pass."""
    assert codes(judged("a -------- b --------", "a ++++++++ b ++++++++")) == ["no-power"]


def test_power_is_judged_by_the_plan_and_not_by_what_was_lost() -> None:
    """One trial was left of eight: it proves nothing, and the plan would have."""
    planned = judged("a ++++++++", "a +!!!!!!!", max_errored_rate=0.9)
    thin = judged("a ++++++++", "a +", max_errored_rate=0.9)

    assert planned.decision is Decision.PASSED
    assert codes(thin) == ["no-power"]


def test_a_claim_at_exactly_the_level_is_red() -> None:
    """At most alpha, not below alpha; and a hair above it is green."""
    policy = Policy(metrics=("pass^1",), pairing="none")
    sides = side_of("a ++++++++ b ++++++++"), side_of("a +++----- b ++++++++")
    evidence = compare(*sides, policy).evidence
    assert evidence is not None
    p_value = evidence.joint.p_value

    at = judged(*sides, metrics=("pass^1",), pairing="none", alpha=p_value)
    below = judged(*sides, metrics=("pass^1",), pairing="none", alpha=p_value * (1 - 1e-6))

    assert codes(at) == ["task-regressed", "suite-regressed"]
    assert codes(below) == []


def test_non_inferiority_has_to_be_shown() -> None:
    """A pass needs every interval above -margin: a wide interval is inconclusive, no more."""
    tasks = " ".join(f"t{i} ++++++--" for i in range(4))
    narrow = " ".join(f"t{i} {'+' * 200}{'-' * 2}" for i in range(20))
    asked = {"require": "non-inferiority", "margin": 0.1, "metrics": ("pass^1",)}

    assert codes(judged(tasks, tasks, **asked)) == ["non-inferiority-unshown"]
    assert judged(narrow, narrow, **asked).decision is Decision.PASSED


def test_non_inferiority_compares_the_lower_end_with_the_margin() -> None:
    """Just inside the margin is shown, just outside and exactly at it is not."""
    tasks = " ".join(f"t{i} {'+' * 30}--" for i in range(10))
    asked = {"require": "non-inferiority", "metrics": ("pass^1",)}
    metric = judged(tasks, tasks, metrics=("pass^1",)).metrics["pass^1"]
    assert metric.interval is not None
    width = -metric.interval[0]

    exact = compare(side_of(tasks), side_of(tasks), Policy(metrics=("pass^1",))).metrics["pass^1"]
    assert exact.interval is not None
    equal = -exact.interval[0]

    assert codes(judged(tasks, tasks, margin=equal, **asked)) == ["non-inferiority-unshown"]
    assert judged(tasks, tasks, margin=width * 1.001, **asked).decision is Decision.PASSED
    assert codes(judged(tasks, tasks, margin=width * 0.999, **asked)) == ["non-inferiority-unshown"]


def test_a_margin_lets_a_small_drop_of_the_suite_pass() -> None:
    """Every task drops a little: red without a margin, green with one that covers it."""
    tasks = [f"t{i}" for i in range(12)]
    before = " ".join(f"{t} ++++++++" for t in tasks)
    after = " ".join(f"{t} {'+' * (i % 8)}-{'+' * (7 - i % 8)}" for i, t in enumerate(tasks))

    assert judged(before, after, metrics=("pass^1",)).decision is Decision.REGRESSED
    assert judged(before, after, metrics=("pass^1",), margin=0.3).decision is Decision.PASSED


def test_a_lapsed_quarantine_is_judged_by_the_day_of_the_run() -> None:
    """The file's date decides where the caller names no day."""
    quarantine = (Quarantine(task="b", owner="payments", until=datetime.date(2026, 11, 29)),)
    late = side_of(BROKEN[1], created="2026-11-30T08:00:00Z")
    early = side_of(BROKEN[1], created="2026-11-29T08:00:00Z")

    assert judged(BROKEN[0], early, quarantine=quarantine).decision is Decision.PASSED
    verdict = judged(BROKEN[0], late, quarantine=quarantine)
    assert verdict.decision is Decision.REGRESSED
    assert any("owner: payments" in text for text in verdict.warnings)


def quarantined(*tasks: str) -> tuple[Quarantine, ...]:
    """Return quarantines that do not end soon."""
    until = datetime.date(2100, 1, 1)
    return tuple(Quarantine(task=task, owner="payments", until=until) for task in tasks)


def test_errors_of_a_quarantined_task_are_not_held_against_the_run() -> None:
    """A task that decides nothing does not make a suite inconclusive either."""
    errored = side_of("a ++++++++ b !!!!!!!!")
    broken = side_of("a ++++++++ b --------", causes={"b": {(0, 0): Cause.GRADER_ERROR}})

    for candidate in (errored, broken):
        assert judged("a ++++++++ b ++++++++", candidate, max_errored_rate=0.0).decision != "passed"
        verdict = judged(
            "a ++++++++ b ++++++++", candidate, max_errored_rate=0.0, quarantine=quarantined("b")
        )
        assert (verdict.decision, codes(verdict)) == (Decision.PASSED, [])
    assert judged(
        "a ++++++++ b ++++++++", errored, quarantine=quarantined("b")
    ).trials.errored == len("!!!!!!!!")


def test_a_quarantine_does_not_dilute_the_errors_of_the_others() -> None:
    """The share is over the tasks that are judged: 1 of 8, and not 1 of 16."""
    around = {"max_errored_rate": 0.1, "quarantine": quarantined("b")}

    verdict = judged("a ++++++++ b ++++++++", "a +++++++! b ++++++++", **around)

    assert codes(verdict) == ["too-many-errors"]
    assert "7 of 8 planned trials" in verdict.reasons[0].text


@pytest.mark.parametrize(
    ("candidate", "code"),
    [("a !!!! b ++++", "nothing-compared"), ("a !!!! b !!!!", "too-many-errors")],
)
def test_a_suite_of_quarantined_tasks_only_is_never_green(candidate: str, code: str) -> None:
    """Where nothing is left to judge, nothing passes."""
    verdict = judged("a ++++ b ++++", candidate, quarantine=quarantined("a", "b"))

    assert verdict.decision is Decision.INCONCLUSIVE
    assert codes(verdict)[0] == code


def test_quarantined_tasks_stay_out_of_floors() -> None:
    """A flaky task in quarantine does not pull the suite below its floor."""
    quarantine = (Quarantine(task="b", owner="payments", until=datetime.date(2100, 1, 1)),)

    verdict = judged(*BROKEN, quarantine=quarantine, floors={"pass^1": 0.99})

    assert verdict.decision is Decision.PASSED
    assert verdict.suite.quarantined == ("b",)


def test_contributors_carry_their_seeds_where_no_single_task_is_proven() -> None:
    """The suite fell and no task did: each that dropped has its part and its seeds."""
    tasks = [f"t{i}" for i in range(6)]
    before = " ".join(f"{t} ++++++++" for t in tasks)
    after = " ".join(f"{t} {'+' * i}--{'+' * (6 - i)}" for i, t in enumerate(tasks))

    verdict = judged(before, after)

    assert codes(verdict) == ["suite-regressed"]
    assert {task.claim for task in verdict.tasks} == {Claim.UNCHANGED}
    assert all(task.contribution == pytest.approx(-1 / 24, rel=1e-5) for task in verdict.tasks)
    assert all(len(task.replay) == 2 for task in verdict.tasks)


def test_a_task_that_did_not_fall_needs_no_seeds() -> None:
    """Failures that were there before are not listed to be replayed."""
    verdict = judged("a ++++---- b ++++++++", "a ++++---- b ++++++++")

    assert [task.replay for task in verdict.tasks] == [(), ()]


def test_a_filtered_run_is_marked_partial() -> None:
    """A verdict on some of the tasks says that it is one."""
    verdict = judged("a ++++++++ b ++++++++", side_of("a ++++++++", task_filter="a"))

    assert verdict.partial
    assert verdict.decision is Decision.PASSED


def test_provenance_joins_the_files_with_what_the_caller_knows() -> None:
    """Facts of a file and of git about the same side stand together."""
    runs = (BaselineRun(agent=AgentRef(name="desk", digest="sha256:a"), run_digest="sha256:r"),)
    around = Circumstances(provenance={"baseline": {"origin": "main"}, "policy": "base"})

    verdict = judged(side_of("a ++++++++", runs=runs), side_of("a ++++++++", commit="abc"), around)

    assert verdict.provenance["baseline"]["origin"] == "main"
    assert verdict.provenance["baseline"]["agent"] == "desk"
    assert verdict.provenance["candidate"]["commit"] == "abc"
    assert verdict.provenance["policy"] == "base"


@pytest.mark.parametrize(
    ("baseline", "candidate", "said"),
    [
        ({"suite": "other"}, {}, "is of suite other"),
        ({"suite_digest": "sha256:1"}, {"suite_digest": "sha256:2"}, "is not the one"),
        ({"complete": False}, {}, "ended before its plan"),
        ({"errors": "fail"}, {"errors": "fail"}, "errored trials count under fail"),
        (
            {"runs": (BaselineRun(agent=AgentRef(), run_digest="r", forced=True),)},
            {},
            "accepted by force",
        ),
    ],
)
def test_what_is_odd_about_the_sides_is_said(
    baseline: dict[str, Any], candidate: dict[str, Any], said: str
) -> None:
    """It decides nothing and nobody has to find it out."""
    verdict = judged(side_of("a ++++++++", **baseline), side_of("a ++++++++", **candidate))

    assert any(said in text for text in verdict.warnings)
    assert verdict.decision is Decision.PASSED


@pytest.mark.parametrize(
    ("char", "reason"),
    [("-", "grader-error: x"), ("!", "contaminated: x"), ("-", "state: grader-error: x")],
)
def test_no_text_of_an_agent_chooses_the_tier(char: str, reason: str) -> None:
    """A reason that speaks of graders or contamination excuses nothing."""
    outcomes = {"-": "--------", "!": "-------!"}[char]
    reasons = {"b": {(7, 0): reason}}
    candidate = side_of(f"a ++++++++ b {outcomes} c ++++++++", reasons=reasons)

    verdict = judged(BROKEN[0], candidate)

    assert verdict.decision is Decision.REGRESSED
    assert codes(verdict)[0] == "task-regressed"


def test_what_only_some_trials_know_is_said() -> None:
    """A cost that is known for 4 of 8 trials is not that of the side, and the report says so."""
    known = Measure(mean=0.5, sd=0.0, mean_passed=0.5, known=4)

    verdict = judged("a ++++++++", side_of("a ++++++++", a={"measures": {"cost_usd": (known,)}}))

    assert verdict.economics["candidate"]["cost_usd"] == 2.0
    assert verdict.economics["candidate"]["cost_per_success_usd"] is None
    assert any("candidate's cost is known for 4 of 8" in text for text in verdict.warnings)


def test_hostile_ids_cannot_break_a_line_of_a_reason() -> None:
    """Reasons are one line of printable text whatever the tasks are called."""
    evil = "x\n::error::pwned\u202e"
    before = side_of("a ++++++++")
    renamed = {evil: before.tasks["a"]}
    failing = {evil: side_of("a --------").tasks["a"]}

    policy = Policy()
    sides = [
        Side(kind="run", suite="s", root_seed="0x1", tasks=tasks, planned={evil: 8})
        for tasks in (renamed, failing)
    ]
    verdict = decide(compare(*sides, policy), policy)

    assert verdict.decision is Decision.REGRESSED
    assert all(reason.text.isprintable() for reason in verdict.reasons)

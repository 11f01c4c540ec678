"""What is asked again after a red test, and to what a regression is then put down."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import msgspec
import pytest

from ci_gate.decision.attribution import (
    RecheckSides,
    attribute,
    plan_recheck,
    repeats_for,
)
from ci_gate.decision.circumstances import Circumstances
from ci_gate.decision.compare import compare
from ci_gate.decision.decide import decide
from ci_gate.model.policy import Policy
from ci_gate.model.run import AgentRef, BaselineRun, Side, Stop, StopReason
from ci_gate.model.trial import Answers, Cause
from ci_gate.model.verdict import (
    Attribution,
    Claim,
    Decision,
    Reason,
    ReasonCode,
    Recheck,
    Verdict,
)
from tests.notation import side_of

GOOD = "++++++++"
BAD = "--------"
POLICY = Policy()
OUTLINE = Recheck(commit="c" * 40, whole_suite=False, trials=16)


def tasks(number: int, outcomes: str, **others: str) -> Side:
    """Return a side with so many alike tasks, and others by name."""
    alike = {f"t{i}": outcomes for i in range(number)}
    return side_of(" ".join(f"{name} {runs}" for name, runs in (alike | others).items()))


def judged(baseline: Side, candidate: Side, policy: Policy = POLICY, **around: Any) -> Verdict:
    """Return the verdict on two sides."""
    known = Circumstances(**around)
    return decide(compare(baseline, candidate, policy, known), policy, known)


def fresh(outcomes: str) -> str:
    """Return two runs over the seeds."""
    return f"{outcomes}/{outcomes}"


def sides_of(first: Side | None = None, **sides: Side) -> RecheckSides:
    """Return the sides of a recheck; the run that was red said nothing that is needed."""
    return RecheckSides(first=first or tasks(1, BAD), **sides)


def rechecked(baseline: str, base: str, candidate: str, **fields: Any) -> Recheck:
    """Attribute where one task has these outcomes beside four calm ones."""
    sides = sides_of(
        baseline=tasks(4, GOOD, x=baseline),
        base=tasks(4, fresh(GOOD), x=base),
        candidate=tasks(4, fresh(GOOD), x=candidate),
    )
    return attribute(sides, OUTLINE, msgspec.structs.replace(POLICY, **fields))


def test_a_claim_on_one_task_asks_about_five() -> None:
    """The claimed task and those with the smallest p beside it, by id."""
    before = tasks(8, GOOD, x=GOOD, y=GOOD)
    after = tasks(8, GOOD, x=BAD, y="++++++--")
    after = msgspec.structs.replace(after, tasks={**after.tasks, **tasks(0, "", z=GOOD).tasks})
    policy = msgspec.structs.replace(POLICY, metrics=("pass^1",))
    verdict = judged(before, after, policy)
    alone = msgspec.structs.replace(
        verdict,
        reasons=tuple(r for r in verdict.reasons if r.code is ReasonCode.TASK_REGRESSED),
    )

    plan = plan_recheck(alone, policy)

    assert plan is not None
    assert plan.tasks == ("t0", "t1", "t2", "x", "y")
    assert not plan.whole_suite


def test_a_claim_on_the_suite_asks_about_every_compared_task() -> None:
    """New, quarantined and edited tasks are no part of it."""
    before = tasks(12, GOOD, edited=GOOD)
    after = side_of(
        " ".join([*(f"t{i} ++++--+-" for i in range(12)), "edited", GOOD, "new", GOOD]),
        digests={"edited": "sha256:other"},
    )

    plan = plan_recheck(judged(before, after), POLICY)

    assert plan is not None
    assert plan.whole_suite
    assert plan.tasks == tuple(sorted(f"t{i}" for i in range(12)))


def test_every_claimed_task_is_asked_about_however_many_there_are() -> None:
    """Five is the least, not the most."""
    before, after = tasks(9, GOOD), tasks(2, GOOD, **{f"t{i}": BAD for i in range(2, 9)})
    verdict = judged(before, after)
    alone = msgspec.structs.replace(
        verdict, reasons=(Reason(code=ReasonCode.TASK_REGRESSED, text=""),)
    )

    plan = plan_recheck(alone, POLICY)

    assert plan is not None
    assert plan.tasks == tuple(f"t{i}" for i in range(2, 9))


def test_a_run_that_was_stopped_orders_by_its_chances() -> None:
    """Without p-values the tasks that are likeliest to be red come first."""
    verdict = judged(tasks(9, GOOD), tasks(8, GOOD, t8=BAD))
    chances = {"t8": 0.99, "t1": 0.5, "t3": 0.4, "t5": 0.3, "t7": 0.2}
    stopped = msgspec.structs.replace(
        verdict,
        reasons=(Reason(code=ReasonCode.TASK_REGRESSED, text=""),),
        tasks=tuple(
            msgspec.structs.replace(t, p_value=None, predictive=chances.get(t.task, 0.01))
            for t in verdict.tasks
        ),
    )

    plan = plan_recheck(stopped, POLICY)

    assert plan is not None
    assert plan.tasks == tuple(sorted(chances))


@pytest.mark.parametrize(
    ("baseline", "candidate", "policy"),
    [
        (tasks(5, GOOD), tasks(5, GOOD), POLICY),
        (tasks(5, GOOD, gone=GOOD), tasks(5, GOOD), POLICY),
        (tasks(5, GOOD), tasks(5, BAD), msgspec.structs.replace(POLICY, deterministic=True)),
    ],
    ids=["green", "red by another rule", "deterministic"],
)
def test_nothing_else_is_asked_again(baseline: Side, candidate: Side, policy: Policy) -> None:
    """A pass, a fact, a flip."""
    assert plan_recheck(judged(baseline, candidate, policy), policy) is None


def test_advisory_mode_is_asked_as_well() -> None:
    """Who looks at the report wants to know, whether or not it blocks."""
    policy = msgspec.structs.replace(POLICY, mode="advisory")
    verdict = judged(tasks(5, GOOD), tasks(5, BAD), policy)

    assert verdict.exit_code == 0
    assert plan_recheck(verdict, policy) is not None


@pytest.mark.parametrize(
    ("trials", "repeats"), [((8,), 2), ((8, 5), 4), ((16,), 1), ((40,), 1), ((1,), 16), ((12,), 2)]
)
def test_each_task_gets_sixteen_trials(trials: tuple[int, ...], repeats: int) -> None:
    """Whole runs over the seeds, as many as the shallowest task needs."""
    assert repeats_for(trials) == repeats


@pytest.mark.parametrize(
    ("baseline", "base", "candidate", "found"),
    [
        (GOOD, fresh(GOOD), fresh(BAD), Attribution.CHANGE),
        (GOOD, fresh(BAD), fresh(BAD), Attribution.ENVIRONMENT),
        (GOOD, fresh(GOOD), fresh(GOOD), Attribution.NOISE),
        (GOOD, fresh(BAD), fresh(GOOD), Attribution.ENVIRONMENT),
        (BAD, fresh(GOOD), fresh(GOOD), Attribution.NOISE),
        (GOOD, fresh("++++----"), fresh(BAD), Attribution.CHANGE),
    ],
)
def test_what_it_was(baseline: str, base: str, candidate: str, found: Attribution) -> None:
    """The change wins over the environment, and both over noise."""
    recheck = rechecked(baseline, base, candidate)

    assert recheck.attribution is found
    assert recheck.problem is None


def test_the_figures_of_an_attribution() -> None:
    """Counts of all three sides, their mean rates over the tasks, and both exact p-values."""
    recheck = rechecked(GOOD, fresh(GOOD), fresh(BAD), metrics=("pass^1",))

    [x] = [task for task in recheck.tasks if task.task == "x"]
    assert (x.baseline.trials, x.base.trials, x.candidate.trials) == (8, 16, 16)
    assert (x.baseline.passed, x.base.passed, x.candidate.passed) == (8, 16, 0)
    assert recheck.rates == {"baseline": 1.0, "base": 1.0, "candidate": 0.8}
    assert recheck.change is not None
    assert recheck.environment is not None
    assert recheck.change.level == POLICY.alpha
    assert recheck.change.p_value < 1e-6
    assert recheck.environment.p_value == 1.0


def test_both_at_once_is_said() -> None:
    """A change in a worse environment is the change, and the baseline is out of date."""
    recheck = rechecked(GOOD, fresh("++------"), fresh(BAD))

    assert recheck.attribution is Attribution.CHANGE
    assert recheck.environment is not None
    assert recheck.environment.regressed
    assert any("made anew" in remark for remark in recheck.remarks)


def test_too_many_errors_are_no_answer() -> None:
    """What is not judged on one side says nothing about the other."""
    recheck = rechecked(GOOD, fresh("+++++!!!"), fresh(BAD))

    assert recheck.attribution is None
    assert recheck.problem is not None
    assert "of the base" in recheck.problem


def test_errors_that_count_as_failures_are_failures() -> None:
    """The suite's own word on errors holds here as well."""
    sides = sides_of(
        baseline=msgspec.structs.replace(tasks(4, GOOD, x=GOOD), errors="fail"),
        base=msgspec.structs.replace(tasks(4, fresh(GOOD), x=fresh(GOOD)), errors="fail"),
        candidate=msgspec.structs.replace(
            tasks(4, fresh(GOOD), x=fresh("!!!!!!!!")), errors="fail"
        ),
    )

    recheck = attribute(sides, OUTLINE, msgspec.structs.replace(POLICY, errors="fail"))

    assert recheck.attribution is Attribution.CHANGE


@pytest.mark.parametrize("cause", [Cause.CONTAMINATED, Cause.GRADER_ERROR])
def test_what_cannot_be_trusted_is_no_answer(cause: Cause) -> None:
    """Worlds that were not clean and graders that raise, as in a check."""
    base = side_of(
        f"x {fresh(BAD)}", causes={"x": {(t, r): cause for t in range(8) for r in range(2)}}
    )
    sides = sides_of(baseline=tasks(0, "", x=GOOD), base=base, candidate=tasks(0, "", x=fresh(BAD)))

    recheck = attribute(sides, OUTLINE, POLICY)

    assert recheck.attribution is None
    assert recheck.problem


def answered(side: Side, task: str, name: str, *, cached: bool = False) -> Side:
    """Return a side on which the models' answers of a task have names: one for all its trials."""
    keys = {
        (trial, at): Answers(responses=name, cached=cached) for trial in range(8) for at in (0, 1)
    }
    told = msgspec.structs.replace(side.tasks[task], answers=keys)
    return msgspec.structs.replace(side, tasks={**side.tasks, task: told})


def test_a_replay_of_the_red_run_is_no_answer() -> None:
    """Answers out of a cache say again what was said before."""
    first = answered(tasks(0, "", x=fresh(BAD)), "x", "one")
    sides = sides_of(
        first=first,
        baseline=tasks(0, "", x=GOOD),
        base=tasks(0, "", x=fresh(GOOD)),
        candidate=answered(tasks(0, "", x=fresh(BAD)), "x", "one"),
    )

    recheck = attribute(sides, OUTLINE, POLICY)

    assert recheck.attribution is None
    assert recheck.problem is not None
    assert "copies" in recheck.problem


def test_what_a_candidate_calls_copies_does_not_clear_it() -> None:
    """Its failures would be set aside on its own word: then there is no answer."""
    candidate = tasks(8, fresh(GOOD), x=fresh(BAD))
    sides = sides_of(
        baseline=tasks(8, GOOD, x=GOOD),
        base=tasks(8, fresh(GOOD), x=fresh(GOOD)),
        candidate=answered(candidate, "x", "one"),
    )

    recheck = attribute(sides, OUTLINE, POLICY)

    assert recheck.attribution is None
    assert recheck.problem is not None
    assert "calls copies" in recheck.problem


def test_a_budget_that_was_reached_is_no_answer() -> None:
    """The reason is the budget, not the trials that are missing."""
    stop = Stop(round=1, reason=StopReason.BUDGET)
    base = msgspec.structs.replace(tasks(4, fresh(GOOD), x=fresh(GOOD)), stop=stop)
    sides = sides_of(
        baseline=tasks(4, GOOD, x=GOOD), base=base, candidate=tasks(4, fresh(GOOD), x=fresh(BAD))
    )

    recheck = attribute(sides, OUTLINE, POLICY)

    assert recheck.attribution is None
    assert recheck.problem is not None
    assert "budget" in recheck.problem


def test_a_base_that_never_passes_is_pointed_out() -> None:
    """Its work tree may lack what git does not hold."""
    sides = sides_of(
        baseline=tasks(5, GOOD), base=tasks(5, fresh(BAD)), candidate=tasks(5, fresh(BAD))
    )

    recheck = attribute(sides, OUTLINE, POLICY)

    assert recheck.attribution is Attribution.ENVIRONMENT
    assert any("setup" in remark for remark in recheck.remarks)


def test_another_agent_at_the_base_is_pointed_out() -> None:
    """An earlier change without a new baseline looks like the environment."""
    runs = [(BaselineRun(agent=AgentRef(digest=d), run_digest=""),) for d in ("one", "two")]
    sides = sides_of(
        baseline=msgspec.structs.replace(tasks(5, GOOD), runs=runs[0]),
        base=msgspec.structs.replace(tasks(5, fresh(BAD)), runs=runs[1]),
        candidate=tasks(5, fresh(BAD)),
    )

    recheck = attribute(sides, OUTLINE, POLICY)

    assert any("earlier change" in remark for remark in recheck.remarks)


@pytest.mark.parametrize(
    ("attribution", "decision", "status"),
    [
        (Attribution.CHANGE, Decision.REGRESSED, 1),
        (None, Decision.REGRESSED, 1),
        (Attribution.ENVIRONMENT, Decision.INCONCLUSIVE, 3),
        (Attribution.NOISE, Decision.INCONCLUSIVE, 3),
    ],
)
def test_what_follows_for_the_verdict(
    attribution: Attribution | None, decision: Decision, status: int
) -> None:
    """Only what is put down to something else takes the place of the test's red, never by green."""
    recheck = msgspec.structs.replace(OUTLINE, attribution=attribution)
    verdict = judged(tasks(5, GOOD), tasks(5, BAD), recheck=recheck)

    assert verdict.decision is decision
    assert verdict.exit_code == status
    assert verdict.recheck == recheck
    proven = decision is Decision.REGRESSED
    claim = Claim.REGRESSED if proven else Claim.SUSPECT
    assert {task.claim for task in verdict.tasks} == {claim}
    assert all(metric.regressed is proven for metric in verdict.metrics.values())


@pytest.mark.parametrize("attribution", [Attribution.ENVIRONMENT, Attribution.NOISE])
def test_other_red_rules_stay(attribution: Attribution) -> None:
    """A removed task and a broken floor are no matter of chance."""
    recheck = msgspec.structs.replace(OUTLINE, attribution=attribution)
    policy = msgspec.structs.replace(POLICY, floors={"pass^1": 0.9})

    verdict = judged(tasks(5, GOOD, gone=GOOD), tasks(5, BAD), policy, recheck=recheck)

    assert verdict.decision is Decision.REGRESSED
    assert [reason.code for reason in verdict.reasons] == [
        "tasks-removed",
        "floor",
        f"recheck-{attribution}",
    ]


@pytest.mark.parametrize("attribution", [Attribution.ENVIRONMENT, Attribution.NOISE])
def test_each_reason_is_a_sentence(attribution: Attribution) -> None:
    """Bounded, one line, ended; it says how much was asked."""
    recheck = msgspec.structs.replace(
        rechecked(GOOD, fresh(BAD), fresh(BAD)), attribution=attribution
    )
    verdict = judged(tasks(5, GOOD), tasks(5, BAD), recheck=recheck)

    [reason] = verdict.reasons
    assert reason.code == f"recheck-{attribution}"
    assert "a recheck of 5 tasks (16 fresh trials a side)" in reason.text
    assert reason.text.endswith(".")
    assert reason.text.isprintable()
    assert len(reason.text) <= 300


def _drawn(chances: random.Random, rates: list[float], runs: int) -> Side:
    def run(rate: float) -> str:
        return "".join("+" if chances.random() < rate else "-" for _ in range(8))

    return side_of(
        " ".join(f"t{i} {'/'.join(run(rate) for _ in range(runs))}" for i, rate in enumerate(rates))
    )


@pytest.mark.calibration
def test_an_unchanged_agent_is_seldom_the_change() -> None:
    """On fresh trials ``change`` keeps alpha, also in an environment that has become worse."""
    chances, policy = random.Random(20261030), msgspec.structs.replace(POLICY, alpha=0.1)
    found = Counter[Attribution | None]()
    for _ in range(300):
        rates = [1.0, 1.0, *(chances.betavariate(4, 2) for _ in range(3))]
        worse = [0.7 * rate for rate in rates]
        sides = sides_of(
            baseline=_drawn(chances, rates, 4),
            base=_drawn(chances, worse, 2),
            candidate=_drawn(chances, worse, 2),
        )
        found[attribute(sides, OUTLINE, policy).attribution] += 1

    # Three standard errors of 300 draws at 0.1.
    assert found[Attribution.CHANGE] <= 300 * (0.1 + 0.052)
    assert found[Attribution.ENVIRONMENT] >= 200

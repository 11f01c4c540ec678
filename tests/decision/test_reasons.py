"""Every reason of the gate, and which of two that hold together decides."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from itertools import combinations, pairwise
from typing import Any

import pytest

from ci_gate.decision.circumstances import Circumstances
from ci_gate.decision.compare import compare
from ci_gate.decision.decide import RULES, decide
from ci_gate.model.policy import Guard, Policy
from ci_gate.model.run import Measure, Side, Stop, StopReason
from ci_gate.model.trial import Cause
from ci_gate.model.verdict import Decision, ReasonCode, Verdict
from tests.notation import side_of
from tests.speeds import slow

CALM = {f"calm-{i}": ("++++++++", "++++++++") for i in range(4)}


@dataclass(frozen=True)
class Situation:
    """What must be the case for a reason to hold, to be laid over a calm suite.

    ``tasks`` are outcomes of the baseline and the candidate by id, "" where a side lacks the task;
    ``anchor`` has those of an anchor, which has all other tasks as the baseline.
    """

    tasks: dict[str, tuple[str, str]] = field(default_factory=dict)
    baseline: dict[str, Any] = field(default_factory=dict)
    candidate: dict[str, Any] = field(default_factory=dict)
    policy: dict[str, Any] = field(default_factory=dict)
    around: dict[str, Any] = field(default_factory=dict)
    anchor: dict[str, str] = field(default_factory=dict)
    calm: bool = True
    has_baseline: bool = True

    def __or__(self, other: Situation) -> Situation:
        floors = self.policy.get("floors", {}) | other.policy.get("floors", {})
        causes = self.candidate.get("causes", {}) | other.candidate.get("causes", {})
        return Situation(
            tasks=self.tasks | other.tasks,
            baseline=self.baseline | other.baseline,
            candidate=self.candidate | other.candidate | {"causes": causes},
            policy=self.policy | other.policy | {"floors": floors},
            around=self.around | other.around,
            anchor=self.anchor | other.anchor,
            calm=self.calm and other.calm,
            has_baseline=self.has_baseline and other.has_baseline,
        )

    def verdict(self, **around: Any) -> Verdict:
        """Judge the situation."""
        tasks = (CALM if self.calm else {}) | self.tasks
        baseline = self._side({t: b for t, (b, _) in tasks.items()}, self.baseline)
        candidate = self._side({t: c for t, (_, c) in tasks.items()}, self.candidate)
        policy = Policy(**({"max_errored_rate": 0.25} | self.policy))
        known = Circumstances(**(self.around | around))
        before = baseline if self.has_baseline else None
        anchor = self._side({t: b for t, (b, _) in tasks.items()} | self.anchor, {"digest": "old"})
        facts = compare(before, candidate, policy, known, anchor=anchor if self.anchor else None)
        return decide(facts, policy, known)

    def _side(self, outcomes: dict[str, str], fields: dict[str, Any]) -> Side:
        turns = Measure(mean=fields.get("turns", 5.0), sd=1.0, mean_passed=None)
        measured = {task: {"measures": {"turns": (turns,)}} for task, o in outcomes.items() if o}
        others = {name: value for name, value in fields.items() if name != "turns"}
        return side_of(
            " ".join(f"{t} {o}" for t, o in outcomes.items() if o), **(measured | others)
        )


def stopped(reason: StopReason) -> dict[str, Any]:
    """Return the fields of a run that ended for a reason."""
    return {"stop": Stop(round=4, reason=reason)}


DROPS = {f"drop-{i}": ("++++++++", "+" * i + "--" + "+" * (6 - i)) for i in range(6)}
RAISED = {(trial, 0): Cause.GRADER_ERROR for trial in range(8)}
SITUATIONS = {
    "contaminated": Situation(
        tasks={"leaky": ("++++++++", "+++++++!")},
        candidate={"causes": {"leaky": {(7, 0): Cause.CONTAMINATED}}},
    ),
    "grader-errors": Situation(
        tasks={f"raised-{i}": ("--------", "--------") for i in range(6)},
        candidate={"causes": {f"raised-{i}": RAISED for i in range(6)}},
    ),
    "too-many-errors": Situation(
        tasks={f"down-{i}": ("++++++++", "!!!!!!!+") for i in range(6)},
    ),
    "baseline-missing": Situation(around={"baseline_status": "missing"}),
    "baseline-edited": Situation(around={"baseline_edited": True}),
    "tasks-removed": Situation(tasks={"gone": ("++++++++", "")}),
    "flip": Situation(tasks={"flipped": ("++++++++", "+++++++-")}, policy={"deterministic": True}),
    "task-regressed": Situation(tasks={"broken": ("++++++++", "--------")}),
    "suite-regressed": Situation(tasks=DROPS),
    "slide": Situation(tasks={"sunk": ("--------", "--------")}, anchor={"sunk": "++++++++"}),
    "floor": Situation(
        tasks={"never": ("--------", "--------")},
        policy={"floors": {"pass^8": 0.999}, "strict_floors": True},
    ),
    "guard": Situation(
        candidate={"turns": 50.0},
        policy={"guards": (Guard(metric="turns", max_increase=0.5),)},
    ),
    "no-credentials": Situation(around={"no_credentials": True}),
    "budget": Situation(candidate=stopped(StopReason.BUDGET)),
    "curtailed": Situation(candidate=stopped(StopReason.CURTAILED_PASS)),
    "extended": Situation(candidate=stopped(StopReason.EXTENDED)),
    "shard-missing": Situation(candidate={"shard": "1/2"}),
    "task-unjudged": Situation(tasks={"mute": ("++++++++", "!!!!!!!!")}),
    "error-policy-changed": Situation(baseline={"errors": "fail"}),
    "faults-changed": Situation(baseline={"faults_digest": "sha256:1"}),
    "judge-changed": Situation(candidate={"judge_digest": "sha256:2"}),
    "tasks-changed": Situation(
        tasks={"edited": ("++++++++", "++++++++")}, candidate={"digests": {"edited": "sha256:2"}}
    ),
    "nothing-compared": Situation(tasks={"fresh": ("", "++++++++")}, calm=False),
    "baseline-dead": Situation(tasks={"dead": ("--------", "--------")}, calm=False),
    "no-power": Situation(tasks={"thin": ("+-", "+-")}, calm=False),
    "non-inferiority-unshown": Situation(
        tasks={"shaky": ("++++++--", "++++-+--")},
        policy={"require": "non-inferiority", "margin": 0.01},
    ),
    "guard-unknown": Situation(policy={"floors": {"pass^50": 0.5}}),
    "no-baseline": Situation(has_baseline=False),
    "bar-moved": Situation(around={"labelled": True}),
    "unchanged-agent": Situation(around={"unchanged_agent": True}, calm=False),
}
# Not raised by comparing files: of rechecks, which are their own measure.
ELSEWHERE = {"recheck-environment", "recheck-noise"}
# Precedence as the interface states it, most urgent first.
RANKS = (
    {"contaminated", "too-many-errors", "grader-errors"},
    {"suite-regressed", "task-regressed", "flip", "tasks-removed", "baseline-missing"}
    | {"baseline-edited", "floor", "guard", "slide"},
    set(SITUATIONS),
)
GREEN = {"no-baseline", "bar-moved", "unchanged-agent"}

PAIRS = list(combinations(SITUATIONS, 2))
NEIGHBOURS = list(pairwise(SITUATIONS))


@cache
def together(one: str, other: str) -> Verdict:
    """Judge two situations laid over each other."""
    return (SITUATIONS[one] | SITUATIONS[other]).verdict()


def codes(verdict: Verdict) -> list[str]:
    """Return the reasons' codes in order."""
    return [str(reason.code) for reason in verdict.reasons]


def rank(code: str) -> int:
    """Return the position in the stated precedence; the last are the reasons of a pass."""
    return len(RANKS) if code in GREEN else next(i for i, r in enumerate(RANKS) if code in r)


def expected(verdict: Verdict) -> Decision:
    """Return the decision that the stated precedence gives to the verdict's own reasons."""
    decisions = [Decision.INCONCLUSIVE, Decision.REGRESSED, Decision.INCONCLUSIVE]
    return [*decisions, Decision.PASSED][min(map(rank, codes(verdict)), default=len(RANKS))]


def test_a_calm_suite_passes_without_a_reason() -> None:
    """What the situations are laid over is green by itself."""
    verdict = Situation().verdict()

    assert (verdict.decision, verdict.exit_code, codes(verdict)) == (Decision.PASSED, 0, [])


def test_every_reason_has_a_situation() -> None:
    """No code of the file format is without a test here but those of other commands."""
    assert set(SITUATIONS) | ELSEWHERE == {str(code) for code in ReasonCode}
    assert {str(rule.code) for rule in RULES} == set(SITUATIONS) | ELSEWHERE


@pytest.mark.parametrize("code", SITUATIONS)
def test_each_reason_is_given_and_decides(code: str) -> None:
    """In its situation the reason is there, leads, and has the decision of its rank."""
    verdict = SITUATIONS[code].verdict()

    assert code in codes(verdict)
    assert rank(codes(verdict)[0]) == rank(code)
    assert verdict.decision is expected(verdict)
    assert verdict.exit_code == {"passed": 0, "regressed": 1, "inconclusive": 3}[verdict.decision]


@pytest.mark.parametrize("code", SITUATIONS)
def test_each_reason_is_a_sentence(code: str) -> None:
    """A reason is text for people: bounded, one line, ended."""
    texts = {str(r.code): r.text for r in SITUATIONS[code].verdict().reasons}

    assert texts[code].endswith(".")
    assert texts[code].isprintable()
    assert len(texts[code]) < 300


_NEVER_TOGETHER = {
    "unchanged-agent": "nothing was run, so that nothing is found in a run",
    "no-baseline": "nothing is compared",
    "nothing-compared": "no task is compared",
    "curtailed": "nothing is tested",
    "extended": "a run ends once",
    "error-policy-changed": "nothing is tested",
    "faults-changed": "nothing is tested",
    "judge-changed": "nothing is tested",
    "baseline-dead": "no task passes",
    "no-power": "no task is deep enough",
    "bar-moved": "what is held against the bar is accepted",
    "shard-missing": "a shard removes nothing",
    "budget": "tasks that are absent were not come to",
}

# A deterministic agent's broken task is claimed as a flip, not twice.
_ONE_CLAIM = ("flip", "task-regressed")


@pytest.mark.parametrize(
    ("one", "other"), [*NEIGHBOURS, *slow(*(pair for pair in PAIRS if pair not in NEIGHBOURS))]
)
def test_of_two_reasons_the_higher_rank_decides(one: str, other: str) -> None:
    """Laid over each other, both hold unless one rules the other out, and precedence decides."""
    verdict = together(one, other)

    found = codes(verdict)
    if not {one, other} & _NEVER_TOGETHER.keys() and (one, other) != _ONE_CLAIM:
        assert {one, other} <= set(found)
    assert verdict.decision is expected(verdict)
    assert [rank(code) for code in found] == sorted(rank(code) for code in found)


@pytest.mark.slow
def test_every_pair_of_ranks_meets_in_some_pair() -> None:
    """The table above does hold reasons of every two ranks against each other."""
    met = set()
    for one, other in PAIRS:
        found = set(codes(together(one, other)))
        if {one, other} <= found:
            met.add(frozenset((rank(one), rank(other))))

    assert met >= {frozenset(pair) for pair in combinations(range(len(RANKS) + 1), 2)}

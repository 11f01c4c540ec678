"""Runs in the middle of their plan, and at a stop."""

from __future__ import annotations

from typing import Any

from ci_gate.decision.circumstances import Circumstances
from ci_gate.decision.compare import compare
from ci_gate.decision.curtailment import decide_round
from ci_gate.decision.decide import decide
from ci_gate.model.policy import Policy
from ci_gate.model.run import Plan, Side, Stop, StopReason
from ci_gate.model.verdict import Verdict
from tests.notation import side_of

TRIALS = 8
AROUND = Circumstances(policy_digest="sha256:policy")
CALM = "++++++++/++++++++/++++++++/+++++++-"
"""Four runs of a task that nearly always passes."""


def baseline_of(tasks: int, runs: str = CALM, **fields: Any) -> Side:
    """Return a deep baseline of so many tasks that are alike, each with its runs in turn."""
    rows = runs.split("/")
    turned = ["/".join(rows[i % len(rows) :] + rows[: i % len(rows)]) for i in range(tasks)]
    notation = " ".join(f"t{i:02} {runs}" for i, runs in enumerate(turned))
    return side_of(notation, **({"kind": "baseline", "digest": "sha256:bar"} | fields))


def so_far(outcomes: dict[str, str], **fields: Any) -> Side:
    """Return a run in the middle of its plan: outcomes so far, the rest not run."""
    notation = " ".join(f"{task} {row.ljust(TRIALS, '.')}" for task, row in outcomes.items())
    settings = {
        "plan": Plan(trials=TRIALS, curtail=True),
        "complete": False,
        "baseline_digest": "sha256:bar",
        "policy_digest": "sha256:policy",
    }
    return side_of(notation, **(settings | fields))


def alike(tasks: int, row: str, **others: str) -> dict[str, str]:
    """Return the same outcomes for so many tasks, but for those named."""
    return {f"t{i:02}": row for i in range(tasks)} | others


def stopped(outcomes: dict[str, str], rounds: int, reason: StopReason, **fields: Any) -> Side:
    """Return a run whose file says that it was stopped, and not at which chance."""
    stop = Stop(round=rounds, reason=reason)
    return so_far(outcomes, **({"stop": stop, "complete": True} | fields))


def honest(baseline: Side, whole: dict[str, str], policy: Policy | None = None) -> Side:
    """Return the file of a run that is steered as it should be: to its first stop, if any."""
    chosen = policy or Policy()
    for rounds in range(1, TRIALS):
        outcomes = {task: row[:rounds] for task, row in whole.items()}
        decision = decide_round(baseline, so_far(outcomes), chosen)
        if decision.reason is not None:
            stop = Stop(round=rounds, reason=decision.reason, predictive=decision.predictive)
            return so_far(outcomes, stop=stop, complete=True)
    return so_far(whole, stop=Stop(round=TRIALS, reason=StopReason.COMPLETE), complete=True)


def verdict_of(
    baseline: Side,
    candidate: Side,
    policy: Policy | None = None,
    around: Circumstances = AROUND,
    **others: Any,
) -> Verdict:
    """Judge a run."""
    chosen = policy or Policy()
    return decide(compare(baseline, candidate, chosen, around, **others), chosen, around)


def codes(verdict: Verdict) -> list[str]:
    """Return the reasons' codes in order."""
    return [str(reason.code) for reason in verdict.reasons]

"""Degenerate data is normal data: every row has a verdict, and the right one."""

from __future__ import annotations

import pytest

from ci_gate.decision.compare import compare
from ci_gate.decision.decide import decide
from ci_gate.model.policy import Policy
from ci_gate.model.verdict import Decision
from tests.notation import side_of

PASSED, REGRESSED, OPEN = Decision.PASSED, Decision.REGRESSED, Decision.INCONCLUSIVE


def suite(outcomes: str, tasks: int = 10) -> str:
    """Return the notation of tasks that all have these outcomes."""
    return " ".join(f"t{i:02} {outcomes}" for i in range(tasks))


ROWS = {
    "one task, constant": ("a ++++++++", "a ++++++++", PASSED, []),
    "one task, 8/8 to 0/8": (
        "a ++++++++",
        "a --------",
        REGRESSED,
        ["task-regressed", "suite-regressed"],
    ),
    "one task, 0/8 to 8/8": ("a --------", "a ++++++++", OPEN, ["no-power"]),
    "one task, one trial": ("a +", "a -", OPEN, ["no-power"]),
    "n = 1 over many tasks, constant": (suite("+"), suite("+"), PASSED, []),
    "n = 1 over many tasks, all fail": (suite("+"), suite("-"), REGRESSED, ["suite-regressed"]),
    "everything constant": (suite("++++++++"), suite("++++++++"), PASSED, []),
    "8/8 to 0/8 everywhere": (
        suite("++++++++"),
        suite("--------"),
        REGRESSED,
        ["task-regressed", "suite-regressed"],
    ),
    "all tasks drop by the same amount": (
        suite("++++++++"),
        suite("++++++--"),
        REGRESSED,
        ["suite-regressed"],
    ),
    "all tasks drop by one trial": (suite("++++++++", 3), suite("+++++++-", 3), PASSED, []),
    "both sides dead": (suite("--------"), suite("--------"), OPEN, ["baseline-dead"]),
    "more trials in the baseline": (
        suite("++++++++++++++++"),
        suite("--------"),
        REGRESSED,
        ["task-regressed", "suite-regressed"],
    ),
    "more trials in the candidate": (
        suite("++++++++", 3),
        suite("----------------", 3),
        REGRESSED,
        ["task-regressed", "suite-regressed"],
    ),
    "different n between tasks": (
        "a + b ++++++++ c ++++++++++++++++++++",
        "a + b ++++++++ c ++++++++++++++++++++",
        PASSED,
        [],
    ),
    "different n between tasks, one broken": (
        "a + b ++++++++ c ++++++++++++++++++++",
        "a + b -------- c ++++++++++++++++++++",
        REGRESSED,
        ["task-regressed", "suite-regressed"],
    ),
    "repeats on one side only": (suite("++++++++/++++++++"), suite("++++++++"), PASSED, []),
    "no tasks at all": ("", "", OPEN, ["too-many-errors", "nothing-compared"]),
    "nothing ran": ("a ++++++++", "a ........", OPEN, ["too-many-errors", "task-unjudged"]),
    "everything errored": ("a ++++++++", "a !!!!!!!!", OPEN, ["too-many-errors", "task-unjudged"]),
    "the baseline errored throughout": ("a !!!!!!!!", "a ++++++++", OPEN, ["nothing-compared"]),
    "no task in common": (
        "a ++++++++",
        "b ++++++++",
        REGRESSED,
        ["tasks-removed", "nothing-compared"],
    ),
}


@pytest.mark.parametrize("pairing", ["auto", "none"])
@pytest.mark.parametrize("row", ROWS)
def test_degenerate_data_has_its_verdict(row: str, pairing: str) -> None:
    """No row is a crash, a silent pass or a false alarm."""
    baseline, candidate, decision, reasons = ROWS[row]
    policy = Policy(pairing=pairing)  # type: ignore[arg-type]

    verdict = decide(compare(side_of(baseline), side_of(candidate), policy), policy)

    assert verdict.decision is decision
    assert [str(reason.code) for reason in verdict.reasons] == reasons
    assert verdict.to_json().endswith("}\n")

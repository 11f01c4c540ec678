"""Which tasks of a verdict are looked at first."""

from __future__ import annotations

import pytest

from ci_gate.model.ranking import worst_tasks
from ci_gate.model.verdict import Claim, Decision, ReasonCode
from tests.render.samples import task, verdict

DROPS = (task("a", contribution=-0.01), task("b", contribution=-0.3), task("c", contribution=0.1))
SUITE = {ReasonCode.SUITE_REGRESSED: "It fell."}


@pytest.mark.parametrize(
    ("reasons", "tasks", "names"),
    [
        (
            SUITE,
            (
                *DROPS,
                task("weak", Claim.REGRESSED, adjusted=0.04),
                task("flipped", Claim.FLIP, adjusted=0.001),
            ),
            ["flipped", "weak"],
        ),
        (SUITE, DROPS, ["b", "a"]),
        ({ReasonCode.FLOOR: "Below."}, DROPS, []),
    ],
    ids=["proven", "largest drops", "another reason"],
)
def test_proven_tasks_come_first_else_the_largest_drops(reasons, tasks, names):
    """The strongest evidence first; a gain is no drop."""
    made = verdict(Decision.REGRESSED, reasons, tasks)

    assert [one.task for one in worst_tasks(made)] == names

"""Two filters, that of the run and that of the command, hold together from file to verdict."""

from __future__ import annotations

from ci_gate.decision.compare import compare
from ci_gate.gate.sides import restricted
from ci_gate.model.policy import Policy
from tests.notation import side_of


def test_a_filtered_run_that_is_compared_in_part_has_no_removed_tasks() -> None:
    """A task that the run was not asked for has not vanished, whatever is compared of it."""
    baseline = side_of("refund-1 ++ refund-2 ++ cancel-1 ++")
    candidate = side_of("refund-1 ++ refund-2 ++", task_filter="refund-*")

    found = compare(restricted(baseline, "*-1"), restricted(candidate, "*-1"), Policy())

    assert found.matching.compared == ("refund-1",)
    assert found.matching.claims == {}
    assert found.partial

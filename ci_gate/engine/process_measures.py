"""Measures of the way a trial went, from its steps alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from ci_gate.model.trial import Step

__all__ = ["LOOP", "RECOVERY_CALLS", "faults", "looped", "recovered", "tool_calls"]

LOOP = 3
"""Calls of the same tool with the same arguments that make a loop."""

RECOVERY_CALLS = 2
"""Calls after a fault within which the same tool must succeed."""

_TOOL = "tool"
_encoder = msgspec.json.Encoder(order="deterministic")


def tool_calls(steps: Sequence[Step]) -> int | None:
    """Return how many tools were called; None where no step is known at all."""
    return sum(step.kind == _TOOL for step in steps) if steps else None


def faults(steps: Sequence[Step]) -> int:
    """Return how many injected faults were delivered."""
    return sum(step.fault is not None for step in steps)


def recovered(steps: Sequence[Step], *, passed: bool) -> int:
    """Return from how many delivered faults the agent recovered.

    It recovered from a fault when one of the next two calls is the same tool without error and
    without fault; in a trial that did not pass it recovered from none.
    """
    if not passed:
        return 0
    calls = [step for step in steps if step.kind == _TOOL]
    return sum(
        call.fault is not None and _succeeds(call.name, calls[i + 1 : i + 1 + RECOVERY_CALLS])
        for i, call in enumerate(calls)
    )


def _succeeds(tool: str, calls: Sequence[Step]) -> bool:
    return any(call.name == tool and not call.is_error and call.fault is None for call in calls)


def looped(steps: Sequence[Step]) -> bool | None:
    """Return whether a tool was called with the same arguments three times or more.

    None where no step is known at all.
    """
    if not steps:
        return None
    counts = Counter((s.name, _encoder.encode(s.input)) for s in steps if s.kind == _TOOL)
    return any(count >= LOOP for count in counts.values())

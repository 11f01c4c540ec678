"""What shared seeds show of a deterministic agent: one pass that became a failure is enough.

Knows paired outcomes; whether the agent is deterministic is the policy's word.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ci_gate.decision.accounting import Scores
from ci_gate.decision.pairing import PairedTask

__all__ = ["Flips", "flips_of"]

_PASS, _FAILURE = 1, 0


class Flips(msgspec.Struct, frozen=True, kw_only=True):
    """Every flip, and how many could have been seen.

    Attributes
    ----------
    tasks : tuple of str
        Tasks in which a seed that passed in the baseline failed in the candidate.
    unsteady : tuple of str
        Tasks in which repeats of a seed disagree on one side: the agent is not deterministic.
    watched : int
        Seeds that passed in the baseline, judged on both sides.
    """

    tasks: tuple[str, ...] = ()
    unsteady: tuple[str, ...] = ()
    watched: int = 0


def flips_of(paired: Sequence[PairedTask]) -> Flips:
    """Return the flips over all tasks that share seeds."""
    sharing = [task for task in paired if task.shared]
    return Flips(
        tasks=tuple(task.task for task in sharing if any(_FAILURE in c for c in _ends(task))),
        unsteady=tuple(t.task for t in paired if _disagree(t.baseline) or _disagree(t.candidate)),
        watched=sum(bool(c) for task in sharing for c in _ends(task)),
    )


def _ends(task: PairedTask) -> list[set[int]]:
    """What the candidate did on each seed on which the baseline passed every time."""
    columns = range(max(len(run) for run in task.baseline))
    passed = [s for s in columns if _seen(task.baseline, s) == {_PASS}]
    return [_seen(task.candidate, s) for s in passed]


def _seen(scores: Scores, seed: int) -> set[int]:
    return {x for run in scores if seed < len(run) and (x := run[seed]) is not None}


def _disagree(scores: Scores) -> bool:
    columns = range(max((len(run) for run in scores), default=0))
    return any(len(_seen(scores, s)) > 1 for s in columns)

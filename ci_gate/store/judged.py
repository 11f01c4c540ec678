"""What judges said of the trials of a task, counted from its lines."""

from __future__ import annotations

from collections.abc import Sequence

from ci_gate.model.judges import JudgedTask
from ci_gate.model.trial import Status, TrialRecord

__all__ = ["judged_by"]


def judged_by(lines: Sequence[TrialRecord]) -> dict[str, JudgedTask]:
    """Return the counts of each judge by its digest.

    Parameters
    ----------
    lines : sequence of TrialRecord
        The trials of one task.

    Notes
    -----
    A judge decided ``alone`` where every trial that is no error was put to it and ended as it said.
    """
    said: dict[str, list[tuple[bool, bool]]] = {}
    ended = 0
    for line in lines:
        if line.status is Status.ERRORED:
            continue
        ended += 1
        for grade in line.grades or ():
            if isinstance(grade.judge, str):
                passed = line.status is Status.PASSED
                said.setdefault(grade.judge, []).append((grade.passed, passed))
    return {
        digest: JudgedTask(
            asked=len(grades),
            passed=sum(passed for passed, _ in grades),
            alone=len(grades) == ended and all(one == whole for one, whole in grades),
        )
        for digest, grades in said.items()
    }

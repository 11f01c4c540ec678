"""Whether the trials of a task in one run started in the same state, as far as it is recorded.

While a run goes on, its worlds are held to this; what a file brings together afterwards, such as
parts that were run on several machines, is held to it here.
"""

from __future__ import annotations

from typing import Final

import msgspec

from ci_gate.model.trial import Cause, Status, TrialRecord

__all__ = ["in_one_state"]

_REASON: Final = "contaminated: its initial state differs from that of the task's first trial"


def in_one_state(lines: list[TrialRecord]) -> list[TrialRecord]:
    """Return the records of a task, errored where a trial did not start as the first one did.

    Parameters
    ----------
    lines : list of TrialRecord
        In the order of trials; the first whose state is known says what the state is.

    Notes
    -----
    Nothing is held against a trial whose state is unknown.
    """
    known = [line.initial_state for line in lines if line.initial_state]
    if len(set(known)) <= 1:
        return lines
    return [_held_to(line, known[0]) for line in lines]


def _held_to(line: TrialRecord, state: object) -> TrialRecord:
    if not line.initial_state or line.initial_state == state:
        return line
    errored = {"status": Status.ERRORED, "cause": Cause.CONTAMINATED, "reason": _REASON}
    return msgspec.structs.replace(line, **errored)

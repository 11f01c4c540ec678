"""One trial run twice: what the two did. Data, and what follows from it for the status."""

from __future__ import annotations

import msgspec

from ci_gate.model.trace import TraceRecord
from ci_gate.model.trace_findings import TraceDiff
from ci_gate.model.trial import Status, TrialRecord
from ci_gate.model.verdict import ExitCode

__all__ = ["Twice"]


class Twice(msgspec.Struct, frozen=True, kw_only=True):
    """What the two runs of the trial did.

    Attributes
    ----------
    task : str
    trial : int
    records : tuple of TrialRecord
        Of the first and the second.
    answers : tuple of str or None
        What the agent answered in each.
    calls : int
        Of the first.
    models : int
        Calls to models of the first, whose answers the second was given.
    head : str or None
        Digest of the first's last call; None where it made none.
    first : tuple of TraceRecord or None
        The first call that differs, as each of the two made it, None for the one that did not;
        None where no call differs.
    diff : TraceDiff
    """

    task: str
    trial: int
    records: tuple[TrialRecord, TrialRecord]
    answers: tuple[str | None, str | None]
    calls: int
    models: int
    head: str | None
    first: tuple[TraceRecord | None, TraceRecord | None] | None
    diff: TraceDiff

    @property
    def is_same(self) -> bool:
        """Return whether chain, answer and status are the same."""
        one, other = self.records
        return (
            self.first is None
            and self.answers[0] == self.answers[1]
            and (one.status is other.status)
        )

    @property
    def exit_code(self) -> ExitCode:
        """Return the status of the process; an errored trial says nothing of the agent."""
        if any(record.status is Status.ERRORED for record in self.records):
            return ExitCode.INCONCLUSIVE
        return ExitCode.PASSED if self.is_same else ExitCode.REGRESSED

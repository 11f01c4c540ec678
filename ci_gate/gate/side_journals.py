"""Run files beside that of a check, of a recheck or in calm, and which trials they miss.

Decides when an earlier one may be continued: only with ``--resume``, and only where it belongs to
the run of this check. It must not know what the trials are for.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Final, Self

from ci_gate.errors import FileFormatError, JournalError, printable
from ci_gate.gate.pending import pending_of, refuse_foreign
from ci_gate.gate.planning import finished_rounds, planned_trials
from ci_gate.model.run import RunHeader, Stop, StopReason
from ci_gate.model.suite import PlannedTrial, Suite
from ci_gate.model.trial import TrialRecord
from ci_gate.store.files import open_regular
from ci_gate.store.journal import Journal
from ci_gate.store.scan import Scan, scan

__all__ = ["SideJournal", "read_lines", "refuse_unfinished"]

_PAUSES: Final = (StopReason.INTERRUPTED, StopReason.BUDGET)


def read_lines(path: Path) -> Scan:
    """Return what a run file holds, superseded lines counted among its costs.

    Raises
    ------
    FileFormatError
        It is none, or is damaged.
    """
    with open_regular(path) as stream:
        return scan(stream, printable(path))


def refuse_unfinished(path: Path, *, what: str) -> None:
    """Refuse to go on where an earlier one is unfinished, because it would be lost.

    Parameters
    ----------
    path : Path
    what : str
        What it holds, in a word or two.

    Raises
    ------
    JournalError
        It is.
    FileFormatError
        There is a file that is no run.
    """
    if not path.exists():
        return
    footer = read_lines(path).footer
    if footer is None or footer.stop.reason in _PAUSES:
        raise JournalError(
            f"holds an unfinished {what}",
            where=printable(path),
            hint="Use --resume to continue it or --fresh to discard it.",
        )


class SideJournal:
    """The journal of one side, open as a context.

    Parameters
    ----------
    path : Path
    header : RunHeader
        With its plan.
    suite : Suite
        The tasks that are planned.
    since : str or None
        When the run of the check was begun, ISO 8601: what is older belongs to another. None
        continues nothing.
    retries : int
        Further attempts at once of a trial that errored.
    """

    def __init__(
        self, path: Path, header: RunHeader, suite: Suite, *, since: str | None, retries: int
    ) -> None:
        self.path = path
        self._retries = retries
        self._journal = _opened(path, header, suite, since)
        assert header.plan is not None
        self._trials = list(planned_trials(suite, repeats=header.plan.repeats))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._journal.close()

    @property
    def spent_usd(self) -> float:
        """What the side had cost before it was opened here, in US dollars."""
        return self._journal.spent_usd

    @property
    def planned(self) -> int:
        """Trials of the whole plan."""
        return len(self._trials)

    def missing(self) -> list[PlannedTrial]:
        """Return the trials that want an attempt, those with only their last left behind them."""
        if self._journal.footer is not None:
            return []
        pending = pending_of(self._trials, self._journal.records, retries=self._retries)
        return [*pending.due, *pending.late]

    def append(self, record: TrialRecord) -> None:
        """Keep an attempt that ended."""
        self._journal.append(record)

    def finish(self, reason: StopReason) -> None:
        """Write the footer, unless it has one."""
        if self._journal.footer is None:
            rounds = finished_rounds(self._trials, self._journal.recorded)
            self._journal.finish(Stop(round=rounds, reason=reason))


def _opened(path: Path, header: RunHeader, suite: Suite, since: str | None) -> Journal:
    if since is not None and _belongs(path, since):
        try:
            return _continued(path, header, suite)
        except JournalError:
            # Of another agent or of other tasks: nobody waits for it any more.
            pass
    return Journal.open(path, header, fresh=True)


def _continued(path: Path, header: RunHeader, suite: Suite) -> Journal:
    journal = Journal.open(path, header, resume=True)
    try:
        refuse_foreign(suite, journal.records.values(), path)
    except JournalError:
        journal.close()
        raise
    return journal


def _belongs(path: Path, since: str) -> bool:
    """Return whether it was begun after the run of the check."""
    try:
        created = read_lines(path).header.created
    except FileFormatError:
        return False
    return created is not None and created >= since

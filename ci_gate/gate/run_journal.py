"""The journal of one run: which trials are missing, where records go, how the run ends in the file.

Decides when the journal is opened and which trials it still wants. It must not know how trials are
run, nor what is recorded of their calls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from pathlib import Path

from ci_gate.gate.answers import kept_with
from ci_gate.gate.execution import Executed, Work
from ci_gate.gate.initial_states import states_of
from ci_gate.gate.pending import pending_of, refuse_foreign
from ci_gate.gate.planning import finished_rounds, planned_trials
from ci_gate.gate.preparing import Prepared, RunOptions
from ci_gate.gate.reports import forget_verdict
from ci_gate.gate.steering import Session, SteeredRun, decisions_of_the_gate, steered
from ci_gate.model.run import Stop, StopReason
from ci_gate.model.suite import PlannedTrial
from ci_gate.ports import OutcomeSink, RoundWatcher
from ci_gate.store.journal import Journal
from ci_gate.store.runs import RunFile
from ci_gate.store.traces import clear_traces

__all__ = ["RunInterrupted", "RunJournal", "Watch"]

Watch = Callable[[str], AbstractContextManager[RoundWatcher]]
"""Begins to show the progress of the suite of that name."""


class RunInterrupted(KeyboardInterrupt):
    """The user stopped the run; what finished is in the journal."""


class RunJournal:
    """The journal of a run, opened when the agent is known to start.

    An agent that cannot start must not cost the finished run that the journal would replace.
    """

    def __init__(
        self,
        prepared: Prepared,
        options: RunOptions,
        stack: ExitStack,
        watch: Watch,
        traces: Path,
    ) -> None:
        self._prepared = prepared
        self._options = options
        self._stack = stack
        self._watch = watch
        self._traces = traces
        self._journal: Journal | None = None
        self._steered: SteeredRun | None = None
        self.remarks: list[str] = []

    def open(self) -> Journal:
        """Open the journal, or return it where it is open."""
        if self._journal is None:
            options, prepared = self._options, self._prepared
            if not options.resume:
                self._forget_verdict()
            journal = Journal.open(
                prepared.path, prepared.header, resume=options.resume, fresh=options.fresh
            )
            self._journal = self._stack.enter_context(journal)
            refuse_foreign(prepared.suite, journal.records.values(), prepared.path)
            if journal.footer is None:
                self._forget_verdict()
            self.remarks += _on_resuming(journal)
        return self._journal

    def _forget_verdict(self) -> None:
        forget_verdict(self._prepared.path.parent, self._prepared.suite.name)

    @property
    def is_finished(self) -> bool:
        """Return whether the journal was found finished."""
        return self._journal is not None and self._journal.footer is not None

    @property
    def run(self) -> RunFile | None:
        """Return what the finished journal holds; None where it was finished before."""
        return None if self._journal is None else self._journal.run

    def work(self) -> Work:
        """Return the trials that are missing and where they go."""
        journal = self.open()
        if not journal.records:
            clear_traces(self._traces)
        watcher = self._stack.enter_context(self._watch(self._prepared.suite.name))
        measurement = self._prepared.measurement
        if measurement is None:
            return self._whole_plan(journal, watcher)
        session = Session(
            measurement=replace(measurement, header=journal.header),
            records=journal.records,
            sink=self._sink(journal),
            watcher=watcher,
            decisions=decisions_of_the_gate(),
        )
        self._steered = steered(session)
        return self._steered_work(self._steered, journal, watcher)

    def _sink(self, journal: Journal) -> OutcomeSink:
        return kept_with(journal, self._prepared.answers)

    def _whole_plan(self, journal: Journal, watcher: RoundWatcher) -> Work:
        planned = self._planned(journal)
        pending = pending_of(planned, journal.records, retries=self._prepared.retries)
        return Work(
            trials=pending.due,
            late=pending.late,
            sink=self._sink(journal),
            progress=watcher,
            spent_usd=journal.spent_usd,
            started_in=states_of(journal.records.values()),
            planned=len(planned),
            done=len(planned) - len(pending),
        )

    def _steered_work(self, run: SteeredRun, journal: Journal, watcher: RoundWatcher) -> Work:
        recorded = sum(trial.key in journal.records for trial in (*run.due, *run.late))
        return Work(
            trials=run.due,
            late=run.late,
            steering=run,
            sink=run,
            progress=watcher,
            spent_usd=journal.spent_usd,
            started_in=states_of(journal.records.values()),
            planned=len(run.planned),
            done=len(journal.records) - recorded,
        )

    def _planned(self, journal: Journal) -> Sequence[PlannedTrial]:
        if self._steered is not None:
            return self._steered.planned
        plan = journal.header.plan
        assert plan is not None
        return list(planned_trials(self._prepared.suite, repeats=plan.repeats))

    def finish(self, executed: Executed) -> None:
        """Write the footer, unless the user stopped the run."""
        if executed.reason is StopReason.INTERRUPTED:
            raise RunInterrupted
        journal = self.open()
        journal.finish(self._stop(journal, executed.reason))
        # What was kept for decisions is not needed to read the file.
        self._steered = None
        self.remarks += executed.warnings

    def _stop(self, journal: Journal, reason: StopReason) -> Stop:
        if self._steered is not None and reason is StopReason.COMPLETE:
            return self._steered.stop
        done = finished_rounds(self._planned(journal), journal.recorded)
        return Stop(round=done, reason=reason)


def _on_resuming(journal: Journal) -> list[str]:
    if not journal.dropped_bytes:
        return []
    size = journal.dropped_bytes
    return [f"The journal ended in a torn line of {size} bytes; that trial ran again."]

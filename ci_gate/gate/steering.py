"""What a run does after a round: the trials so far go to the decision, its answer to the engine.

Decides which trials are due, late or final at any moment, so that a run that was killed and resumed
asks the same questions of the same trials as one that was not. What the answers rest on is the
business of ``ci_gate.decision``, how trials are run that of ``ci_gate.engine``.

Notes
-----
The end, at which a trial that errored gets its last attempt (``ci_gate.gate.pending``), is before a
stop takes effect, or where the plan ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import msgspec

from ci_gate.gate.pending import Pending, Records, is_last, pending_of
from ci_gate.gate.planning import Round, planned_trials, rounds_of
from ci_gate.model.policy import Policy
from ci_gate.model.run import RunHeader, Side, Stop, StopReason
from ci_gate.model.suite import PlannedTrial, Suite
from ci_gate.model.trial import TrialRecord
from ci_gate.ports import OutcomeSink, RoundWatcher, Steering
from ci_gate.store.runs import side_so_far

if TYPE_CHECKING:
    from ci_gate.decision.curtailment import RoundDecision
    from ci_gate.decision.extension import ExtensionLook

__all__ = [
    "Decisions",
    "Measurement",
    "Session",
    "SteeredRun",
    "decisions_of_the_gate",
    "may_be_steered",
    "steered",
]


@dataclass(frozen=True, kw_only=True)
class Decisions:
    """Who decides; both pure.

    Attributes
    ----------
    round : callable
        Of baseline, candidate so far and policy: whether the run stops after this round.
    extension : callable
        Of the same: how many repeats a run goes on to whose repeats so far are done.
    """

    round: Callable[[Side, Side, Policy], RoundDecision]
    extension: Callable[[Side, Side, Policy], ExtensionLook]


def decisions_of_the_gate() -> Decisions:
    """Return what decides outside of tests.

    Imported when a run is about to start: whoever only replays a trial needs no statistics.
    """
    from ci_gate.decision.curtailment import decide_round
    from ci_gate.decision.extension import look_for_extension

    return Decisions(round=decide_round, extension=look_for_extension)


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """What is measured, and against what it is decided when that is enough.

    Attributes
    ----------
    suite : Suite
    header : RunHeader
        With its plan.
    baseline : Side
    policy : Policy
        In effect for this suite.
    retries : int
        Further attempts at once of a trial that errored.
    """

    suite: Suite
    header: RunHeader
    baseline: Side
    policy: Policy
    retries: int

    def side(self, records: Iterable[TrialRecord]) -> Side:
        """Return the candidate so far."""
        digests = {task.id: task.digest for task in self.suite.tasks}
        return side_so_far(self.header, records, tasks=digests)

    def trials(self, repeats: int) -> list[PlannedTrial]:
        """Return all trials of so many repeats."""
        return list(planned_trials(self.suite, repeats=repeats))

    def pending(self, trials: Iterable[PlannedTrial], records: Records) -> Pending:
        """Return what is left of these trials."""
        return pending_of(trials, records, retries=self.retries)


def may_be_steered(measurement: Measurement) -> Measurement | None:
    """Return the measurement with what its plan allows, None where nothing ends or extends it.

    Parameters
    ----------
    measurement : Measurement
        Its plan says how many repeats are asked for.
    """
    from ci_gate.decision.curtailment import why_not_curtailed
    from ci_gate.decision.extension import why_not_extended

    header = measurement.header
    assert header.plan is not None
    asked = measurement.baseline, measurement.side(()), measurement.policy
    curtail, extend = why_not_curtailed(*asked) is None, why_not_extended(*asked) is None
    if not (curtail or extend):
        return None
    plan = msgspec.structs.replace(header.plan, curtail=curtail, extend=extend)
    return replace(measurement, header=msgspec.structs.replace(header, plan=plan))


class SteeredRun(Steering, OutcomeSink, Protocol):
    """A run whose end is decided on the way; its records pass through it to the journal.

    Attributes
    ----------
    planned : sequence of PlannedTrial
        All trials of the plan as it is now.
    due, late : sequence of PlannedTrial
        What the engine begins with.
    """

    planned: Sequence[PlannedTrial]
    due: Sequence[PlannedTrial]
    late: Sequence[PlannedTrial]

    @property
    def stop(self) -> Stop:
        """Where and why the run ended, once ``next_trials`` said that it does."""


@dataclass(frozen=True, kw_only=True)
class Session:
    """One go at a run, from what its journal holds to its end or the next break.

    Attributes
    ----------
    measurement : Measurement
    records : mapping of (task, trial, repeat) to TrialRecord
        What is in the journal.
    sink : OutcomeSink
        The journal, which keeps a record before it counts.
    watcher : RoundWatcher
    decisions : Decisions
    """

    measurement: Measurement
    records: Records
    sink: OutcomeSink
    watcher: RoundWatcher
    decisions: Decisions


def steered(session: Session) -> SteeredRun:
    """Return what steers a run whose plan may be curtailed or extended."""
    plan = session.measurement.header.plan
    if plan is not None and plan.curtail:
        return _Curtailed(session)
    return _Extended(session)


class _Recorded:
    """The records so far, kept as they come."""

    def __init__(self, session: Session) -> None:
        self._measurement = session.measurement
        self._records = dict(session.records)
        self._sink = session.sink
        self._watcher = session.watcher

    def append(self, record: TrialRecord) -> None:
        """Keep a record."""
        self._sink.append(record)
        self._records[record.key] = record


class _Curtailed(_Recorded):
    """A run of whole rounds that ends when its verdict is all but certain."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        measurement, records = session.measurement, session.records
        self._decide = session.decisions.round
        self._decision: RoundDecision | None = None
        self.planned: Sequence[PlannedTrial] = measurement.trials(repeats=1)
        self._rounds = rounds_of(self.planned)
        self._round = self._last_begun()
        begun = [t for t in self.planned if _round_of(t) <= self._rounds[self._round]]
        pending = measurement.pending(begun, records)
        self.due: Sequence[PlannedTrial] = pending.due
        self.late: Sequence[PlannedTrial] = pending.late
        # A stop was decided, and the attempts before it takes effect were not all made.
        self._is_ending = bool(self.late) and not self.due and self._has_begun_to_end()

    def _last_begun(self) -> int:
        begun = {(record.repeat, record.trial) for record in self._records.values()}
        return max((i for i, place in enumerate(self._rounds) if place in begun), default=0)

    def _has_begun_to_end(self) -> bool:
        """Return whether an attempt at the end follows on every other of the latest round."""
        latest = self._rounds[self._round]
        has_begun = False
        for record in self._records.values():
            if is_last(record, retries=self._measurement.retries):
                has_begun = True
            elif (record.repeat, record.trial) == latest:
                has_begun = False
        return has_begun

    def next_trials(self, *, settled: bool) -> Sequence[PlannedTrial] | None:
        """Return the next round, unless the rounds so far are enough."""
        if self._is_ending and not settled:
            self._is_ending = False
            return None
        if self._round + 1 == len(self._rounds):
            self._decision = None
            return None
        self._decision = self._decided()
        if self._decision.reason is not None:
            return None
        self._round += 1
        place = self._rounds[self._round]
        return [trial for trial in self.planned if _round_of(trial) == place]

    def _decided(self) -> RoundDecision:
        measurement = self._measurement
        candidate = measurement.side(self._records.values())
        decision = self._decide(measurement.baseline, candidate, measurement.policy)
        self._watcher.decided(self._round + 1, len(self._rounds), decision.predictive)
        return decision

    @property
    def stop(self) -> Stop:
        """Where and why the run ended."""
        if self._decision is None or self._decision.reason is None:
            return Stop(round=self._round + 1, reason=StopReason.COMPLETE)
        return Stop(
            round=self._round + 1,
            reason=self._decision.reason,
            predictive=self._decision.predictive,
        )


class _Extended(_Recorded):
    """A run that goes on with more repeats while its evidence lies on the border."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        measurement, records = session.measurement, session.records
        self._look = session.decisions.extension
        plan = measurement.header.plan
        assert plan is not None
        self._asked_for = plan.repeats
        self._repeats = self._begun(plan.repeats)
        self.planned: Sequence[PlannedTrial] = measurement.trials(self._repeats)
        pending = measurement.pending(self.planned, records)
        self.due: Sequence[PlannedTrial] = pending.due
        self.late: Sequence[PlannedTrial] = pending.late

    def _begun(self, repeats: int) -> int:
        """Return the repeats to which the looks of earlier sessions went on."""
        ran = max((record.repeat + 1 for record in self._records.values()), default=0)
        while ran > repeats:
            repeats = max(self._looked(repeats) or ran, repeats + 1)
        return repeats

    def _looked(self, repeats: int) -> int | None:
        measurement = self._measurement
        done = [record for record in self._records.values() if record.repeat < repeats]
        look = self._look(measurement.baseline, measurement.side(done), measurement.policy)
        return look.repeats

    def next_trials(self, *, settled: bool) -> Sequence[PlannedTrial] | None:
        """Return further repeats, where the ones so far leave the verdict on the border."""
        repeats = self._looked(self._repeats) if settled else None
        if repeats is None:
            return None
        before, self._repeats = self._repeats, repeats
        self.planned = self._measurement.trials(repeats)
        self._watcher.extended(len(self.planned))
        return [trial for trial in self.planned if trial.repeat >= before]

    @property
    def stop(self) -> Stop:
        """Where and why the run ended."""
        grew = self._repeats > self._asked_for
        return Stop(
            round=len(rounds_of(self.planned)),
            reason=StopReason.EXTENDED if grew else StopReason.COMPLETE,
        )


def _round_of(trial: PlannedTrial) -> Round:
    return trial.repeat, trial.trial

"""Play kept traces to the agent as it is now, to see whether it still makes the recorded calls.

Nothing is called, graded or written. A changed call is no regression, so what is found here decides
nothing; it is known before a trial was paid for.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from ci_gate.config import Config
from ci_gate.engine.judging import UNGRADED
from ci_gate.engine.real_clock import RealClock
from ci_gate.errors import printable
from ci_gate.gate.execution import Execution, Work, execute
from ci_gate.gate.kept import Kept, KeptTrace
from ci_gate.gate.replaying import strict_source
from ci_gate.gate.run_journal import RunInterrupted
from ci_gate.model.run import StopReason
from ci_gate.model.suite import PlannedTrial, Suite, Task
from ci_gate.model.trial import Status, TrialRecord
from ci_gate.model.verdict_traces import KeptTraceDrift, KeptTraces, UnplayedTrace
from ci_gate.ports import Clock
from ci_gate.prng import derive_seed, parse_seed
from ci_gate.sandbox.answering import StrictSource
from ci_gate.sandbox.cassette import Drift
from ci_gate.tracing.excerpts import places_of

__all__ = ["MOST_S", "MOST_TRIAL_S", "is_playable", "play"]

MOST_S: Final = 30.0
"""Seconds after which no further trace is begun in a check."""

MOST_TRIAL_S: Final = 10.0
"""Seconds that one trace may take, in which nothing waits for a model or a tool."""

_JOBS: Final = 2
_NO_TIME: Final = f"{MOST_S:g} seconds were over"
_REASON_CHARS: Final = 300
_VALUE_CHARS: Final = 60


def is_playable(config: Config) -> bool:
    """Return whether traces can be played to this agent: only a Python agent asks for answers."""
    return config.agent.protocol == "python"


def play(
    config: Config,
    suite: Suite,
    kept: Kept,
    traces: Sequence[KeptTrace],
    *,
    within_s: float | None = MOST_S,
    clock: Clock | None = None,
) -> KeptTraces:
    """Play every trace and say which are followed call by call, and where the others are left.

    Parameters
    ----------
    config : Config
        Of a Python agent.
    suite : Suite
    kept : Kept
    traces : sequence of KeptTrace
    within_s : float or None
        Seconds after which none is begun; None: no bound.
    clock : Clock or None
        Real time, unless a test has another.

    Raises
    ------
    AgentSetupError
        The agent cannot be started.
    RunInterrupted
        The user stopped it.
    """
    whole = [one for one in traces if one.trace is not None]
    stage = _Stage(config, whole, within_s=within_s, clock=clock or RealClock())
    if whole:
        stage.play(suite)
    lost = [UnplayedTrace(task=one.task.id, why=one.problem) for one in traces if one.problem]
    late = [UnplayedTrace(task=task, why=_NO_TIME) for task in stage.unplayed]
    return KeptTraces(
        origin=kept.origin,
        kept=len(traces),
        played=len(whole) - len(late),
        drifted=tuple(stage.drifts()),
        unplayed=(*lost, *late),
    )


@dataclass(frozen=True, kw_only=True)
class _Act:
    """One trace on its way."""

    kept: KeptTrace
    trial: PlannedTrial
    source: StrictSource


class _Stage:
    """Hands the trials out in small rounds while there is time, and takes their records."""

    def __init__(
        self, config: Config, traces: Sequence[KeptTrace], *, within_s: float | None, clock: Clock
    ) -> None:
        self._config = _in_haste(config)
        self._acts = {one.task.id: _act_of(one, config, os.environ) for one in traces}
        self._within_s = within_s
        self._clock = clock
        self._started_s = clock.monotonic()
        self._waiting = list(self._acts)
        self._records: dict[str, TrialRecord] = {}

    @property
    def unplayed(self) -> Sequence[str]:
        """Return the tasks for which there was no time."""
        return [task for task in self._acts if task not in self._records]

    def play(self, suite: Suite) -> None:
        execution = Execution(
            config=self._config,
            suite=_ungraded(suite, [act.trial.task for act in self._acts.values()]),
            jobs=min(_JOBS, len(self._acts)),
            retries=0,
            source_of=lambda trial: self._acts[trial.task.id].source,
        )
        work = Work(trials=self._round(), sink=self, progress=self, steering=self)
        if execute(execution, lambda: work).reason is StopReason.INTERRUPTED:
            raise RunInterrupted

    def _round(self) -> list[PlannedTrial]:
        now, self._waiting = self._waiting[:_JOBS], self._waiting[_JOBS:]
        return [self._acts[task].trial for task in now]

    def next_trials(self, *, settled: bool) -> Sequence[PlannedTrial] | None:
        """Return the next trials while there are any and it is not too late."""
        passed_s = self._clock.monotonic() - self._started_s
        is_late = self._within_s is not None and passed_s > self._within_s
        return None if is_late else self._round() or None

    def append(self, record: TrialRecord) -> None:
        """Keep the record."""
        self._records[record.task] = record

    def planned(self, total: int, done: int) -> None:
        """Nobody watches."""

    def finished(self, record: TrialRecord) -> None:
        """Nobody watches."""

    def drifts(self) -> list[KeptTraceDrift]:
        """Return the traces that were left, in the order of their tasks."""
        return [
            KeptTraceDrift(
                task=task,
                trial=act.trial.trial,
                trace=act.kept.place,
                drift=_drift(act.source, self._records[task]),
            )
            for task, act in self._acts.items()
            if task in self._records and _is_left(act.source, self._records[task])
        ]


def _act_of(one: KeptTrace, config: Config, environment: Mapping[str, str]) -> _Act:
    assert one.trace is not None
    header = one.trace.header
    task = _hasty(one.task)
    trial = header.trial or 0
    seed = derive_seed(task.base_seed, trial) if header.seed is None else parse_seed(header.seed)
    planned = PlannedTrial(task=task, trial=trial, repeat=header.repeat or 0, attempt=1, seed=seed)
    return _Act(kept=one, trial=planned, source=strict_source(one.trace, config, environment))


def _hasty(task: Task) -> Task:
    """Return the task without graders, its time and other limits."""
    return msgspec.structs.replace(
        task, graders=(), limits=msgspec.structs.replace(task.limits, timeout_s=None)
    )


def _in_haste(config: Config) -> Config:
    agent = config.agent
    hasty = msgspec.structs.replace(agent, timeout_s=min(agent.timeout_s, MOST_TRIAL_S))
    return msgspec.structs.replace(config, agent=hasty)


def _ungraded(suite: Suite, tasks: Sequence[Task]) -> Suite:
    return msgspec.structs.replace(suite, tasks=tuple(tasks))


def _is_left(source: StrictSource, record: TrialRecord) -> bool:
    return record.status is Status.ERRORED or not source.reconciled().is_consistent


def _drift(source: StrictSource, record: TrialRecord) -> str:
    """Say where the agent left its trace; a call that is lost may be so because it broke."""
    reason = printable(record.reason or "", limit=_REASON_CHARS)
    drifts = source.reconciled().drifts
    if not drifts:
        return reason
    first = drifts[0]
    # Graders are left out here, so that nothing judging it is no reason.
    broke = first.part == "unconsumed" and record.reason not in {None, UNGRADED}
    return f"{first} ({reason})" if broke else f"{first}{_what_differs(first)}"


def _what_differs(drift: Drift) -> str:
    """Return the first place where the inputs differ, where that is what drifted."""
    if drift.part != "input":
        return ""
    before, after = drift.recorded_input, drift.came_input
    found = places_of(before, after, limit=1, most_chars=_VALUE_CHARS)
    return f", {found[0]}" if found else ""

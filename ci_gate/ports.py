"""The Protocols through which the packages meet, on one page.

The engine runs trials through an ``Agent``, a ``SandboxFactory``, ``Grader`` objects and an
``OutcomeSink``; who stands behind them is decided in ``ci_gate.plugins`` and ``ci_gate.gate``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from enum import IntEnum
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import msgspec

from ci_gate.model.suite import PlannedTrial
from ci_gate.model.trace import Determinism, TraceRecord, TraceRef
from ci_gate.model.trial import Cause, Grade, Step, Trajectory, TrialRecord

__all__ = [
    "Agent",
    "Clock",
    "First",
    "Grader",
    "GraderCost",
    "GradersByTask",
    "Observation",
    "OutcomeSink",
    "ProgressSink",
    "RankedGrader",
    "ReplayDrifted",
    "RoundWatcher",
    "SandboxFactory",
    "Skipped",
    "Steering",
    "TrialErrored",
    "TrialLost",
    "TrialRunner",
    "TrialSandbox",
]


class TrialErrored(Exception):
    """The environment of a trial was at fault: raised by a sandbox, a grader or an agent.

    Parameters
    ----------
    reason : str
        One line for the trial's record; what it says changes nothing.
    cause : Cause
        ``environment`` on evidence against it; otherwise the harness or the sandbox broke.
    """

    def __init__(self, reason: str, cause: Cause = Cause.HARNESS) -> None:
        super().__init__(reason)
        self.reason = reason
        self.cause = cause


class ReplayDrifted(Exception):
    """A call that the recording of a replay does not have at this place; the text names both."""


class TrialLost(Exception):
    """A trial was cut short by its neighbour in the worker, and is run again in a new world."""


class Skipped(msgspec.Struct, frozen=True, kw_only=True):
    """What a call that was answered and not made would have taken from the trial itself.

    Parameters
    ----------
    words : int
        Of 32 bits, from the trial's generator.
    uuids : int
    slept_s : float
        On the trial's clock.
    """

    words: int = 0
    uuids: int = 0
    slept_s: float = 0.0


class First(msgspec.Struct, frozen=True, kw_only=True):
    """How a call ended that is made twice."""

    output: Any
    is_error: bool = False


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """What the agent gets to see of a call.

    Parameters
    ----------
    output : Any
        The tool's output, or the text of an injected fault.
    is_error : bool
    fault : str or None
        Kind of the injected fault.
    delay_s : float
        Seconds that pass on the trial's clock (simulated, unless delays are real).
    unfaulted, unfaulted_is_error : Any, bool
        What the recorded call itself gave, and whether it had failed, where a fault hid it.
    tokens : int or None
    cost_usd, duration_ms : float or None
        What the recorded call took, where this is the answer of a recording.
    is_whole : bool
        The fault leaves the value as it is.
    again : bool
        The call is to be made once more, and observed with its ``first`` end: nothing of it was
        recorded yet.
    within : tuple of TraceRecord
        Recorded calls and draws that the call made itself, where this is the answer of a recording.
    skipped : Skipped or None
        What these took from the trial.
    """

    output: Any
    is_error: bool = False
    fault: str | None = None
    delay_s: float = 0.0
    unfaulted: Any = None
    unfaulted_is_error: bool = False
    tokens: int | None = None
    cost_usd: float | None = None
    duration_ms: float | None = None
    is_whole: bool = False
    again: bool = False
    within: tuple[TraceRecord, ...] = ()
    skipped: Skipped | None = None


@runtime_checkable
class TrialSandbox(Protocol):
    """The world of one trial: its own copy, gone when the trial ends."""

    @property
    def folder(self) -> Path | None:
        """Folder that holds the whole world of the trial, or None where there is none."""

    @property
    def home(self) -> Path | None:
        """Path of that folder, also where there is none before somebody makes it."""

    @property
    def workdir(self) -> Path | None:
        """Folder with a fresh copy of the fixture, or None where the task has no fixture."""

    @property
    def database(self) -> Path | None:
        """Fresh SQLite file, or None where the task has no database."""

    @property
    def postgres(self) -> str | None:
        """URL of a fresh PostgreSQL database, or None where the task has none."""

    @property
    def initial_state(self) -> str | None:
        """Digest of what the world held at the start, or None where that is not known."""

    @property
    def now(self) -> str:
        """Start of the trial's clock, ISO 8601 UTC; the same for every trial of a task."""

    @property
    def steps(self) -> Sequence[Step]:
        """Every call that passed ``observe``, in order."""

    def observe(
        self,
        kind: str,
        name: str,
        arguments: Any,
        output: Any,
        *,
        is_error: bool,
        turn: int | None,
        lane: str = "main",
        duration_ms: float | None = None,
        determinism: Determinism | None = None,
        first: First | None = None,
    ) -> Observation:
        """Record a call that was executed and return what the agent sees, faults applied.

        ``first`` is how it ended before it was made again because it was to be.
        """

    def note(
        self, lane: str, kind: str, name: str, arguments: Any, output: Any, *, at_end: bool = False
    ) -> None:
        """Record what a lane took from the trial's generators or clock; no step of the agent.

        ``at_end``: after its last call. Raises ``ReplayDrifted`` as ``answer`` does.
        """

    @property
    def answers(self) -> bool:
        """Whether calls are answered here and made by nobody: a replay."""

    def answer(
        self,
        lane: str,
        kind: str,
        name: str,
        arguments: Any,
        *,
        turn: int | None = None,
        determinism: Determinism | None = None,
    ) -> Observation | None:
        """Return the answer of a call that is not made, where ``answers`` is true.

        None: this one is to be made and observed all the same. Raises ``ReplayDrifted`` where the
        recording has no such call here.
        """

    def finish(self, trajectory: Trajectory) -> TraceRef | None:
        """End the trial's trace with how it ended, and say where it is.

        The steps that the trajectory reports are recorded where none was seen.

        Raises ``GateError`` where the trace cannot be kept.
        """

    def close(self) -> None:
        """Remove the world; safe to call twice."""


class SandboxFactory(Protocol):
    """Makes the world of each trial."""

    def open(self, trial: PlannedTrial) -> TrialSandbox:
        """Return a fresh world in its known state."""


class TrialRunner(Protocol):
    """Runs trials of an agent that somebody else has started and will close."""

    async def run(self, trial: PlannedTrial, sandbox: TrialSandbox) -> Trajectory:
        """Run one trial. The agent's failures are in the result; this never raises for them.

        Raises ``TrialLost`` where the trial must be run again, ``TrialErrored`` where the
        environment was at fault and there is no trajectory.
        """


class Agent(TrialRunner, Protocol):
    """The agent under test behind any protocol."""

    async def start(self) -> None:
        """Prepare; raises AgentSetupError where the agent cannot be started at all."""

    async def close(self) -> None:
        """End every process that was started; safe to call twice."""


class Grader(Protocol):
    """Judges one finished trial.

    A grader whose ``blocking`` is true may take its time; it is called in a thread, several trials
    at once. Without the attribute it is called where everything else waits for it.
    """

    def grade(
        self, trial: PlannedTrial, trajectory: Trajectory, sandbox: TrialSandbox
    ) -> Grade | Awaitable[Grade]:
        """Return the grade; awaitable where the judging leaves the process."""


class GraderCost(IntEnum):
    """What asking a grader takes; the cheaper ones are asked first, wherever a task file has them.

    A rule that fails has a veto: what is dearer than a look at the world is not asked any more.
    """

    RULE = 0
    LOOK = 1
    OWN = 2
    JUDGE = 3


class RankedGrader(NamedTuple):
    """A grader and what asking it takes."""

    grader: Grader
    cost: GraderCost = GraderCost.LOOK


class OutcomeSink(Protocol):
    """Where attempts go that ended; a record is durable before ``append`` returns."""

    def append(self, record: TrialRecord) -> None:
        """Keep an attempt; it supersedes what was kept of the same trial before."""


class ProgressSink(Protocol):
    """Who watches a run."""

    def planned(self, total: int, done: int) -> None:
        """Take note of the number of trials and of those already finished."""

    def finished(self, record: TrialRecord) -> None:
        """Take note of a finished trial."""


class RoundWatcher(ProgressSink, Protocol):
    """Who watches a run that is decided round by round."""

    def decided(self, done: int, rounds: int, predictive: float | None) -> None:
        """Take note of the chance that the whole plan would be red, after so many rounds.

        None: nothing can be foretold.
        """

    def extended(self, total: int) -> None:
        """Take note that the plan grew to so many trials."""


class Steering(Protocol):
    """Says what is run next; asked where no trial is in flight."""

    def next_trials(self, *, settled: bool) -> Sequence[PlannedTrial] | None:
        """Return the trials of the next round; None: the run shall end here.

        Where ``settled`` is false, trials that errored still have an attempt at the end: they get
        it when this says None, and it is asked again with what came of them.
        """


class Clock(Protocol):
    """Real time as an argument."""

    def monotonic(self) -> float:
        """Return seconds from an arbitrary start."""

    def utc(self) -> str:
        """Return the time as ISO 8601 with seconds and ``Z``."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""


GradersByTask = Mapping[str, Sequence[RankedGrader]]
"""By task id, in the order in which they are asked."""

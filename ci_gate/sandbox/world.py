"""The world of a trial while it runs: its places, and the calls that left the agent.

Every call is recorded where a trace was asked for. Where the world comes from is decided by
``world_factory`` and which faults happen by ``chaos``; how the agent is run and judged is not known
here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec

from ci_gate.model.amounts import MOST_MS, amount_within, count_within
from ci_gate.model.reasons import without_addresses
from ci_gate.model.trace import Determinism, TraceRecord, TraceRef
from ci_gate.model.trace_meta import is_draw
from ci_gate.model.trace_result import RESULT, result_of
from ci_gate.model.trial import Step, Trajectory
from ci_gate.model.usage import Spent
from ci_gate.ports import First, Observation
from ci_gate.redaction import Redactor
from ci_gate.sandbox.chaos import ChaosInjector
from ci_gate.sandbox.copying import remove_folder
from ci_gate.sandbox.delivery import Delivery
from ci_gate.sandbox.draws import skipped_by
from ci_gate.sandbox.faults import DUPLICATE
from ci_gate.sandbox.metering import Meter
from ci_gate.sandbox.postgres import TrialDatabase
from ci_gate.sandbox.recording import Call, Recorder
from ci_gate.sandbox.states import ContentSource, restore
from ci_gate.sandbox.values import plain_of

__all__ = ["AnswerSource", "Before", "World"]

Before = Mapping[str, Any] | None
"""The recorded state that a world starts in; None where states are not recorded."""


class AnswerSource(Protocol):
    """Where the answers of a replay come from."""

    def answer(self, lane: str, kind: str, name: str, arguments: Any) -> Observation | None:
        """Return the answer of a call, None where it is to be made; raises ``ReplayDrifted``."""


class World:
    """The world of one trial, behind ``ports.TrialSandbox``.

    Parameters
    ----------
    folder : Path or None
        What is removed at the end.
    reserve : callable or None
        Returns the path that is the folder once something was put there, where there is none yet.
    workdir, database : Path or None
        Places inside it.
    now : str
        Start of the trial's clock.
    injector, models : ChaosInjector or None
        Which calls of tools and to models meet faults.
    recorder : Recorder or None
        None: nothing is recorded.
    source : AnswerSource or None
        Answers the calls of a replay; None: they are made.
    postgres : TrialDatabase or None
        Its PostgreSQL database.
    before : mapping or None
        The recorded state that the world starts in; None: states are not recorded.
    initial_state : str or None
        Digest of what it holds at the start.
    redactor : Redactor or None
        Used where there is no recorder, whose own knows what the trial's calls told it.
    meter : Meter or None

    Attributes
    ----------
    redactor : Redactor
        Takes secrets out of everything that is said about the trial.
    """

    def __init__(
        self,
        *,
        folder: Path | None,
        workdir: Path | None,
        now: str,
        injector: ChaosInjector | None,
        models: ChaosInjector | None = None,
        database: Path | None = None,
        postgres: TrialDatabase | None = None,
        recorder: Recorder | None = None,
        source: AnswerSource | None = None,
        before: Before = None,
        initial_state: str | None = None,
        redactor: Redactor | None = None,
        meter: Meter | None = None,
        reserve: Callable[[], Path] | None = None,
    ) -> None:
        self.redactor = recorder.redactor if recorder is not None else redactor or Redactor()
        self._meter = meter or Meter()
        self._folder = folder
        self._reserve = reserve
        self._reserved: Path | None = None
        self._workdir = workdir
        self._database = database
        self._postgres = postgres
        self._now = now
        self._faults = Delivery(injector, models)
        self._steps: list[Step] = []
        self._recorder = recorder
        self._source = source
        self._before = before
        self._initial_state = initial_state

    @property
    def folder(self) -> Path | None:
        """Folder that holds the whole world, or None where there is none."""
        if self._folder is None and self._reserved is not None and self._reserved.is_dir():
            self._folder = self._reserved
        return self._folder

    @property
    def home(self) -> Path | None:
        """Path of the folder, also where there is none before somebody makes it."""
        if self._folder is None and self._reserved is None and self._reserve is not None:
            self._reserved = self._reserve()
        return self._folder or self._reserved

    @property
    def initial_state(self) -> str | None:
        """Digest of what the world held at the start, or None where that is not known."""
        return self._initial_state

    @property
    def workdir(self) -> Path | None:
        """Folder with a fresh copy of the fixture, or None where the task has none."""
        return self._workdir

    @property
    def database(self) -> Path | None:
        """Fresh SQLite file, or None where the task has no database."""
        return self._database

    @property
    def postgres(self) -> str | None:
        """URL of a fresh PostgreSQL database, or None where the task has none."""
        return None if self._postgres is None else self._postgres.url

    @property
    def now(self) -> str:
        """Start of the trial's clock, ISO 8601 UTC."""
        return self._now

    @property
    def steps(self) -> Sequence[Step]:
        """Every call that passed ``observe``, in order."""
        return self._steps

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

        Parameters
        ----------
        kind : str
            Only calls of kinds ``tool`` and ``llm`` meet faults.
        name : str
        arguments, output : Any
            JSON, in which other values are tagged (``values``).
        is_error : bool
            The call failed by itself.
        turn : int or None
        lane : str
        duration_ms : float or None
            Real time that it took.
        first : First or None
            How it ended when it was made the first time, where it was to be made again.
        determinism : Determinism or None
            What its tool is declared as; None: that of its kind.
        """
        seen = self._seen(kind, name, arguments, output, is_error=is_error, first=first)
        if seen.again:
            return seen
        before = First(output=output, is_error=is_error) if first is None else first
        spent = self._meter.measure(kind, name, output)
        call = Call(
            kind=kind,
            name=name,
            arguments=arguments,
            output=seen.output,
            lane=lane,
            is_error=seen.is_error,
            fault=seen.fault,
            unfaulted=None if seen.fault is None else before.output,
            unfaulted_is_error=seen.fault is not None and before.is_error,
            turn=count_within(turn),
            tokens=spent.tokens,
            cost_usd=spent.cost_usd,
            duration_ms=amount_within(duration_ms, MOST_MS),
            determinism=determinism,
        )
        self._take(call)
        return seen

    def _seen(
        self,
        kind: str,
        name: str,
        arguments: Any,
        output: Any,
        *,
        is_error: bool,
        first: First | None,
    ) -> Observation:
        if first is not None:
            return Observation(output=output, is_error=is_error, fault=DUPLICATE, is_whole=True)
        seen = self._faults.seen(kind, name, arguments, output, is_error=is_error)
        return seen or Observation(output=output, is_error=is_error)

    @property
    def answers(self) -> bool:
        """Whether calls are answered here and made by nobody."""
        return self._source is not None

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
        """Return the answer of a call that is not made; None where it is to be made.

        Raises
        ------
        ReplayDrifted
            The recording has no such call here.
        """
        assert self._source is not None
        seen = self._source.answer(lane, kind, name, arguments)
        if seen is None:
            return None
        seen = self._on_top(lane, kind, name, arguments, seen)
        for record in seen.within:
            self._take_again(record)
        recorded = Spent(seen.tokens, seen.cost_usd)
        is_known = recorded != Spent(None, None)
        spent = (
            self._meter.take(kind, recorded)
            if is_known
            else self._meter.measure(kind, name, seen.output)
        )
        self._take(
            Call(
                kind=kind,
                name=name,
                arguments=arguments,
                output=seen.output,
                lane=lane,
                is_error=seen.is_error,
                fault=seen.fault,
                unfaulted=seen.unfaulted,
                unfaulted_is_error=seen.unfaulted_is_error,
                turn=count_within(turn),
                tokens=spent.tokens,
                cost_usd=spent.cost_usd,
                duration_ms=seen.duration_ms,
                determinism=determinism,
            )
        )
        return seen

    def _on_top(
        self, lane: str, kind: str, name: str, arguments: Any, seen: Observation
    ) -> Observation:
        """Return a recorded answer as a fault of this trial's own leaves it."""
        if seen.fault is not None:
            return seen
        faulted = self._faults.seen(kind, name, arguments, seen.output, is_error=seen.is_error)
        if faulted is None:
            return seen
        asked = lane, kind, name, arguments
        last = self._delivered_again(asked, seen) if faulted.again else seen
        return msgspec.structs.replace(
            faulted,
            output=last.output if faulted.again else faulted.output,
            is_error=last.is_error if faulted.again else faulted.is_error,
            again=False,
            unfaulted=seen.output,
            unfaulted_is_error=seen.is_error,
            tokens=last.tokens,
            cost_usd=last.cost_usd,
            within=last.within,
            skipped=last.skipped,
        )

    def _delivered_again(self, asked: tuple[str, str, str, Any], first: Observation) -> Observation:
        """Return the answer to a call that arrives twice: it acts twice, and the second counts."""
        assert self._source is not None
        second = self._source.answer(*asked)
        if second is None:
            return first
        within = (*first.within, *second.within)
        return msgspec.structs.replace(
            second, within=within, skipped=skipped_by(within) if within else None
        )

    def _take_again(self, record: TraceRecord) -> None:
        """Take what a call did itself, which was answered and not made."""
        call = _call_again(record)
        if is_draw(record.kind, record.name):
            self._record(call)
        else:
            self._meter.take(record.kind, Spent(record.tokens, record.cost_usd))
            self._take(call)

    def note(
        self, lane: str, kind: str, name: str, arguments: Any, output: Any, *, at_end: bool = False
    ) -> None:
        """Record what a lane took from the trial's generators or clock; no step of the agent.

        Raises
        ------
        ReplayDrifted
            The recording has something else here.
        """
        if at_end and not self._steps:  # nothing was called that it could follow
            return
        if self._source is not None:
            self._source.answer(lane, kind, name, arguments)
        self._record(Call(kind=kind, name=name, arguments=arguments, output=output, lane=lane))

    def spent(self, reported: Sequence[Step]) -> Spent:
        """Return what the trial's calls to models took together.

        Parameters
        ----------
        reported : sequence of Step
            The calls that the agent says it made; they count where none was seen.
        """
        return self._meter.spent if self._steps else self._meter.measured(reported)

    def _take(self, call: Call) -> None:
        self._steps.append(_step_of(call))
        self._record(call)

    def _record(self, call: Call) -> None:
        if self._recorder is not None:
            self._begin(self._recorder)
            self._recorder.record(call)

    def _begin(self, recorder: Recorder) -> None:
        """Put the state before the trial in front of its first call."""
        before, self._before = self._before, None
        if before is not None:
            recorder.record_state("before", before)

    def finish(self, trajectory: Trajectory) -> TraceRef | None:
        """End the trial's trace and say where it is; None where nothing was recorded.

        Parameters
        ----------
        trajectory : Trajectory
            How the trial ended. The calls that it says were made are recorded where none was seen.

        Raises
        ------
        GateError
            The trace cannot be kept.
        """
        recorder, self._recorder = self._recorder, None
        if recorder is None:
            return None
        self._begin(recorder)
        if not self._steps:
            for step in trajectory.steps:
                recorder.record(
                    _call_of(step, self._meter.measure(step.kind, step.name, step.output))
                )
        self._record_end(recorder)
        ended = _without_secrets(trajectory, recorder.redactor)
        recorder.record_state(RESULT, result_of(ended, with_printed=recorder.keeps_printed))
        return recorder.finish()

    def _record_end(self, recorder: Recorder) -> None:
        if self.folder is not None:
            after = recorder.state_of(self.folder)
            if after is not None:
                recorder.record_state("after", after)

    def replace(self, state: Mapping[str, Any], source: ContentSource) -> None:
        """Put a recorded state in the place of what the world holds.

        Raises
        ------
        StateError
            It is not whole, or not a state.
        GateError
            A content is missing or was changed.
        """
        folder = self.home
        if folder is None:
            return
        folder.mkdir(mode=0o700, exist_ok=True)
        for entry in folder.iterdir():
            if entry.is_dir() and not entry.is_symlink():
                remove_folder(entry)
            else:
                entry.unlink()
        restore(state, folder, source)

    def close(self) -> None:
        """Remove the world; safe to call twice."""
        recorder, self._recorder = self._recorder, None
        if recorder is not None:
            recorder.discard()
        postgres, self._postgres = self._postgres, None
        if postgres is not None:
            postgres.drop()
        folder, self._folder = self.folder, None
        self._reserve = self._reserved = None
        if folder is not None:
            remove_folder(folder)


def _without_secrets(trajectory: Trajectory, redactor: Redactor) -> Trajectory:
    """Return how a trial ended as it is shown: what was printed is looked through as such."""
    answer, reason = trajectory.answer, trajectory.reason
    return msgspec.structs.replace(
        trajectory,
        answer=None if answer is None else redactor.text(answer),
        reason=None if reason is None else without_addresses(redactor.reason(reason)),
        output_tail=redactor.text(trajectory.output_tail),
        measures={redactor.name(name): x for name, x in trajectory.measures.items()},
    )


def _step_of(call: Call) -> Step:
    return Step(
        kind=call.kind,
        name=call.name,
        input=plain_of(call.arguments),
        output=plain_of(call.output),
        is_error=call.is_error,
        fault=call.fault,
        turn=call.turn,
        lane=call.lane,
    )


def _call_again(record: TraceRecord) -> Call:
    return Call(
        kind=record.kind,
        name=record.name,
        arguments=record.input,
        output=record.output,
        lane=record.lane,
        is_error=record.is_error,
        fault=record.fault,
        unfaulted=record.unfaulted,
        unfaulted_is_error=record.unfaulted_is_error,
        turn=record.turn,
        tokens=record.tokens,
        cost_usd=record.cost_usd,
        duration_ms=record.duration_ms,
        determinism=record.determinism,
    )


def _call_of(step: Step, spent: Spent) -> Call:
    return Call(
        kind=step.kind,
        name=step.name,
        arguments=step.input,
        output=step.output,
        is_error=step.is_error,
        fault=step.fault,
        turn=step.turn,
        lane=step.lane,
        tokens=spent.tokens,
        cost_usd=spent.cost_usd,
    )

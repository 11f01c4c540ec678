"""``trace verify --twice``: whether a trial with the same answers of models does the same again."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

import msgspec

from ci_gate.errors import UsageError, printable
from ci_gate.gate.execution import Execution, Work, execute
from ci_gate.gate.kept_play import is_playable
from ci_gate.gate.project import Project, Word, open_project
from ci_gate.gate.recording import TRACES, Recording, redactor_maker
from ci_gate.gate.replay import LastRecord, find_task
from ci_gate.gate.run_journal import RunInterrupted
from ci_gate.gate.witness import Witness
from ci_gate.gate.worktree import sweep_lost
from ci_gate.model.calls import MODEL_CALL
from ci_gate.model.run import RunHeader, StopReason
from ci_gate.model.suite import PlannedTrial, Suite
from ci_gate.model.trace import Trace, TraceHeader, TraceRecord
from ci_gate.model.trace_meta import STATE
from ci_gate.model.trace_result import RESULT
from ci_gate.model.trial import TrialRecord
from ci_gate.model.twice import Twice
from ci_gate.prng import derive_seed
from ci_gate.sandbox.ignoring import Ignored
from ci_gate.sandbox.model_answers import ModelAnswers
from ci_gate.store.paths import trace_file
from ci_gate.store.traces import read_trace
from ci_gate.tracing.divergence import diff_traces

__all__ = ["TwiceRequest", "verify_twice"]


class TwiceRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked; None is what the user did not say."""

    config_path: Path | None
    suite: str | None
    task: str
    trial: int
    environment: Mapping[str, str]


class _Run(NamedTuple):
    record: TrialRecord
    answer: str | None
    trace: Trace


def verify_twice(request: TwiceRequest) -> Twice:
    """Run a trial, then once more with the answers of its models, and compare the two traces.

    Nothing is kept.

    Raises
    ------
    UsageError
        No suite has the task, or the agent is one whose calls to models cannot be answered.
    AgentSetupError
        The agent cannot be started.
    """
    project = open_project(
        request.config_path,
        output=None,
        baseline_ref=None,
        word=Word.BASE,
        environment=request.environment,
    )
    _require_python(project)
    sweep_lost(project.repository)
    suite, task = find_task(project, suite=request.suite, task=request.task)
    planned = PlannedTrial(
        task=task,
        trial=request.trial,
        repeat=0,
        attempt=1,
        seed=derive_seed(task.base_seed, request.trial),
    )
    with tempfile.TemporaryDirectory(prefix="ci-gate-") as folder:
        pair = _Pair(project, suite, planned, request.environment)
        first = pair.run(Path(folder) / "first", None)
        second = pair.run(Path(folder) / "second", first.trace)
    return _compared(planned, first, second)


def _require_python(project: Project) -> None:
    """Refuse what would prove nothing: two runs of which each asks its models anew."""
    if not is_playable(project.config):
        raise UsageError(
            f"protocol {printable(project.config.agent.protocol)} makes its calls by itself: its "
            "models cannot be held still, so two runs that differ, or agree, prove nothing",
            where="[agent]",
            hint="`ci-gate trace diff` compares the traces of two runs.",
        )


class _Pair:
    """The two runs of one trial."""

    def __init__(
        self,
        project: Project,
        suite: Suite,
        planned: PlannedTrial,
        environment: Mapping[str, str],
    ) -> None:
        self._config = project.config
        self._suite = suite
        self._planned = planned
        self._environment = environment

    def run(self, folder: Path, models: Trace | None) -> _Run:
        """Run the trial; the answers of models come from a trace where there is one."""
        witness, kept = Witness(), LastRecord()
        result = execute(
            self._execution(folder / TRACES, models),
            lambda: Work(trials=[self._planned], sink=kept, progress=kept),
            witness=witness,
        )
        if result.reason is StopReason.INTERRUPTED or kept.record is None:
            raise RunInterrupted
        answer = None if witness.trajectory is None else witness.trajectory.answer
        return _Run(kept.record, answer, self._trace(folder / TRACES))

    def _execution(self, traces: Path, models: Trace | None) -> Execution:
        recording = Recording(
            traces=traces,
            header=RunHeader(suite=self._suite.name),
            config=self._config,
            environment=self._environment,
        )
        source = None if models is None else self._answers(models)
        return Execution(
            config=self._config,
            suite=self._suite,
            jobs=1,
            retries=0,
            recorder_of=recording.recorders(),
            source_of=None if source is None else lambda _: source,
            answers_all=False,
        )

    def _answers(self, trace: Trace) -> ModelAnswers | None:
        if not any(record.kind == MODEL_CALL for record in trace.records):
            return None
        return ModelAnswers(
            trace.records,
            ignored=Ignored(self._config.trace.ignore),
            redactor=redactor_maker(self._config, self._environment)(),
        )

    def _trace(self, traces: Path) -> Trace:
        planned = self._planned
        path = trace_file(traces, planned.task.id, planned.trial, planned.repeat)
        if not path.is_file():
            return Trace(header=TraceHeader(), records=())
        return _without_result(read_trace(path))


def _without_result(trace: Trace) -> Trace:
    """Return the trace without how the trial ended: answers are compared by themselves."""
    kept = (one for one in trace.records if (one.kind, one.name) != (STATE, RESULT))
    return msgspec.structs.replace(trace, records=tuple(kept))


def _compared(planned: PlannedTrial, first: _Run, second: _Run) -> Twice:
    records = first.trace.records
    return Twice(
        task=planned.task.id,
        trial=planned.trial,
        records=(first.record, second.record),
        answers=(first.answer, second.answer),
        calls=len(records),
        models=sum(record.kind == MODEL_CALL for record in records),
        head=records[-1].digest if records else None,
        first=_first_difference(first.trace, second.trace),
        diff=diff_traces(first.trace, second.trace),
    )


def _first_difference(
    first: Trace, second: Trace
) -> tuple[TraceRecord | None, TraceRecord | None] | None:
    """Return the first call at which the chains part: each digest covers all calls before it."""
    for one, other in zip_longest(first.records, second.records):
        if one is None or other is None or one.digest != other.digest:
            return one, other
    return None

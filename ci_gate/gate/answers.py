"""What answers the calls of a whole suite instead of making them: one for each mode that does."""

from __future__ import annotations

import os
from typing import Protocol

from ci_gate.gate.project import Project
from ci_gate.gate.recordings import recordings_of
from ci_gate.gate.replayed_suite import ReplayedSuite
from ci_gate.gate.sandboxed_suite import SandboxedSuite
from ci_gate.model.run import AnsweredMode, Plan, RunHeader
from ci_gate.model.suite import PlannedTrial, Suite
from ci_gate.model.trial import TrialRecord
from ci_gate.ports import OutcomeSink, TrialRunner
from ci_gate.sandbox.world import AnswerSource

__all__ = ["SuiteAnswers", "answers_of", "kept_with"]


class SuiteAnswers(Protocol):
    """Answers the calls of every trial of a suite."""

    @property
    def mode(self) -> AnsweredMode:
        """How it answers."""

    @property
    def faults_digest(self) -> str | None:
        """Digest of the faults that its trials meet; None: of none."""

    @property
    def remarks(self) -> list[str]:
        """What is odd about the recordings."""

    def require(self, plan: Plan) -> None:
        """Refuse a plan that the recordings do not serve; raises ``GateError``."""

    def source_of(self, trial: PlannedTrial) -> AnswerSource:
        """Return what answers the calls of a trial; raises ``TrialErrored`` where nothing can."""

    def around(self, agent: TrialRunner) -> TrialRunner:
        """Return the agent with what belongs to a recording around it: how its world ended."""

    def as_kept(self, record: TrialRecord) -> TrialRecord:
        """Return a record with what was not measured now."""


class _Kept:
    def __init__(self, sink: OutcomeSink, answers: SuiteAnswers) -> None:
        self._sink = sink
        self._answers = answers

    def append(self, record: TrialRecord) -> None:
        self._sink.append(self._answers.as_kept(record))


def kept_with(sink: OutcomeSink, answers: SuiteAnswers | None) -> OutcomeSink:
    """Return a sink whose records say what is known of them where calls were answered."""
    return sink if answers is None else _Kept(sink, answers)


def answers_of(project: Project, suite: Suite, header: RunHeader) -> SuiteAnswers:
    """Return what answers the calls of a suite in the mode of the project.

    Parameters
    ----------
    project : Project
        With a mode in which calls are answered.
    suite : Suite
    header : RunHeader
        Of the run, with the faults that are configured.

    Raises
    ------
    UsageError, FileFormatError
        There is no such folder, or what is in it is damaged.
    """
    recordings = recordings_of(project, suite.name)
    if project.config.run.mode == "sandboxed":
        return SandboxedSuite(
            recordings,
            suite,
            config=project.config,
            environment=os.environ,
            faults_digest=header.faults_digest,
        )
    return ReplayedSuite(recordings, suite, config=project.config, environment=os.environ)

"""``trace check``: are the kept traces still what the agent does? And the same within ``check``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ci_gate.config import Config
from ci_gate.errors import GateError, UsageError, printable
from ci_gate.gate.kept import Kept, KeptTrace, find_kept, kept_of
from ci_gate.gate.kept_play import is_playable, play
from ci_gate.gate.measure import Measured
from ci_gate.gate.partings import partings_of
from ci_gate.gate.project import Project, Word, open_project
from ci_gate.gate.suites import configured_suite
from ci_gate.gate.worktree import sweep_lost
from ci_gate.model.suite import Suite
from ci_gate.model.verdict import Verdict
from ci_gate.model.verdict_traces import KeptTraces, UnplayedTrace, VerdictTraces

__all__ = [
    "Announce",
    "Prelude",
    "TraceCheckRequest",
    "TracesChecked",
    "check_traces",
    "prelude_of",
]

Announce = Callable[[str, KeptTraces], None]
"""Is told what the kept traces of a suite show, before its first trial."""


class TraceCheckRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What ``trace check`` was asked; None is what the user did not say."""

    config_path: Path | None
    suite: str | None
    task_filter: str | None
    baseline_ref: str | None
    environment: Mapping[str, str]


class TracesChecked(msgspec.Struct, frozen=True, kw_only=True):
    """What the kept traces of a suite show."""

    suite: str
    tasks: tuple[str, ...]
    traces: KeptTraces

    @property
    def is_consistent(self) -> bool:
        """Return whether every kept trace was played, and followed call by call."""
        return not (self.traces.drifted or self.traces.unplayed)


def check_traces(request: TraceCheckRequest) -> tuple[TracesChecked, ...]:
    """Play the kept traces of every suite that was asked for.

    Raises
    ------
    UsageError
        No suite has kept traces, or the agent is one that no trace can be played to.
    AgentSetupError
        The agent cannot be started.
    """
    project = open_project(
        request.config_path,
        output=None,
        baseline_ref=request.baseline_ref,
        word=Word.BASE,
        environment=request.environment,
    )
    _require_playable(project.config)
    sweep_lost(project.repository)
    found = [
        _checked(project.config, suite, find_kept(project, suite.name))
        for suite in (
            configured_suite(project.config, one, trials=None, task_filter=request.task_filter)
            for one in project.suites(request.suite)
        )
    ]
    checked = tuple(one for one in found if one.tasks)
    if not checked:
        raise UsageError(
            "there are no kept traces",
            where=printable(project.path),
            hint="Set keep_traces = true under [baseline] and run `ci-gate baseline update`.",
        )
    return checked


def _require_playable(config: Config) -> None:
    if not is_playable(config):
        raise UsageError(
            f"protocol {printable(config.agent.protocol)} makes its calls by itself, so that no "
            "trace can be played to it",
            where="[agent]",
            hint="`ci-gate trace diff` compares two of its traces.",
        )


def _checked(config: Config, suite: Suite, kept: Kept) -> TracesChecked:
    traces = kept_of(kept, suite.tasks)
    return TracesChecked(
        suite=suite.name,
        tasks=tuple(one.task.id for one in traces),
        traces=play(config, suite, kept, traces, within_s=None),
    )


@dataclass(frozen=True, kw_only=True)
class Prelude:
    """What was found in kept traces before the first trial of a check.

    Attributes
    ----------
    traces : sequence of KeptTrace
    played : KeptTraces or None
        None where there are none that can be played.
    """

    traces: Sequence[KeptTrace] = ()
    played: KeptTraces | None = None

    def onto(self, verdict: Verdict, project: Project, measured: Measured) -> Verdict:
        """Return the verdict with what traces show; they decide nothing in it."""
        partings = partings_of(project, verdict, measured.run, measured.path, self.traces)
        if self.played is None and not partings:
            return verdict
        shown = VerdictTraces(kept=self.played, partings=partings)
        return msgspec.structs.replace(verdict, traces=shown)


def prelude_of(
    project: Project, suite: Suite, kept: Kept | None, announce: Announce | None
) -> Prelude:
    """Play the kept traces of a suite's tasks within bounded time.

    Nothing that goes wrong here stops the check: an agent that cannot be started is met again by
    its first trial, and then it counts.
    """
    traces = () if kept is None else tuple(kept_of(kept, suite.tasks))
    if kept is None or not traces or not is_playable(project.config):
        return Prelude(traces=traces)
    try:
        played = play(project.config, suite, kept, traces)
    except GateError as error:
        why = printable(error.problems[0].what)
        unplayed = tuple(UnplayedTrace(task=one.task.id, why=why) for one in traces)
        played = KeptTraces(origin=kept.origin, kept=len(traces), played=0, unplayed=unplayed)
    if announce is not None:
        announce(suite.name, played)
    return Prelude(traces=traces, played=played)

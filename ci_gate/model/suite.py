"""What is asked of the agent: tasks, their limits and graders, and the suite they make."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

__all__ = ["GraderSpec", "Limits", "PlannedTrial", "Suite", "Task"]


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What a trial of a task may use; beyond a limit the trial is failed.

    Parameters
    ----------
    timeout_s : float or None
        Seconds of real time; None takes the agent's.
    turns, tool_calls, tokens : int or None
        Upper limits, inclusive.
    cost_usd : float or None
        US dollars, inclusive.
    """

    timeout_s: float | None = None
    turns: int | None = None
    tool_calls: int | None = None
    tokens: int | None = None
    cost_usd: float | None = None


class GraderSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One condition that a trial must meet.

    Parameters
    ----------
    type : str
        Name of the grader in ``ci_gate.plugins.GRADERS``.
    name : str
        What reports call it; unique within its task.
    options : mapping
        The grader's own keys as the task file has them.
    """

    type: str
    name: str
    options: Mapping[str, Any]


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """One piece of work for the agent.

    Parameters
    ----------
    id : str
        Unique in its suite; no control, newline or bidirectional characters.
    instruction : str
        What the agent is asked.
    input : Any
        Further JSON input.
    metadata : mapping
        Free JSON, shown to the agent.
    tags : tuple of str
        For people and filters.
    fixture : str or None
        Path of the initial world, as the task file names it, relative to that file: an SQL script
        or SQLite database becomes the trial's database, a folder its working directory.
    fixture_path : str or None
        The same as an absolute path.
    tables : mapping or None
        Tables in memory that its trials start with: by name a list of rows.
    identity : mapping or None
        On whose behalf the agent acts; free JSON.
    now : str or None
        Start of its trials' clocks, ISO 8601 UTC; None: the default.
    limits : Limits
    graders : tuple of GraderSpec
    expect : mapping
        What its process measures are held against (``ci_gate.process.expectation``).
    trials : int or None
        The task's own number of trials.
    base_seed : int
        Its explicit seed, or derived from the suite's seed and the id.
    digest : str
        Over the canonical task and the bytes of its fixture and grader sources.
    source : str
        ``file:line`` (line 0 where unknown) for messages and annotations.
    """

    id: str
    instruction: str
    input: Any = None
    metadata: Mapping[str, Any] = msgspec.field(default_factory=dict)
    tags: tuple[str, ...] = ()
    fixture: str | None = None
    fixture_path: str | None = None
    tables: Mapping[str, Any] | None = None
    identity: Mapping[str, Any] | None = None
    now: str | None = None
    limits: Limits = Limits()
    graders: tuple[GraderSpec, ...] = ()
    expect: Mapping[str, Any] = msgspec.field(default_factory=dict)
    trials: int | None = None
    base_seed: int
    digest: str
    source: str = ""

    @property
    def has_world(self) -> bool:
        """Whether its trials start with something that was made for them."""
        return self.fixture_path is not None or self.tables is not None

    def shown(self) -> dict[str, Any]:
        """Return what the agent is shown of the task: never what judges it, its limits or place."""
        return {
            "id": self.id,
            "instruction": self.instruction,
            "input": self.input,
            "metadata": dict(self.metadata),
        }


class Suite(msgspec.Struct, frozen=True, kw_only=True):
    """Tasks in the order of their ids, with the seed they derive theirs from.

    Parameters
    ----------
    name : str
    root_seed : int
    trials : int
        Trials of a task that sets no number of its own.
    tasks : tuple of Task
        Sorted by id, at least one.
    digest : str
        Over all task digests.
    """

    name: str
    root_seed: int
    trials: int
    tasks: tuple[Task, ...]
    digest: str

    def trials_of(self, task: Task) -> int:
        """Return how many seed indices the task has."""
        return self.trials if task.trials is None else task.trials


class PlannedTrial(msgspec.Struct, frozen=True, kw_only=True):
    """One execution that is to happen.

    Parameters
    ----------
    task : Task
    trial : int
        Seed index, 0 for the first.
    repeat : int
        Which run over the seeds, 0 for the first.
    attempt : int
        1 for the first; retries of an errored trial count up.
    seed : int
        Of this trial, on 64 bits.
    """

    task: Task
    trial: int
    repeat: int
    attempt: int
    seed: int

    @property
    def key(self) -> tuple[str, int, int]:
        """Return (task id, trial, repeat), which names the trial whatever its attempt."""
        return self.task.id, self.trial, self.repeat

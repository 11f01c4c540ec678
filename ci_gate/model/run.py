"""Runs and baselines: what the files say, and the one form in which two sides are compared.

A run has a line a trial; a baseline has a line a task. Both become a ``Side``, and nothing after
the store asks which of the two it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from ci_gate.model.amounts import MOST_COUNT, Count, Real
from ci_gate.model.judges import JudgedTask
from ci_gate.model.trial import Answers, Cause, Status

__all__ = [
    "ERRORED",
    "FAILED",
    "NOT_RUN",
    "PASSED",
    "AgentRef",
    "AnsweredMode",
    "Baseline",
    "BaselineRun",
    "BaselineTask",
    "Measure",
    "Plan",
    "RunFooter",
    "RunHeader",
    "Side",
    "SideTask",
    "Stop",
    "StopReason",
    "outcome_char",
]

PASSED, FAILED, ERRORED, NOT_RUN = "+", "-", "!", "."

ErrorPolicy = Literal["exclude", "fail"]

AnsweredMode = Literal["replay", "sandboxed"]
"""How the calls of a run are answered from recordings."""
_Chance = Annotated[float, msgspec.Meta(ge=0, le=1)]


def outcome_char(status: Status) -> str:
    """Return the character of an outcome string for a status."""
    return {Status.PASSED: PASSED, Status.FAILED: FAILED, Status.ERRORED: ERRORED}[status]


class AgentRef(msgspec.Struct, frozen=True, kw_only=True):
    """Which agent ran.

    Parameters
    ----------
    name : str or None
        How the configuration names it.
    digest : str or None
        Over the files of ``[agent] files``.
    dirty : bool or None
        Whether those files had uncommitted changes.
    """

    name: str | None = None
    digest: str | None = None
    dirty: bool | None = None


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a run set out to do.

    Parameters
    ----------
    trials : int
        Seed indices of a task without its own number.
    task_trials : mapping of str to int
        The tasks with their own.
    repeats, max_repeats : int
        Runs over the seeds that are planned, and that an extension may reach.
    curtail, extend : bool
        Whether rounds may stop early, or be added.
    """

    trials: int
    task_trials: Mapping[str, int] = msgspec.field(default_factory=dict)
    repeats: int = 1
    max_repeats: int = 1
    curtail: bool = False
    extend: bool = False


class RunHeader(msgspec.Struct, frozen=True, kw_only=True):
    """The first line of a run file. Readers require ``schema`` and ``suite`` only.

    ``mode`` says how the calls of its trials were answered; None: they were made. ``regraded`` is
    the digest of the run whose trials were graded again to make this one, absent in any other.
    """

    schema: str = "ci-gate/run@1"
    suite: str
    suite_digest: str | None = None
    root_seed: str | None = None
    plan: Plan | None = None
    baseline_digest: str | None = None
    policy_digest: str | None = None
    errors: ErrorPolicy = "exclude"
    agent: AgentRef | None = None
    model: str | None = None
    commit: str | None = None
    created: str | None = None
    faults_digest: str | None = None
    judge_digest: str | None = None
    shard: str | None = None
    task_filter: str | None = None
    mode: AnsweredMode | None = None
    tool: str | None = None
    regraded: str | UnsetType | None = UNSET


class StopReason(StrEnum):
    """Why a run ended."""

    COMPLETE = "complete"
    CURTAILED_PASS = "curtailed-pass"
    CURTAILED_REGRESSED = "curtailed-regressed"
    EXTENDED = "extended"
    BUDGET = "budget"
    INTERRUPTED = "interrupted"


class Stop(msgspec.Struct, frozen=True, kw_only=True):
    """Where and why a run ended; ``round`` is the number of rounds that were finished."""

    round: Count
    reason: StopReason
    predictive: _Chance | None = None


class RunFooter(msgspec.Struct, frozen=True, kw_only=True):
    """The last line of a run file; ``trials`` counts surviving lines."""

    end: bool = True
    trials: Count
    stop: Stop
    digest: str


class Measure(NamedTuple):
    """A measure of one task in one run over the seeds; None where unknown.

    ``mean`` and ``sd`` (sample standard deviation, None for fewer than two) are over the judged
    trials, passed or failed, that know the measure; ``mean_passed`` is over those that passed.
    ``known`` is how many judged trials know it, None where all do.
    """

    mean: Real | None
    sd: Real | None
    mean_passed: Real | None
    known: Annotated[int, msgspec.Meta(ge=1, le=MOST_COUNT)] | None = None


class BaselineRun(msgspec.Struct, frozen=True, kw_only=True):
    """Provenance of one run over the seeds; ``extra`` holds the unknown fields of its entry."""

    agent: AgentRef
    model: str | None = None
    forced: bool = False
    run_digest: str
    extra: Mapping[str, Any] = msgspec.field(default_factory=dict)


class BaselineTask(msgspec.Struct, frozen=True, kw_only=True):
    """A line of a baseline; every tuple has an entry for each of the baseline's runs.

    ``outcomes`` holds ``+`` passed, ``-`` failed, ``!`` errored, ``.`` not run by seed index, and
    ``""`` where the task was not in that run. Counts and measures are None where unknown.
    ``answers`` says of each trial by which answers it can be known again (`ci_gate.store.answers`),
    None where nothing does. ``measures`` are the agent's own, ``process`` those
    of `ci_gate.process`.
    """

    digest: str | None = None
    outcomes: tuple[str, ...]
    trials: Count | None = None
    faulted: tuple[Count | None, ...] | None = None
    recovered: tuple[Count | None, ...] | None = None
    looped: tuple[Count | None, ...] | None = None
    turns: tuple[Measure | None, ...] | None = None
    tokens: tuple[Measure | None, ...] | None = None
    cost_usd: tuple[Measure | None, ...] | None = None
    duration_s: tuple[Measure | None, ...] | None = None
    measures: Mapping[str, tuple[Measure | None, ...]] | None = None
    process: Mapping[str, tuple[Measure | None, ...]] | None = None
    answers: tuple[str | None, ...] | None = None
    extra: Mapping[str, Any] = msgspec.field(default_factory=dict)


class Baseline(msgspec.Struct, frozen=True, kw_only=True):
    """A baseline file.

    ``extra`` keeps unknown fields as they were read (here, in ``runs`` and in ``tasks``), so that a
    newer writer's facts survive an older reader. It is no field of the file.
    """

    schema: str = "ci-gate/baseline@1"
    suite: str
    suite_digest: str | None = None
    root_seed: str | None = None
    trials: Count
    errors: ErrorPolicy = "exclude"
    faults_digest: str | None = None
    judge_digest: str | None = None
    runs: tuple[BaselineRun, ...]
    tasks: Mapping[str, BaselineTask]
    extra: Mapping[str, Any] = msgspec.field(default_factory=dict)


class SideTask(msgspec.Struct, frozen=True, kw_only=True):
    """One task of one side.

    Parameters
    ----------
    digest : str or None
        None: matched by id alone.
    outcomes : tuple of str
        One string a repeat, one character a seed index, all of the same length.
    seeds : tuple of str or None
        Seed of each index in hexadecimal, where known.
    measures : mapping of str to tuple
        ``turns``, ``tokens``, ``cost_usd``, ``duration_s``, the agent's own: one entry a repeat.
    process : mapping of str to tuple
        Process measures by the names of `ci_gate.process.measures.MEASURES`, in the same way.
    tool_calls : tuple or None
        How many tools were called: as a measure, which a run file knows and a baseline does not.
    faulted, recovered, looped : tuple or None
        Counts a repeat, where known.
    reasons : mapping of (trial, repeat) to str
        Why a trial failed or errored, where known; text that anybody may have written.
    details : mapping of (trial, repeat) to str
        What was expected and is there instead, on several lines, of the first that failed.
    causes : mapping of (trial, repeat) to Cause
        Who or what the harness found at fault, where it was the harness that ran the trial.
    answers : mapping of (trial, repeat) to Answers
        Of the trials that show whether they are copies of others.
    identical : bool
        Every judged trial, two at least, is the same bytes.
    by_judge : mapping of str to JudgedTask
        What each judge, by its digest, said of the trials, which a run file knows and a baseline
        does not.
    """

    digest: str | None = None
    outcomes: tuple[str, ...]
    seeds: tuple[str | None, ...] | None = None
    measures: Mapping[str, tuple[Measure | None, ...]] = msgspec.field(default_factory=dict)
    process: Mapping[str, tuple[Measure | None, ...]] = msgspec.field(default_factory=dict)
    tool_calls: tuple[Measure | None, ...] | None = None
    faulted: tuple[int | None, ...] | None = None
    recovered: tuple[int | None, ...] | None = None
    looped: tuple[int | None, ...] | None = None
    reasons: Mapping[tuple[int, int], str] = msgspec.field(default_factory=dict)
    details: Mapping[tuple[int, int], str] = msgspec.field(default_factory=dict)
    causes: Mapping[tuple[int, int], Cause] = msgspec.field(default_factory=dict)
    answers: Mapping[tuple[int, int], Answers] = msgspec.field(default_factory=dict)
    identical: bool = False
    by_judge: Mapping[str, JudgedTask] = msgspec.field(default_factory=dict)

    def count(self, char: str) -> int:
        """Return how many trials have this outcome."""
        return sum([outcomes.count(char) for outcomes in self.outcomes])

    @property
    def judged(self) -> int:
        """Return the number of trials that passed or failed."""
        return self.count(PASSED) + self.count(FAILED)

    def only_run(self, run: int) -> SideTask:
        """Return the task as one of its runs over the seeds left it, as if there were no other."""
        one = slice(run, run + 1)
        return msgspec.structs.replace(
            self,
            outcomes=self.outcomes[one],
            measures={name: values[one] for name, values in self.measures.items()},
            process={name: values[one] for name, values in self.process.items()},
            tool_calls=self.tool_calls and self.tool_calls[one],
            faulted=self.faulted and self.faulted[one],
            recovered=self.recovered and self.recovered[one],
            looped=self.looped and self.looped[one],
            reasons={(trial, 0): why for (trial, at), why in self.reasons.items() if at == run},
            details={(trial, 0): text for (trial, at), text in self.details.items() if at == run},
            causes={(trial, 0): why for (trial, at), why in self.causes.items() if at == run},
            answers={(trial, 0): one for (trial, at), one in self.answers.items() if at == run},
        )


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One side of a comparison, the baseline or the candidate, from a run or a baseline file.

    Parameters
    ----------
    kind : {"run", "baseline"}
    suite : str
    suite_digest, root_seed, faults_digest, judge_digest : str or None
        None where the file does not say. Without ``root_seed`` trials share seeds with nothing.
    errors : {"exclude", "fail"}
    tasks : mapping of str to SideTask
        By task id, in sorted order.
    planned : mapping of str to int
        Trials planned for each task over all repeats that the plan asked for.
    runs : tuple of BaselineRun
        Provenance; one entry a repeat for a baseline, one for a run.
    stop : Stop or None
    task_filter : str or None
        The globs that left tasks out, joined by `` && ``: every one of them had to match.
    shard, baseline_digest, policy_digest : str or None
    mode : {"replay", "sandboxed"} or None
        How the calls of its trials were answered; None: they were made.
    created, commit, tool : str or None
    digest : str or None
        Of the content: the footer's for a run, of the canonical file for a baseline.
    complete : bool
        False for a run that has a plan and either no footer or one that says ``interrupted``.
    retried : int
        Trials that were judged only after attempts that errored.
    extra : mapping
        Unknown header fields as read.
    """

    kind: Literal["run", "baseline"]
    suite: str
    suite_digest: str | None = None
    root_seed: str | None = None
    errors: ErrorPolicy = "exclude"
    faults_digest: str | None = None
    judge_digest: str | None = None
    tasks: Mapping[str, SideTask]
    planned: Mapping[str, int]
    runs: tuple[BaselineRun, ...] = ()
    plan: Plan | None = None
    stop: Stop | None = None
    task_filter: str | None = None
    shard: str | None = None
    baseline_digest: str | None = None
    policy_digest: str | None = None
    mode: AnsweredMode | None = None
    created: str | None = None
    commit: str | None = None
    tool: str | None = None
    digest: str | None = None
    complete: bool = True
    retried: int = 0
    extra: Mapping[str, Any] = msgspec.field(default_factory=dict)

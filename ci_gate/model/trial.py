"""What happened in a trial: the agent's steps and answer, the grades, and the line that stays."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, UnsetType

from ci_gate.model.amounts import MOST_COUNT, Count, Real, Seconds, Usd

__all__ = [
    "Answers",
    "Cause",
    "Grade",
    "Status",
    "Step",
    "Trajectory",
    "TrialRecord",
]

_Attempt = Annotated[int, msgspec.Meta(ge=1, le=MOST_COUNT)]


class Status(StrEnum):
    """How a trial ended.

    A failed trial is the agent's failure (an exception, crash, time-out or garbage included). An
    errored one shows evidence that its environment was at fault, and is neither pass nor failure.
    """

    PASSED = "passed"
    FAILED = "failed"
    ERRORED = "errored"


class Cause(StrEnum):
    """Who or what kept a trial from passing, as the harness found it.

    Never read from what an agent, a tool or a grader wrote: a verdict rests on it. ``agent`` did
    not do it (it raised, crashed, ran out of time, or sound graders said no); ``limit`` went beyond
    a limit of the task; ``grader-error`` was failed by a grader that raised or gave no grade, and
    by no sound one. The others are errored: ``environment`` shows evidence against it,
    ``contaminated`` did not start in the task's known state, ``harness`` broke by itself.
    """

    AGENT = "agent"
    LIMIT = "limit"
    GRADER_ERROR = "grader-error"
    ENVIRONMENT = "environment"
    CONTAMINATED = "contaminated"
    HARNESS = "harness"


class Grade(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What one grader says of one trial.

    Parameters
    ----------
    grader : str
        The grader's name within the task.
    passed : bool
    reason : str or None
        Why not: expected and actual.
    score : float or None
        Partial score from 0 to 1; reported, never decisive.
    cause : Cause or None
        ``grader-error`` where the grader itself is at fault; None: its word is sound.
    detail : str, optional
        What was expected and is there instead, on several lines of at most 4,096 characters
        together, each inert by itself; absent where the reason says it all.
    judge : str, optional
        Digest of the judge that said so; absent where code did.
    """

    grader: str
    passed: bool
    reason: str | None = None
    score: Real | None = None
    cause: Cause | None = None
    detail: str | UnsetType | None = UNSET
    judge: str | UnsetType | None = UNSET


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One call that left the agent.

    Parameters
    ----------
    kind : str
        ``tool``, ``llm``, ``kv``, ``file``, ... or an own kind.
    name : str
        The tool or model.
    input, output : Any
        JSON; ``output`` is what the agent was given, after a fault.
    is_error : bool
        The call failed from the agent's point of view.
    fault : str or None
        Kind of the injected fault.
    turn : int or None
        The agent's turn, where known.
    lane : str
        Calls of one lane follow one another; those of several lanes run side by side.
    cached : bool or None
        Of a call to a model: whether the answer as a whole came from a cache of answers. Reused
        prompt tokens do not count. None: unknown.
    response_id : str or None
        Of a call to a model: what its provider names this answer.
    """

    kind: str
    name: str
    input: Any = None
    output: Any = None
    is_error: bool = False
    fault: str | None = None
    turn: int | None = None
    lane: str = "main"
    cached: bool | None = None
    response_id: str | None = None


class Trajectory(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent gave back for one trial, whichever protocol it speaks.

    Parameters
    ----------
    answer : str or None
        The final answer.
    steps : tuple of Step
        In order.
    turns, tokens : int or None
        None where unknown.
    cost_usd : float or None
    measures : mapping of str to float
        The agent's own process measures.
    beyond : tuple of str
        What the agent reported in numbers that are no amounts (``ci_gate.model.amounts``), which
        is unknown.
    cached : bool or None
        Whether every answer of a model came from a cache of answers; None: unknown.
    response_ids : tuple of str or None
        What providers name the answers of the models, one a call; None: unknown.
    status : Status or None
        FAILED when the agent raised, crashed, timed out or printed garbage; ERRORED on evidence
        that the environment was at fault; PASSED or None leaves the word to the graders (PASSED
        from an exit-code agent without graders is its pass).
    reason : str or None
        One line for a status that is not a pass.
    output_tail : str
        The end of what the agent printed, bounded.
    duration_s : float or None
        Seconds of real time that the agent took, as the harness measured it.
    """

    answer: str | None = None
    steps: tuple[Step, ...] = ()
    turns: int | None = None
    tokens: int | None = None
    cost_usd: float | None = None
    measures: Mapping[str, float] = msgspec.field(default_factory=dict)
    beyond: tuple[str, ...] = ()
    cached: bool | None = None
    response_ids: tuple[str, ...] | None = None
    status: Status | None = None
    reason: str | None = None
    output_tail: str = ""
    duration_s: float | None = None


class Answers(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What is known of the answers that a trial is made of, to tell a copy from a trial.

    Parameters
    ----------
    digest : str or None
        Of the agent's answer, steps and tokens: equal where all their bytes are.
    responses : str or None
        Of the names of all answers of the models: equal where each of them is the same answer.
        Digests and not the names, which may let their reader fetch the answers.
    cached : bool
        Every answer of a model is known to come from a cache of answers.
    """

    digest: str | None = None
    responses: str | None = None
    cached: bool = False

    @property
    def may_show_copy(self) -> bool:
        """Whether it is evidence for or against a copy; equal bytes alone are none."""
        return self.cached or self.responses is not None


class TrialRecord(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A line of a run file. Readers require ``task``, ``trial`` and ``status`` only.

    Unknown is None. ``cause`` is the harness's own word on a trial that did not pass: other tools
    need not give one, and without it the trial is the agent's. ``duration_s`` is seconds of real
    time and, like ``attempt``, outside every digest. ``seed`` is hexadecimal. ``faults`` counts
    delivered faults, ``recovered`` those from which the agent recovered in a trial that passed,
    ``looped`` says the same tool was called with the same arguments three times or more.
    ``initial_state`` names what its world held at the start, absent where nothing is known of it.
    ``measures`` are the agent's own, ``process`` those of `ci_gate.process`. No reference cycle is
    possible, so the garbage collector is spared a million of them.
    """

    task: str
    task_digest: str | None = None
    trial: Count
    repeat: Count = 0
    attempt: _Attempt = 1
    seed: str | None = None
    status: Status
    reason: str | None = None
    cause: Cause | None = None
    turns: Count | None = None
    tool_calls: Count | None = None
    tokens: Count | None = None
    cost_usd: Usd | None = None
    duration_s: Seconds | None = None
    faults: Count | None = None
    recovered: Count | None = None
    looped: bool | None = None
    measures: Mapping[str, Real | None] | None = None
    process: Mapping[str, Real | None] | None = None
    grades: tuple[Grade, ...] | None = None
    answers: Answers | None = None
    trace: str | None = None
    trace_digest: str | None = None
    initial_state: str | UnsetType | None = UNSET

    @property
    def key(self) -> tuple[str, int, int]:
        """Return (task id, trial, repeat)."""
        return self.task, self.trial, self.repeat

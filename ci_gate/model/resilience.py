"""What a verdict says of how the agent met faults: nothing in it decides. Data alone."""

from __future__ import annotations

from typing import Literal

import msgspec

__all__ = ["Conditions", "Resilience", "StepUnit", "TaskResilience", "TrialsInCondition"]

StepUnit = Literal["turns", "tool_calls"]
_Interval = tuple[float, float]


class TrialsInCondition(msgspec.Struct, frozen=True, kw_only=True):
    """How trials of the same tasks went under one condition, in calm or under faults.

    Parameters
    ----------
    trials, passed : int or None
        Judged trials, and those of them that passed.
    pass_rate : float or None
        pass^1: the mean over the tasks; with its 95 % ``interval`` given these tasks.
    faulted, recovered : int or None
        Trials in which a fault was delivered, and those of them that passed and recovered from
        every one. ``self_healing_rate`` is their ratio, None where no trial met a fault.
    looped : int or None
        Trials with a blind retry; ``dead_loop_rate`` is their share of those that know.
    steps : float or None
        To converge: of the trials that passed, the mean over the tasks of the mean number of turns
        or tool calls.
    """

    trials: int | None = None
    passed: int | None = None
    pass_rate: float | None = None
    interval: _Interval | None = None
    faulted: int | None = None
    recovered: int | None = None
    self_healing_rate: float | None = None
    looped: int | None = None
    dead_loop_rate: float | None = None
    steps: float | None = None


class Conditions(msgspec.Struct, frozen=True, kw_only=True):
    """What faults change, on tasks and seeds that ran in calm and under faults.

    Parameters
    ----------
    tasks, seeds : int
        On how many the difference rests.
    difference : float or None
        Of the pass rates, under faults less calm, paired by task and seed; with its 95 %
        ``interval`` given these tasks.
    steps_ratio : float or None
        Steps to converge under faults over those in calm, on the tasks that converged in both.
    """

    tasks: int
    seeds: int
    difference: float | None = None
    interval: _Interval | None = None
    steps_ratio: float | None = None


class TaskResilience(msgspec.Struct, frozen=True, kw_only=True):
    """One task of the candidate: under faults, in calm (None where it did not run), and between."""

    task: str
    candidate: TrialsInCondition
    calm: TrialsInCondition | None = None
    between: Conditions | None = None


class Resilience(msgspec.Struct, frozen=True, kw_only=True):
    """How the agent met faults.

    Parameters
    ----------
    under_faults : bool
        Whether faults were configured for the candidate.
    baseline, candidate : TrialsInCondition or None
        The sides of the comparison, as they ran, over the tasks that the
        verdict's metrics are of.
    calm : TrialsInCondition or None
        The candidate without faults; None where it was not run so.
    between : Conditions or None
        What the faults change, from calm to candidate.
    steps_in : {"turns", "tool_calls"} or None
        What ``steps`` count.
    tasks : tuple of TaskResilience
        Those that met faults, repeated a call blindly or ran in calm as well.
    """

    under_faults: bool = False
    baseline: TrialsInCondition | None = None
    candidate: TrialsInCondition | None = None
    calm: TrialsInCondition | None = None
    between: Conditions | None = None
    steps_in: StepUnit | None = None
    tasks: tuple[TaskResilience, ...] = ()

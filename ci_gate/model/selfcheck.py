"""What a gate does to runs of an unchanged agent: the answer of ``ci-gate selfcheck``.

Frozen facts; how they were found is in ``ci_gate.decision.selfcheck``. What does not exist is None.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from ci_gate.model.verdict import Decision

__all__ = [
    "FalseAlarms",
    "LeftOut",
    "MetricScatter",
    "RunScatter",
    "SeedAgreement",
    "SelfCheck",
    "SelfComparison",
    "TaskInformation",
    "TaskKind",
]

TaskKind = Literal["moves", "fixed", "passes", "fails", "unjudged"]


class SelfComparison(msgspec.Struct, frozen=True, kw_only=True):
    """One run in the candidate's place, all others together in the baseline's.

    Parameters
    ----------
    run : str
    decision : Decision
        ``regressed`` is a false alarm: nothing was changed. ``verdict`` in JSON.
    reasons : tuple of str
        Codes.
    tasks : tuple of str
        Of a false alarm, the tasks that were called regressed.
    p_value : float or None
        None where nothing was tested.
    metrics : mapping of str to float or None
        Of the run.
    """

    run: str
    decision: Decision = msgspec.field(name="verdict")
    reasons: tuple[str, ...]
    tasks: tuple[str, ...]
    p_value: float | None
    metrics: Mapping[str, float | None]


class FalseAlarms(msgspec.Struct, frozen=True, kw_only=True):
    """How often the gate cried wolf.

    Parameters
    ----------
    comparisons : int
        Those that were decided; the others were inconclusive.
    blocked, inconclusive : int
    rate : float
        ``blocked / comparisons``.
    interval : tuple of float
        Exact 95 % interval, as if the comparisons were independent, which they are not.
    comparisons_to_show_alpha : int
        Independent ones without a false alarm after which the interval would end at alpha.
    """

    comparisons: int
    blocked: int
    inconclusive: int
    rate: float
    interval: tuple[float, float]
    comparisons_to_show_alpha: int


class MetricScatter(msgspec.Struct, frozen=True, kw_only=True):
    """A suite metric over the runs.

    Parameters
    ----------
    pooled, lowest, highest : float or None
        Of all runs together, and of single ones.
    detectable_drop : float or None
        The drop, shared by all tasks, that every comparison would have seen with 80 % power. None
        where one of them would not even have seen the metric fall to nothing.
    """

    pooled: float | None
    lowest: float | None
    highest: float | None
    detectable_drop: float | None


class SeedAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """Whether repeats of a seed agree more than repeats of different seeds.

    Parameters
    ----------
    z_seed : float
    matters : bool
        Above 1.645: the gate exchanges outcomes within seeds, unless ``pairing`` forbids it.
    strata : {"task", "task,seed"}
        Within what outcomes are exchanged here.
    """

    z_seed: float
    matters: bool
    strata: Literal["task", "task,seed"]


class RunScatter(msgspec.Struct, frozen=True, kw_only=True):
    """Whether whole runs scatter more than their trials explain.

    Parameters
    ----------
    phi : float
        Observed over expected variance of the runs' pass^1; 1 on average if days are alike.
    p_value : float
    matters : bool
        The p-value is below 0.1.
    implied_alpha : float
        What an uncorrected test of the suite at alpha really has, were phi the truth.
    """

    phi: float
    p_value: float
    matters: bool
    implied_alpha: float


class TaskInformation(msgspec.Struct, frozen=True, kw_only=True):
    """What one task adds.

    Parameters
    ----------
    task : str
    kind : {"moves", "fixed", "passes", "fails", "unjudged"}
        ``fixed``: it differs between seeds, and never between the runs of a seed.
    outcomes : tuple of str
        One string a run.
    trials, passed, errored : int
    noise_share : float
        The task's part of the variance from run to run of the suite's pass^1; 0 where nothing
        varies.
    """

    task: str
    kind: TaskKind
    outcomes: tuple[str, ...]
    trials: int
    passed: int
    errored: int
    noise_share: float


class LeftOut(msgspec.Struct, frozen=True, kw_only=True):
    """A task that was not compared, and why."""

    task: str
    why: str


class SelfCheck(msgspec.Struct, frozen=True, kw_only=True):
    """A gate held against runs of an unchanged agent.

    Parameters
    ----------
    suite : str
    policy : str
        Whose policy was in effect.
    alpha : float
    measurable : bool
    because : str
        Why nothing could be measured; empty where something was.
    runs : tuple of str
        Their names.
    false_alarms : FalseAlarms or None
    comparisons : tuple of SelfComparison
        One a run; none where all runs are copies.
    metrics : mapping of str to MetricScatter
    seed_effect : SeedAgreement or None
        None where runs share no seeds.
    run_effect : RunScatter or None
        None where nothing varies.
    tasks : tuple of TaskInformation
        The noisiest first.
    left_out : tuple of LeftOut
    remarks : tuple of str
    """

    schema: str = "ci-gate/selfcheck@1"
    suite: str
    policy: str
    alpha: float
    measurable: bool
    because: str = ""
    runs: tuple[str, ...]
    false_alarms: FalseAlarms | None = None
    comparisons: tuple[SelfComparison, ...] = ()
    metrics: Mapping[str, MetricScatter] = msgspec.field(default_factory=dict)
    seed_effect: SeedAgreement | None = None
    run_effect: RunScatter | None = None
    tasks: tuple[TaskInformation, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    remarks: tuple[str, ...] = ()

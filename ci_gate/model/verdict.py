"""The verdict and everything it says: the records of ``ci-gate/verdict@1``."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum, StrEnum
from typing import Any, Final, Literal

import msgspec
from msgspec import UNSET, UnsetType

from ci_gate.model.judges import JudgeResult
from ci_gate.model.process import ProcessResult
from ci_gate.model.resilience import Resilience
from ci_gate.model.verdict_traces import VerdictTraces

__all__ = [
    "RED_CLAIMS",
    "Attribution",
    "Claim",
    "Counts",
    "Decision",
    "ExitCode",
    "FloorResult",
    "GuardResult",
    "Method",
    "MetricResult",
    "PredictedMetric",
    "Reason",
    "ReasonCode",
    "Recheck",
    "RecheckTask",
    "RecheckTest",
    "Replay",
    "SlideResult",
    "SuiteChanges",
    "TaskResult",
    "TrialTotals",
    "Verdict",
]


class ExitCode(IntEnum):
    """Status of the process, the same for every command."""

    PASSED = 0
    REGRESSED = 1
    USAGE = 2
    INCONCLUSIVE = 3
    INTERNAL = 4
    INTERRUPTED = 130


class Decision(StrEnum):
    """The three verdicts."""

    PASSED = "passed"
    REGRESSED = "regressed"
    INCONCLUSIVE = "inconclusive"


class Claim(StrEnum):
    """What is said of one task."""

    REGRESSED = "regressed"
    SUSPECT = "suspect"
    FLIP = "flip"
    IMPROVED = "improved"
    UNCHANGED = "unchanged"
    NEW = "new"
    REMOVED = "removed"
    CHANGED = "changed"
    UNJUDGED = "unjudged"
    QUARANTINED = "quarantined"


RED_CLAIMS: Final = frozenset({Claim.REGRESSED, Claim.FLIP})
"""Claims that a task proves by itself, each of which makes a verdict red."""


class ReasonCode(StrEnum):
    """Why the verdict is what it is; the names are part of the file format."""

    SUITE_REGRESSED = "suite-regressed"
    TASK_REGRESSED = "task-regressed"
    FLIP = "flip"
    TASKS_REMOVED = "tasks-removed"
    BASELINE_MISSING = "baseline-missing"
    FLOOR = "floor"
    GUARD = "guard"
    TASKS_CHANGED = "tasks-changed"
    TASK_UNJUDGED = "task-unjudged"
    TOO_MANY_ERRORS = "too-many-errors"
    CONTAMINATED = "contaminated"
    BASELINE_DEAD = "baseline-dead"
    NO_POWER = "no-power"
    FAULTS_CHANGED = "faults-changed"
    ERROR_POLICY_CHANGED = "error-policy-changed"
    NO_BASELINE = "no-baseline"
    NO_CREDENTIALS = "no-credentials"
    BUDGET = "budget"
    CURTAILED = "curtailed"
    BAR_MOVED = "bar-moved"
    UNCHANGED_AGENT = "unchanged-agent"
    BASELINE_EDITED = "baseline-edited"
    SLIDE = "slide"
    RECHECK_ENVIRONMENT = "recheck-environment"
    RECHECK_NOISE = "recheck-noise"
    SHARD_MISSING = "shard-missing"
    GRADER_ERRORS = "grader-errors"
    NON_INFERIORITY_UNSHOWN = "non-inferiority-unshown"
    JUDGE_CHANGED = "judge-changed"
    GUARD_UNKNOWN = "guard-unknown"
    NOTHING_COMPARED = "nothing-compared"
    EXTENDED = "extended"


class Reason(msgspec.Struct, frozen=True, kw_only=True):
    """One reason with its sentence."""

    code: ReasonCode
    text: str


class Method(msgspec.Struct, frozen=True, kw_only=True):
    """How the joint test was computed; ``strata`` is ``task`` or ``task,seed``.

    ``rule`` says what chose the strata. ``false_alarm_bound`` is the largest chance that an
    unchanged agent is blocked by the test, the test against the anchor, a floor or a guard's limit,
    each of which has an alpha of its own.

    ``phi`` is the scatter between the baseline's runs over what their trials explain, with its
    chi-squared p-value; None with fewer than two runs, and phi also where nothing varies.
    ``phi_alpha`` is what a suite metric's test at alpha really has, were phi the truth and nothing
    corrected; ``phi_corrected`` says that it was.
    """

    strata: str | None = None
    z_seed: float | None = None
    phi: float | None = None
    phi_p_value: float | None = None
    phi_alpha: float | None = None
    phi_corrected: bool = False
    exact: bool | None = None
    draws: int | None = None
    rule: str | None = None
    false_alarm_bound: float | None = None


class PredictedMetric(msgspec.Struct, frozen=True, kw_only=True):
    """What pass^k of the candidate is foretold to be, where a run was stopped before trial k.

    ``estimate`` is a Beta fit over the trials of all tasks, with a 95 % interval; ``rounds`` are
    those that were run. ``pass_hat_r`` is the unbiased pass^r of those rounds, which lies higher.
    """

    estimate: float
    interval: tuple[float, float]
    rounds: int
    pass_hat_r: float | None = None


class MetricResult(msgspec.Struct, frozen=True, kw_only=True):
    """A suite metric on both sides; None is what does not exist.

    ``regressed`` says that it dropped, adjusted over all claims, which no rounding has touched.
    ``predictive`` is the chance that the whole plan would say so, where the run was curtailed;
    ``predicted`` then stands in for a candidate's pass^k that does not exist yet.
    ``excluded`` are compared tasks with fewer than k trials. The plug-in ``(c / n) ** k`` and
    pass@k stand beside pass^k under their own names and are not tested.
    """

    baseline: float | None
    candidate: float | None
    difference: float | None
    interval: tuple[float, float] | None
    p_value: float | None
    p_adjusted: float | None
    exact: bool | None
    detectable_drop: float | None
    n_tasks: int
    predictive: float | None = None
    predicted: PredictedMetric | None = None
    excluded: tuple[str, ...] = ()
    baseline_plug_in: float | None = None
    candidate_plug_in: float | None = None
    baseline_pass_at_k: float | None = None
    candidate_pass_at_k: float | None = None
    regressed: bool = False


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """Trials of a task on one side: judged, passed of those, errored."""

    trials: int
    passed: int
    errored: int


class Replay(msgspec.Struct, frozen=True, kw_only=True):
    """A failing trial and the command that repeats it.

    ``detail`` is what was expected and is there instead, on several lines; absent where the reason
    says it all.
    """

    trial: int
    repeat: int
    seed: str | None
    command: str
    reason: str | None = None
    detail: str | UnsetType | None = UNSET


class TaskResult(msgspec.Struct, frozen=True, kw_only=True):
    """What is said of a task; ``errors`` are the first reasons why its trials errored."""

    task: str
    claim: Claim
    predictive: float | None = None
    baseline: Counts | None
    candidate: Counts | None
    p_value: float | None = None
    p_adjusted: float | None = None
    replay: tuple[Replay, ...] = ()
    contribution: float | None = None
    errors: tuple[str, ...] = ()


class FloorResult(msgspec.Struct, frozen=True, kw_only=True):
    """A floor: ``bound`` is the upper confidence bound, or the estimate when floors are strict."""

    metric: str
    floor: float
    candidate: float | None
    bound: float | None
    passed: bool


class GuardResult(msgspec.Struct, frozen=True, kw_only=True):
    """A limit of a guard: the change, its one-sided bound and the limit it is held against.

    The baseline is for the candidate's mix of tasks. None is unknown or infinite; ``passed`` is
    None where the measure is unknown on a side. ``limit`` is negative for a decrease. ``excluded``
    are compared tasks in which too few trials know the measure.
    """

    metric: str
    baseline: float | None
    candidate: float | None
    change: float | None
    bound: float | None
    limit: float
    passed: bool | None
    direction: Literal["increase", "decrease"] = "increase"
    excluded: tuple[str, ...] = ()


class SlideResult(msgspec.Struct, frozen=True, kw_only=True):
    """The candidate against the anchor, an older baseline, which a metric calls ``baseline``.

    ``regressed`` says that ``p_value``, joint over the metrics and all tasks, is at most ``level``,
    which stands beside the level of the verdict. ``tasks`` are the ids of those that dropped.
    """

    regressed: bool
    p_value: float
    level: float
    compared: int
    changed: int
    metrics: Mapping[str, MetricResult]
    tasks: tuple[str, ...] = ()
    strata: str
    exact: bool
    draws: int


class Attribution(StrEnum):
    """What a recheck puts a regression down to."""

    CHANGE = "change"
    ENVIRONMENT = "environment"
    NOISE = "noise"


class RecheckTest(msgspec.Struct, frozen=True, kw_only=True):
    """One test of a recheck, over the rechecked tasks alone: whether one side is worse.

    ``regressed`` says that ``p_value``, joint over the metrics and these tasks, is at most
    ``level``.
    """

    regressed: bool
    p_value: float
    level: float
    strata: str
    exact: bool
    draws: int


class RecheckTask(msgspec.Struct, frozen=True, kw_only=True):
    """A rechecked task: the stored baseline, and the fresh trials of base and candidate."""

    task: str
    baseline: Counts
    base: Counts
    candidate: Counts


class Recheck(msgspec.Struct, frozen=True, kw_only=True):
    """Base and candidate run again side by side, to tell the change from its environment.

    ``base`` is the agent of the commit that the baseline came from, run now. ``whole_suite`` says
    that every compared task was rechecked, because a suite metric had dropped. ``trials`` are those
    planned of each task on each side. ``rates`` hold the pass^1 of ``baseline``, ``base`` and
    ``candidate`` over the tested tasks. ``change`` holds the candidate against the base, and
    ``environment`` the base against the stored baseline. Without an attribution ``problem`` says
    why there is none.
    """

    attribution: Attribution | None = None
    problem: str | None = None
    commit: str
    whole_suite: bool
    trials: int
    tasks: tuple[RecheckTask, ...] = ()
    rates: Mapping[str, float | None] = msgspec.field(default_factory=dict)
    change: RecheckTest | None = None
    environment: RecheckTest | None = None
    remarks: tuple[str, ...] = ()


class SuiteChanges(msgspec.Struct, frozen=True, kw_only=True):
    """How many tasks were compared, and the ids of those that were not judged as they stand."""

    compared: int = 0
    new: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    unjudged: tuple[str, ...] = ()
    quarantined: tuple[str, ...] = ()


class TrialTotals(msgspec.Struct, frozen=True, kw_only=True):
    """The candidate's trials: planned, run, judged (passed or failed), errored.

    ``copies`` are those of the judged that were set aside: they copy a trial, and are none.
    """

    planned: int
    run: int
    judged: int
    errored: int
    stop: str | None = None
    copies: int = 0


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The decision on one suite. ``decision`` is called ``verdict`` in the file.

    ``judges`` is absent where no judge graded a trial of the candidate.
    """

    schema: str = "ci-gate/verdict@1"
    suite_name: str = ""
    decision: Decision = msgspec.field(name="verdict")
    exit_code: int
    partial: bool = False
    mode: Literal["blocking", "advisory"] = "blocking"
    reasons: tuple[Reason, ...]
    warnings: tuple[str, ...] = ()
    alpha: float
    level: float
    p_value: float | None
    predictive: float | None = None
    method: Method
    metrics: Mapping[str, MetricResult]
    tasks: tuple[TaskResult, ...]
    floors: tuple[FloorResult, ...] = ()
    guards: tuple[GuardResult, ...] = ()
    slide: SlideResult | None = None
    recheck: Recheck | None = None
    suite: SuiteChanges
    trials: TrialTotals
    resilience: Resilience = Resilience()
    process: tuple[ProcessResult, ...] = ()
    economics: Mapping[str, Any] = msgspec.field(default_factory=dict)
    provenance: Mapping[str, Any] = msgspec.field(default_factory=dict)
    traces: VerdictTraces | None = None
    judges: tuple[JudgeResult, ...] | UnsetType = UNSET

    def to_json(self) -> str:
        """Return the verdict as the text of ``ci-gate/verdict@1``."""
        return msgspec.json.format(msgspec.json.encode(self), indent=1).decode() + "\n"

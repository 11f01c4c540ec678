"""Verdicts to render: one of each kind that a reader meets, built from a few words.

The figures are made up and hang together only as far as a report shows them.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from ci_gate.model.resilience import (
    Conditions,
    Resilience,
    TaskResilience,
    TrialsInCondition,
)
from ci_gate.model.verdict import (
    Claim,
    Counts,
    Decision,
    FloorResult,
    GuardResult,
    Method,
    MetricResult,
    PredictedMetric,
    Reason,
    ReasonCode,
    Replay,
    SuiteChanges,
    TaskResult,
    TrialTotals,
    Verdict,
)

HOSTILE_TEXTS = (
    "a|b `c` ``d`` \\| e\\",
    "line one\nline two\r\n::error::boom",
    "@octocat @org/team hi",
    "fixes #12, org/repo#3, GH-4",
    "https://evil.example/x http://evil.example www.evil.example mail@evil.example",
    "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "--> <!-- </details></summary>",
    "[click](https://evil.example) ![i](https://evil.example/i.png) [^1]",
    "\u202egnp.exe\u202c \u2066x\u2069",
    "\x1b[31mred\x1b[0m \x00 \x07 \x9b2J",
    "##[error]boom ##vso[task.setvariable]",
    "::set-output name=x::y",
    "[bold red]markup[/] [link=https://evil.example]x[/link]",
    "$\\href{https://evil.example}{x}$ $x$",
    "```\nfence\n````",
    "1. item",
    "- item",
    "=====",
    "\ud800 surrogate",
    "\U0001f600" * 400,
    "deadbeefdeadbeefdeadbeefdeadbeefdeadbeef",
    "~~x~~ **y** _z_ :smile:",
)


def metric(
    baseline: float | None,
    candidate: float | None,
    interval: tuple[float, float] | None = None,
    p: float | None = None,
    *,
    adjusted: float | None = None,
    detectable: float | None = 0.052,
    n_tasks: int = 50,
    excluded: tuple[str, ...] = (),
    others: tuple[float, float] | None = None,
    regressed: bool = False,
) -> MetricResult:
    """Return a suite metric; the difference follows from the sides."""
    known = baseline is not None and candidate is not None
    return MetricResult(
        baseline=baseline,
        candidate=candidate,
        difference=round(candidate - baseline, 6) if known and interval else None,
        interval=interval,
        p_value=p,
        p_adjusted=adjusted if adjusted is not None else p,
        exact=p is not None,
        detectable_drop=detectable,
        n_tasks=n_tasks,
        excluded=excluded,
        baseline_pass_at_k=others and others[0],
        candidate_pass_at_k=others and others[1],
        regressed=regressed,
    )


def counts(notation: str | None) -> Counts | None:
    """Return the counts written as ``passed/judged`` or ``passed/judged+errored``."""
    if notation is None:
        return None
    judged, _, errored = notation.partition("+")
    passed, _, trials = judged.partition("/")
    return Counts(trials=int(trials), passed=int(passed), errored=int(errored or 0))


def task(
    name: str,
    claim: Claim = Claim.UNCHANGED,
    baseline: str | None = "31/32",
    candidate: str | None = "8/8",
    p: float | None = None,
    *,
    adjusted: float | None = None,
    failing: Sequence[int] = (),
    reason: str | None = "expected refunds.amount = 20, found 40",
    contribution: float | None = None,
    detail: str | UnsetType = UNSET,
) -> TaskResult:
    """Return a task's result with a replay for each failing trial."""
    return TaskResult(
        task=name,
        claim=claim,
        baseline=counts(baseline),
        candidate=counts(candidate),
        p_value=p,
        p_adjusted=adjusted,
        replay=tuple(replay(name, trial, reason, detail) for trial in failing),
        contribution=contribution,
    )


def replay(name: str, trial: int, reason: str | None, detail: str | UnsetType = UNSET) -> Replay:
    """Return the replay of a trial, quoted as the decision quotes it."""
    command = f"ci-gate replay {shlex.quote(name)} --trial {trial}"
    seed = f"0x{0x20261030 ^ ((trial + 1) * 0x9E3779B9):016x}"
    return Replay(trial=trial, repeat=0, seed=seed, command=command, reason=reason, detail=detail)


def verdict(
    decision: Decision = Decision.PASSED,
    reasons: Mapping[ReasonCode, str] | None = None,
    tasks: Sequence[TaskResult] = (),
    **fields: Any,
) -> Verdict:
    """Return a verdict in which whatever is not given is plausible."""
    status = {Decision.PASSED: 0, Decision.REGRESSED: 1, Decision.INCONCLUSIVE: 3}
    facts: dict[str, Any] = {
        "suite_name": "refund-desk",
        "exit_code": status[decision],
        "alpha": 0.05,
        "level": 0.05,
        "p_value": 0.41,
        "method": Method(
            strata="task",
            z_seed=0.4,
            phi=1.03,
            phi_p_value=0.377,
            phi_alpha=0.0526,
            exact=False,
            draws=65536,
        ),
        "metrics": GREEN_METRICS,
        "suite": SuiteChanges(compared=50, **_listed(tasks)),
        "trials": TrialTotals(planned=400, run=400, judged=400, errored=0, stop="complete"),
        "provenance": PROVENANCE,
    }
    return Verdict(
        decision=decision,
        reasons=tuple(Reason(code=code, text=text) for code, text in (reasons or {}).items()),
        tasks=tuple(tasks),
        **{**facts, **fields},
    )


def _listed(tasks: Sequence[TaskResult]) -> dict[str, tuple[str, ...]]:
    kinds = (Claim.NEW, Claim.REMOVED, Claim.CHANGED, Claim.UNJUDGED, Claim.QUARANTINED)
    return {str(kind): tuple(t.task for t in tasks if t.claim is kind) for kind in kinds}


GREEN_METRICS = {
    "pass^1": metric(0.91, 0.9125, (-0.031, 0.036), 0.58, adjusted=0.81),
    "pass^8": metric(
        0.62, 0.64, (-0.09, 0.13), 0.62, adjusted=0.86, detectable=0.14, others=(0.99996, 1.0)
    ),
}
RED_METRICS = {
    "pass^1": metric(0.91, 0.84, (-0.11, -0.03), 0.0012, adjusted=0.0021, regressed=True),
    "pass^8": metric(
        *(0.62, 0.44, (-0.31, -0.05), 0.0034),
        adjusted=0.0049,
        detectable=0.14,
        others=(1.0, 0.98),
        regressed=True,
    ),
}
PROVENANCE = {
    "baseline": {
        "ref": "origin/main",
        "commit": "3f9c2ab81e44d20c7a0d1b6f5ce2a1907b3d4e5f",
        "digest": "sha256:5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef",
        "age_days": 6,
        "origin": "baselines/refund-desk.json of the base commit 3f9c2ab81e44 (origin/main)",
    },
    "candidate": {"commit": "9b1d0c2a44e07c55f1a3b8d6e2f4a7c90d1e2f3a", "model": "gpt-4o-mini"},
    "root_seed": "0x0000000020261030",
    "tool": "ci-gate 0.1.0",
}


def green() -> Verdict:
    """Nothing fell; one task got better and one is suspect."""
    return verdict(
        tasks=[
            task("refund-4812"),
            task("cancel-0031", Claim.IMPROVED, "12/32", "8/8"),
            task("lookup-0007", Claim.SUSPECT, "30/32", "5/8", 0.031, adjusted=0.64, failing=[2]),
        ],
        resilience=_resilience(),
        economics={
            "baseline": {"successes": 1456, "cost_per_success_usd": 0.002312, "turns": 5.04},
            "candidate": {"successes": 365, "cost_per_success_usd": 0.002288, "turns": 4.97},
        },
    )


def _resilience() -> Resilience:
    """The suite in calm beside faults; one task loses by them and does not heal."""
    calm, faulted = "8/8", "5/8"
    return Resilience(
        under_faults=True,
        baseline=condition("1456/1600", faulted=412, recovered=383, looped=3, steps=5.04),
        candidate=condition("365/400", faulted=103, recovered=95, looped=1, steps=4.97),
        calm=condition("396/400", faulted=0, recovered=0, looped=0, steps=4.51),
        between=Conditions(
            tasks=50, seeds=398, difference=-0.0775, interval=(-0.098, -0.057), steps_ratio=1.102
        ),
        steps_in="turns",
        tasks=(
            TaskResilience(
                task="lookup-0007",
                candidate=condition(faulted, faulted=4, recovered=1, looped=1, steps=6.2),
                calm=condition(calm, faulted=0, recovered=0, looped=0, steps=4.0),
                between=Conditions(
                    tasks=1, seeds=8, difference=-0.375, interval=(-0.78, 0.03), steps_ratio=1.55
                ),
            ),
            TaskResilience(
                task="refund-4812",
                candidate=condition(calm, faulted=3, recovered=3, looped=0, steps=5.0),
            ),
        ),
    )


def condition(
    judged: str, *, faulted: int, recovered: int, looped: int, steps: float
) -> TrialsInCondition:
    """Return the trials of a condition, ``passed/judged``; the rates follow."""
    passed, trials = map(int, judged.split("/"))
    return TrialsInCondition(
        trials=trials,
        passed=passed,
        pass_rate=passed / trials,
        interval=(max(0.0, passed / trials - 0.02), min(1.0, passed / trials + 0.02)),
        faulted=faulted,
        recovered=recovered,
        self_healing_rate=recovered / faulted if faulted else None,
        looped=looped,
        dead_loop_rate=looped / trials,
        steps=steps,
    )


def red_by_task() -> Verdict:
    """Two tasks are proven to have regressed, with everything else a report can hold."""
    return verdict(
        Decision.REGRESSED,
        {
            ReasonCode.TASK_REGRESSED: "2 tasks regressed: refund-4812 (31/32 to 1/8), "
            "refund-4817 (32/32 to 4/8).",
            ReasonCode.SUITE_REGRESSED: "The suite's pass^1 and pass^8 dropped by more than "
            "chance explains.",
        },
        [
            task(
                "refund-4812",
                Claim.REGRESSED,
                "31/32+1",
                "1/8",
                1e-6,
                adjusted=0.0004,
                failing=[0, 2, 3, 4, 5, 6, 7],
            ),
            task(
                "refund-4817",
                Claim.REGRESSED,
                "32/32",
                "4/8",
                0.0009,
                adjusted=0.031,
                failing=[1, 2, 5, 6],
                reason="the customer asked for store credit in turn 2; refunded to the card",
            ),
            task("lookup-0007", Claim.SUSPECT, "30/32", "5/8", 0.031, adjusted=0.64, failing=[2]),
            task("cancel-0031", Claim.IMPROVED, "12/32", "8/8"),
            task("refund-5001", Claim.NEW, None, "6/8"),
            task("flaky-1", Claim.QUARANTINED, "20/32", "3/8"),
            task("lookup-0011", Claim.UNCHANGED, "32/32", "6/7+1"),
        ],
        p_value=0.0004,
        metrics=RED_METRICS,
        floors=(FloorResult(metric="pass^1", floor=0.6, candidate=0.84, bound=0.87, passed=True),),
        guards=(
            GuardResult(
                metric="cost_per_success_usd",
                baseline=0.0021,
                candidate=0.0024,
                change=0.143,
                bound=0.09,
                limit=0.25,
                passed=True,
            ),
        ),
        trials=TrialTotals(planned=400, run=400, judged=399, errored=1, stop="complete"),
        warnings=("The baseline is 34 days old (limit 30); `ci-gate baseline update` renews it.",),
        resilience=green().resilience,
        economics=green().economics,
    )


def red_by_suite() -> Verdict:
    """The suite fell and no task is proven: contributors."""
    return verdict(
        Decision.REGRESSED,
        {
            ReasonCode.SUITE_REGRESSED: "The suite's pass^1 and pass^8 dropped by more than "
            "chance explains."
        },
        [
            task(
                f"refund-{n}",
                Claim.UNCHANGED,
                "29/32",
                f"{n % 4 + 3}/8",
                0.08,
                adjusted=0.7,
                failing=[0, n % 7 + 1],
                contribution=-(5 - n % 4) / 100,
            )
            for n in range(4812, 4820)
        ],
        p_value=0.0021,
        metrics=RED_METRICS,
    )


def curtailed() -> Verdict:
    """The run stopped after three rounds: chances in the place of p-values, no pass^8 yet."""
    predicted = PredictedMetric(estimate=0.44, interval=(0.31, 0.57), rounds=3, pass_hat_r=0.61)
    metrics = {
        "pass^1": RED_METRICS["pass^1"],
        "pass^8": metric(0.62, None, detectable=0.14),
    }
    without_p = {"p_value": None, "p_adjusted": None, "exact": None}
    return verdict(
        Decision.REGRESSED,
        {
            ReasonCode.TASK_REGRESSED: "2 tasks regressed: refund-4813 (31/32 to 0/3), "
            "refund-4812 (31/32 to 0/3).",
            ReasonCode.CURTAILED: "Stopped after 3 of 8 rounds (150 of 400 planned trials): the "
            "chance that the whole plan would be green was below 0.05.",
        },
        [
            _foretold(task("refund-4811", Claim.UNCHANGED, "30/32", "2/3"), 0.031),
            _foretold(
                task("refund-4812", Claim.REGRESSED, "31/32", "0/3", failing=[0, 1, 2]), 0.9931
            ),
            _foretold(
                task("refund-4813", Claim.REGRESSED, "31/32", "0/3", failing=[0, 1, 2]), 0.99951
            ),
        ],
        p_value=None,
        predictive=0.99951,
        metrics={
            "pass^1": msgspec.structs.replace(metrics["pass^1"], predictive=0.97, **without_p),
            "pass^8": msgspec.structs.replace(
                metrics["pass^8"], predictive=0.62, predicted=predicted, **without_p
            ),
        },
        trials=TrialTotals(planned=400, run=150, judged=150, errored=0, stop="curtailed-regressed"),
    )


def _foretold(result: TaskResult, predictive: float) -> TaskResult:
    return msgspec.structs.replace(result, predictive=predictive)


def inconclusive() -> Verdict:
    """Too many trials errored and some tasks are others than before."""
    return verdict(
        Decision.INCONCLUSIVE,
        {
            ReasonCode.TOO_MANY_ERRORS: "338 of 400 planned trials were judged and 62 "
            "errored, more than max_errored_rate = 0.05 allows: the environment is to be repaired "
            "before the agent can be judged.",
            ReasonCode.TASKS_CHANGED: "The content of 1 task (cancel-0031) was edited: what they "
            "measured before says nothing of them now. Make the baseline anew with the label.",
        },
        [
            task("refund-4812", Claim.UNCHANGED, "31/32", "5/5+3"),
            task("refund-4813", Claim.UNJUDGED, "31/32", "0/0+8"),
            task("cancel-0031", Claim.CHANGED, "12/32", "8/8"),
        ],
        p_value=None,
        trials=TrialTotals(planned=400, run=400, judged=338, errored=62, stop="complete"),
    )


def no_baseline() -> Verdict:
    """There is nothing to compare with yet."""
    return verdict(
        Decision.PASSED,
        {
            ReasonCode.NO_BASELINE: "There is no baseline to compare with yet: `ci-gate baseline "
            "update` makes one, to be committed."
        },
        [task(f"refund-{n}", Claim.NEW, None, "7/8") for n in range(4812, 4815)],
        p_value=None,
        metrics={"pass^1": metric(None, 0.875, detectable=None, n_tasks=3)},
        method=Method(),
        suite=SuiteChanges(new=("refund-4812", "refund-4813", "refund-4814")),
        trials=TrialTotals(planned=24, run=24, judged=24, errored=0, stop="complete"),
    )


def flipped() -> Verdict:
    """A deterministic suite in which a seed that passed now fails; a task vanished."""
    return verdict(
        Decision.REGRESSED,
        {
            ReasonCode.FLIP: "Seeds that passed in the baseline fail, and the agent is "
            "deterministic: 1 task (refund-4812).",
            ReasonCode.TASKS_REMOVED: "1 task of the baseline vanished: cancel-0031. Restore "
            "them, or list them in allow_removed.",
        },
        [
            task("refund-4812", Claim.FLIP, "1/1", "0/1", failing=[0]),
            task("cancel-0031", Claim.REMOVED, "1/1", None),
        ],
        p_value=None,
        floors=(
            FloorResult(metric="pass^1", floor=0.9, candidate=0.8999, bound=0.89996, passed=False),
        ),
    )


def huge(tasks: int = 5000) -> Verdict:
    """Everything regressed, everything is long."""
    red = [
        task(
            f"{'very-long-' * 8}{n:05d}",
            Claim.REGRESSED,
            "32/32",
            "0/8",
            1e-9,
            adjusted=1e-6,
            failing=list(range(8)),
            reason="expected " + "x" * 500,
        )
        for n in range(tasks)
    ]
    better = [task(f"better-{n}", Claim.IMPROVED, "0/32", "8/8") for n in range(tasks)]
    return verdict(
        Decision.REGRESSED,
        {ReasonCode.TASK_REGRESSED: f"{tasks:,} tasks regressed"},
        [*red, *better],
        p_value=1e-6,
        metrics=RED_METRICS,
    )


def several() -> list[Verdict]:
    """Three suites with different verdicts, the worst in the middle."""
    named = {"lookup": green(), "refund-desk": red_by_task(), "onboarding": no_baseline()}
    return [msgspec.structs.replace(made, suite_name=name) for name, made in named.items()]


def hostile(texts: Sequence[str] = HOSTILE_TEXTS) -> Verdict:
    """Every text that can come from outside is an attack."""
    claims = [Claim.REGRESSED, Claim.SUSPECT, Claim.NEW, Claim.REMOVED, Claim.QUARANTINED]
    tasks = [
        task(
            text,
            claims[n % len(claims)],
            "32/32",
            "0/8+1",
            1e-6,
            adjusted=1e-4,
            failing=[3],
            reason=text,
            detail=f"+ {text}\n{text}",
        )
        for n, text in enumerate(texts)
    ]
    return verdict(
        Decision.REGRESSED,
        {ReasonCode.TASK_REGRESSED: " ".join(texts)},
        tasks,
        suite_name=texts[0],
        warnings=tuple(texts),
        metrics={text: metric(0.9, 0.8, (-0.2, -0.1), 0.001, excluded=(text,)) for text in texts},
        floors=tuple(
            FloorResult(metric=text, floor=0.9, candidate=0.8, bound=0.81, passed=False)
            for text in texts
        ),
        guards=tuple(
            GuardResult(
                metric=text, baseline=1, candidate=2, change=1, bound=1, limit=0, passed=None
            )
            for text in texts
        ),
        resilience=Resilience(
            under_faults=True,
            candidate=condition("1/1", faulted=1, recovered=1, looped=0, steps=1.0),
            tasks=tuple(
                TaskResilience(
                    task=text,
                    candidate=condition("0/1", faulted=1, recovered=0, looped=1, steps=1.0),
                )
                for text in texts
            ),
        ),
        economics={"baseline": dict.fromkeys(texts, 1), "candidate": {}},
        provenance={text: {"ref": text, "list": list(texts)} for text in texts},
        trials=TrialTotals(planned=1, run=1, judged=1, errored=0, stop=texts[-1]),
    )

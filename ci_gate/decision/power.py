"""From a baseline and a policy to what checks would see, before one is run.

Chooses the plans that are tried and prices them; how often each is red is simulated in
``ci_gate.stats.power``. It knows neither files nor machines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from math import fsum
from typing import Final

import msgspec

from ci_gate.decision.accounting import Scores, scores_of
from ci_gate.decision.conditional_rate import baseline_warnings
from ci_gate.decision.known_suite import any_judged, known_suite
from ci_gate.decision.policy_checks import require_judgeable
from ci_gate.errors import BaselineError, Problem, UsageError, printable
from ci_gate.model.policy import Policy
from ci_gate.model.power import Bill, KnownBaseline, Prospect, ProspectivePlan, Sight
from ci_gate.model.run import FAILED, PASSED, ErrorPolicy, Measure, Side
from ci_gate.stats.counts import Strata
from ci_gate.stats.power import (
    MOST_REPEATS,
    Change,
    Detection,
    Gate,
    KnownSuite,
    Plan,
    detectable,
    detection,
)
from ci_gate.stats.run_effect import run_effect
from ci_gate.stats.seed_effect import CRITICAL_Z, z_seed

__all__ = ["Question", "foresee"]

_DRAWS_SEED: Final = 0x20261030
_LADDER: Final = (1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64)
_MOST_TRIALS: Final = 1000
_CURVE_POINTS: Final = 8
_ROUGH: Final = 1024
_ROUGHEST: Final = 512
"""Repeats where only the way is looked for; plans that are shown are simulated until sharp."""
_MOST_STRATA: Final = 16
"""Trials a task that are looked at unasked where seeds are strata: more take long to simulate."""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked.

    Attributes
    ----------
    drops : tuple of float
        Wanted drops of the suite's pass^1, each in (0, 1).
    power : float
        Wanted chance of detection, in (0, 1).
    trials : tuple of int
        Trials a task to try; empty: the fewest that do are looked for.
    configured_trials : int or None
        Of a check as configured; None: as many as the baseline has seeds.
    deep_runs : int
        Runs of the baseline to try beside those that it has.
    jobs : int
        Trials at a time.
    max_per_minute : int
        Starts of trials a minute; 0 is no limit.
    most_repeats : int
        Bound on the simulated checks behind a figure, which else are as many as bring its error
        down to two points; at least 1.
    """

    drops: tuple[float, ...] = (0.02, 0.05, 0.10)
    power: float = 0.8
    trials: tuple[int, ...] = ()
    configured_trials: int | None = None
    deep_runs: int = 4
    jobs: int = 1
    max_per_minute: int = 0
    most_repeats: int = MOST_REPEATS


def foresee(baseline: Side, policy: Policy, question: Question) -> Prospect:
    """Return what checks against a baseline would see.

    Parameters
    ----------
    baseline : Side
    policy : Policy
        For its alpha, metrics, pairing, errors and quarantine.
    question : Question

    Returns
    -------
    Prospect
        The same for the same outcomes, whatever the order of the tasks.

    Raises
    ------
    UsageError
        The question or the policy is impossible, or one that chance does not answer: a
        deterministic suite, a margin.
    BaselineError
        The baseline has no judged or no passing trial.
    """
    require_judgeable(policy)
    _require(question, policy)
    return _Study(baseline, policy, question).prospect()


def _require(question: Question, policy: Policy) -> None:
    problems = [*_question_problems(question), *_policy_problems(policy)]
    deepest = max(policy.ks)
    problems += [
        Problem(
            what=f"{trials} trials are fewer than pass^{deepest} needs",
            where="trials",
            hint=f"Give at least {deepest}, or leave pass^{deepest} out of the metrics.",
        )
        for trials in (*question.trials, question.configured_trials or deepest)
        if trials < deepest
    ]
    if problems:
        raise UsageError.of(problems)


def _question_problems(question: Question) -> Iterable[Problem]:
    for drop in question.drops:
        if not 0 < drop < 1:
            yield Problem(what=f"a drop lies between 0 and 1, found {drop}", where="drop")
    if not 0 < question.power < 1:
        yield Problem(what=f"power lies between 0 and 1, found {question.power}", where="power")
    for name in ("jobs", "most_repeats"):
        if getattr(question, name) < 1:
            what = f"{name} is at least 1, found {getattr(question, name)}"
            yield Problem(what=what, where=name)
    for trials in question.trials:
        if trials > _MOST_TRIALS:
            what = f"{trials} trials a task are more than the {_MOST_TRIALS} that are simulated"
            yield Problem(what=what, where="trials")


def _policy_problems(policy: Policy) -> Iterable[Problem]:
    if policy.deterministic:
        yield Problem(
            what="the suite is deterministic: any pass that becomes a failure is seen, for certain",
            hint="There is no chance to compute; one trial a seed is enough.",
        )
    if policy.margin:
        yield Problem(
            what=f"the policy has a margin of {policy.margin:g}, which is not simulated",
            where="margin",
            hint="What it sees with margin = 0 is what it sees at most.",
        )


class _Study:
    """A baseline's counts, and answers about plans for it."""

    def __init__(self, baseline: Side, policy: Policy, question: Question) -> None:
        self._side, self._policy, self._question = baseline, policy, question
        self._seen: dict[tuple[Plan, Change, int], Detection | None] = {}
        errors: ErrorPolicy = "fail" if "fail" in (policy.errors, baseline.errors) else "exclude"
        held = {quarantine.task for quarantine in policy.quarantine}
        scores = {t: scores_of(task, errors) for t, task in sorted(baseline.tasks.items())}
        judged = {t: runs for t, runs in scores.items() if any_judged(runs)}
        self._held = sorted(held & {*judged})
        self._unjudged = sorted({*scores} - {*judged})
        self._scores: Mapping[str, Scores] = {t: judged[t] for t in judged if t not in held}
        if not self._scores:
            raise BaselineError(
                f"the baseline of {printable(baseline.suite)} has no judged task",
                hint="`ci-gate baseline update` makes one.",
            )
        if not any(1 in run for runs in self._scores.values() for run in runs):
            raise BaselineError(
                f"not one trial of the baseline of {printable(baseline.suite)} passed",
                hint="Nothing can drop below that; repair the agent or the tasks first.",
            )

    def prospect(self) -> Prospect:
        """Answer all of the question."""
        question = self._question
        now = self._plan(self._now, self._runs)
        smallest = self._detectable(now)
        plans = self._plans(smallest)
        reached = {plan.sight.drop for plan in plans if self._reaches(plan.sight)}
        return Prospect(
            suite=self._side.suite,
            baseline=self._known(),
            trials=self._now,
            level=self._policy.alpha,
            power=question.power,
            jobs=question.jobs,
            check=self._bill(now.trials),
            detectable_drop=smallest,
            sights=self._sights(now),
            curve=self._curve(now, smallest),
            plans=_with_cheapest(plans, {id(p) for p in plans if self._reaches(p.sight)}),
            unreached=tuple(drop for drop in question.drops if drop not in reached),
            most_trials=max(question.trials or (max(self._ladder),)),
            remarks=tuple(self._remarks()),
        )

    # What the baseline is.

    @property
    def _runs(self) -> int:
        return max(len(runs) for runs in self._scores.values())

    @property
    def _widths(self) -> list[int]:
        return [max(map(len, runs)) for runs in self._scores.values()]

    @cached_property
    def _usual(self) -> int:
        """Seeds of most tasks: the others set a number of their own."""
        counts = Counter(self._widths)
        return max(counts, key=lambda width: (counts[width], width))

    @property
    def _now(self) -> int:
        return self._question.configured_trials or self._usual

    @cached_property
    def _z(self) -> float | None:
        return z_seed(list(self._scores.values())) if self._seeded and self._runs > 1 else None

    @property
    def _seeded(self) -> bool:
        own = (task.seeds for task in self._side.tasks.values())
        return self._side.root_seed is not None or any(own)

    @property
    def _seeds_matter(self) -> bool:
        return self._z is not None and self._z > CRITICAL_Z

    @property
    def _strata(self) -> Strata:
        pairing = self._policy.pairing
        by_seed = self._seeds_matter if pairing == "auto" else pairing == "seed"
        return "task,seed" if by_seed and self._seeded else "task"

    @cached_property
    def _phi(self) -> float | None:
        """What the gate shrinks by, for what scatters between the baseline's runs."""
        return run_effect(list(self._scores.values()), strata=self._strata).correction

    @cached_property
    def _suite(self) -> KnownSuite:
        return known_suite(list(self._scores.values()), by_seed=self._seeds_matter)

    def _known(self) -> KnownBaseline:
        counts = zip(self._suite.passed, self._suite.judged, strict=True)
        rates = [sum(passed) / sum(judged) for passed, judged in counts]
        return KnownBaseline(
            tasks=len(self._scores),
            runs=self._runs,
            trials=self._usual,
            pass_1=fsum(rates) / len(rates),
            strata=self._strata,
            z_seed=self._z,
        )

    def _remarks(self) -> Iterable[str]:
        if self._runs == 1 and self._seeded:
            yield (
                "With one run in the baseline it cannot be known whether seeds matter; the figures "
                "are for seeds that do not. `ci-gate baseline update` adds runs."
            )
        if self._phi is not None:
            yield (
                f"The baseline's runs scatter more than their trials explain (phi {self._phi:.2f}),"
                " and the gate corrects for it; plans are taken to meet as much."
            )
        yield from baseline_warnings(
            self._side, self._policy, trials=self._question.configured_trials
        )
        if self._side.tasks and len(self._scores) < len(self._side.tasks):
            out = [*self._held, *(t for t in self._unjudged if t not in self._held)]
            named = ", ".join(printable(task, limit=80) for task in out[:5])
            more = f" and {len(out) - 5} more" if len(out) > 5 else ""
            yield f"Left out, in quarantine or without a judged trial: {named}{more}."
        if self._policy.on_borderline == "extend":
            yield (
                "Figures are for one look at alpha. A run that may be extended has a smaller level "
                "at each look: it sees less at the first, and more, for more trials, at the last."
            )
        elif self._policy.curtail:
            yield "Figures are for whole plans; curtailed ones see up to 2.5 points less."

    # What plans see.

    @cached_property
    def _gate(self) -> Gate:
        return Gate(
            level=self._policy.alpha,
            ks=self._policy.ks,
            strata=self._strata,
            seed=_DRAWS_SEED,
            phi=self._phi,
        )

    def _plan(self, trials: int, runs: int) -> Plan:
        own = (trials if width == self._usual else width for width in self._widths)
        return Plan(trials=tuple(own), runs=runs)

    def _see(self, plan: Plan, change: Change, *, repeats: int = MOST_REPEATS) -> Sight:
        key = (plan, change, min(repeats, self._question.most_repeats))
        if key not in self._seen:
            self._seen[key] = detection(self._suite, plan, change, self._gate, most_repeats=key[2])
        found = self._seen[key]
        if found is None:
            return Sight(shape=change.shape, drop=change.drop, blocked=None, error=None, repeats=0)
        return Sight(
            shape=change.shape,
            drop=change.drop or found.drop,
            blocked=found.share,
            error=found.error,
            repeats=found.repeats,
        )

    def _shift(self, plan: Plan, drop: float, *, repeats: int = MOST_REPEATS) -> Sight:
        return self._see(plan, Change(shape="shift", drop=drop), repeats=repeats)

    def _reaches(self, sight: Sight) -> bool:
        return sight.blocked is not None and sight.blocked >= self._question.power

    def _sights(self, now: Plan) -> tuple[Sight, ...]:
        shifts = (self._shift(now, drop) for drop in self._question.drops)
        return (
            self._see(now, Change(shape="none")),
            *shifts,
            self._see(now, Change(shape="flaky")),
            self._see(now, Change(shape="broken")),
        )

    def _detectable(self, now: Plan) -> float | None:
        def chance(drop: float) -> float | None:
            return self._shift(now, drop, repeats=_ROUGH).blocked

        return detectable(chance, self._question.power, self._largest)

    @property
    def _largest(self) -> float:
        return 0.95 * self._suite.largest_shift

    def _curve(self, now: Plan, smallest: float | None) -> tuple[Sight, ...]:
        step = self._largest / _CURVE_POINTS if smallest is None else smallest / 5
        drops = [step * i for i in range(1, _CURVE_POINTS + 1) if step * i <= self._largest]
        return tuple(self._shift(now, drop, repeats=_ROUGH) for drop in drops)

    @property
    def _ladder(self) -> list[int]:
        deepest = max(self._policy.ks)
        most = _MOST_STRATA if self._strata == "task,seed" else _LADDER[-1]
        return sorted({self._now, deepest, *(n for n in _LADDER if deepest < n <= most)})

    def _depths(self) -> list[int]:
        return sorted({self._runs, max(self._runs, self._question.deep_runs)})

    def _plans(self, smallest: float | None) -> list[ProspectivePlan]:
        return [
            plan
            for drop in self._question.drops
            for runs in self._depths()
            for plan in self._plans_for(drop, runs, smallest)
        ]

    def _plans_for(self, drop: float, runs: int, smallest: float | None) -> list[ProspectivePlan]:
        if self._question.trials:
            return [self._priced(trials, runs, drop) for trials in self._question.trials]
        ladder = self._ladder
        for rung in range(self._first_rung(drop, runs, smallest), len(ladder)):
            plan = self._priced(ladder[rung], runs, drop)
            # What looked like enough from few repeats may not be.
            if self._reaches(plan.sight):
                return [plan]
        return []

    def _first_rung(self, drop: float, runs: int, smallest: float | None) -> int:
        """The lowest rung of the ladder that seems to see a drop; its length where none does."""
        ladder = self._ladder
        if not self._seems_to_reach(ladder[-1], runs, drop):
            return len(ladder)
        rung = self._guess(drop, smallest)
        while rung < len(ladder) - 1 and not self._seems_to_reach(ladder[rung], runs, drop):
            rung += 1
        while rung and self._seems_to_reach(ladder[rung - 1], runs, drop):
            rung -= 1
        return rung

    def _guess(self, drop: float, smallest: float | None) -> int:
        """A rung to begin with: the drop that is seen falls with the root of the trials."""
        ladder = self._ladder
        wanted = self._now * ((smallest or self._largest) / drop) ** 2
        return min(sum(trials < wanted for trials in ladder), len(ladder) - 1)

    def _seems_to_reach(self, trials: int, runs: int, drop: float) -> bool:
        """Whether a plan may see a drop, as far as few repeats tell."""
        sight = self._shift(self._plan(trials, runs), drop, repeats=_ROUGHEST)
        if sight.blocked is None or sight.error is None:
            return False
        return sight.blocked + sight.error >= self._question.power

    def _priced(self, trials: int, runs: int, drop: float) -> ProspectivePlan:
        plan = self._plan(trials, runs)
        renewed = any(n > width for n, width in zip(plan.trials, self._widths, strict=True))
        seeds = plan.trials if renewed else self._widths
        extra = runs if renewed else runs - self._runs
        return ProspectivePlan(
            trials=trials,
            runs=runs,
            renewed=renewed,
            sight=self._shift(plan, drop),
            check=self._bill(plan.trials),
            baseline=self._bill([extra * n for n in seeds]),
        )

    # What plans cost.

    def _bill(self, trials: Sequence[int]) -> Bill:
        return Bill(
            trials=sum(trials),
            tokens=self._total("tokens", trials),
            cost_usd=self._total("cost_usd", trials),
            duration_s=self._duration(trials),
        )

    def _total(self, measure: str, trials: Sequence[int]) -> float | None:
        means = self._means(measure)
        if None in means:
            return None
        return fsum(n * (mean or 0.0) for n, mean in zip(trials, means, strict=True))

    def _duration(self, trials: Sequence[int]) -> float | None:
        """Never shorter than the longest trial, nor than the limit of starts allows."""
        total = self._total("duration_s", trials)
        if total is None:
            return None
        means = zip(trials, self._means("duration_s"), strict=True)
        longest = max((mean or 0.0 for n, mean in means if n), default=0.0)
        rate = self._question.max_per_minute
        starts = 60.0 * sum(trials) / rate if rate else 0.0
        return max(total / self._question.jobs, longest, starts)

    def _means(self, measure: str) -> list[float | None]:
        return [self._mean_of(task, measure) for task in self._scores]

    def _mean_of(self, task_id: str, measure: str) -> float | None:
        """Mean of a trial, over the runs that know it."""
        task = self._side.tasks[task_id]
        runs: tuple[Measure | None, ...] = task.measures.get(measure, ())
        known = [
            (found.mean, outcomes.count(PASSED) + outcomes.count(FAILED))
            for found, outcomes in zip(runs, task.outcomes, strict=False)
            if found is not None and found.mean is not None
        ]
        trials = sum(n for _, n in known)
        return fsum(mean * n for mean, n in known) / trials if trials else None


def _with_cheapest(
    plans: Sequence[ProspectivePlan], reaching: set[int]
) -> tuple[ProspectivePlan, ...]:
    cheapest: dict[float, ProspectivePlan] = {}
    for plan in plans:
        best = cheapest.get(plan.sight.drop)
        if id(plan) in reaching and (best is None or _price(plan) < _price(best)):
            cheapest[plan.sight.drop] = plan
    return tuple(
        msgspec.structs.replace(plan, cheapest=plan is cheapest.get(plan.sight.drop))
        for plan in plans
    )


def _price(plan: ProspectivePlan) -> tuple[int, int]:
    return plan.check.trials, plan.baseline.trials

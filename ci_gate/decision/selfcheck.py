"""Hold a gate against whole runs of an unchanged agent: what it blocks there is a false alarm.

Takes each run in turn as the candidate and all others together as its baseline, and lets the gate's
own rules judge. Trials of one run are never dealt to two sides: that is the test's own assumption,
and would always confirm it. It knows neither files nor how the runs were made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from math import fsum
from typing import Any, Final

import msgspec

from ci_gate.decision.accounting import (
    CURTAILED,
    Scores,
    counts_of,
    errors_in_effect,
    scores_of,
    stopped_early,
)
from ci_gate.decision.compare import compare
from ci_gate.decision.decide import decide
from ci_gate.decision.digits import six_digits
from ci_gate.decision.summary import suite_metrics
from ci_gate.errors import Problem, UsageError, printable
from ci_gate.model.policy import Policy
from ci_gate.model.run import NOT_RUN, Side, SideTask
from ci_gate.model.selfcheck import (
    FalseAlarms,
    LeftOut,
    MetricScatter,
    RunScatter,
    SeedAgreement,
    SelfCheck,
    SelfComparison,
    TaskInformation,
    TaskKind,
)
from ci_gate.model.verdict import RED_CLAIMS, Decision, Verdict
from ci_gate.stats.counts import Strata
from ci_gate.stats.run_effect import CORRECTED_BELOW, run_effect
from ci_gate.stats.seed_effect import CRITICAL_Z, z_seed
from ci_gate.stats.selfcheck import exact_interval, run_noise, tries_to_show

__all__ = ["WholeRun", "self_check", "whole_runs"]

_KINDS: Final = ("moves", "fixed", "unjudged", "fails", "passes")


class WholeRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run of the suite over its seeds.

    Attributes
    ----------
    source : str
        Where it comes from, for people.
    number : int or None
        Which of several runs of that source it is, from 1.
    digest : str
        Of its lines: equal ones from two sources are one run that was given twice.
    side : Side
        With this run alone.
    """

    source: str
    number: int | None
    digest: str
    side: Side

    @property
    def name(self) -> str:
        """The run for people."""
        return self.source if self.number is None else f"{self.source} #{self.number}"


def whole_runs(side: Side, source: str, digests: Sequence[str]) -> tuple[WholeRun, ...]:
    """Return the runs that a side is made of.

    Parameters
    ----------
    side : Side
    source : str
        Where it comes from.
    digests : sequence of str
        Of each run that has trials, in order.

    Raises
    ------
    UsageError
        A run was cut short or stopped by its outcomes, or holds a part of the suite.
    """
    problems = [*_mistakes(side, source)]
    if problems:
        raise UsageError.of(problems)
    ran = [row for row in range(_rows(side)) if _tasks_of_run(side, row)]
    return tuple(
        WholeRun(
            source=source,
            number=None if len(ran) == 1 else number,
            digest=digest,
            side=_single(side, row),
        )
        for number, (row, digest) in enumerate(zip(ran, digests, strict=True), start=1)
    )


def _mistakes(side: Side, source: str) -> Iterator[Problem]:
    if stopped_early(side):
        hint = "Continue it by --resume, or leave it out."
        yield Problem(what="the run was cut short", where=source, hint=hint)
    if side.stop is not None and side.stop.reason in CURTAILED:
        what = "the run was stopped by its own outcomes, which makes it unlike a whole one"
        yield Problem(what=what, where=source, hint="Run its plan to the end: curtail = false.")
    for option, value in (("--task", side.task_filter), ("--shard", side.shard)):
        if value is not None:
            what = f"the run holds a part of the suite ({option} {printable(value)})"
            yield Problem(what=what, where=source, hint="Give runs of the whole suite.")


def _rows(side: Side) -> int:
    return max((len(task.outcomes) for task in side.tasks.values()), default=0)


def _tasks_of_run(side: Side, row: int) -> dict[str, SideTask]:
    """Return the tasks that a run had; one whose every trial was not run was not in it."""
    return {
        task_id: task.only_run(row)
        for task_id, task in side.tasks.items()
        if row < len(task.outcomes) and task.outcomes[row].strip(NOT_RUN)
    }


def _single(side: Side, row: int) -> Side:
    tasks = _tasks_of_run(side, row)
    return msgspec.structs.replace(
        side,
        kind="run",
        tasks=tasks,
        planned={task_id: len(task.outcomes[0]) for task_id, task in tasks.items()},
        runs=side.runs[row : row + 1] if side.kind == "baseline" else side.runs,
        plan=None,
        baseline_digest=None,
        policy_digest=None,
        digest=None,
    )


def self_check(
    runs: Sequence[WholeRun], policy: Policy, *, suite: str, policy_origin: str
) -> SelfCheck:
    """Measure a gate on runs of one agent.

    Parameters
    ----------
    runs : sequence of WholeRun
        Of one suite, over the same seeds, under the same conditions.
    policy : Policy
    suite : str
        Its name.
    policy_origin : str
        Whose policy that is, for people.

    Returns
    -------
    SelfCheck
        Figures with 6 significant digits. The same for the same runs in the same order.

    Raises
    ------
    UsageError
        The runs do not belong together or share no task, or the policy is impossible.
    """
    different, remarks = _different(runs)
    _require_together(different)
    found = SelfCheck(
        suite=suite,
        policy=policy_origin,
        alpha=policy.alpha,
        measurable=False,
        because=_too_few(len(different), len(runs)),
        runs=tuple(run.name for run in different),
        remarks=tuple(remarks),
    )
    return found if len(different) < 2 else six_digits(_Study(different, policy).into(found))


def _different(runs: Sequence[WholeRun]) -> tuple[list[WholeRun], list[str]]:
    """Leave out a run that came from another place already; repeats of one place are its own."""
    kept: list[WholeRun] = []
    remarks: list[str] = []
    for run in runs:
        twin = next((k for k in kept if _is_copy(run, k)), None)
        if twin is None:
            kept.append(run)
        else:
            remarks.append(f"{run.name} is equal to {twin.name} in every line and counts once.")
    return kept, remarks


def _is_copy(run: WholeRun, other: WholeRun) -> bool:
    # A file given twice has one source, and each of its runs its number.
    same_place = run.source == other.source and run.number != other.number
    return run.digest == other.digest and not same_place


def _too_few(different: int, given: int) -> str:
    if different < given:
        return "All runs are copies of one: with one run there is nothing to hold it against."
    return "With one run there is nothing to hold it against."


def _require_together(runs: Sequence[WholeRun]) -> None:
    problems = [
        Problem(what=what, where=run.name, hint="Give runs that differ in nothing but chance.")
        for run in runs[1:]
        for what in _differences(runs[0], run)
    ]
    if problems:
        raise UsageError.of(problems)


_CONDITIONS: Final[Mapping[str, Callable[[Side], str | None]]] = {
    "suite": lambda side: side.suite,
    "root seed": lambda side: side.root_seed,
    "errors": lambda side: side.errors,
    "faults digest": lambda side: side.faults_digest,
    "judge digest": lambda side: side.judge_digest,
}


def _differences(first: WholeRun, run: WholeRun) -> Iterator[str]:
    for name, value in _CONDITIONS.items():
        before, now = value(first.side), value(run.side)
        if before != now:
            shown = f"{printable(now or 'unknown')}, not {printable(before or 'unknown')}"
            yield f"the {name} is {shown} as in {first.name}"


class _Study(msgspec.Struct, frozen=True, dict=True):
    """Two runs or more, and everything that is measured on them."""

    runs: Sequence[WholeRun]
    policy: Policy

    def into(self, found: SelfCheck) -> SelfCheck:
        """Return the record with what was measured."""
        shown = msgspec.structs.replace(
            found,
            tasks=self.tasks,
            left_out=self._left_out(),
            remarks=(*found.remarks, *self._remarks_on_runs()),
        )
        if self._are_copies:
            return msgspec.structs.replace(shown, because=_on_copies(len(self.runs)))
        return self._with_comparisons(shown)

    def _with_comparisons(self, shown: SelfCheck) -> SelfCheck:
        open_ = all(verdict.decision is Decision.INCONCLUSIVE for verdict in self.verdicts)
        return msgspec.structs.replace(
            shown,
            measurable=not open_,
            because=_on_inconclusive(self.verdicts) if open_ else "",
            false_alarms=None if open_ else _false_alarms(self.verdicts, self.policy.alpha),
            comparisons=tuple(map(_comparison, self.runs, self.verdicts)),
            metrics=self._metrics(),
            seed_effect=self._seed_effect(),
            run_effect=self._run_effect(),
            remarks=shown.remarks if open_ else (*shown.remarks, *self._remarks_on_rate()),
        )

    # What is compared.

    @cached_property
    def misfits(self) -> dict[str, str]:
        """Tasks that are not the same in every run, and why."""
        ids = sorted({task_id for run in self.runs for task_id in run.side.tasks})
        why = {task_id: _misfit([r.side.tasks.get(task_id) for r in self.runs]) for task_id in ids}
        if all(why.values()):
            raise UsageError(
                f"the {len(self.runs)} runs have no task in common",
                where=self.runs[0].name,
                hint="Give runs of one version of the suite.",
            )
        return {task_id: reason for task_id, reason in why.items() if reason}

    @cached_property
    def sides(self) -> list[Side]:
        """Each run with the tasks that all have."""
        return [_without(run.side, self.misfits) for run in self.runs]

    @cached_property
    def verdicts(self) -> list[Verdict]:
        """What the gate says of each run against all others."""
        return [self._verdict(at) for at in range(len(self.sides))]

    def _verdict(self, at: int) -> Verdict:
        others = _pooled([side for i, side in enumerate(self.sides) if i != at])
        return decide(compare(others, self.sides[at], self.policy), self.policy)

    # What is measured on all runs together.

    @cached_property
    def pooled(self) -> Side:
        """All runs, without the tasks that the policy holds in quarantine."""
        held = {task_id for verdict in self.verdicts for task_id in verdict.suite.quarantined}
        return _without(_pooled(self.sides), held)

    @cached_property
    def scores(self) -> dict[str, Scores]:
        """The trials of each task as numbers, runs x seeds."""
        errors = errors_in_effect(None, self.pooled, self.policy)
        return {task_id: scores_of(task, errors) for task_id, task in self.pooled.tasks.items()}

    @cached_property
    def strata(self) -> Strata:
        """Within what the gate exchanges outcomes, with all runs in the baseline."""
        if not self._shares_seeds or self.policy.pairing == "none":
            return "task"
        return "task,seed" if self.policy.pairing == "seed" or self._z > CRITICAL_Z else "task"

    @cached_property
    def _z(self) -> float:
        return z_seed(list(self.scores.values()))

    @property
    def _shares_seeds(self) -> bool:
        tasks = self.pooled.tasks.values()
        return self.pooled.root_seed is not None or any(task.seeds for task in tasks)

    def _seed_effect(self) -> SeedAgreement | None:
        if not self._shares_seeds:
            return None
        return SeedAgreement(z_seed=self._z, matters=self._z > CRITICAL_Z, strata=self.strata)

    def _run_effect(self) -> RunScatter | None:
        effect = run_effect(list(self.scores.values()), strata=self.strata)
        if effect.phi is None:
            return None
        return RunScatter(
            phi=effect.phi,
            p_value=effect.p_value,
            matters=effect.p_value < CORRECTED_BELOW,
            implied_alpha=effect.implied_alpha(self.policy.alpha),
        )

    def _metrics(self) -> dict[str, MetricScatter]:
        pooled = suite_metrics(self.pooled, self.policy.ks)
        return {name: self._metric(name, share) for name, share in pooled.items()}

    def _metric(self, name: str, pooled: float | None) -> MetricScatter:
        metrics = [verdict.metrics[name] for verdict in self.verdicts if name in verdict.metrics]
        single = [one.candidate for one in metrics if one.candidate is not None]
        drops = [one.detectable_drop for one in metrics if one.p_value is not None]
        seen = [drop for drop in drops if drop is not None]
        return MetricScatter(
            pooled=pooled,
            lowest=min(single, default=None),
            highest=max(single, default=None),
            detectable_drop=max(seen) if seen and len(seen) == len(drops) else None,
        )

    @cached_property
    def tasks(self) -> tuple[TaskInformation, ...]:
        """What each task adds, the noisiest first."""
        noise = {t: run_noise(scores, strata=self.strata) for t, scores in self.scores.items()}
        total = fsum(noise.values())
        found = [self._task(t, part / total if total else 0.0) for t, part in noise.items()]
        return tuple(sorted(found, key=lambda t: (_KINDS.index(t.kind), -t.noise_share, t.task)))

    def _task(self, task_id: str, share: float) -> TaskInformation:
        task = self.pooled.tasks[task_id]
        counts = counts_of(task, errors_in_effect(None, self.pooled, self.policy))
        return TaskInformation(
            task=task_id,
            kind=_kind(self.scores[task_id], shares_seeds=self._shares_seeds),
            outcomes=task.outcomes,
            trials=counts.trials,
            passed=counts.passed,
            errored=counts.errored,
            noise_share=share,
        )

    # What is said of it.

    @property
    def _are_copies(self) -> bool:
        """Whether runs are equal trial by trial although some seeds pass and others fail."""
        kinds = {task.kind for task in self.tasks}
        return "moves" not in kinds and (self.policy.deterministic or "fixed" in kinds)

    def _left_out(self) -> tuple[LeftOut, ...]:
        held = {t for verdict in self.verdicts for t in verdict.suite.quarantined}
        why = self.misfits | dict.fromkeys(held, "in quarantine")
        return tuple(LeftOut(task=task_id, why=why[task_id]) for task_id in sorted(why))

    def _remarks_on_runs(self) -> Iterator[str]:
        for name, values in (("agents", self._agents), ("models", self._models)):
            if len(values) > 1:
                yield (
                    f"The runs are of {len(values)} {name}, by what their files say: what differs "
                    "between those counts as noise here."
                )

    def _remarks_on_rate(self) -> Iterator[str]:
        yield _on_dependence(len(self.runs), self.policy.alpha)
        if all(task.kind != "moves" for task in self.tasks):
            yield (
                "No outcome ever moved: these tasks cannot tell an agent without noise from one "
                "whose runs are copies."
            )

    @property
    def _agents(self) -> set[str | None]:
        return {entry.agent.digest for side in self.sides for entry in side.runs}

    @property
    def _models(self) -> set[str | None]:
        return {entry.model for side in self.sides for entry in side.runs}


def _misfit(tasks: Sequence[SideTask | None]) -> str:
    """Say why a task cannot be compared over the runs; nothing where it can."""
    present = [task for task in tasks if task is not None]
    if len(present) < len(tasks):
        return f"in {len(present)} of {len(tasks)} runs"
    if len(_known(task.digest for task in present)) > 1:
        return "its content differs between runs"
    if len({len(task.outcomes[0]) for task in present}) > 1:
        return "its number of trials differs between runs"
    if len(_known(task.seeds for task in present)) > 1:
        return "its seeds differ between runs"
    return ""


def _known(values: Iterable[Any]) -> set[Any]:
    return {value for value in values if value is not None}


def _without(side: Side, held: Iterable[str]) -> Side:
    tasks = {t: task for t, task in side.tasks.items() if t not in set(held)}
    planned = {t: count for t, count in side.planned.items() if t in tasks}
    return msgspec.structs.replace(side, tasks=tasks, planned=planned)


def _pooled(sides: Sequence[Side]) -> Side:
    """Return runs over the same seeds and tasks as one baseline, without a file of its own."""
    tasks = {t: _joined([side.tasks[t] for side in sides]) for t in sorted(sides[0].tasks)}
    return msgspec.structs.replace(
        sides[0],
        kind="baseline",
        tasks=tasks,
        planned={t: sum(side.planned[t] for side in sides) for t in tasks},
        runs=tuple(entry for side in sides for entry in side.runs),
        stop=None,
        created=None,
        commit=None,
        complete=True,
    )


def _joined(tasks: Sequence[SideTask]) -> SideTask:
    rows: dict[str, Any] = {
        field: _row([getattr(task, field) for task in tasks])
        for field in ("faulted", "recovered", "looped")
    }
    return SideTask(
        digest=next((task.digest for task in tasks if task.digest is not None), None),
        outcomes=tuple(outcomes for task in tasks for outcomes in task.outcomes),
        seeds=next((task.seeds for task in tasks if task.seeds is not None), None),
        measures=_named_rows([task.measures for task in tasks]),
        process=_named_rows([task.process for task in tasks]),
        reasons=_numbered([task.reasons for task in tasks]),
        causes=_numbered([task.causes for task in tasks]),
        **rows,
    )


def _named_rows(measures: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    names = sorted({name for one in measures for name in one})
    return {name: _row([one.get(name) for one in measures]) or () for name in names}


def _row(values: Sequence[tuple[Any, ...] | None]) -> tuple[Any, ...] | None:
    """Return the single entries of several runs in a row, None where nothing is known."""
    row = tuple(entry for value in values for entry in (value or (None,)))
    return row if any(entry is not None for entry in row) else None


def _numbered(
    found: Sequence[Mapping[tuple[int, int], Any]],
) -> dict[tuple[int, int], Any]:
    return {(trial, run): one for run, row in enumerate(found) for (trial, _), one in row.items()}


def _kind(scores: Scores, *, shares_seeds: bool) -> TaskKind:
    judged = [x for run in scores for x in run if x is not None]
    if not judged:
        return "unjudged"
    if len(set(judged)) == 1:
        return "passes" if judged[0] else "fails"
    columns = [[x for x in column if x is not None] for column in zip(*scores, strict=True)]
    again = [column for column in columns if len(column) > 1]
    # A seed that was judged once says nothing of what it would have done again.
    fixed = shares_seeds and again and all(len(set(column)) == 1 for column in again)
    return "fixed" if fixed else "moves"


def _false_alarms(verdicts: Sequence[Verdict], alpha: float) -> FalseAlarms:
    decisions = [verdict.decision for verdict in verdicts]
    blocked, open_ = decisions.count(Decision.REGRESSED), decisions.count(Decision.INCONCLUSIVE)
    decided = len(decisions) - open_
    return FalseAlarms(
        comparisons=decided,
        blocked=blocked,
        inconclusive=open_,
        rate=blocked / decided,
        interval=exact_interval(blocked, decided),
        comparisons_to_show_alpha=tries_to_show(alpha),
    )


def _comparison(run: WholeRun, verdict: Verdict) -> SelfComparison:
    return SelfComparison(
        run=run.name,
        decision=verdict.decision,
        reasons=tuple(str(reason.code) for reason in verdict.reasons),
        tasks=tuple(task.task for task in verdict.tasks if task.claim in RED_CLAIMS),
        p_value=verdict.p_value,
        metrics={name: metric.candidate for name, metric in verdict.metrics.items()},
    )


def _on_copies(runs: int) -> str:
    return (
        f"All {runs} runs are equal, trial by trial: the agent is a function of its seed, or its "
        "answers come from a cache. Copies measure no noise. Of an agent that is a function of its "
        "seed one run says all, and deterministic = true judges it by single flips."
    )


def _on_inconclusive(verdicts: Sequence[Verdict]) -> str:
    codes = sorted({str(reason.code) for verdict in verdicts for reason in verdict.reasons})
    return f"Every comparison was inconclusive ({', '.join(codes)})."


def _on_dependence(runs: int, alpha: float) -> str:
    return (
        f"{runs} runs give {runs} comparisons that share their runs, not {runs} independent ones: "
        "the interval takes them for independent and is a rough guide. To show a rate of at most "
        f"{alpha:.6g} takes {tries_to_show(alpha)} independent ones without a false alarm."
    )

"""What a look in the middle of a plan knows: trials so far, and those still to come.

Lays the trials of the two sides out as the test of the whole plan would, so that what is foretold
is what that test would say. It must not know what is done with the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from ci_gate.decision.accounting import (
    Scores,
    contaminated_tasks,
    errors_in_effect,
    grader_errors,
    scores_of,
    totals_of,
    without,
)
from ci_gate.decision.evidence import DRAWS_SEED, choose
from ci_gate.decision.matching import Matching, match_tasks, run_day
from ci_gate.decision.pairing import PairedTask, pair_task, seeds_shared
from ci_gate.model.policy import Policy
from ci_gate.model.run import NOT_RUN, ErrorPolicy, Side
from ci_gate.stats.counts import TaskCounts
from ci_gate.stats.looks import look_of
from ci_gate.stats.prediction import Prediction, predict
from ci_gate.stats.run_effect import RunEffect, run_effect
from ci_gate.stats.seed_effect import CRITICAL_TAIL, CRITICAL_Z, StrataChoice, cochran_q

__all__ = ["Lookahead", "is_trustworthy", "matching_of_plan", "rounds_done", "rounds_planned"]

_TO_COME: Final = 0
"""Stands in the place of a trial that was not run, where only whether it is planned counts."""


@dataclass(frozen=True, kw_only=True)
class Lookahead:
    """A look after a round.

    Attributes
    ----------
    matching : Matching
        Of the tasks, as the whole plan would find them.
    errors : {"exclude", "fail"}
    choice : StrataChoice
        As the whole plan would make it; where that takes the candidate's trials, from those so far.
    effect : RunEffect
        Of the baseline's runs.
    so_far, planned : tuple of TaskCounts
        A position for each task of ``matching.compared``. In ``planned`` the candidate has, beside
        its judged trials, every trial that is still to come; those count as failed.
    """

    matching: Matching
    errors: ErrorPolicy
    choice: StrataChoice
    effect: RunEffect
    so_far: tuple[TaskCounts, ...]
    planned: tuple[TaskCounts, ...]

    @classmethod
    def of(cls, baseline: Side, candidate: Side, policy: Policy) -> Lookahead:
        """Look at a run in the middle of its plan.

        Parameters
        ----------
        baseline : Side
        candidate : Side
            With at least one judged trial of each task that can be compared.
        policy : Policy
        """
        errors = errors_in_effect(baseline, candidate, policy)
        matching = matching_of_plan(baseline, candidate, policy, errors)
        tasks = _Tasks(baseline, candidate, errors, matching.compared)
        so_far, planned = tasks.paired(to_come=None), tasks.paired(to_come=_TO_COME)
        choice = _choice(so_far, planned, policy)
        return cls(
            matching=matching,
            errors=errors,
            choice=choice,
            effect=run_effect([task.baseline for task in so_far], strata=choice.strata),
            so_far=tuple(task.by_seed for task in so_far),
            planned=tuple(task.by_seed for task in planned),
        )

    def predict(self, policy: Policy, *, sceptical: bool) -> Prediction:
        """Return the chances that the test of the whole plan is red, task by task in order.

        Parameters
        ----------
        policy : Policy
        sceptical : bool
            Weigh the kinds of change as somebody who doubts that nothing changed.
        """
        return predict(
            look_of(self.so_far, self.planned, strata=self.choice.strata),
            strata=self.choice.strata,
            ks=policy.ks,
            level=policy.alpha,
            seed=DRAWS_SEED,
            phi=self.effect.correction,
            sceptical=sceptical,
        )


def matching_of_plan(
    baseline: Side, candidate: Side, policy: Policy, errors: ErrorPolicy
) -> Matching:
    """Put the tasks in their places as on the day of the run, every round of which is to come.

    A task without a judged trial so far is ``unjudged``.
    """
    going_on = msgspec.structs.replace(candidate, complete=True, stop=None)
    return match_tasks(baseline, going_on, policy, errors=errors, today=run_day(candidate))


def is_trustworthy(
    candidate: Side, matching: Matching, policy: Policy, errors: ErrorPolicy
) -> bool:
    """Return whether the trials so far let a verdict be passed on them at all.

    Not while too many of them errored, or failed by a grader that raised; while a world was not in
    its known state; or while a task that can be compared has no judged trial.
    """
    gated = without(candidate, matching.quarantined)
    totals = totals_of(gated, errors)
    return not (
        matching.unjudged
        or contaminated_tasks(candidate)
        or not policy.allows_errored(totals.run - totals.judged, totals.run)
        or not policy.allows_errored(grader_errors(gated), totals.run)
    )


@dataclass(frozen=True)
class _Tasks:
    baseline: Side
    candidate: Side
    errors: ErrorPolicy
    compared: Sequence[str]

    def paired(self, *, to_come: int | None) -> tuple[PairedTask, ...]:
        """Pair the tasks, with this score for each trial of the candidate that is to come."""
        return tuple(
            pair_task(
                task_id,
                scores_of(self.baseline.tasks[task_id], self.errors),
                self._scores(task_id, to_come),
                seeds_shared(self.baseline, self.candidate, task_id),
            )
            for task_id in self.compared
        )

    def _scores(self, task_id: str, to_come: int | None) -> Scores:
        task = self.candidate.tasks[task_id]
        return tuple(
            tuple(to_come if char == NOT_RUN else score for char, score in zip(*row, strict=True))
            for row in zip(task.outcomes, scores_of(task, self.errors), strict=True)
        )


def _choice(
    so_far: Sequence[PairedTask], planned: Sequence[PairedTask], policy: Policy
) -> StrataChoice:
    """Choose the strata of the whole plan.

    Which rule chooses depends on the seeds that both sides will have run. Where agreement is that
    of the baseline with the candidate, only trials that were run can say it.
    """
    choice = choose(planned, policy)
    if choice.rule not in ("pair", "many seeds"):
        return choice
    z = choice.z if _has_repeats(planned) else choose(so_far, policy).z
    matters = z > CRITICAL_Z or _columns_matter(choice, so_far, planned)
    return StrataChoice(
        strata="task,seed" if matters else "task",
        rule=choice.rule,
        z=z,
        q=choice.q,
        q_p_value=choice.q_p_value,
    )


def _columns_matter(
    choice: StrataChoice, so_far: Sequence[PairedTask], planned: Sequence[PairedTask]
) -> bool:
    """Return what Cochran's Q says of the side with more seeds, of the trials that were run."""
    if choice.q_p_value is None:
        return False
    tail = choice.q_p_value
    if _seeds([t.candidate for t in planned]) > _seeds([t.baseline for t in planned]):
        tail = cochran_q([task.candidate for task in so_far if task.shared]).p_value
    return tail < CRITICAL_TAIL


def _seeds(tasks: Sequence[Scores]) -> int:
    return len({s for task in tasks for run in task for s, x in enumerate(run) if x is not None})


def _has_repeats(tasks: Sequence[PairedTask]) -> bool:
    """Return whether two runs of the baseline have a judged trial, of whatever task."""
    judged = {
        run
        for task in tasks
        for run, scores in enumerate(task.baseline)
        if any(score is not None for score in scores)
    }
    return len(judged) > 1


def rounds_planned(side: Side) -> int:
    """Return the rounds of a plan: trial r of every task that has one is round r."""
    return max((len(row) for task in side.tasks.values() for row in task.outcomes), default=0)


def rounds_done(side: Side) -> int | None:
    """Return how many rounds were run; None where the trials are not those of whole rounds."""
    rounds = max(
        (_last_run(row) for task in side.tasks.values() for row in task.outcomes), default=0
    )
    whole = all(
        NOT_RUN not in row[:rounds] for task in side.tasks.values() for row in task.outcomes
    )
    return rounds if whole else None


def _last_run(row: str) -> int:
    return len(row.rstrip(NOT_RUN))

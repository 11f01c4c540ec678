"""Which trials a run consists of: pure, from a suite and a number of repeats."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from fnmatch import fnmatchcase

import msgspec

from ci_gate.errors import Problem, UsageError, printable
from ci_gate.model.run import Plan
from ci_gate.model.suite import PlannedTrial, Suite
from ci_gate.prng import derive_seed

__all__ = [
    "Round",
    "check_depth",
    "finished_rounds",
    "plan_of",
    "planned_trials",
    "restrict",
    "rounds_of",
    "with_trials",
]

Round = tuple[int, int]
"""Repeat and trial index: one trial of every task that has that many."""


def restrict(suite: Suite, pattern: str | None) -> Suite:
    """Return the suite with only the tasks whose id matches a glob; None keeps all.

    Raises
    ------
    UsageError
        No task matches.
    """
    if pattern is None:
        return suite
    tasks = tuple(task for task in suite.tasks if fnmatchcase(task.id, pattern))
    if not tasks:
        raise UsageError(
            f"--task {printable(pattern)!r} matches none of the {len(suite.tasks)} tasks of "
            f"suite {suite.name}",
            hint=f"The first is {printable(suite.tasks[0].id)!r}.",
        )
    return msgspec.structs.replace(suite, tasks=tasks)


def with_trials(suite: Suite, trials: int | None) -> Suite:
    """Return the suite with another default number of trials; None keeps its own."""
    return suite if trials is None else msgspec.structs.replace(suite, trials=trials)


def plan_of(suite: Suite, *, repeats: int, max_repeats: int) -> Plan:
    """Return what the header of the run says that it set out to do."""
    own = {task.id: task.trials for task in suite.tasks if task.trials is not None}
    return Plan(trials=suite.trials, task_trials=own, repeats=repeats, max_repeats=max_repeats)


def planned_trials(suite: Suite, *, repeats: int) -> Iterator[PlannedTrial]:
    """Yield the trials round by round: trial r of every task before trial r + 1 of any."""
    rounds = max(suite.trials_of(task) for task in suite.tasks)
    for repeat in range(repeats):
        for trial in range(rounds):
            for task in suite.tasks:
                if trial < suite.trials_of(task):
                    seed = derive_seed(task.base_seed, trial)
                    yield PlannedTrial(task=task, trial=trial, repeat=repeat, attempt=1, seed=seed)


def rounds_of(trials: Iterable[PlannedTrial]) -> list[Round]:
    """Return the rounds in which trials lie, in the order in which they are run."""
    return sorted({(trial.repeat, trial.trial) for trial in trials})


def finished_rounds(
    trials: Iterable[PlannedTrial], recorded: Container[tuple[str, int, int]]
) -> int:
    """Return in how many leading rounds every trial has a record.

    Parameters
    ----------
    trials : iterable of PlannedTrial
        Of the whole plan.
    recorded : container of (task, trial, repeat)
    """
    trials = list(trials)
    is_open = {(trial.repeat, trial.trial) for trial in trials if trial.key not in recorded}
    rounds = rounds_of(trials)
    return next((count for count, one in enumerate(rounds) if one in is_open), len(rounds))


def check_depth(suite: Suite, ks: tuple[int, ...], *, deterministic: bool) -> None:
    """Refuse a plan in which a task does not have the k seeds that a metric needs.

    Repeats do not count: they are no further seeds, and a check has one run. A deterministic suite
    is judged by flips and may have fewer.

    Raises
    ------
    UsageError
        Some task's trials are fewer than the largest k.
    """
    k = max(ks)
    short = [task for task in suite.tasks if suite.trials_of(task) < k]
    if deterministic or not short:
        return
    raise UsageError.of(
        Problem(
            what=f"task {printable(task.id)!r} has {suite.trials_of(task)} trials and the metric "
            f"pass^{k} needs {k}",
            where=task.source,
            hint=f"Raise its trials, or leave pass^{k} out of [gate] metrics.",
        )
        for task in short
    )

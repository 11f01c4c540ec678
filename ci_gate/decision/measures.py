"""What the trials of a side cost and how long they took.

Sums over tasks and runs; decides nothing. What is unknown is None, never 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import fsum

from ci_gate.model.run import FAILED, PASSED, Measure, SideTask

__all__ = ["economics_of"]

Tasks = Mapping[str, SideTask]


def economics_of(tasks: Tasks) -> dict[str, float | int | None]:
    """Return what a side's trials used, over all its tasks.

    Returns
    -------
    dict
        ``trials`` judged, ``successes``; totals ``cost_usd`` and ``tokens`` over the trials that
        know them, whose numbers are ``cost_known_trials`` and ``tokens_known_trials``; each per
        success where every judged trial knows it, else None (None at 0 successes stands for
        infinite); and the means of ``turns`` and ``duration_s`` over the trials that know them.
        Nothing is scaled up to trials that do not.
    """
    judged = sum(task.judged for task in tasks.values())
    successes = sum(task.count(PASSED) for task in tasks.values())
    cost, tokens = _Usage.of(tasks, "cost_usd"), _Usage.of(tasks, "tokens")
    return {
        "trials": judged,
        "successes": successes,
        "cost_usd": cost.total,
        "cost_known_trials": cost.trials,
        "cost_per_success_usd": _ratio(cost.total, successes) if cost.trials == judged else None,
        "tokens": tokens.total,
        "tokens_known_trials": tokens.trials,
        "tokens_per_success": _ratio(tokens.total, successes) if tokens.trials == judged else None,
        "turns": _Usage.of(tasks, "turns").mean,
        "duration_s": _Usage.of(tasks, "duration_s").mean,
    }


class _Usage:
    """One measure over the trials that know it."""

    def __init__(self, known: Iterable[tuple[float, int]]) -> None:
        runs = list(known)
        self.trials = sum(trials for _, trials in runs)
        self.total = fsum(mean * trials for mean, trials in runs) if runs else None

    @classmethod
    def of(cls, tasks: Tasks, name: str) -> _Usage:
        return cls(_known_means(tasks, name))

    @property
    def mean(self) -> float | None:
        return _ratio(self.total, self.trials)


def _known_means(tasks: Tasks, name: str) -> Iterator[tuple[float, int]]:
    """Yield a run's mean with the number of judged trials behind it."""
    for task in tasks.values():
        measures: tuple[Measure | None, ...] = task.measures.get(name, ())
        for measure, outcomes in zip(measures, task.outcomes, strict=False):
            if measure is not None and measure.mean is not None:
                judged = _judged(outcomes)
                # A file may claim more than it has trials.
                yield measure.mean, judged if measure.known is None else min(measure.known, judged)


def _judged(outcomes: str) -> int:
    return outcomes.count(PASSED) + outcomes.count(FAILED)


def _ratio(total: float | None, of: int | None) -> float | None:
    return total / of if total is not None and of else None

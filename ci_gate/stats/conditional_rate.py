"""How often this one baseline would block an unchanged agent, and how many runs would mend that.

A test's level holds on average over baselines. A baseline is drawn once and then judges every
change: tasks that passed more often than the suite makes likely are held against all of them. Here
the baseline's outcomes stay as they are and only the candidate is drawn. Knows counts and the test
of the gate; decides nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from ci_gate.stats.power import Change, Detection, Gate, KnownSuite, Plan, detection

MOST_RUNS = 16
"""Runs over the seeds up to which a remedy is looked for."""
_UNCHANGED = Change(shape="none")
_ROUGH, _SHARP = 0.02, 0.01
_MOST_REPEATS = 4096


def conditional_rate(
    suite: KnownSuite, trials: Sequence[int], gate: Gate, *, limit: float
) -> Detection:
    """Chance that an unchanged agent is blocked, given the baseline's outcomes.

    Parameters
    ----------
    suite
        The baseline.
    trials
        Seeds of a check, by task in the baseline's order; the first of the baseline's own.
    gate
        The test, with the strata and the correction that this baseline calls for.
    limit
        What the chance will be held against: it is simulated more sharply while it is close.

    Returns
    -------
    Detection
        ``share`` is the chance, ``error`` two standard errors.

    Notes
    -----
    The unchanged agent's chances are drawn from what the baseline's trials say of them
    (:func:`.fit_chances`): each task's own trials and what all tasks have in common, where seeds
    differ each seed's as well. On average over baselines this is the gate's level; it is above
    where outcomes are better than the suite as a whole explains.
    """
    found = _simulated(suite, trials, suite.runs, gate, _ROUGH)
    if abs(found.share - limit) < found.error:
        return _simulated(suite, trials, suite.runs, gate, _SHARP)
    return found


def _simulated(
    suite: KnownSuite, trials: Sequence[int], runs: int, gate: Gate, most_error: float
) -> Detection:
    plan = Plan(trials=tuple(trials), runs=runs)
    found = detection(
        suite, plan, _UNCHANGED, gate, most_error=most_error, most_repeats=_MOST_REPEATS
    )
    assert found is not None, "a suite can always stay as it is"
    return found


def mending_runs(
    suite: KnownSuite, trials: Sequence[int], gate: Gate, *, limit: float
) -> int | None:
    """Fewest runs of the baseline over its seeds with which the chance is at most ``limit``.

    Parameters
    ----------
    suite, trials, gate, limit
        As in :func:`conditional_rate`.

    Returns
    -------
    int or None
        More than the baseline has, at most :data:`MOST_RUNS`; None where even those do not. The
        chance with them is known to two points.

    Notes
    -----
    The runs that the baseline has keep their outcomes; the others are drawn as the candidate is.
    """

    def holds(runs: int) -> bool:
        return _simulated(suite, trials, runs, gate, _ROUGH).share <= limit

    if suite.runs >= MOST_RUNS or not holds(MOST_RUNS):
        return None
    return next(runs for runs in range(suite.runs + 1, MOST_RUNS + 1) if holds(runs))

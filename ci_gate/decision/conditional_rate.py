"""Whether a baseline itself makes the gate cry wolf: before a check runs, and what would mend it.

Says how often an unchanged agent would be blocked by *this* baseline, and warns where that is more
than twice alpha. It knows neither files nor who prints the warning.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from ci_gate.decision.accounting import Scores, scores_of
from ci_gate.decision.known_suite import any_judged, known_suite
from ci_gate.model.policy import Policy
from ci_gate.model.run import ErrorPolicy, Side
from ci_gate.stats.conditional_rate import MOST_RUNS, conditional_rate, mending_runs
from ci_gate.stats.power import Gate
from ci_gate.stats.run_effect import run_effect
from ci_gate.stats.seed_effect import CRITICAL_Z, choose_strata, z_seed

__all__ = ["FalseAlarms", "baseline_warnings", "false_alarms_given", "on_false_alarms"]

_DRAWS_SEED: Final = 0x20261030
_TIMES_ALPHA: Final = 2


class FalseAlarms(msgspec.Struct, frozen=True, kw_only=True):
    """How often a baseline blocks an unchanged agent.

    Attributes
    ----------
    rate : float
        Given the baseline's outcomes.
    error : float
        Two standard errors of the simulation.
    alpha : float
        What it is on average over baselines, at most.
    runs : int
        Runs that the baseline has.
    mended_by : int or None
        Runs with which the rate would be at most twice alpha; None where it is, or where not even
        16 would do.
    """

    rate: float
    error: float
    alpha: float
    runs: int
    mended_by: int | None

    @property
    def too_many(self) -> bool:
        """Whether the rate is more than twice alpha."""
        return self.rate > _TIMES_ALPHA * self.alpha


def false_alarms_given(
    baseline: Side, policy: Policy, *, trials: int | None = None
) -> FalseAlarms | None:
    """Return how often a check of an unchanged agent against this baseline would be red.

    Parameters
    ----------
    baseline : Side
    policy : Policy
        For its alpha, metrics, pairing, errors and quarantine.
    trials : int or None
        Seeds of a check; None: as many as the baseline has. A task whose seeds are its own keeps
        them.

    Returns
    -------
    FalseAlarms or None
        None where chance is not the question (a deterministic suite), where it is not simulated (a
        margin), or where the baseline has no task that passed.
    """
    tasks = _judged_tasks(baseline, policy)
    if policy.deterministic or policy.margin or not any(1 in run for task in tasks for run in task):
        return None
    widths = _widths(tasks, trials)
    seeded = baseline.root_seed is not None or any(t.seeds for t in baseline.tasks.values())
    suite = known_suite(tasks, by_seed=seeded and z_seed(tasks) > CRITICAL_Z)
    gate = _gate(tasks, widths, policy, seeded=seeded)
    limit = _TIMES_ALPHA * policy.alpha
    found = conditional_rate(suite, widths, gate, limit=limit)
    mended = mending_runs(suite, widths, gate, limit=limit) if found.share > limit else None
    return FalseAlarms(
        rate=found.share,
        error=found.error,
        alpha=policy.alpha,
        runs=suite.runs,
        mended_by=mended,
    )


def _judged_tasks(baseline: Side, policy: Policy) -> list[Scores]:
    errors: ErrorPolicy = "fail" if "fail" in (policy.errors, baseline.errors) else "exclude"
    held = {quarantine.task for quarantine in policy.quarantine}
    scores = (
        scores_of(t, errors) for name, t in sorted(baseline.tasks.items()) if name not in held
    )
    return [runs for runs in scores if any_judged(runs)]


def _widths(tasks: list[Scores], trials: int | None) -> list[int]:
    own = [max(map(len, runs)) for runs in tasks]
    usual = max(own, key=lambda width: (own.count(width), width))
    return [trials if trials is not None and width == usual else width for width in own]


def _gate(tasks: list[Scores], widths: list[int], policy: Policy, *, seeded: bool) -> Gate:
    # Which seeds the candidate will have run is all that is known of it, and all that is asked.
    candidate = [((0,) * width,) for width in widths]
    strata = choose_strata(tasks, candidate, seeded=seeded, pairing=policy.pairing).strata
    return Gate(
        level=policy.alpha,
        ks=policy.ks,
        strata=strata,
        seed=_DRAWS_SEED,
        phi=run_effect(tasks, strata=strata).correction,
    )


def baseline_warnings(
    baseline: Side, policy: Policy, *, trials: int | None = None
) -> tuple[str, ...]:
    """Return what to warn of where a baseline is set or shown; arguments as above."""
    return tuple(on_false_alarms(false_alarms_given(baseline, policy, trials=trials)))


def on_false_alarms(found: FalseAlarms | None) -> Iterator[str]:
    """Yield a warning where the rate is more than twice alpha."""
    if found is None or not found.too_many:
        return
    yield (
        f"Against this baseline {found.rate:.0%} of the checks of an unchanged agent would be red "
        f"(alpha = {found.alpha:g}): some of it passed more often than the suite as a whole makes "
        f"likely. {_remedy(found)}"
    )


def _remedy(found: FalseAlarms) -> str:
    if found.mended_by is None:
        return f"No number of runs over its seeds up to {MOST_RUNS} would mend that."
    more = found.mended_by - found.runs
    runs = "1 more run" if more == 1 else f"{more} more runs"
    return (
        f"With {runs} over its seeds ({found.mended_by} in all) it would be at most twice alpha: "
        "`ci-gate baseline update` adds them."
    )

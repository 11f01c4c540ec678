"""What a check would see before it is run: the answer of ``ci-gate power``.

Frozen facts in the units they are named by; how they were found is in ``ci_gate.stats.power``.
Money, tokens and time that the baseline does not know are None, never 0.
"""

from __future__ import annotations

from typing import Literal

import msgspec

__all__ = ["Bill", "KnownBaseline", "Prospect", "ProspectivePlan", "ProspectiveShape", "Sight"]

ProspectiveShape = Literal["none", "shift", "flaky", "broken"]


class Bill(msgspec.Struct, frozen=True, kw_only=True):
    """What a number of trials takes, from the baseline's averages of each task.

    Parameters
    ----------
    trials : int
    tokens, cost_usd : float or None
    duration_s : float or None
        With the jobs of the report at work at once.
    """

    trials: int
    tokens: float | None
    cost_usd: float | None
    duration_s: float | None


class Sight(msgspec.Struct, frozen=True, kw_only=True):
    """How often a change is blocked.

    Parameters
    ----------
    shape : {"none", "shift", "flaky", "broken"}
        ``shift``: every task a little worse. ``flaky``: tasks over 90 % fail a tenth more.
        ``broken``: the best task always fails.
    drop : float
        Of the suite's pass^1.
    blocked : float or None
        Share of simulated checks; None where the suite cannot fall by so much.
    error : float or None
        Two standard errors of it.
    repeats : int
        Simulated checks.
    """

    shape: ProspectiveShape
    drop: float
    blocked: float | None
    error: float | None
    repeats: int


class ProspectivePlan(msgspec.Struct, frozen=True, kw_only=True):
    """A plan for a wanted drop.

    Parameters
    ----------
    trials : int
        Seeds of a task that sets no number of its own.
    runs : int
        Runs over the seeds in the baseline.
    renewed : bool
        The baseline has fewer seeds, and is to be made anew.
    sight : Sight
        Of a ``shift``.
    check, baseline : Bill
        Of one check, and of what the baseline still lacks, which is paid once.
    cheapest : bool
        Of the plans here that reach the wanted power for this drop, the one with the fewest trials
        a check, then the fewest for the baseline.
    """

    trials: int
    runs: int
    renewed: bool
    sight: Sight
    check: Bill
    baseline: Bill
    cheapest: bool = False


class KnownBaseline(msgspec.Struct, frozen=True, kw_only=True):
    """The baseline that all figures rest on.

    Parameters
    ----------
    tasks, runs, trials : int
        Judged tasks, runs over the seeds, and seeds of a task that sets no number of its own.
    pass_1 : float
        Of the suite, as counted.
    strata : {"task", "task,seed"}
    z_seed : float or None
        Agreement by seed; None with a single run.
    """

    tasks: int
    runs: int
    trials: int
    pass_1: float
    strata: Literal["task", "task,seed"]
    z_seed: float | None


class Prospect(msgspec.Struct, frozen=True, kw_only=True):
    """What checks of a suite would see.

    Parameters
    ----------
    suite : str
    baseline : KnownBaseline
    trials : int
        Of a task in a check as it is configured.
    level, power : float
        The gate's alpha, and the wanted chance of detection.
    jobs : int
        Trials at a time, for durations.
    check : Bill
        Of one check as it is configured.
    detectable_drop : float or None
        Smallest ``shift`` that a check as configured blocks with the wanted power; None where it
        would not even see most of the suite fail.
    sights : tuple of Sight
        A check as configured, by shape of change.
    curve : tuple of Sight
        A check as configured over rising shifts.
    plans : tuple of ProspectivePlan
    unreached : tuple of float
        Wanted drops that no plan tried here sees with the wanted power.
    most_trials : int
        Trials of a task that were tried at most.
    remarks : tuple of str
    """

    schema: str = "ci-gate/power@1"
    suite: str
    baseline: KnownBaseline
    trials: int
    level: float
    power: float
    jobs: int
    check: Bill
    detectable_drop: float | None
    sights: tuple[Sight, ...]
    curve: tuple[Sight, ...]
    plans: tuple[ProspectivePlan, ...]
    unreached: tuple[float, ...]
    most_trials: int
    remarks: tuple[str, ...] = ()

"""What a team asks of a change: the keys of ``[gate]`` with what an error counts as."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from fractions import Fraction
from typing import Literal

import msgspec

__all__ = ["Guard", "Policy", "Quarantine", "as_written", "within_rate"]


def as_written(number: float) -> Fraction:
    """Return the number that somebody wrote: 0.7 is seven tenths, not the binary number beside it.

    Counts are held against what was written: 29 errors are 0.29 of 100 trials, and 7 passes are
    0.7 of 10, which the nearest binary numbers just miss.
    """
    return Fraction(repr(number))


def within_rate(errored: int, planned: int, rate: float) -> bool:
    """Return whether a share of trials is at most a rate, exactly; equal is within.

    Parameters
    ----------
    errored, planned : int
        Trials without a judgement, and those there should have been.
    rate : float
        From 0 to 1.
    """
    return errored <= as_written(rate) * planned


class Guard(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A limit on how far a measure may move; relative or absolute as the metric says.

    Parameters
    ----------
    metric : str
        ``cost_per_success_usd``, ``turns``, ``tokens``, ``duration_s`` (relative to the baseline),
        ``self_healing_rate``, ``dead_loop_rate`` or a process measure (absolute).
    max_increase, max_decrease : float or None
    """

    metric: str
    max_increase: float | None = None
    max_decrease: float | None = None


class Quarantine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A flaky task that is reported and not judged until a date, inclusive."""

    task: str
    owner: str
    until: datetime.date


class Policy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything the verdict depends on besides the two sides.

    Parameters
    ----------
    mode : {"blocking", "advisory"}
        Advisory reports everything and exits 0.
    metrics : tuple of str
        ``pass^K`` names, the suite metrics that are tested.
    alpha : float
        Chance, 0 < alpha < 1, that an unchanged agent is blocked.
    margin : float
        Drop of a suite metric that is accepted, 0 <= margin < 1.
    pairing : {"auto", "seed", "none"}
    require : {"no-regression", "non-inferiority"}
    on_inconclusive : {"fail", "pass"}
    on_borderline : {"stop", "extend"}
    curtail : bool or "strict"
    allow_removed : tuple of str
        Task ids (globs) that may vanish.
    floors : mapping of str to float
        Lowest accepted value of a suite metric.
    strict_floors : bool
        Compare the estimate itself, not its upper confidence bound.
    skip_unchanged : bool
    guards : tuple of Guard
    quarantine : tuple of Quarantine
    errors : {"exclude", "fail"}
        What an errored trial counts as, after retries.
    max_errored_rate : float
        Share of the planned trials that may stay unjudged.
    deterministic : bool
        The agent is a pure function of its seed.
    """

    mode: Literal["blocking", "advisory"] = "blocking"
    metrics: tuple[str, ...] = ("pass^1", "pass^8")
    alpha: float = 0.05
    margin: float = 0.0
    pairing: Literal["auto", "seed", "none"] = "auto"
    require: Literal["no-regression", "non-inferiority"] = "no-regression"
    on_inconclusive: Literal["fail", "pass"] = "fail"
    on_borderline: Literal["stop", "extend"] = "stop"
    curtail: bool | Literal["strict"] = True
    allow_removed: tuple[str, ...] = ()
    floors: Mapping[str, float] = msgspec.field(default_factory=dict)
    strict_floors: bool = False
    skip_unchanged: bool = False
    guards: tuple[Guard, ...] = ()
    quarantine: tuple[Quarantine, ...] = ()
    errors: Literal["exclude", "fail"] = "exclude"
    max_errored_rate: float = 0.05
    deterministic: bool = False

    def allows_errored(self, errored: int, planned: int) -> bool:
        """Return whether so many of the planned trials may stay unjudged."""
        return within_rate(errored, planned, self.max_errored_rate)

    @property
    def ks(self) -> tuple[int, ...]:
        """Return the k of each suite metric, in the order configured."""
        return tuple(int(metric.removeprefix("pass^")) for metric in self.metrics)

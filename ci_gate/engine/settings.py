"""What the engine is told and what it tells when a run has ended."""

from __future__ import annotations

import os
from collections.abc import Mapping

import msgspec

from ci_gate.model.run import StopReason

__all__ = ["EngineSettings", "RunResult", "default_jobs"]

_INLINE_JOBS = 64


def default_jobs(jobs: int, *, inline: bool, cores: int | None = None) -> int:
    """Return how many trials run at a time.

    Parameters
    ----------
    jobs : int
        As configured; 0 takes the default.
    inline : bool
        The trials only wait: many in one worker.
    cores : int or None
        None: of this machine.
    """
    if jobs > 0:
        return jobs
    return _INLINE_JOBS if inline else max(1, cores or os.cpu_count() or 1)


class EngineSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How trials are run.

    Parameters
    ----------
    jobs : int
        Trials at a time, at least 1.
    max_per_minute : int
        Starts of trials a minute; 0 is no limit.
    retries : int
        Further attempts of an errored trial at once; where there are any, it gets one more at the
        end of the run. 0: errored at the first trouble.
    seed : int
        Of the jitter between attempts.
    budget_usd : float or None
        No trial starts once this much is spent.
    laundered_patterns : tuple of str
        Regular expressions; an answer that matches is a provider's error, and the trial errored.
    backoff_s, longest_backoff_s : float
        Pause before the second attempt, doubled for each further one, and its bound.
    """

    jobs: int = 1
    max_per_minute: int = 0
    retries: int = 3
    seed: int = 0
    budget_usd: float | None = None
    laundered_patterns: tuple[str, ...] = ()
    backoff_s: float = 0.5
    longest_backoff_s: float = 30.0


class RunResult(msgspec.Struct, frozen=True, kw_only=True):
    """How a run ended; counts are of trials that this call ran.

    Parameters
    ----------
    reason : StopReason
        ``COMPLETE``, ``BUDGET`` or ``INTERRUPTED``.
    passed, failed, errored : int
        Trials by their last attempt.
    spent_usd : float
        What all attempts cost where known, with what had been spent before.
    laundered : mapping of str to int
        Trials that passed or failed and look like an unnoticed error, by kind: ``zero-tokens``,
        ``empty``, ``provider-error``; and ``beyond:<name>``, where a number was no amount.
    """

    reason: StopReason
    passed: int
    failed: int
    errored: int
    spent_usd: float
    laundered: Mapping[str, int]

"""When a trial may start and how long an errored one waits for its next attempt."""

from __future__ import annotations

from ci_gate.ports import Clock
from ci_gate.prng import MASK64, Xorshift64Star, derive_seed

__all__ = ["Pace", "backoff_s"]

_MINUTE_S = 60.0
_BURST_S = 1.0


class Pace:
    """A token bucket: so many starts a minute, spread over it.

    Parameters
    ----------
    per_minute : int
        0: no limit.
    clock : Clock

    Notes
    -----
    The bucket holds what comes in during one second, and at least one.
    """

    def __init__(self, per_minute: int, clock: Clock) -> None:
        self._interval_s = _MINUTE_S / per_minute if per_minute > 0 else 0.0
        self._clock = clock
        self._burst_s = max(0.0, _BURST_S - self._interval_s)
        self._next_s = clock.monotonic()

    async def turn(self) -> None:
        """Wait until the caller may start; callers get their turns in the order of their calls."""
        if not self._interval_s:
            return
        now = self._clock.monotonic()
        due = max(self._next_s, now - self._burst_s)
        self._next_s = due + self._interval_s
        if due > now:
            await self._clock.sleep(due - now)


def backoff_s(
    attempt: int, *, seed: int, trial_seed: int, base_s: float, longest_s: float
) -> float:
    """Return the pause in seconds after an errored attempt.

    Parameters
    ----------
    attempt : int
        The attempt that errored, 1 for the first.
    seed, trial_seed : int
        Of the run and of the trial: the jitter differs between trials and repeats itself.
    base_s, longest_s : float
        Pause after the first attempt, and its bound.

    Notes
    -----
    ``min(longest, base * 2**(attempt - 1)) * u`` with u uniform in [1/2, 1): trials that met the
    same outage do not come back together.
    """
    draws = Xorshift64Star(derive_seed((seed ^ trial_seed) & MASK64, attempt))
    pause_s: float = min(longest_s, base_s * 2.0 ** (min(attempt, 64) - 1))
    return pause_s * (0.5 + draws.below(1000) / 2000.0)

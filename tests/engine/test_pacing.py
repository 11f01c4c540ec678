"""Starts keep their rate, and pauses between attempts grow, differ and repeat themselves."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_gate.engine.pacing import Pace, backoff_s
from ci_gate.engine.settings import default_jobs
from tests.engine.fakes import QuickClock
from tests.speeds import slow

SEEDS = st.integers(0, 2**64 - 1)


@given(st.integers(1, 100), SEEDS, SEEDS)
def test_a_pause_lies_within_its_bounds(attempt: int, seed: int, trial_seed: int) -> None:
    """Half to one times the doubled pause, never beyond the longest, the same each time."""
    pause_s = backoff_s(attempt, seed=seed, trial_seed=trial_seed, base_s=0.5, longest_s=30.0)
    full_s = min(30.0, 0.5 * 2.0 ** min(attempt - 1, 10))
    assert 0.5 * full_s <= pause_s < full_s
    assert pause_s == backoff_s(
        attempt, seed=seed, trial_seed=trial_seed, base_s=0.5, longest_s=30.0
    )


def test_trials_of_one_outage_do_not_come_back_together() -> None:
    """The jitter differs between trials."""
    pauses = {backoff_s(1, seed=1, trial_seed=n, base_s=0.5, longest_s=30.0) for n in range(50)}
    assert len(pauses) > 40


@pytest.mark.parametrize("per_minute", [1, 30, 600, *slow(6000)])
def test_a_pace_lets_through_what_it_says(per_minute: int) -> None:
    """Over a long time the rate is kept, with a burst of one second's worth at most."""
    clock = QuickClock()

    async def main() -> float:
        pace = Pace(per_minute, clock)
        count = 10 * per_minute
        for _ in range(count):
            await pace.turn()
        return count

    count = asyncio.run(main())
    burst = max(1.0, per_minute / 60)
    assert clock.now_s == pytest.approx(60.0 * (count - burst) / per_minute, abs=1.1)


def test_without_a_pace_nobody_waits() -> None:
    """0 is no limit."""
    clock = QuickClock()

    async def main() -> None:
        for _ in range(100):
            await Pace(0, clock).turn()

    asyncio.run(main())
    assert clock.slept_s == []


@pytest.mark.parametrize(
    ("jobs", "inline", "cores", "expected"),
    [(0, False, 4, 4), (0, True, 4, 64), (7, False, 4, 7), (7, True, 4, 7), (0, False, 1, 1)],
)
def test_the_default_number_of_jobs(jobs: int, cores: int, expected: int, *, inline: bool) -> None:
    """What is configured counts; else the cores, and many where trials only wait."""
    assert default_jobs(jobs, inline=inline, cores=cores) == expected

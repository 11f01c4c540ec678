"""Which trial comes next, without an engine around it."""

from __future__ import annotations

import asyncio

import msgspec

from ci_gate.engine.judging import errored, record_of
from ci_gate.engine.schedule import Schedule, in_order
from ci_gate.engine.settings import EngineSettings
from ci_gate.model.suite import PlannedTrial
from tests.engine.fakes import QuickClock, plan


def test_who_waits_is_woken_by_the_end_and_by_a_pause() -> None:
    """A waiting puller gets the next attempt of a trial that another one brings back.

    The attempt at the end comes only when it is asked for.
    """

    async def main() -> list[int | None]:
        clock = QuickClock()
        schedule = Schedule(plan(["a"]), settings=EngineSettings(retries=1), clock=clock)
        first = await schedule.next()
        assert first is not None
        waiting = asyncio.ensure_future(schedule.next())
        await asyncio.sleep(0)
        assert not waiting.done()
        assert not settle(schedule, first)
        second = await waiting
        assert second is not None
        assert not settle(schedule, second)
        assert await schedule.next() is None
        assert not schedule.is_settled
        schedule.begin_last()
        last = await schedule.next()
        assert last is not None
        assert settle(schedule, last)
        assert await schedule.next() is None
        assert schedule.is_settled
        return [first.attempt, second.attempt, last.attempt]

    assert asyncio.run(main()) == [1, 2, 3]


def settle(schedule: Schedule, trial: PlannedTrial) -> bool:
    record = record_of(trial, errored("down"), None, duration_s=None)
    return schedule.settle(trial, record, is_errored=True)


def test_a_stopped_schedule_wakes_everybody_with_nothing() -> None:
    """After ``stop`` nobody gets a trial, also not who was waiting for one."""

    async def main() -> list[PlannedTrial | None]:
        schedule = Schedule(plan(["a"]), settings=EngineSettings(), clock=QuickClock())
        await schedule.next()
        waiting = [asyncio.ensure_future(schedule.next()) for _ in range(3)]
        await asyncio.sleep(0)
        schedule.stop()
        return [*await asyncio.gather(*waiting), await schedule.next()]

    assert asyncio.run(main()) == [None] * 4


def test_the_order_does_not_depend_on_how_the_plan_was_given() -> None:
    """Any permutation of the same trials is run in the same order."""
    trials = plan(["b", "a", "c"], trials=2, repeats=2)
    assert in_order(trials) == in_order(list(reversed(trials)))
    keys = [(t.repeat, t.trial, t.task.id) for t in in_order(trials)]
    assert keys == sorted(keys)
    assert len(msgspec.json.encode(keys)) > 0


def test_a_trial_that_comes_for_its_last_attempt_is_final_then() -> None:
    """However often a run is interrupted, a trial has no more attempts than in one go."""

    async def main() -> None:
        last = msgspec.structs.replace(plan(["a"])[0], attempt=4)
        schedule = Schedule([last], settings=EngineSettings(retries=2), clock=QuickClock())
        trial = await schedule.next()
        assert trial is not None
        assert settle(schedule, trial)
        assert schedule.is_settled

    asyncio.run(main())

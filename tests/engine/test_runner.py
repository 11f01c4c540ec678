"""A run: its order, its journal, its retries, its budget and its interruption."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_gate.engine.real_clock import RealClock
from ci_gate.errors import AgentSetupError, ContaminatedWorldError, GateError
from ci_gate.model.run import StopReason
from ci_gate.model.suite import PlannedTrial
from ci_gate.model.trial import Cause, Grade, Status, Trajectory, TrialRecord
from ci_gate.ports import Clock, RankedGrader, TrialErrored, TrialLost, TrialSandbox
from ci_gate.sandbox.world_factory import WorldFactory
from tests.agents.desks import Desk
from tests.engine.fakes import (
    ERRORS,
    FAILS,
    PASSES,
    Journal,
    QuickClock,
    Saying,
    ScriptedAgent,
    Worlds,
    go,
    plan,
    run,
)


def test_rounds_come_one_after_the_other() -> None:
    """Repeat before trial before task: trial r of every task before trial r + 1 of any."""
    agent = ScriptedAgent()
    result = run(plan(["a", "b"], trials=2, repeats=2), agent)
    assert [key[:3] for key in agent.asked] == [
        (task, trial, repeat) for repeat in (0, 1) for trial in (0, 1) for task in ("a", "b")
    ]
    assert (result.reason, result.passed) == (StopReason.COMPLETE, 8)


def test_a_trial_is_kept_before_it_is_counted() -> None:
    """Each record is in the sink when it is counted, and each trial is there exactly once."""
    journal = Journal()
    run(plan(["a", "b"], trials=3), ScriptedAgent(), journal=journal, jobs=3)
    assert journal.events[0] == ("planned", (6, 0))
    events = journal.events[1:]
    assert events[::2] == [("kept", key) for _, key in events[1::2]]
    assert len({key for _, key in events}) == 6


@pytest.mark.parametrize(("jobs", "trials", "most"), [(1, 8, 1), (4, 8, 4), (30, 8, 24), (0, 1, 1)])
def test_no_more_trials_at_a_time_than_allowed(jobs: int, trials: int, most: int) -> None:
    """The number of jobs holds and is used as far as there are trials; one is the least."""
    agent = ScriptedAgent(wait_s=0.001)
    run(plan(["a", "b", "c"], trials=trials), agent, jobs=jobs)
    assert agent.most_in_flight == most


def test_the_record_says_what_happened() -> None:
    """Digest, seed, measures, grades and duration of a trial are in its line."""

    def script(_: PlannedTrial) -> Trajectory:
        return Trajectory(answer="no", turns=2, tokens=9, cost_usd=0.5, measures={"m": 1.0})

    journal = Journal()
    run(plan(["a"]), ScriptedAgent(script), journal=journal)
    assert journal.records == [
        TrialRecord(
            task="a",
            task_digest="sha256:a",
            trial=0,
            seed="0x0000000000000001",
            status=Status.FAILED,
            reason="answer: another answer",
            cause=Cause.AGENT,
            turns=2,
            tokens=9,
            cost_usd=0.5,
            duration_s=0.0,
            faults=0,
            recovered=0,
            measures={"m": 1.0},
            grades=(Grade(grader="answer", passed=False, reason="another answer"),),
            answers=journal.records[0].answers,
        )
    ]


def test_an_errored_trial_is_tried_again_with_growing_pauses() -> None:
    """The attempts count up, the pauses double within their jitter, and a success ends them."""
    clock = QuickClock()
    agent = ScriptedAgent(lambda trial: PASSES if trial.attempt == 4 else ERRORS)
    journal = Journal()
    run(plan(["a"]), agent, clock=clock, journal=journal)
    assert [attempt for *_, attempt in agent.asked] == [1, 2, 3, 4]
    assert all(
        0.5 * step <= pause < step for step, pause in zip((0.5, 1, 2), clock.slept_s, strict=True)
    )
    assert [(key, r.attempt) for key, r in journal.last.items()] == [(("a", 0, 0), 4)]
    assert journal.statuses == {"passed": 1}


def test_every_attempt_that_ended_is_kept_when_it_ends() -> None:
    """The sink holds each attempt under its own number, so its lines are all that was spent."""
    script = {
        1: Trajectory(status=Status.ERRORED, reason="down", cost_usd=0.25),
        2: Trajectory(status=Status.ERRORED, reason="down", cost_usd=0.5),
        3: Trajectory(answer="ok", cost_usd=1.0),
    }
    journal = Journal()
    agent = ScriptedAgent(lambda trial: script[trial.attempt])
    result = run(plan(["a"]), agent, journal=journal, retries=1)
    assert [(r.attempt, r.status, r.cost_usd) for r in journal.records] == [
        (1, Status.ERRORED, 0.25),
        (2, Status.ERRORED, 0.5),
        (3, Status.PASSED, 1.0),
    ]
    assert [name for name, _ in journal.events].count("counted") == 1
    assert result.spent_usd == 1.75


@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(0, 2)), min_size=1, max_size=4),
    st.integers(1, 3),
)
def test_no_attempt_comes_twice_over_any_number_of_sessions(
    sessions: list[tuple[int, int]], jobs: int
) -> None:
    """Cut anywhere and resumed from its lines, a run never uses a number of an attempt again."""
    journal = Journal()
    for money, retries in sessions:
        trials = [
            msgspec.structs.replace(trial, attempt=journal.last[trial.key].attempt + 1)
            if trial.key in journal.last
            else trial
            for trial in plan(["a", "b"])
        ]
        down = Trajectory(status=Status.ERRORED, reason="down", cost_usd=1.0)
        agent = ScriptedAgent(lambda _, down=down: down)
        run(trials, agent, journal=journal, jobs=jobs, retries=retries, budget_usd=float(money))
    attempts = [(*r.key, r.attempt) for r in journal.records]
    assert len(attempts) == len(set(attempts))
    for task in ("a", "b"):
        numbers = [r.attempt for r in journal.records if r.task == task]
        assert numbers == list(range(1, len(numbers) + 1))


def test_what_stays_errored_gets_one_more_attempt_at_the_end() -> None:
    """After all other trials are done, an errored one is tried once more, and then it stays so."""
    agent = ScriptedAgent(lambda t: ERRORS if t.task.id == "a" else PASSES)
    journal = Journal()
    result = run(plan(["a", "b"], trials=3), agent, journal=journal, retries=1)
    last = agent.asked[-3:]
    assert [(task, attempt) for task, _, _, attempt in last] == [("a", 3)] * 3
    assert journal.statuses == {"passed": 3, "errored": 3}
    assert {r.attempt for r in journal.last.values() if r.status is Status.ERRORED} == {3}
    assert (result.reason, result.errored) == (StopReason.COMPLETE, 3)


def test_an_outage_that_ends_before_the_run_does_costs_no_trial() -> None:
    """The attempt at the end can still turn an errored trial into a judged one."""
    agent = ScriptedAgent(lambda t: PASSES if t.attempt == 3 else ERRORS)
    journal = Journal()
    run(plan(["a", "b"]), agent, journal=journal, retries=1)
    assert journal.statuses == {"passed": 2}


def test_without_retries_an_errored_trial_is_final() -> None:
    """``retries = 0`` takes the first trouble as the result."""
    agent = ScriptedAgent(lambda _: ERRORS)
    run(plan(["a"]), agent, retries=0)
    assert len(agent.asked) == 1


def test_a_failure_is_never_tried_again() -> None:
    """A failed trial is the agent's failure, whatever the number of retries."""
    agent = ScriptedAgent(lambda _: FAILS)
    result = run(plan(["a"], trials=4), agent, retries=5)
    assert len(agent.asked) == 4
    assert result.failed == 4


@given(
    st.lists(st.sampled_from(["+", "-", "!", "!+", "!!-", "!!!", "!!!+"]), min_size=1, max_size=8),
    st.integers(1, 5),
)
def test_every_trial_ends_as_its_last_attempt(stories: list[str], jobs: int) -> None:
    """Whatever errors and when, each trial counts once, with the status of its last attempt."""
    known = {"+": PASSES, "-": FAILS, "!": ERRORS}

    def script(trial: PlannedTrial) -> Trajectory:
        story = stories[int(trial.task.id)]
        return known[story[min(trial.attempt, len(story)) - 1]]

    journal = Journal()
    trials = plan([str(i) for i in range(len(stories))])
    result = run(trials, ScriptedAgent(script), journal=journal, jobs=jobs, retries=2)
    ends = {str(i): known[story[-1]].status or Status.PASSED for i, story in enumerate(stories)}
    assert {r.task: r.status for r in journal.last.values()} == ends
    assert [name for name, _ in journal.events].count("counted") == len(stories)
    assert result.passed + result.failed + result.errored == len(stories)


class Breaking:
    """A grader that is broken."""

    def grade(self, trial: PlannedTrial, trajectory: Trajectory, sandbox: TrialSandbox) -> Grade:
        """Break for one task."""
        if trial.task.id == "a":
            raise ZeroDivisionError("grader")
        return Saying().grade(trial, trajectory, sandbox)


class BreakingWorlds(Worlds):
    """Worlds that cannot be made for one task."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error = error

    def open(self, trial: PlannedTrial) -> Any:
        """Break for one task."""
        if trial.task.id == "a":
            raise self._error
        return super().open(trial)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (
            {"graders": {task: (RankedGrader(Breaking()),) for task in "ab"}},
            "harness: ZeroDivisionError: gra",
        ),
        ({"worlds": BreakingWorlds(OSError("disk"))}, "harness: OSError: disk"),
        ({"worlds": BreakingWorlds(TrialErrored("contaminated: x"))}, "contaminated: x"),
        ({"worlds": BreakingWorlds(ContaminatedWorldError("contaminated: y"))}, "contaminated: y"),
    ],
)
def test_trouble_of_one_trial_does_not_stop_the_others(
    options: dict[str, Any], reason: str
) -> None:
    """A world, a grader or the harness that breaks makes that trial errored; the run goes on."""
    journal = Journal()
    result = run(plan(["a", "b"]), ScriptedAgent(), journal=journal, retries=1, **options)
    assert journal.statuses == {"errored": 1, "passed": 1}
    (bad,) = [r for r in journal.last.values() if r.status is Status.ERRORED]
    assert (bad.reason or "").startswith(reason)
    assert result.reason is StopReason.COMPLETE


def test_an_agent_that_raises_is_the_harness_that_broke() -> None:
    """An exception out of ``run`` is no failure of the agent's, which would be in the result."""
    journal = Journal()
    run(plan(["a"]), ScriptedAgent(lambda _: RuntimeError("a\nb")), journal=journal, retries=0)
    assert journal.records[0].status is Status.ERRORED
    assert journal.records[0].reason == r"harness: RuntimeError: a\nb"


def test_a_lost_trial_runs_again_in_a_fresh_world_as_the_same_attempt() -> None:
    """What a neighbour ended is not counted: neither as attempt, nor as failure, nor as record."""
    losses = iter([True, True, False])
    agent = ScriptedAgent(lambda _: TrialLost("neighbour") if next(losses) else PASSES)
    journal, worlds = Journal(), Worlds()
    run(plan(["a"]), agent, journal=journal, worlds=worlds)
    assert [(r.status, r.attempt) for r in journal.records] == [(Status.PASSED, 1)]
    assert [world.closed for world in worlds.opened] == [1, 1, 1]


def test_a_trial_that_is_lost_again_and_again_is_errored() -> None:
    """There is a bound, after which the harness is at fault."""
    journal = Journal()
    agent = ScriptedAgent(lambda _: TrialLost("neighbour"))
    run(plan(["a"]), agent, journal=journal, retries=0)
    assert journal.records[0].reason == "harness: lost 3 times: neighbour"


def test_an_agent_that_turns_out_not_to_start_ends_the_run() -> None:
    """An error of the set-up is no trial's trouble: it reaches the caller, and nothing is kept."""
    agent, journal = ScriptedAgent(lambda _: AgentSetupError("no such module")), Journal()
    with pytest.raises(AgentSetupError):
        run(plan(["a"], trials=9), agent, journal=journal, jobs=2)
    assert not journal.records


def test_a_sink_that_cannot_keep_a_record_ends_the_run() -> None:
    """A full disk is no trial's trouble: nothing is counted that was not kept."""

    class Full(Journal):
        def append(self, record: TrialRecord) -> None:
            if len(self.records) == 2:
                raise GateError("no space left")
            super().append(record)

    agent, journal = ScriptedAgent(), Full()
    with pytest.raises(GateError, match="no space left"):
        run(plan(["a"], trials=9), agent, journal=journal, jobs=3)
    assert [name for name, _ in journal.events].count("counted") == 2
    assert agent.in_flight == 0


def test_nothing_planned_is_complete() -> None:
    """A finished run that is resumed asks the agent for nothing."""
    agent = ScriptedAgent()
    assert (run([], agent).reason, agent.asked) == (StopReason.COMPLETE, [])


def test_a_budget_stops_starts_and_finishes_what_is_in_flight() -> None:
    """No trial starts once the money is spent; those that run end, and the reason is said."""
    agent = ScriptedAgent(lambda _: Trajectory(answer="ok", cost_usd=0.5), wait_s=0.001)
    journal = Journal()
    result = run(plan(["a"], trials=20), agent, journal=journal, jobs=2, budget_usd=2.0)
    assert result.reason is StopReason.BUDGET
    assert 4 <= len(journal.records) <= 5
    assert result.spent_usd == 0.5 * len(journal.records)


def test_a_budget_counts_what_was_spent_before() -> None:
    """A resumed run that has spent its budget starts nothing."""
    agent = ScriptedAgent()
    result = run(plan(["a"]), agent, budget_usd=1.0, spent_usd=1.0)
    assert (result.reason, agent.asked) == (StopReason.BUDGET, [])


def test_a_budget_that_lasts_to_the_end_is_no_stop() -> None:
    """A run whose last trial spends the rest is complete."""
    agent = ScriptedAgent(lambda _: Trajectory(answer="ok", cost_usd=1.0))
    assert run(plan(["a"], trials=2), agent, budget_usd=2.0).reason is StopReason.COMPLETE


def test_errored_trials_that_a_budget_cuts_are_kept_as_errored() -> None:
    """A trial that waited for its next attempt when the money ended is in the journal."""
    script = {
        "a": Trajectory(status=Status.ERRORED, reason="down", cost_usd=0.1),
        "b": Trajectory(answer="ok", cost_usd=5.0),
    }
    journal = Journal()
    agent = ScriptedAgent(lambda trial: script[trial.task.id])
    result = run(plan(["a", "b"], trials=3), agent, journal=journal, budget_usd=1.0)
    assert [(r.task, r.status) for r in journal.records] == [
        ("a", Status.ERRORED),
        ("b", Status.PASSED),
    ]
    assert journal.events[-1] == ("counted", ("a", 0, 0))
    assert (result.reason, result.errored) == (StopReason.BUDGET, 1)


def test_an_interruption_ends_the_trials_and_keeps_what_finished() -> None:
    """However often it is cancelled, ``interrupted`` is returned with no trial left in flight."""
    journal, worlds = Journal(), Worlds()
    agent = ScriptedAgent(wait_s=0.01)

    async def main() -> Any:
        trials = plan(["a"], trials=1000)
        running = asyncio.ensure_future(
            go(trials, agent, journal=journal, worlds=worlds, jobs=5, clock=RealClock())
        )
        while len(journal.records) < 12:
            await asyncio.sleep(0.001)
        running.cancel()
        await asyncio.sleep(0)
        running.cancel()
        return await running

    result = asyncio.run(main())
    assert result.reason is StopReason.INTERRUPTED
    assert result.passed == len(journal.records) < 1000
    assert agent.in_flight == 0
    assert all(world.closed == 1 for world in worlds.opened)


def test_the_pace_holds_across_pullers() -> None:
    """Starts of trials keep the rate, however many may be in flight."""
    clock = QuickClock()
    run(plan(["a"], trials=121), ScriptedAgent(), clock=clock, jobs=4, max_per_minute=60)
    assert 119 <= clock.now_s <= 121


def test_suspicions_are_counted_over_judged_trials() -> None:
    """Zero tokens, empty trajectories and provider errors as answers are counted by kind."""
    answers = {
        "a": Trajectory(answer="ok", tokens=0),
        "b": Trajectory(),
        "c": Trajectory(answer="Error code: 529 - overloaded_error"),
        "d": PASSES,
    }
    result = run(plan([*answers], trials=2), ScriptedAgent(lambda t: answers[t.task.id]))
    assert result.laundered == {"zero-tokens": 2, "empty": 2, "provider-error": 2}


def test_a_laundered_pattern_makes_the_trial_errored() -> None:
    """An answer that is a provider's error by configuration is tried again, not judged."""
    answers = iter(["upstream error 12", "ok"])
    agent = ScriptedAgent(lambda _: Trajectory(answer=next(answers)))
    journal = Journal()
    run(plan(["a"]), agent, journal=journal, laundered_patterns=(r"upstream error \d+",))
    assert [(r.status, r.attempt) for r in journal.records] == [
        (Status.ERRORED, 1),
        (Status.PASSED, 2),
    ]


def test_the_quick_clock_is_a_clock_like_the_real_one() -> None:
    """The fake and the real clock fill the same port: time moves by at least what is slept."""

    async def moved(clock: Clock) -> float:
        start_s = clock.monotonic()
        await clock.sleep(0.01)
        return clock.monotonic() - start_s

    for clock in (QuickClock(), RealClock()):
        assert asyncio.run(moved(clock)) >= 0.0099
        assert len(clock.utc()) == len("2026-01-01T00:00:00Z")


SOURCE = """
import os
def buy(amount):
    return {"paid": amount}
def run(task, env):
    env.tools.register(buy)
    chance = env.rng.random()
    if chance < 0.2:
        raise ValueError("unlucky")
    if chance < 0.25:
        os._exit(1)
    seen = env.tools.observe("buy", amount=env.trial)
    return "ok" if chance < 0.8 else seen.text
"""


def test_the_same_plan_gives_the_same_records_for_every_number_of_jobs(tmp_path: Path) -> None:
    """With real workers and worlds, order and concurrency change nothing but times."""
    found = []
    for jobs, isolation in ((1, "process"), (3, "process"), (8, "inline")):
        journal = Journal()
        agent = Desk(tmp_path, SOURCE).python(jobs=jobs, isolation=isolation)
        with WorldFactory(tmp_path, None) as worlds:
            run(
                plan(["a", "b", "c"], trials=6),
                agent,
                journal=journal,
                worlds=worlds,
                jobs=jobs,
                clock=RealClock(),
            )
        lines = [(*r.key, r.seed, r.status, r.reason, r.faults, r.grades) for r in journal.records]
        found.append(sorted(lines))
    assert found[0] == found[1] == found[2]
    assert len(Counter(line[4] for line in found[0])) == 2

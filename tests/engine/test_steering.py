"""Rounds: what a steering says is run next, and nothing before it says so."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from ci_gate.model.run import StopReason
from ci_gate.model.suite import PlannedTrial
from ci_gate.model.trial import Trajectory
from ci_gate.ports import Steering
from tests.engine.fakes import ERRORS, PASSES, Journal, ScriptedAgent, plan, run


class Rounds:
    """Hands out one batch after the other, and notes what it was asked and what was done then.

    A doubting one wants to stop after each round, and thinks better of it once all is settled.
    """

    def __init__(
        self,
        batches: Sequence[Sequence[PlannedTrial]],
        journal: Journal | None = None,
        *,
        doubting: bool = False,
    ) -> None:
        self.batches = list(batches)
        self.journal = journal or Journal()
        self.doubting = doubting
        self.asked: list[tuple[bool, int]] = []

    def next_trials(self, *, settled: bool) -> Sequence[PlannedTrial] | None:
        """Return the next batch; None where there is none."""
        self.asked.append((settled, len(self.journal.records)))
        if self.doubting and not settled:
            return None
        return self.batches.pop(0) if self.batches else None


def rounds_of(tasks: Sequence[str], trials: int) -> list[list[PlannedTrial]]:
    """Return the plan's trials round by round."""
    every = plan(tasks, trials=trials)
    return [[trial for trial in every if trial.trial == index] for index in range(trials)]


@pytest.mark.parametrize("jobs", [1, 2, 7])
def test_no_trial_of_a_later_round_starts_before_the_decision(jobs: int) -> None:
    """Whatever the number of jobs, a round is over when the steering is asked."""
    first, *later = rounds_of("abc", 3)
    journal, agent = Journal(), ScriptedAgent(wait_s=0.001)
    steering = Rounds(later, journal)

    result = run(first, agent, journal=journal, steering=steering, jobs=jobs)

    assert steering.asked == [(True, 3), (True, 6), (True, 9)]
    assert [trial for _, trial, _, _ in agent.asked] == [0] * 3 + [1] * 3 + [2] * 3
    assert (result.reason, result.passed) == (StopReason.COMPLETE, 9)


def test_retries_happen_within_their_round() -> None:
    """A round with a trial that pauses for its next attempt is not over."""
    first, *later = rounds_of("ab", 2)
    journal = Journal()
    agent = ScriptedAgent(lambda t: PASSES if t.attempt == 3 or t.task.id == "b" else ERRORS)
    steering = Rounds(later, journal)

    run(first, agent, journal=journal, steering=steering, retries=2)

    assert steering.asked == [(True, 4), (True, 8)]
    assert journal.statuses == {"passed": 4}


def test_what_stays_errored_is_tried_once_more_before_the_end_and_the_steering_asked_again() -> (
    None
):
    """The attempt at the end is made when the steering wants to stop, which may then go on."""
    first, second, third = rounds_of("ab", 3)
    journal = Journal()
    agent = ScriptedAgent(lambda t: ERRORS if t.task.id == "a" and t.attempt < 3 else PASSES)

    steering = Rounds([second, third], journal, doubting=True)
    run(first, agent, journal=journal, steering=steering, retries=1)

    attempts = [(task, trial, attempt) for task, trial, _, attempt in agent.asked]
    assert attempts[:4] == [("a", 0, 1), ("b", 0, 1), ("a", 0, 2), ("a", 0, 3)]
    assert attempts[4:8] == [("a", 1, 1), ("b", 1, 1), ("a", 1, 2), ("a", 1, 3)]
    assert steering.asked == [(False, 3), (True, 4), (False, 7), (True, 8), (False, 11), (True, 12)]
    assert journal.statuses == {"passed": 6}


def test_a_trial_has_one_attempt_at_the_end_however_often_the_run_does_not_end() -> None:
    """What stayed errored at a stop that was not made is final."""
    first, second = rounds_of("a", 2)
    agent = ScriptedAgent(lambda t: ERRORS if t.trial == 0 else PASSES)

    result = run(first, agent, steering=Rounds([second], doubting=True), retries=1)

    assert [(trial, attempt) for _, trial, _, attempt in agent.asked] == [
        *((0, 1), (0, 2), (0, 3)),
        (1, 1),
    ]
    assert (result.passed, result.errored) == (1, 1)


def test_late_trials_of_an_earlier_session_wait_for_the_end() -> None:
    """They run after the round, as the attempt they come with, and once."""
    (first,) = rounds_of("ab", 1)
    late = [trial for trial in first if trial.task.id == "a"]
    due = [trial for trial in first if trial.task.id == "b"]
    agent = ScriptedAgent(lambda t: ERRORS if t.task.id == "a" else PASSES)

    result = run(due, agent, steering=Rounds([]), late=late, retries=1)

    assert [(task, attempt) for task, _, _, attempt in agent.asked] == [("b", 1), ("a", 1)]
    assert (result.passed, result.errored) == (1, 1)


def test_a_resumed_run_that_is_enough_runs_nothing() -> None:
    """Without a trial that is due the steering is asked first."""
    agent, steering = ScriptedAgent(), Rounds([])
    assert run([], agent, steering=steering).reason is StopReason.COMPLETE
    assert (agent.asked, steering.asked) == ([], [(True, 0)])


def paid(trial: PlannedTrial) -> Trajectory:
    return Trajectory(answer="ok", cost_usd=1.0)


@pytest.mark.parametrize(
    ("budget_usd", "reason", "asked"),
    [(2.0, StopReason.BUDGET, 1), (4.0, StopReason.COMPLETE, 2), (1.0, StopReason.BUDGET, 0)],
)
def test_a_budget_stops_between_rounds_unless_the_run_ends_there(
    budget_usd: float, reason: StopReason, asked: int
) -> None:
    """A decision costs nothing: the one on a whole round is still taken, no trial starts."""
    first, second = rounds_of("ab", 2)
    agent, steering = ScriptedAgent(paid), Rounds([second])

    result = run(first, agent, steering=steering, budget_usd=budget_usd)

    assert result.reason is reason
    assert len(steering.asked) == asked
    assert len(agent.asked) == int(budget_usd)


def test_a_plan_may_grow() -> None:
    """Trials of further repeats that the steering adds are run and counted."""
    first = plan("ab", trials=2)
    more = [trial for trial in plan("ab", trials=2, repeats=2) if trial.repeat]
    agent = ScriptedAgent()

    result = run(first, agent, steering=Rounds([more]), jobs=3)

    assert result.passed == 8
    assert [repeat for _, _, repeat, _ in agent.asked] == [0] * 4 + [1] * 4


def test_the_fake_is_a_steering() -> None:
    """It fills the port."""
    steering: Steering = Rounds([])
    ask: Callable[..., object] = steering.next_trials
    assert ask(settled=True) is None

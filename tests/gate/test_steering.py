"""A run that is decided on its way: the same end whatever cuts it, and in how many sessions."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from ci_gate.decision.curtailment import RoundDecision, decide_round, why_not_curtailed
from ci_gate.decision.extension import ExtensionLook
from ci_gate.gate.planning import plan_of
from ci_gate.gate.steering import Decisions, Measurement, Session, may_be_steered, steered
from ci_gate.model.policy import Policy
from ci_gate.model.run import NOT_RUN, RunHeader, Side, Stop, StopReason
from ci_gate.model.suite import PlannedTrial, Suite
from ci_gate.model.trial import Trajectory, TrialRecord
from tests.engine.fakes import ERRORS, FAILS, PASSES, Journal, ScriptedAgent, go
from tests.notation import side_of
from tests.speeds import examples
from tests.trials import task_of

KNOWN = {"+": PASSES, "-": FAILS, "!": ERRORS}
ROUNDS = 3


def suite_of(tasks: str, **own: int) -> Suite:
    """Return a suite of three trials a task, but for those with their own number."""
    known = tuple(task_of(name, trials=own.get(name)) for name in tasks)
    return Suite(name="desk", root_seed=1, trials=ROUNDS, tasks=known, digest="sha256:0")


def measurement_of(suite: Suite, *, retries: int = 1, **plan: object) -> Measurement:
    """Return what is measured by a plan of these fields."""
    planned = msgspec.structs.replace(plan_of(suite, repeats=1, max_repeats=4), **plan)
    baseline = side_of(" ".join(f"{task.id} ++++" for task in suite.tasks), kind="baseline")
    return Measurement(
        suite=suite,
        header=RunHeader(suite=suite.name, plan=planned),
        baseline=baseline,
        policy=Policy(),
        retries=retries,
    )


def outcomes(side: Side) -> bytes:
    """Return all outcomes of a side."""
    return repr([(task, one.outcomes) for task, one in side.tasks.items()]).encode()


def whimsical(chance: int) -> Decisions:
    """Return decisions that hang on every single outcome."""

    def decide(_: Side, candidate: Side, __: Policy) -> RoundDecision:
        found = zlib.crc32(outcomes(candidate))
        stops = found % chance == 0
        reason = StopReason.CURTAILED_PASS if stops else None
        return RoundDecision(predictive=found / 2**32, reason=reason)

    def look(_: Side, candidate: Side, __: Policy) -> ExtensionLook:
        repeats = max(len(task.outcomes) for task in candidate.tasks.values())
        grows = zlib.crc32(outcomes(candidate)) % chance and repeats < 4
        return ExtensionLook(p_value=0.1, level=0.025, repeats=repeats * 2 if grows else None)

    return Decisions(round=decide, extension=look)


@dataclass
class Watcher:
    """Notes what a watcher is told."""

    decided_at: list[tuple[int, int, float | None]] = field(default_factory=list)
    totals: list[int] = field(default_factory=list)

    def planned(self, total: int, done: int) -> None:
        """Do nothing."""

    def finished(self, record: TrialRecord) -> None:
        """Do nothing."""

    def decided(self, done: int, rounds: int, predictive: float | None) -> None:
        """Note the decision."""
        self.decided_at.append((done, rounds, predictive))

    def extended(self, total: int) -> None:
        """Note the new total."""
        self.totals.append(total)


Script = Callable[[PlannedTrial], Trajectory]


def session(
    measurement: Measurement,
    script: Script,
    lines: Sequence[TrialRecord],
    decisions: Decisions,
    *,
    jobs: int = 1,
    watcher: Watcher | None = None,
) -> tuple[list[TrialRecord], Stop, ScriptedAgent]:
    """Go on from the lines of a journal to the end; return all lines, and how it ended."""
    survivors: dict[tuple[str, int, int], TrialRecord] = {}
    for line in lines:
        survivors.pop(line.key, None)
        survivors[line.key] = line
    journal, agent = Journal(), ScriptedAgent(script)
    run = steered(
        Session(
            measurement=measurement,
            records=survivors,
            sink=journal,
            watcher=watcher or Watcher(),
            decisions=decisions,
        )
    )
    result = asyncio.run(
        go(
            run.due,
            agent,
            sink=run,
            steering=run,
            late=run.late,
            jobs=jobs,
            retries=measurement.retries,
        )
    )
    assert result.reason is StopReason.COMPLETE
    return [*lines, *journal.records], run.stop, agent


def final(lines: Sequence[TrialRecord]) -> list[tuple[object, ...]]:
    """Return what a sorted file says of each trial, timing aside."""
    last = {line.key: line for line in lines}
    return sorted((*key, one.attempt, one.status.value) for key, one in last.items())


def told(stories: Sequence[str]) -> Script:
    """Return a script in which each trial tells a story, an outcome an attempt."""

    def script(trial: PlannedTrial) -> Trajectory:
        place = (ord(trial.task.id) + 3 * trial.trial + 7 * trial.repeat) % len(stories)
        story = stories[place]
        return KNOWN[story[min(trial.attempt, len(story)) - 1]]

    return script


STORIES = st.lists(
    st.sampled_from(["+", "-", "!+", "!!+", "!!-", "!!!", "!!!+"]), min_size=3, max_size=12
)


def stopping_at(*states: str) -> Decisions:
    """Return decisions that stop at these outcomes of all tasks."""

    def decide(_: Side, candidate: Side, __: Policy) -> RoundDecision:
        state = " ".join(row for task in candidate.tasks.values() for row in task.outcomes)
        reason = StopReason.CURTAILED_PASS if state in states else None
        return RoundDecision(predictive=0.5, reason=reason)

    return Decisions(round=decide, extension=whimsical(2).extension)


@pytest.mark.parametrize(
    ("stories", "states", "expected"),
    [
        # Both errored trials are tried again before the stop, which their outcomes then confirm.
        ({"a0": "!!+", "b0": "!!-"}, ("!.. !..", "+.. -.."), (1, "+.. -..")),
        # The stop after the first round is not confirmed; the next errored trial waits for the end.
        ({"a0": "!!+", "a1": "!!+"}, ("!.. +..", "++. ++."), (3, "+++ +++")),
    ],
)
def test_attempts_at_the_end_that_are_cut_short_are_made_before_anything_is_decided(
    stories: dict[str, str], states: tuple[str, ...], expected: tuple[int, str]
) -> None:
    """A run resumed in the middle of them, or after them, does not take them for a round's."""

    def script(trial: PlannedTrial) -> Trajectory:
        story = stories.get(f"{trial.task.id}{trial.trial}", "+")
        return KNOWN[story[min(trial.attempt, len(story)) - 1]]

    measurement = measurement_of(suite_of("ab"), curtail=True)
    whole, stop, _ = session(measurement, script, [], stopping_at(*states))
    tasks = measurement.side({line.key: line for line in whole}.values()).tasks.values()
    assert (stop.round, " ".join(task.outcomes[0] for task in tasks)) == expected

    for cut in range(len(whole) + 1):
        lines, again, _ = session(measurement, script, whole[:cut], stopping_at(*states))
        assert (final(lines), again) == (final(whole), stop)


@pytest.mark.parametrize("plan", [{"curtail": True}, {"extend": True}])
@hypothesis_settings(max_examples=examples(8))
@given(stories=STORIES, chance=st.integers(2, 4), retries=st.integers(0, 2))
def test_a_run_that_is_cut_anywhere_ends_as_if_it_had_not_been(
    plan: dict[str, bool], stories: list[str], chance: int, retries: int
) -> None:
    """Resumed after any line, it runs what is missing and stops where and why it would have."""
    measurement = measurement_of(suite_of("ab", b=2), retries=retries, **plan)
    decisions, script = whimsical(chance), told(stories)
    whole, stop, _ = session(measurement, script, [], decisions)

    for cut in range(len(whole) + 1):
        lines, again, _ = session(measurement, script, whole[:cut], decisions)
        assert final(lines) == final(whole)
        assert again == stop


@pytest.mark.parametrize("plan", [{"curtail": True}, {"extend": True}])
@hypothesis_settings(max_examples=examples(8))
@given(stories=STORIES, chance=st.integers(2, 4), jobs=st.integers(2, 7))
def test_the_number_of_jobs_changes_nothing(
    plan: dict[str, bool], stories: list[str], chance: int, jobs: int
) -> None:
    """A decision is on whole rounds, so it does not matter which trial of a round ends first."""
    measurement = measurement_of(suite_of("abc", c=5), **plan)
    decisions, script = whimsical(chance), told(stories)
    lines, stop, _ = session(measurement, script, [], decisions)

    others, same, _ = session(measurement, script, [], decisions, jobs=jobs)

    assert (final(others), same) == (final(lines), stop)


def always(reason: StopReason | None, predictive: float | None = 0.5) -> Decisions:
    """Return decisions that do not look."""
    found = RoundDecision(predictive=predictive, reason=reason)
    return Decisions(round=lambda *_: found, extension=whimsical(2).extension)


def passing(_: PlannedTrial) -> Trajectory:
    return PASSES


def test_a_run_that_is_never_settled_runs_its_plan_and_is_complete() -> None:
    """After the last round there is nothing to decide."""
    watcher = Watcher()
    measurement = measurement_of(suite_of("ab"), curtail=True)

    lines, stop, _ = session(measurement, passing, [], always(None), watcher=watcher)

    assert len(lines) == 2 * ROUNDS
    assert stop == Stop(round=ROUNDS, reason=StopReason.COMPLETE)
    assert watcher.decided_at == [(1, ROUNDS, 0.5), (2, ROUNDS, 0.5)]


def test_a_stop_says_its_round_its_reason_and_its_chance() -> None:
    """What the footer holds is what was decided."""
    measurement = measurement_of(suite_of("ab"), curtail=True)
    decisions = always(StopReason.CURTAILED_REGRESSED, 0.99)

    lines, stop, _ = session(measurement, passing, [], decisions)

    assert len(lines) == 2
    assert stop == Stop(round=1, reason=StopReason.CURTAILED_REGRESSED, predictive=0.99)


def test_a_journal_whose_last_round_means_a_stop_stops_without_running_more() -> None:
    """Killed between the decision and the footer, the run decides again and starts no trial."""
    measurement = measurement_of(suite_of("ab"), curtail=True)
    decisions = always(StopReason.CURTAILED_PASS)
    whole, stop, _ = session(measurement, passing, [], decisions)

    lines, again, agent = session(measurement, passing, whole, decisions)

    assert agent.asked == []
    assert (lines, again) == (whole, stop)


def test_earlier_rounds_are_not_decided_anew() -> None:
    """What a later round follows on went on; with its errors mended it might look like a stop."""
    watcher = Watcher()
    measurement = measurement_of(suite_of("ab"), curtail=True)
    whole, _, _ = session(measurement, passing, [], always(None))

    session(measurement, passing, whole[:3], always(None), watcher=watcher)

    assert [done for done, _, _ in watcher.decided_at] == [2]


def test_the_decision_sees_every_task_with_the_trials_of_whole_rounds() -> None:
    """The candidate has its plan and no stop; what was not run is marked as such."""
    seen: list[Side] = []

    def decide(_: Side, candidate: Side, __: Policy) -> RoundDecision:
        seen.append(candidate)
        return RoundDecision(predictive=None, reason=None)

    measurement = measurement_of(suite_of("ab", b=1), curtail=True)
    decisions = Decisions(round=decide, extension=whimsical(2).extension)

    session(measurement, passing, [], decisions)

    assert [side.tasks["a"].outcomes for side in seen] == [("+..",), ("++.",)]
    assert [side.tasks["b"].outcomes for side in seen] == [("+",), ("+",)]
    assert all(side.stop is None and side.plan is measurement.header.plan for side in seen)


def test_an_extension_goes_on_with_the_same_seeds_until_a_look_ends_it() -> None:
    """The plan doubles at each look that says so, and the run is said to be extended."""
    watcher, looks = Watcher(), []

    def look(_: Side, candidate: Side, __: Policy) -> ExtensionLook:
        looks.append(len(candidate.tasks["a"].outcomes))
        more = {1: 2, 2: 4}.get(looks[-1])
        return ExtensionLook(p_value=0.1, level=0.025, repeats=more)

    measurement = measurement_of(suite_of("a"), extend=True)
    decisions = Decisions(round=decide_round, extension=look)

    lines, stop, _ = session(measurement, passing, [], decisions, watcher=watcher)

    assert looks == [1, 2, 4]
    assert watcher.totals == [2 * ROUNDS, 4 * ROUNDS]
    assert stop == Stop(round=4 * ROUNDS, reason=StopReason.EXTENDED)
    assert {(line.trial, line.seed) for line in lines if line.repeat == 0} == {
        (line.trial, line.seed) for line in lines if line.repeat == 3
    }


def test_a_plan_without_a_further_look_is_complete() -> None:
    """A run whose first look ends it was not extended."""
    measurement = measurement_of(suite_of("a"), extend=True)

    def look(*_: object) -> ExtensionLook:
        return ExtensionLook(p_value=0.9, level=0.025, repeats=None)

    _, stop, _ = session(measurement, passing, [], Decisions(round=decide_round, extension=look))

    assert stop == Stop(round=ROUNDS, reason=StopReason.COMPLETE)


@pytest.mark.parametrize(
    ("policy", "repeats", "expected"),
    [
        (Policy(), 1, (True, False)),
        (Policy(curtail="strict"), 1, (True, False)),
        (Policy(curtail=False), 1, None),
        (Policy(), 4, None),
        (Policy(on_borderline="extend"), 1, (False, True)),
        (Policy(on_borderline="extend"), 4, None),
        (Policy(require="non-inferiority", margin=0.1), 1, None),
    ],
)
def test_the_plan_says_what_the_run_may_do(
    policy: Policy, repeats: int, expected: tuple[bool, bool] | None
) -> None:
    """Curtailed or extended by policy, never both, and never a run that is made to be deep."""
    measurement = measurement_of(suite_of("ab"), repeats=repeats)

    found = may_be_steered(replace(measurement, policy=policy))

    plan = None if found is None else found.header.plan
    assert (None if plan is None else (plan.curtail, plan.extend)) == expected


def test_the_fake_decision_is_shaped_like_the_real_one() -> None:
    """The gate's own decision takes the same sides and stops the same engine."""
    measurement = measurement_of(suite_of("ab"), curtail=True)
    real = Decisions(round=decide_round, extension=whimsical(2).extension)

    lines, stop, _ = session(measurement, passing, [], real)

    assert why_not_curtailed(measurement.baseline, measurement.side(()), Policy()) is None
    assert stop.reason in (StopReason.CURTAILED_PASS, StopReason.COMPLETE)
    assert len(lines) == 2 * stop.round
    assert NOT_RUN not in "".join(measurement.side(lines).tasks["a"].outcomes[0][: stop.round])

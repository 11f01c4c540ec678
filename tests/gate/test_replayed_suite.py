"""What must have been recorded before a suite is played, and what becomes of the rest."""

from pathlib import Path

import pytest

from ci_gate.config import parse
from ci_gate.errors import UsageError
from ci_gate.gate.planning import plan_of
from ci_gate.gate.recordings import Recordings
from ci_gate.gate.replayed_suite import ReplayedSuite
from ci_gate.model.run import RunFooter, RunHeader, Stop, StopReason
from ci_gate.model.suite import PlannedTrial, Suite
from ci_gate.model.trial import Status, TrialRecord
from ci_gate.ports import TrialErrored
from ci_gate.store.runs import RunFile
from tests.trials import task_of

CONFIG = b"""\
[[suite]]
name = "s"
tasks = ["*.toml"]
seed = 1

[agent]
python = "a:run"
"""
SUITE = Suite(name="s", root_seed=1, trials=3, tasks=(task_of("a"), task_of("b")), digest="d")


def _record(task, trial, **fields):
    return TrialRecord(task=task, trial=trial, **{"status": Status.PASSED, **fields})


def _suite(tmp_path: Path, records, reason=StopReason.COMPLETE, rounds=3):
    footer = RunFooter(trials=len(records), stop=Stop(round=rounds, reason=reason), digest="x")
    run = RunFile(
        name="run",
        header=RunHeader(suite="s", faults_digest="sha256:faults"),
        records=tuple(records),
        footer=footer,
        digest="x",
        repeat_digests={0: "x"},
    )
    recordings = Recordings(
        suite="s",
        traces=tmp_path,
        path=tmp_path / "s.run.jsonl",
        run=run,
        records={record.key: record for record in records},
    )
    config = parse(CONFIG, name="c", root=tmp_path)
    return ReplayedSuite(recordings, SUITE, config=config, environment={})


def _plan(*, curtail=False):
    plan = plan_of(SUITE, repeats=1, max_repeats=1)
    return type(plan)(trials=plan.trials, curtail=curtail)


def _planned(task, trial):
    return PlannedTrial(task=task_of(task), trial=trial, repeat=0, attempt=1, seed=0)


def _round(*trials):
    return [_record(task, trial) for trial in trials for task in "ab"]


def test_trials_of_which_the_run_file_says_that_they_made_no_call_need_no_trace(tmp_path):
    """Theirs are played without one, and a call is then drift."""
    suite = _suite(tmp_path, _round(0, 1, 2))
    suite.require(_plan())

    source = suite.source_of(_planned("a", 0))

    with pytest.raises(Exception, match="tool t was called after the last recorded call"):
        source.answer("main", "tool", "t", {})


@pytest.mark.parametrize("fields", [{"tool_calls": 1}, {"tokens": 3}])
def test_a_trial_that_called_and_has_no_trace_is_missing(tmp_path, fields):
    """As where its calls could not be recorded."""
    suite = _suite(tmp_path, [_record("a", 0, **fields), *_round(0, 1, 2)[1:]])

    with pytest.raises(UsageError, match="1 of 6 trials have no recording") as caught:
        suite.require(_plan())

    assert "the first is trial 0 of task 'a'" in str(caught.value)


def test_a_run_that_was_stopped_is_played_as_far_as_it_went(tmp_path):
    """A replay stops where it did; one that may not stop needs every trial, and says why."""
    suite = _suite(tmp_path, _round(0), StopReason.CURTAILED_PASS, rounds=1)
    suite.require(_plan(curtail=True))

    with pytest.raises(UsageError, match="the recorded run ended after round 1: curtailed-pass"):
        suite.require(_plan())


def test_a_round_that_was_not_recorded_errors(tmp_path):
    """A changed agent may need more rounds than there are."""
    suite = _suite(tmp_path, _round(0), StopReason.CURTAILED_PASS, rounds=1)

    with pytest.raises(TrialErrored, match="this trial was not recorded"):
        suite.source_of(_planned("b", 1))


def test_a_trial_that_errored_before_its_first_call_errors_again(tmp_path):
    """With the recorded words: nothing of it could be played."""
    errored = _record("a", 0, status=Status.ERRORED, reason="no such server")
    suite = _suite(tmp_path, [errored])

    with pytest.raises(TrialErrored, match="no such server"):
        suite.source_of(_planned("a", 0))


def test_faults_and_times_are_the_recorded_ones(tmp_path):
    """Whatever the configuration says now, and however long the replay took."""
    suite = _suite(tmp_path, [_record("a", 0, duration_s=12.5)])

    assert suite.faults_digest == "sha256:faults"
    assert suite.as_kept(_record("a", 0, duration_s=0.1)).duration_s == 12.5
    assert suite.as_kept(_record("a", 1, duration_s=0.1)).duration_s is None

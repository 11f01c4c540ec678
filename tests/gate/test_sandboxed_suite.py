"""How the world of a trial ends whose tools were not run."""

from types import SimpleNamespace

import pytest

from ci_gate.codec import digest_of
from ci_gate.config import parse
from ci_gate.gate.recordings import Recordings
from ci_gate.gate.sandboxed_suite import SandboxedSuite
from ci_gate.model.suite import PlannedTrial, Suite
from ci_gate.model.trace import Determinism, TraceHeader, TraceRecord
from ci_gate.model.trace_chain import sealed
from ci_gate.ports import TrialErrored
from ci_gate.store.traces import open_trace
from tests.gate.test_replayed_suite import CONFIG
from tests.trials import spec_of, task_of


def _record(order, kind, name, output):
    return TraceRecord(
        order=order,
        lane="main",
        kind=kind,
        name=name,
        input=None,
        input_digest=digest_of(None),
        output=output,
        determinism=Determinism.IO_BOUND,
    )


def _suite(tmp_path, task, *records):
    writer = open_trace(
        tmp_path / "traces", TraceHeader(suite="s", task=task.id, trial=0, repeat=0)
    )
    for record in records:
        writer.append(sealed(record, writer.head))
    writer.finish()
    recordings = Recordings(
        suite="s", traces=tmp_path / "traces", path=tmp_path / "s", run=None, records={}
    )
    suite = Suite(name="s", root_seed=1, trials=1, tasks=(task,), digest="d")
    config = parse(CONFIG, name="c", root=tmp_path)
    return SandboxedSuite(recordings, suite, config=config, environment={}, faults_digest=None)


def _trial(task):
    return PlannedTrial(task=task, trial=0, repeat=0, attempt=1, seed=0)


def _ended(suite, task, *called, postgres=None):
    """Return what was put into the world of a trial after these calls."""
    found = []
    world = SimpleNamespace(postgres=postgres, replace=lambda state, _: found.append(state))
    source = suite.source_of(_trial(task))
    for name in called:
        source.answer("main", "tool", name, None)
    suite.end_world(_trial(task), source, world)
    return found


_PAID = _record(0, "tool", "pay", "paid"), _record(1, "state", "after", {"files": {}})


def test_the_same_calls_end_in_the_recorded_world(tmp_path):
    """As if the tools had been run."""
    task = task_of(graders=(spec_of("sql"),))

    assert _ended(_suite(tmp_path, task, *_PAID), task, "pay") == [{"files": {}}]


@pytest.mark.parametrize("kind", ["sql", "file", "state", "python", "judge"])
def test_graders_of_the_world_do_not_guess_at_it(tmp_path, kind):
    """One of them is enough, whatever else a task is judged by."""
    task = task_of(graders=(spec_of("rules"), spec_of(kind)))

    with pytest.raises(TrialErrored, match="no recording has just these calls"):
        _ended(_suite(tmp_path, task, *_PAID), task)


@pytest.mark.parametrize("called", [(), ("pay", "pay"), ("pay", "unknown")])
def test_the_end_of_other_calls_is_unknown_to_graders_of_the_world(tmp_path, called):
    """One call less, one more, one that nobody knows: neither pass nor failure."""
    task = task_of(graders=(spec_of("sql"),))

    with pytest.raises(TrialErrored, match="no recording has just these calls"):
        _ended(_suite(tmp_path, task, *_PAID), task, *called)


def test_the_first_call_that_was_never_recorded_is_named(tmp_path):
    """Nothing else leads from the errored trial to the change that made it."""
    task = task_of(graders=(spec_of("sql"),))

    with pytest.raises(TrialErrored, match=r"calls \(none has tool new with null\), so how"):
        _ended(_suite(tmp_path, task, *_PAID), task, "pay", "new", "newer")
    with pytest.raises(TrialErrored, match=r"just these calls, so how"):
        _ended(_suite(tmp_path, task, *_PAID), task, "pay", "pay")


@pytest.mark.parametrize("kinds", [("answer",), ("rules",), ("rules", "answer")])
def test_graders_of_the_answer_and_the_way_judge_any_trial(tmp_path, kinds):
    """They do not look at the world."""
    task = task_of(graders=tuple(map(spec_of, kinds)))

    assert _ended(_suite(tmp_path, task, *_PAID), task, "pay", "pay") == []


def test_a_world_that_was_not_recorded_is_left_alone(tmp_path):
    """A task without a fixture has none; a PostgreSQL database cannot be brought back."""
    task = task_of(graders=(spec_of("sql"),))
    suite = _suite(tmp_path, task, _PAID[0])

    assert _ended(suite, task, "pay") == []
    with pytest.raises(TrialErrored, match="no PostgreSQL database"):
        _ended(suite, task, "pay", postgres="postgresql://")

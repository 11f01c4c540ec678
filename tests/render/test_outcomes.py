"""What commands say that do not judge."""

from __future__ import annotations

import io
from typing import Any

from ci_gate.model.run import Stop, StopReason
from ci_gate.model.trial import Status
from ci_gate.render.outcomes import RunLine, UpdateLine, render_runs, render_updates
from ci_gate.render.screen import console_for


def run_line(statuses: tuple[Status, ...], **fields: Any) -> RunLine:
    """Return the line of a complete run, but for the fields that are given."""
    known = {
        "suite": "refund-desk",
        "stop": Stop(round=2, reason=StopReason.COMPLETE),
        "rounds": 2,
        "planned": len(statuses),
        "path": "x.run.jsonl",
    }
    return RunLine(statuses=statuses, **(known | fields))


def test_run_that_ended_is_counted_by_status() -> None:
    """A run is said to have ended, why, with which outcomes and where its file is."""
    stream = io.StringIO()
    statuses = (Status.PASSED, Status.PASSED, Status.FAILED, Status.ERRORED)

    render_runs([run_line(statuses)], console_for(stream, {"CI": "1"}))

    assert stream.getvalue().splitlines() == [
        "refund-desk: complete, 4 trials (2 passed, 1 failed, 1 errored)",
        "  run: x.run.jsonl",
    ]


def test_run_that_was_curtailed_says_how_much_of_its_plan_it_ran_and_why_it_stopped() -> None:
    """The trials of the plan, the rounds and the chance on which it stopped are there."""
    stream = io.StringIO()
    stop = Stop(round=3, reason=StopReason.CURTAILED_PASS, predictive=0.0123)
    line = run_line((Status.PASSED,) * 1500, stop=stop, rounds=8, planned=4000)

    render_runs([line], console_for(stream, {"CI": "1"}))

    ran = "3 of 8 rounds, 1,500 of 4,000 trials (1,500 passed, 0 failed, 0 errored)"
    assert stream.getvalue().splitlines() == [
        f"refund-desk: curtailed-pass, {ran}",
        "  the whole plan would be red with a chance of 1.2 %",
        "  run: x.run.jsonl",
    ]


def test_update_shows_what_moved_and_what_was_forced() -> None:
    """A baseline that was written is shown with its metrics before and after."""
    stream = io.StringIO()
    line = UpdateLine(
        suite="refund-desk",
        path="baselines/refund-desk.json",
        written=True,
        runs=4,
        tasks=20,
        metrics={"pass^1": (0.9, 0.95), "pass^8": (None, 0.6)},
        accepted=("5 % errored",),
        warnings=("it was lucky",),
    )

    render_updates([line], console_for(stream, {"CI": "1"}))

    assert stream.getvalue().splitlines()[:6] == [
        "refund-desk: baseline written (20 tasks, 4 runs over the seeds)",
        "  pass^1  90.0 % → 95.0 %",
        "  pass^8  60.0 %",
        "  forced: 5 % errored",
        "  it was lucky",
        "  file: baselines/refund-desk.json",
    ]


def test_hostile_suite_name_is_no_command() -> None:
    """A suite named like a workflow command starts no line with it."""
    stream = io.StringIO()
    stop = Stop(round=0, reason=StopReason.BUDGET)
    line = run_line((), suite="::error::x", stop=stop, planned=8, path="::y")

    render_runs([line], console_for(stream, {"CI": "1"}))

    assert not any(text.lstrip().startswith("::") for text in stream.getvalue().splitlines())

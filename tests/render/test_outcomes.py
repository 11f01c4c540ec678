"""What commands say that do not judge."""

from __future__ import annotations

import io

from ci_gate.model.run import StopReason
from ci_gate.model.trial import Status
from ci_gate.render.outcomes import RunLine, UpdateLine, render_runs, render_updates
from ci_gate.render.screen import console_for


def test_run_that_ended_is_counted_by_status() -> None:
    """A run is said to have ended, why, with which outcomes and where its file is."""
    stream = io.StringIO()
    statuses = (Status.PASSED, Status.PASSED, Status.FAILED, Status.ERRORED)
    line = RunLine(
        suite="refund-desk", statuses=statuses, stop=StopReason.COMPLETE, path="x.run.jsonl"
    )

    render_runs([line], console_for(stream, {"CI": "1"}))

    assert stream.getvalue().splitlines() == [
        "refund-desk: complete, 4 trials (2 passed, 1 failed, 1 errored)",
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
    )

    render_updates([line], console_for(stream, {"CI": "1"}))

    assert stream.getvalue().splitlines()[:5] == [
        "refund-desk: baseline written (20 tasks, 4 runs over the seeds)",
        "  pass^1  90.0 % → 95.0 %",
        "  pass^8  60.0 %",
        "  forced: 5 % errored",
        "  file: baselines/refund-desk.json",
    ]


def test_hostile_suite_name_is_no_command() -> None:
    """A suite named like a workflow command starts no line with it."""
    stream = io.StringIO()
    line = RunLine(suite="::error::x", statuses=(), stop=StopReason.BUDGET, path="::y")

    render_runs([line], console_for(stream, {"CI": "1"}))

    assert not any(text.lstrip().startswith("::") for text in stream.getvalue().splitlines())

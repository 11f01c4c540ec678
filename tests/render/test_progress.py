"""How far a run is."""

from __future__ import annotations

import io
from collections.abc import Iterator

from ci_gate.model.trial import Status, TrialRecord
from ci_gate.ports import RoundWatcher
from ci_gate.render.progress import Progress
from ci_gate.render.screen import console_for


class _Clock:
    """Seconds that pass when they are told to."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def record(trial: int, status: Status = Status.PASSED, attempt: int = 1) -> TrialRecord:
    """Return a finished trial of one task."""
    return TrialRecord(task="t", trial=trial, status=status, attempt=attempt)


def logged(total: int, records: Iterator[TrialRecord], pause_s: float, done: int = 0) -> list[str]:
    """Return the lines of a log in which a trial finishes every so many seconds."""
    stream, clock = io.StringIO(), _Clock()
    with Progress(console_for(stream, {"CI": "1"}), clock, title="refund-desk") as progress:
        progress.planned(total, done)
        for each in records:
            clock.now_s += pause_s
            progress.finished(each)
    return stream.getvalue().splitlines()


def test_progress_is_a_sink_of_the_engine() -> None:
    """What shows the progress fits the port that the engine reports to."""
    watcher: RoundWatcher = Progress(console_for(io.StringIO(), {}), _Clock())

    watcher.planned(1, 0)
    watcher.finished(record(0))
    watcher.decided(1, 8, 0.5)


def test_fast_run_logs_a_line_each_tenth() -> None:
    """A log gets a line at each tenth of the plan and no more."""
    lines = logged(1000, (record(n) for n in range(1000)), pause_s=0.001)

    assert lines[0] == "refund-desk: 1,000 trials"
    assert lines[1] == "refund-desk: 100/1,000 (10 %), 100 passed, 0 failed, 0 errored"
    assert lines[-1] == "refund-desk: 1,000/1,000 (100 %), 1,000 passed, 0 failed, 0 errored"
    assert len(lines) == 11


def test_slow_run_logs_a_line_after_ten_seconds() -> None:
    """Where a tenth takes long, a line comes after ten seconds."""
    lines = logged(1000, (record(n) for n in range(50)), pause_s=1.0)

    assert [line.split()[1] for line in lines[1:]] == [
        *("10/1,000", "20/1,000", "30/1,000", "40/1,000", "50/1,000"),
    ]


def test_very_long_run_does_not_fill_the_log() -> None:
    """The pause between two lines grows with the time so far."""
    lines = logged(1_000_000, (record(n) for n in range(5000)), pause_s=10.0)

    assert len(lines) < 80


def test_resumed_run_says_what_was_finished_before() -> None:
    """A resumed run counts from where it was."""
    lines = logged(100, (record(n) for n in range(80, 90)), pause_s=0.0, done=80)

    assert lines == [
        "refund-desk: 100 trials, 80 of them finished before",
        "refund-desk: 90/100 (90 %), 10 passed, 0 failed, 0 errored",
    ]


def test_later_attempt_replaces_the_errored_one() -> None:
    """A trial that errored and passed at a later attempt counts once, as passed."""
    attempts = [record(0, Status.ERRORED), record(1, Status.FAILED), record(0, attempt=2)]

    lines = logged(2, iter(attempts), pause_s=0.0)

    assert lines[-1] == "refund-desk: 2/2 (100 %), 1 passed, 1 failed, 0 errored"


def test_log_has_a_line_for_each_round_that_is_decided() -> None:
    """The chance to be red is said after each round, and that nothing can be foretold."""
    stream = io.StringIO()
    with Progress(console_for(stream, {"CI": "1"}), _Clock(), title="refund-desk") as progress:
        progress.planned(24, 0)
        progress.decided(1, 8, None)
        progress.decided(2, 8, 0.1234)
        progress.decided(3, 8, 0.0001)
        progress.extended(48)

    assert stream.getvalue().splitlines()[1:] == [
        "refund-desk: round 1 of 8: nothing can be foretold",
        "refund-desk: round 2 of 8: 12.3 % chance that the whole plan would be red",
        "refund-desk: round 3 of 8: < 0.1 % chance that the whole plan would be red",
        "refund-desk: the evidence is on the border, extended to 48 trials",
    ]


def test_bar_is_gone_at_the_end() -> None:
    """On a terminal a bar is drawn while the run goes on, and nothing of it stays."""

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    console = console_for(stream, {"TERM": "xterm", "COLUMNS": "100", "LINES": "20"})
    with Progress(console, _Clock(), title="refund-desk") as progress:
        progress.planned(10, 0)
        for n in range(10):
            progress.finished(record(n))
        progress.decided(1, 2, 0.5)
        progress.extended(20)
        progress.close()

    assert "10/20" in stream.getvalue()
    assert "50.0 % chance of red" in stream.getvalue()
    assert "10 passed, 0 failed, 0 errored" in stream.getvalue()
    assert stream.getvalue().endswith("\x1b[2K")

"""What a person sees: reports and the progress of a run, on standard error.

Views that were asked for, such as ``baseline show``, go to standard output.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ci_gate.gate.baseline_views import Difference, Past, Shown
    from ci_gate.gate.keeping import Keeping
    from ci_gate.gate.measure import Measured
    from ci_gate.gate.replay import Replayed
    from ci_gate.gate.run_journal import Watch
    from ci_gate.gate.update import Updated
    from ci_gate.model.trial import TrialRecord
    from ci_gate.model.verdict import Verdict
    from ci_gate.model.verdict_traces import KeptTraces
    from ci_gate.ports import RoundWatcher
    from ci_gate.render.outcomes import KeptLine
    from ci_gate.sandbox.cassette import Drift

__all__ = [
    "announce_traces",
    "show_baselines",
    "show_differences",
    "show_history",
    "show_measured",
    "show_replay",
    "show_updated",
    "show_verdicts",
    "watch",
]


_VALUE_CHARS = 400

_LIVE = (
    "The agent does not make the recorded calls, so this is no verdict on it; "
    "`--live` makes every call for real."
)


class _Unwatched:
    """Progress that nobody wants to see."""

    def planned(self, total: int, done: int) -> None:
        """Say nothing."""

    def finished(self, record: TrialRecord) -> None:
        """Say nothing."""

    def decided(self, done: int, rounds: int, predictive: float | None) -> None:
        """Say nothing."""

    def extended(self, total: int) -> None:
        """Say nothing."""


def watch(*, quiet: bool) -> Watch:
    """Return what shows the progress of a suite's run."""
    return _silence if quiet else _progress


@contextmanager
def _silence(_title: str) -> Iterator[RoundWatcher]:
    yield _Unwatched()


@contextmanager
def _progress(title: str) -> Iterator[RoundWatcher]:
    import time

    from ci_gate.render.progress import Progress
    from ci_gate.render.terminal import standard_error

    with Progress(standard_error(os.environ), time.monotonic, title=title) as progress:
        yield progress


def announce_traces(suite: str, kept: KeptTraces) -> None:
    """Say what the kept traces of a suite show, before its first trial."""
    from ci_gate.render.escape import inert
    from ci_gate.render.partings import kept_sentences
    from ci_gate.render.screen import print_line
    from ci_gate.render.terminal import standard_error

    console = standard_error(os.environ)
    for sentence in kept_sentences(kept):
        print_line(console, f"{inert(suite)}: {sentence}", style="yellow" if kept.drifted else "")


def show_verdicts(verdicts: Sequence[Verdict], *, reports: Sequence[tuple[str, str]] = ()) -> None:
    """Print the terminal report, ending with where the other reports are."""
    from ci_gate.render.terminal import render_verdict, standard_error
    from ci_gate.render.view import ReportOptions

    render_verdict(verdicts, standard_error(os.environ), ReportOptions(reports=tuple(reports)))


def show_measured(measured: Sequence[Measured]) -> None:
    """Print how runs ended and where their files are."""
    from ci_gate.render.outcomes import RunLine, render_runs
    from ci_gate.render.terminal import standard_error

    lines = [
        RunLine(
            suite=one.run.header.suite,
            statuses=tuple(record.status for record in one.run.records),
            stop=one.stop,
            rounds=one.rounds,
            planned=one.planned,
            path=str(one.path),
            warnings=one.warnings,
            calm=None if one.calm is None else str(one.calm),
        )
        for one in measured
    ]
    render_runs(lines, standard_error(os.environ))


def _playback(replayed: Replayed) -> list[str]:
    """Say whether the trial was played from a recording, and how it followed it."""
    found = replayed.reconciliation
    if found is None:
        return ["run live: no recording was used"]
    followed = f"{found.replayed} of {found.recorded} recorded calls"
    consistent = "consistent" if found.is_consistent else "not consistent"
    assert replayed.recording is not None
    place = os.path.relpath(replayed.recording)
    lines = [f"played from {place}: {followed}, {consistent}"]
    return lines + [_drift(drift) for drift in found.drifts[:10]]


def _drift(drift: Drift) -> str:
    """Say where a replay left its recording, and where in the input they differ."""
    from ci_gate.tracing.excerpts import places_of

    if drift.part != "input":
        return str(drift)
    before, after = drift.recorded_input, drift.came_input
    places = places_of(before, after, limit=3, most_chars=_VALUE_CHARS)
    return f"{drift} ({'; '.join(places)})" if places else str(drift)


def show_replay(replayed: Replayed, *, is_walked: bool = False) -> None:
    """Print a trial's steps, faults, grades and result.

    What was shown call by call on the way to a stop is not shown again.
    """
    import sys

    from ci_gate.model.breaches import is_breach
    from ci_gate.render.screen import console_for
    from ci_gate.render.trial import render_stopped, render_trial

    if replayed.walked is not None:
        remarks = (*_playback(replayed), *replayed.remarks)
        console = console_for(sys.stdout, os.environ)
        render_stopped(
            replayed.record, replayed.walked, console, remarks=remarks, is_walked=is_walked
        )
        return
    render_trial(
        replayed.record,
        replayed.trajectory,
        replayed.steps,
        console_for(sys.stdout, os.environ),
        remarks=(*_playback(replayed), *replayed.remarks),
        hint=_LIVE if replayed.has_drifted and not is_breach(replayed.record.reason) else "",
    )


def _kept_line(keeping: Keeping) -> KeptLine:
    from ci_gate.render.outcomes import KeptLine

    return KeptLine(
        path=str(keeping.place),
        changed=keeping.changed,
        tasks=keeping.tasks,
        of=keeping.of,
        bytes=keeping.bytes,
        remarks=keeping.remarks,
    )


def show_updated(updated: Sequence[Updated]) -> None:
    """Print what became of baselines."""
    from ci_gate.render.outcomes import UpdateLine, render_updates
    from ci_gate.render.terminal import standard_error

    lines = [
        UpdateLine(
            suite=one.suite,
            path=str(one.path),
            written=one.written,
            anchor=None if one.anchor is None else str(one.anchor),
            runs=one.runs,
            tasks=one.tasks,
            metrics={
                name: (one.baseline.get(name), share) for name, share in one.candidate.items()
            },
            accepted=tuple(str(problem) for problem in one.accepted),
            warnings=one.warnings,
            traces=None if one.traces is None else _kept_line(one.traces),
        )
        for one in updated
    ]
    render_updates(lines, standard_error(os.environ))


def show_baselines(shown: Sequence[Shown]) -> None:
    """Print baselines with a row a task."""
    import sys

    from ci_gate.render.listings import BaselineLine, render_baseline
    from ci_gate.render.screen import console_for

    console = console_for(sys.stdout, os.environ)
    for one in shown:
        lines = [
            BaselineLine(task=name, outcomes=task.outcomes, counts=one.counts[name])
            for name, task in one.side.tasks.items()
        ]
        render_baseline(lines, one.metrics, console, title=one.title, warnings=one.warnings)


def show_differences(differences: Sequence[Difference]) -> None:
    """Print what differs between two baselines of each suite."""
    import sys

    from ci_gate.render.listings import DiffLine, render_diff
    from ci_gate.render.screen import console_for

    console = console_for(sys.stdout, os.environ)
    for one in differences:
        lines = [
            DiffLine(
                task=task.task,
                baseline=task.baseline,
                candidate=task.candidate,
                remark=task.remark,
            )
            for task in one.tasks
        ]
        metrics = {
            name: (share, one.candidate.metrics.get(name))
            for name, share in one.baseline.metrics.items()
        }
        title = f"{one.baseline.title} → {one.candidate.title}"
        render_diff(lines, metrics, console, title=title)


def show_history(pasts: Sequence[tuple[str, Sequence[Past]]]) -> None:
    """Print each suite's metrics over the commits that touched its baseline."""
    import sys

    from ci_gate.render.listings import HistoryLine, render_history
    from ci_gate.render.screen import console_for

    console = console_for(sys.stdout, os.environ)
    for suite, versions in pasts:
        lines = [
            HistoryLine(
                commit=one.commit[:12],
                date=one.time[:10],
                subject=f"({one.remark}) {one.subject}" if one.remark else one.subject,
                metrics={} if one.shown is None else one.shown.metrics,
                tasks=0 if one.shown is None else len(one.shown.side.tasks),
            )
            for one in versions
        ]
        render_history(lines, console, title=f"History of {suite}")

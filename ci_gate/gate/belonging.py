"""Whether a trace is the recording of the trial that was asked for.

Its header says which trial it is of, and the run file beside the traces says which digest that
trial's trace has: of another one a replay would show what never happened. Who plays it is not
known here.
"""

from __future__ import annotations

from pathlib import Path

from ci_gate.errors import FileFormatError, UsageError, printable
from ci_gate.model.suite import PlannedTrial
from ci_gate.model.trace import Trace
from ci_gate.model.trial import TrialRecord
from ci_gate.prng import format_seed
from ci_gate.store.folders import refuse_links
from ci_gate.store.runs import load_run

__all__ = ["differences_of_trial", "require_recording_of", "require_trace_of"]

_HINT = "Record it again: `ci-gate run`. `--live` makes every call for real."


def require_recording_of(
    trace: Trace, path: Path, *, suite: str, trial: PlannedTrial, run: Path | None
) -> list[str]:
    """Refuse a trace that is not the recording of a trial; return what is odd about it.

    Parameters
    ----------
    trace : Trace
    path : Path
        Where it is, for messages.
    suite : str
    trial : PlannedTrial
    run : Path or None
        The run file that may name the trace; it need not exist.

    Raises
    ------
    UsageError
        It is of another suite, task, trial, repeat or seed.
    FileFormatError
        The run file names another trace for this trial, or cannot be read.
    """
    record = None if run is None else _record(run, trial)
    require_trace_of(trace, path, suite=suite, trial=trial, record=record)
    return ["No run file vouches for this recording."] if record is None else []


def require_trace_of(
    trace: Trace, path: Path, *, suite: str, trial: PlannedTrial, record: TrialRecord | None
) -> None:
    """Refuse a trace that is not the recording of a trial.

    Parameters
    ----------
    trace : Trace
    path : Path
        Where it is, for messages.
    suite : str
    trial : PlannedTrial
    record : TrialRecord or None
        What the run file beside the traces says of the trial; None: nothing.

    Raises
    ------
    UsageError
        It is of another suite, task, trial, repeat or seed.
    FileFormatError
        The run file names another trace for this trial.
    """
    others = differences_of_trial(trace, suite=suite, trial=trial)
    if others:
        what = f"is not the recording of this trial: {'; '.join(others)}"
        raise UsageError(what, where=printable(path), hint=_HINT)
    head = None if trace.footer is None else trace.footer.head
    if record is not None and record.trace_digest != head:
        what = f"is not the trace that {suite}.run.jsonl names for this trial: other digest"
        raise FileFormatError(what, where=printable(path), hint=_HINT)


def differences_of_trial(trace: Trace, *, suite: str, trial: PlannedTrial) -> list[str]:
    """Return in what a trace says to be of another trial."""
    header = trace.header
    wanted = {
        "suite": (header.suite, suite),
        "task": (header.task, trial.task.id),
        "trial": (header.trial, trial.trial),
        "repeat": (header.repeat or 0, trial.repeat),
        "seed": (header.seed, format_seed(trial.seed)),
    }
    return [
        f"{name} {_shown(found)} and not {_shown(expected)}"
        for name, (found, expected) in wanted.items()
        if found != expected
    ]


def _shown(value: object) -> str:
    return "unknown" if value is None else printable(value, limit=80)


def _record(run: Path, trial: PlannedTrial) -> TrialRecord | None:
    refuse_links(run)
    if not run.exists():
        return None
    return next((record for record in load_run(run).records if record.key == trial.key), None)

"""Find the trace that the record of a trial speaks of; both may be what anybody wrote."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from ci_gate.errors import FileFormatError
from ci_gate.model.trace import Trace
from ci_gate.model.trial import TrialRecord
from ci_gate.store.files import is_file
from ci_gate.store.traces import read_trace

__all__ = ["is_trace_of", "place_of_trace", "recorded_trace"]


def place_of_trace(folder: Path, record: TrialRecord) -> Path | None:
    """Return where the trace of a record is; None where it has none inside its folder.

    Parameters
    ----------
    folder : Path
        Of the run file.
    record : TrialRecord
    """
    name = record.trace or ""
    parts = PurePosixPath(name).parts
    if len(parts) < 3 or ".." in parts or "\\" in name or "\0" in name or name.startswith("/"):
        return None
    path = folder.joinpath(*parts)
    return path if is_file(path) and path.resolve().is_relative_to(folder.resolve()) else None


def is_trace_of(trace: Trace, record: TrialRecord) -> bool:
    """Return whether a trace is that of this very attempt: same trial, same digest."""
    header = trace.header
    same = (header.task, header.trial, header.repeat or 0)
    head = None if trace.footer is None else trace.footer.head
    return same == (record.task, record.trial, record.repeat) and head == record.trace_digest


def recorded_trace(folder: Path, record: TrialRecord, *, most_bytes: int) -> Trace | None:
    """Return the trace of a record; None where there is none, or it is too large or another."""
    path = place_of_trace(folder, record)
    if path is None or path.stat().st_size > most_bytes:
        return None
    try:
        trace = read_trace(path)
    except FileFormatError:
        return None
    return trace if is_trace_of(trace, record) else None

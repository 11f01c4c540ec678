"""Whether the traces of a run belong to it, and add up to what its trials say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import fsum, isclose
from pathlib import Path, PurePosixPath
from typing import Any, Final

import msgspec

from ci_gate.errors import FileFormatError, GateError, Problem, printable
from ci_gate.gate.traces import StoredContents
from ci_gate.model.calls import MODEL_CALL, TOOL_CALL
from ci_gate.model.trace_findings import Mismatch, Reconciled
from ci_gate.model.trace_meta import MetaTally, TraceMeta
from ci_gate.model.trial import TrialRecord
from ci_gate.store.files import is_file
from ci_gate.store.runs import load_run
from ci_gate.store.traces import TraceReading
from ci_gate.tracing.steadiness import Steadiness

__all__ = ["reconcile"]

_NEXT_TO: Final = 1e-6
_HINT: Final = "Record the run again; or fetch the folder of results as a whole."


def reconcile(run: Path) -> Reconciled:
    """Check every trace that a run file names, and add their ledgers up.

    Parameters
    ----------
    run : Path
        Its traces are in the folder in which it is.

    Raises
    ------
    FileFormatError
        The run file cannot be used; or a trace is missing, was changed, or is not the one that the
        run file names: all of them.
    """
    steadiness = Steadiness()
    records, contents = load_run(run).records, StoredContents(steadiness=steadiness)
    metas: list[TraceMeta] = []
    mismatches: list[Mismatch] = []
    problems: list[Problem] = []
    for record in records:
        if record.trace is None:
            continue
        try:
            tally, meta = _checked(run, record, contents)
        except GateError as error:
            problems += error.problems
            continue
        metas.append(meta)
        mismatches += _mismatches(record, tally, meta)
    if problems:
        raise FileFormatError.of(problems)
    found = _added_up(len(records), metas, mismatches)
    return msgspec.structs.replace(found, unsteady=steadiness.unsteady)


def _checked(
    run: Path, record: TrialRecord, contents: StoredContents
) -> tuple[MetaTally, TraceMeta]:
    path = _place(run, record)
    reading = TraceReading(path)
    problems = contents.read_through(reading, path)
    if problems or reading.footer is None:
        raise FileFormatError.of(problems)
    if reading.footer.head != record.trace_digest:
        what = f"is not the trace of {_named(record)} in {printable(run.name)}: other digest"
        raise FileFormatError(what, where=printable(path), hint=_HINT)
    reading.check_meta()
    if reading.problems:
        raise FileFormatError.of(reading.problems)
    return reading.tally, reading.tally.meta(reading.header, reading.footer.head)


def _place(run: Path, record: TrialRecord) -> Path:
    """Return where a trace is; the run file comes from outside and may name anything."""
    assert record.trace is not None
    parts = PurePosixPath(record.trace).parts
    if record.trace.startswith("/") or "\\" in record.trace or ".." in parts or not parts:
        what = f"{_named(record)} names a trace out of its folder: {printable(record.trace)}"
        raise FileFormatError(what, where=printable(run))
    path = run.parent.joinpath(*parts)
    if not is_file(path):
        what = f"the trace of {_named(record)} is missing: {printable(path)}"
        raise FileFormatError(what, where=printable(run), hint=_HINT)
    return path


def _named(record: TrialRecord) -> str:
    repeat = f" of repeat {record.repeat}" if record.repeat else ""
    return f"task {printable(record.task)!r}, trial {record.trial}{repeat}"


def _mismatches(record: TrialRecord, tally: MetaTally, meta: TraceMeta) -> Iterator[Mismatch]:
    """Yield where both know an amount and it is not the same.

    What the agent reported itself stands in the run file, and may well differ.
    """
    for what, found in _found(tally, meta).items():
        said = getattr(record, what)
        if said is None or found is None or isclose(said, found, rel_tol=_NEXT_TO, abs_tol=1e-9):
            continue
        yield Mismatch(
            task=record.task,
            trial=record.trial,
            repeat=record.repeat,
            what=what,
            said=said,
            found=found,
        )


def _found(tally: MetaTally, meta: TraceMeta) -> Mapping[str, Any]:
    asked = [entry for entry in meta.by_name if entry.kind == MODEL_CALL]
    is_whole = tally.models_say_tokens
    return {
        "tokens": meta.tokens if asked and is_whole else None,
        "cost_usd": meta.cost_usd if asked and is_whole and not meta.unpriced else None,
        "tool_calls": tally.calls_of(TOOL_CALL),
        "faults": sum(meta.faults.values()),
    }


def _added_up(trials: int, metas: list[TraceMeta], mismatches: list[Mismatch]) -> Reconciled:
    tokens = [meta.tokens for meta in metas if meta.tokens is not None]
    costs = [meta.cost_usd for meta in metas if meta.cost_usd is not None]
    return Reconciled(
        trials=trials,
        traces=len(metas),
        calls=sum(meta.calls for meta in metas),
        tokens=sum(tokens) if tokens else None,
        cost_usd=fsum(costs) if costs else None,
        unpriced=sum(meta.unpriced for meta in metas),
        mismatches=tuple(mismatches),
    )

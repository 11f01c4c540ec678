"""Trace files: written a call at a time while the trial runs, read back a line at a time.

This module decides what a legal trace file is and where each mistake in it stands. It must not know
who made the calls, nor what a replay does with them.

Notes
-----
A trace grows under another name and gets its own when the trial has ended, so that a file with the
name of a trace is a whole one; what may be published of it (``.meta.json``) is there before. It is
handed to the system line by line but not flushed to the medium: the run file, which is, holds its
digest, and shows whether a trace survived its machine.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec

from ci_gate.codec import DIGEST_PREFIX, MAX_DEPTH, encode, is_too_deep
from ci_gate.errors import FileFormatError, Problem, UsageError, printable
from ci_gate.machine import failed_write
from ci_gate.model.trace import Trace, TraceFooter, TraceHeader, TraceRecord
from ci_gate.model.trace_chain import ChainCheck, digest_of_header
from ci_gate.model.trace_meta import MetaTally, TraceMeta
from ci_gate.store.contents import FOLDER as CONTENTS
from ci_gate.store.files import open_regular, put_whole, read_whole
from ci_gate.store.folders import make_real_folder, refuse_links
from ci_gate.store.formats import TRACE, check_schema, decode_object, typed
from ci_gate.store.paths import meta_file, trace_file

__all__ = [
    "TraceReading",
    "TraceWriter",
    "clear_traces",
    "open_trace",
    "read_trace",
    "refuse_obstacles",
]

MAX_LINE_BYTES: Final = 64 * 2**20
_BUFFER_BYTES: Final = 2**16
_MAX_META_BYTES: Final = 4 * 2**20
_MOST_PROBLEMS: Final = 100
_OWN_NAME: Final = re.compile(r"\.?[0-9]+(\.[0-9]+)?(\.jsonl|\.meta\.json)(\.partial)?")
_HINT: Final = "Record the trial again; a changed trace proves nothing."


class TraceWriter:
    """A trace that is being written; use ``open_trace``.

    Parameters
    ----------
    results : Path
        The folder of results, in which that of all traces is.
    path : Path
        The name it gets at its end.
    header : TraceHeader

    Attributes
    ----------
    place : str
        The path relative to the folder of results.
    head : str
        Digest of the last line, to which the next record is chained.
    calls : int
        Records so far.
    """

    def __init__(self, results: Path, path: Path, header: TraceHeader) -> None:
        self.path = path
        self.place = path.relative_to(results).as_posix()
        self.head = digest_of_header(header)
        self._header = header
        self._tally = MetaTally()
        self._content = hashlib.sha256()
        self.calls = 0
        self._is_finished = False
        self._partial = path.with_name(f".{path.name}.partial")
        self._stream = self._create()
        self._write(header)

    def _create(self) -> BinaryIO:
        make_real_folder(self.path.parent)
        try:
            with contextlib.suppress(FileNotFoundError):  # left by a run that was killed
                self._partial.unlink()
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
            descriptor = os.open(self._partial, flags, 0o666)
            return os.fdopen(descriptor, "wb", buffering=_BUFFER_BYTES)
        except OSError as error:
            raise failed_write(error, self.path) from error

    def append(self, record: TraceRecord) -> None:
        """Write a sealed record.

        Raises
        ------
        InternalError, UsageError
            The disk is full or broken, or the file may not be written.
        """
        assert record.prev == self.head, "a record is chained to the line before it"
        self._write(record)
        self._tally.add(record)
        self.head = record.digest
        self.calls += 1

    def finish(self) -> str:
        """Write the footer, give the file its name and return the digest of its last line.

        Raises
        ------
        InternalError, UsageError
            As ``append``.
        """
        content = DIGEST_PREFIX + self._content.hexdigest()
        self._write(TraceFooter(calls=self.calls, head=self.head, content=content))
        meta = meta_file(self.path)
        try:
            self._stream.close()
            _put(meta, _bytes_of(self._tally.meta(self._header, self.head)))
            self._partial.replace(self.path)
        except OSError as error:
            with contextlib.suppress(OSError):  # it would speak of a trace that is not there
                meta.unlink()
            raise failed_write(error, self.path) from error
        self._is_finished = True
        return self.head

    def discard(self) -> None:
        """Leave nothing behind; safe to call after ``finish``, also where that failed."""
        if self._is_finished:
            return
        with contextlib.suppress(OSError):  # what is left in its buffer has no room
            self._stream.close()
        with contextlib.suppress(OSError):
            self._partial.unlink()

    def _write(self, line: msgspec.Struct) -> None:
        content = encode(line) + b"\n"
        if is_too_deep(content):
            raise UsageError(f"a call is nested deeper than {MAX_DEPTH} levels")
        self._content.update(content)
        try:
            self._stream.write(content)
        except OSError as error:
            raise failed_write(error, self.path) from error


def _bytes_of(meta: TraceMeta) -> bytes:
    return msgspec.json.format(encode(meta), indent=2) + b"\n"


def _put(path: Path, content: bytes) -> None:
    put_whole(path, content, partial=path.with_name(f".{path.name}.partial"))


def refuse_obstacles(traces: Path) -> None:
    """Refuse a folder of traces in which something else stands where traces and contents belong.

    Parameters
    ----------
    traces : Path
        Need not exist. A repository can bring it along with anything in it.

    Raises
    ------
    UsageError
        The folder, one above it or one in it is a link; or a folder has the name of a trace.
    """
    refuse_links(traces)
    for folder in _entries(traces):
        refuse_links(folder)
        for path in _entries(folder):
            if folder.name == CONTENTS:
                refuse_links(path)
            elif _is_own(path) and path.is_dir() and not path.is_symlink():
                what = "is a folder, and a trace belongs there"
                raise UsageError(what, where=printable(path), hint="Remove it.")


def clear_traces(traces: Path) -> None:
    """Remove every trace below a folder, with what is beside it; nothing else.

    What an earlier run recorded is of another agent, perhaps, and says nothing of a new one.

    Raises
    ------
    UsageError
        As ``refuse_obstacles``; or a trace may not be removed.
    """
    refuse_obstacles(traces)
    for folder in _entries(traces):
        for path in filter(_is_own, _entries(folder)):
            try:
                path.unlink(missing_ok=True)  # of a link, the link
            except OSError as error:
                raise failed_write(error, path) from error
        with contextlib.suppress(OSError):  # something else is in it
            folder.rmdir()


def _entries(folder: Path) -> list[Path]:
    """Return what is in a folder, sorted; nothing where there is none."""
    if not folder.is_dir():
        return []
    try:
        return sorted(folder.iterdir())
    except OSError as error:
        raise failed_write(error, folder) from error


def _is_own(path: Path) -> bool:
    return _OWN_NAME.fullmatch(path.name) is not None


def open_trace(traces: Path, header: TraceHeader, *, results: Path | None = None) -> TraceWriter:
    """Begin the trace of a trial below the folder of all traces.

    Parameters
    ----------
    traces : Path
    header : TraceHeader
        With task, trial and repeat, which name the file.
    results : Path or None
        What its place is relative to; None: the folder in which ``traces`` is.

    Raises
    ------
    InternalError, UsageError
        The file cannot be made.
    """
    assert header.task is not None
    path = trace_file(traces, header.task, header.trial or 0, header.repeat or 0)
    return TraceWriter(results or traces.parent, path, header)


def read_trace(path: Path, *, allow_open_end: bool = False, content: bytes | None = None) -> Trace:
    """Return a trace whose chain is whole.

    Parameters
    ----------
    path : Path
    allow_open_end : bool
        Accept a trace without a footer, of a trial that was cut short.
    content : bytes or None
        What is in it, where the path is only its name.

    Raises
    ------
    FileFormatError
        It is no trace, or it was changed: with every place that is wrong and its line.
    """
    reading = TraceReading(path, allow_open_end=allow_open_end, content=content)
    records = tuple(reading.records())
    if reading.problems:
        raise FileFormatError.of(reading.problems)
    return Trace(header=reading.header, records=records, footer=reading.footer)


class TraceReading:
    """One pass over a trace file, in memory bounded by its longest line.

    Parameters
    ----------
    path : Path
    allow_open_end : bool
        A missing footer is no problem.
    content : bytes or None
        What is in it, where the path is only its name.

    Attributes
    ----------
    header : TraceHeader
    footer : TraceFooter or None
        Known when all records were taken.
    problems : list of Problem
        What is wrong with the lines that were taken so far; at most 100.
    tally : MetaTally
        Of the records that were taken so far.

    Raises
    ------
    FileFormatError
        There is no such file, or its first line is not the header of a trace.
    """

    def __init__(
        self, path: Path, *, allow_open_end: bool = False, content: bytes | None = None
    ) -> None:
        self.footer: TraceFooter | None = None
        self.problems: list[Problem] = []
        self.tally = MetaTally()
        self._path = path
        self._name = printable(path)
        self._content = ""  # digest of all lines before the last that was read
        self._allow_open_end = allow_open_end
        self._lines = self._numbered(path, content)
        number, fields = next(self._lines, (0, {}))
        if not number:
            raise FileFormatError("the file is empty", where=self._name)
        check_schema(fields, TRACE, self._at(number))
        self.header = typed(fields, TraceHeader, self._at(number))
        self._chain = ChainCheck(fields)

    def records(self) -> Iterator[TraceRecord]:
        """Yield the records in order, each after it was checked.

        Raises
        ------
        FileFormatError
            A line cannot be read at all.
        """
        for number, fields in self._lines:
            if self.footer is not None:
                self._note(number, ["stands after the footer"])
            elif "end" in fields:
                self.footer = typed(fields, TraceFooter, self._at(number))
                self._note(number, self._faults_of_end(fields, self.footer))
            else:
                record = typed(fields, TraceRecord, self._at(number))
                self._note(number, self._faults(fields))
                self.tally.add(record)
                yield record
        if self.footer is None and not self._allow_open_end:
            self._note(self._chain.calls + 1, ["the trace has no footer: it ends too early"])

    def check_meta(self) -> None:
        """Note where the file beside the trace, if there is one, is not about this trace.

        After all records were taken.
        """
        path = meta_file(self._path)
        if self.footer is None or not path.exists():
            return
        if read_whole(path, limit=_MAX_META_BYTES) != _bytes_of(
            self.tally.meta(self.header, self.footer.head)
        ):
            what = "is not what this trace gives"
            hint = "Remove it, or record the trial again."
            self.problems.append(Problem(what=what, where=printable(path), hint=hint))

    def _faults(self, fields: dict[str, Any]) -> list[str]:
        return [f"call {fault.place} {fault.what}" for fault in self._chain.record(fields)]

    def _faults_of_end(self, fields: dict[str, Any], footer: TraceFooter) -> list[str]:
        found = [fault.what for fault in self._chain.footer(fields)]
        if not found and not self.problems and footer.content != self._content:
            found = ["the header or a duration was changed: the content does not have its digest"]
        return found

    def _note(self, number: int, what: Iterable[str]) -> None:
        room = _MOST_PROBLEMS - len(self.problems)
        found = [Problem(what=one, where=self._at(number), hint=_HINT) for one in what]
        self.problems += found[:room]

    def _at(self, number: int) -> str:
        return f"{self._name}:{number}"

    def _numbered(self, path: Path, content: bytes | None) -> Iterator[tuple[int, dict[str, Any]]]:
        with open_regular(path) if content is None else io.BytesIO(content) as stream:
            number, digest = 0, hashlib.sha256()
            while line := stream.readline(MAX_LINE_BYTES + 1):
                number += 1
                self._content = DIGEST_PREFIX + digest.hexdigest()
                digest.update(line)
                if len(line) > MAX_LINE_BYTES:
                    what = f"the line is longer than {MAX_LINE_BYTES} bytes"
                    raise FileFormatError(what, where=self._at(number))
                yield number, decode_object(line, self._at(number))

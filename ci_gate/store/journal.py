"""The run file while trials run: a journal that survives its process and its machine.

This module decides when a trial counts as finished on disk, which unfinished journal may be
continued, and which file may be replaced. It must not know who runs the trials or what the outcomes
mean.

Notes
-----
A line is handed to the system whole before ``append`` returns, so the death of the process at any
moment loses no finished trial. A thread flushes to the medium within 50 ms of a line (one flush for
all lines of that time), so the death of the machine loses at most the last 100 ms. The lock on the
file is held as long as the journal is open; the system releases it when the process dies.

The lock binds only those who ask for it, and an agent that runs as the same user can write to the
file. So a line of somebody else's is found by the size of the file, a change of a line by a digest
of all that was written, and another file of the same name by its number: none of it decides.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
import threading
from collections.abc import KeysView, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import msgspec

from ci_gate.codec import encode
from ci_gate.errors import FileFormatError, InternalError, JournalError, PlatformError, printable
from ci_gate.machine import failed_write
from ci_gate.model.run import RunFooter, RunHeader, Stop, StopReason
from ci_gate.model.trial import TrialRecord
from ci_gate.store.files import sync_folder
from ci_gate.store.folders import make_real_folder, refuse_links
from ci_gate.store.runs import RunFile, verified
from ci_gate.store.scan import MAX_LINE_BYTES, Scan, scan

__all__ = ["Journal", "TrialKey", "require_openable"]

TrialKey = tuple[str, int, int]

_FLUSH_DELAY_S: Final = 0.05
_PAUSES: Final = frozenset({StopReason.INTERRUPTED, StopReason.BUDGET})
_CHUNK_BYTES: Final = 2**20
_CHOICE: Final = "Use --resume to continue it or --fresh to discard it."
_FLAGS: Final = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
# What a process that died at its first line can have left.
_FIRST_BYTES: Final = b'{"schema":"ci-gate/run@'


class Journal:
    """An open run file; use ``Journal.open``.

    Parameters
    ----------
    path : Path
    descriptor : int
        Open for reading and appending, locked; the journal closes it.
    header : RunHeader
        As the file has it.

    Attributes
    ----------
    path : Path
    header : RunHeader
        That of the file: the earlier run's where it was resumed.
    records : mapping of (task, trial, repeat) to TrialRecord
        What was finished before the journal was opened, in the order of the lines that survive;
        empty unless it was resumed.
    spent_usd : float
        What every attempt cost that was kept before the journal was opened, those that later ones
        superseded among them; in US dollars.
    footer : RunFooter or None
        Given where ``resume`` found the run finished, or after ``finish``; nothing can be appended.
    run : RunFile or None
        Given after ``finish``: what the file holds, as ``load_run`` would read it once more.
    dropped_bytes : int
        Length of the torn last line that was cut off on resuming.
    """

    def __init__(self, path: Path, descriptor: int, header: RunHeader) -> None:
        self.path = path
        self.header = header
        self.records: Mapping[TrialKey, TrialRecord] = {}
        self.spent_usd = 0.0
        self.footer: RunFooter | None = None
        self.run: RunFile | None = None
        self.dropped_bytes = 0
        self._descriptor = descriptor
        status = os.fstat(descriptor)
        self._size = status.st_size
        self._name = os.fspath(path)
        self._identity = status.st_dev, status.st_ino
        self._written = _digest_of(descriptor, self._size)
        self._broken = False
        self._is_changed = False
        self._attempts: dict[TrialKey, int] = {}
        self._flusher = _Flusher(descriptor)

    @classmethod
    def open(
        cls, path: Path, header: RunHeader, *, resume: bool = False, fresh: bool = False
    ) -> Self:
        """Open the journal of a run and lock it.

        Without a file one is made, its header durable. A finished file is replaced in one step by
        a journal that has only its header. An unfinished one (no footer, or one that says
        ``interrupted`` or ``budget``) is continued with ``resume``, replaced with ``fresh`` and
        refused with neither. With ``resume`` a finished file of the same run is left as it is and
        ``footer`` is set.

        Raises
        ------
        JournalError
            Another process has it open; it is unfinished and neither option was given; ``resume``
            found another suite, seed, plan or agent; it is damaged and not replaced; the path is no
            regular file.
        UsageError, InternalError
            The folder cannot be written, or the disk is full.
        PlatformError
            The system has no file locks (Windows).
        """
        make_real_folder(path.parent)
        descriptor = _locked(path)
        try:
            return cls._on(path, descriptor, header, resume=resume, fresh=fresh)
        except BaseException as error:
            os.close(descriptor)
            if isinstance(error, OSError):
                raise failed_write(error, path) from error
            raise

    @classmethod
    def _on(
        cls, path: Path, descriptor: int, header: RunHeader, *, resume: bool, fresh: bool
    ) -> Self:
        if _has_no_line(descriptor):
            return cls._begun(path, descriptor, header)
        if fresh:
            return cls._replaced(path, descriptor, header)
        found = _continued(path, descriptor, header, resume=resume)
        if found is None:
            return cls._replaced(path, descriptor, header)
        return cls._resumed(path, descriptor, header, found)

    @classmethod
    def _begun(cls, path: Path, descriptor: int, header: RunHeader) -> Self:
        """Start in a file that has no whole line: new, or its process died at the first."""
        dropped = os.fstat(descriptor).st_size
        os.ftruncate(descriptor, 0)
        journal = cls(path, descriptor, header)
        journal.dropped_bytes = dropped
        journal._write_header()
        return journal

    @classmethod
    def _replaced(cls, path: Path, descriptor: int, header: RunHeader) -> Self:
        temporary = path.parent / f".{secrets.token_hex(8)}.tmp"
        successor = _created(temporary)
        try:
            journal = cls(path, successor, header)
            journal._write_header()
            # The name moves while both files are locked, so that no one else gets between.
            temporary.replace(path)
            sync_folder(path.parent)
        except BaseException:
            os.close(successor)
            temporary.unlink(missing_ok=True)
            raise
        os.close(descriptor)
        return journal

    @classmethod
    def _resumed(cls, path: Path, descriptor: int, header: RunHeader, found: Scan) -> Self:
        journal = cls(path, descriptor, found.header)
        journal.records = {record.key: record for record in found.by_line()}
        journal.spent_usd = found.spent_usd
        journal._attempts = {record.key: record.attempt for record in found.records}
        if not _is_unfinished(found):
            journal.footer = found.footer
            return journal
        journal.dropped_bytes = found.torn_bytes
        os.ftruncate(descriptor, found.body_end)
        journal._size = found.body_end
        journal._written = _digest_of(descriptor, found.body_end)
        if found.open_end:
            journal._write(b"\n")
        return journal

    @property
    def recorded(self) -> KeysView[TrialKey]:
        """The trials that have a line, as (task, trial, repeat)."""
        return self._attempts.keys()

    def append(self, record: TrialRecord) -> None:
        """Keep an attempt that ended; its line is in the file when this returns.

        Called from one thread at a time. A record that cannot be kept leaves the earlier lines as
        they are and is not counted.

        Raises
        ------
        InternalError
            The disk is full or broken, the line is longer than a reader accepts, the trial has
            a line of this or a later attempt, or the journal is finished or closed.
        UsageError
            The file may no longer be written.
        FileFormatError
            Somebody else wrote to the file, or put another in its place.
        """
        self._check_open()
        line = _line(record)
        self._check_record(record, line)
        self._check_name()
        self._write(line)
        self._attempts[record.key] = record.attempt
        self._flusher.wake()

    def finish(self, stop: Stop) -> RunFooter:
        """Write the footer with the digest of all surviving lines, make it durable and close.

        Raises
        ------
        InternalError, UsageError
            As ``append``.
        FileFormatError
            The file was changed by someone else in the meantime; it gets no footer.
        """
        self._check_open()
        self._check_name()
        self._check_size(os.fstat(self._descriptor).st_size, self._size)
        with os.fdopen(os.dup(self._descriptor), "rb") as stream:
            stream.seek(0)
            run = verified(scan(stream, printable(self.path)), stream)
        footer = RunFooter(trials=len(run.records), stop=stop, digest=run.digest)
        body = self._size
        self._write(encode(footer) + b"\n")
        # Only now: what was changed before the digest was taken, or while it was, shows here.
        if not self._is_as_written():
            os.ftruncate(self._descriptor, body)
            raise self._changed("Lines of it are not what was written. Use --fresh.")
        self.footer = footer
        self.run = msgspec.structs.replace(run, footer=footer)
        self.close()
        return footer

    def close(self) -> None:
        """Make every line durable and give up the lock; without ``finish`` it can be resumed.

        Raises
        ------
        InternalError, UsageError
            The medium refused what was written.
        FileFormatError
            The file was changed by someone else in the meantime.
        """
        if self._descriptor < 0:
            return
        try:
            self._check_unchanged()
        finally:
            self._release()

    def _release(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        try:
            self._flusher.stop()
            _flush(descriptor)
        except OSError as error:
            raise failed_write(error, self.path) from error
        finally:
            os.close(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _write_header(self) -> None:
        self._write(encode(self.header) + b"\n")
        try:
            _flush(self._descriptor)
            sync_folder(self.path.parent)
        except OSError as error:
            raise failed_write(error, self.path) from error

    def _check_open(self) -> None:
        if self._is_changed:
            raise self._changed("Nothing more is written to it.")
        if self.footer is not None or self._descriptor < 0:
            raise InternalError("the journal is finished or closed", where=printable(self.path))

    def _check_name(self) -> None:
        try:
            status = os.lstat(self._name)
        except OSError:
            status = None
        if status is None or (status.st_dev, status.st_ino) != self._identity:
            raise self._changed("It was removed or replaced; what was written is lost.")

    def _check_unchanged(self) -> None:
        """Leave nobody else's bytes to whoever resumes the run."""
        if self.footer is not None or self._is_changed:
            return
        self._check_size(os.fstat(self._descriptor).st_size, self._size)
        if not self._is_as_written():
            raise self._changed("Lines of it are not what was written. Use --fresh.")

    def _check_size(self, found: int, expected: int) -> None:
        """Cut off what somebody else wrote after our last line."""
        if found == expected:
            return
        if found > expected:
            self._undo()
        if self._is_as_written():
            raise self._changed("What was added is cut off. Use --resume to run what is missing.")
        raise self._changed("Lines of it are not what was written. Use --fresh.")

    def _is_as_written(self) -> bool:
        found = _digest_of(self._descriptor, self._size)
        return found.digest() == self._written.digest()

    def _changed(self, hint: str) -> FileFormatError:
        self._is_changed = True
        what = "was changed by someone else while trials ran"
        return FileFormatError(what, where=printable(self.path), hint=hint)

    def _check_record(self, record: TrialRecord, line: bytes) -> None:
        """Refuse a line that would make the file unreadable."""
        if len(line) > MAX_LINE_BYTES:
            what = f"the line of {_named(record)} is longer than {MAX_LINE_BYTES} bytes"
            raise InternalError(what)
        if record.attempt <= self._attempts.get(record.key, 0):
            what = f"{_named(record)} has a line of attempt {record.attempt} or later already"
            raise InternalError(what)

    def _write(self, line: bytes) -> None:
        if self._broken:
            raise InternalError("an earlier line could not be undone", where=printable(self.path))
        if self._flusher.error is not None:
            raise failed_write(self._flusher.error, self.path) from self._flusher.error
        try:
            _write_all(self._descriptor, line)
        except OSError as error:
            self._undo()
            raise failed_write(error, self.path) from error
        # The place after an appended line is where the file ended before, and its length.
        end = os.lseek(self._descriptor, 0, os.SEEK_CUR)
        self._check_size(end, self._size + len(line))
        self._size += len(line)
        self._written.update(line)

    def _undo(self) -> None:
        """Cut off what follows our last whole line: a torn one, or somebody else's."""
        try:
            os.ftruncate(self._descriptor, self._size)
        except OSError:
            self._broken = True


def _locked(path: Path) -> int:
    """Return a locked descriptor of the file that has this name now, made where there is none."""
    while True:
        descriptor = _opened(path)
        try:
            _lock(descriptor, path)
            if _is_named(descriptor, path):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        # Its last owner replaced it between our opening and locking it.
        os.close(descriptor)


def _opened(path: Path) -> int:
    try:
        descriptor = os.open(path, _FLAGS | getattr(os, "O_NONBLOCK", 0), 0o666)
    except OSError as error:
        if path.is_symlink() or path.is_dir():
            raise _wrong_kind(path) from error
        raise failed_write(error, path) from error
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise _wrong_kind(path)


def _wrong_kind(path: Path) -> JournalError:
    what = "is a folder, link, pipe or device, not a journal"
    return JournalError(what, where=printable(path), hint="Choose another --output.")


def _lock(descriptor: int, path: Path) -> None:
    try:
        import fcntl
    except ImportError as error:
        raise PlatformError("running trials needs file locks, which this system lacks") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        what = "is in use: another ci-gate is writing it"
        hint = "Wait until it has ended, or choose another --output."
        raise JournalError(what, where=printable(path), hint=hint) from error


def _is_named(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False


def _created(temporary: Path) -> int:
    try:
        descriptor = os.open(temporary, _FLAGS | os.O_EXCL, 0o666)
    except OSError as error:
        raise failed_write(error, temporary) from error
    _lock(descriptor, temporary)
    return descriptor


def _has_no_line(descriptor: int) -> bool:
    """Return whether the file is empty or holds a torn header alone; never for foreign text."""
    with os.fdopen(os.dup(descriptor), "rb") as stream:
        stream.seek(0)
        first = stream.readline(MAX_LINE_BYTES)
    begins = first.startswith(_FIRST_BYTES) or _FIRST_BYTES.startswith(first)
    return begins and not first.endswith(b"\n") and len(first) < MAX_LINE_BYTES


def _scanned(path: Path, descriptor: int, *, resume: bool) -> Scan:
    """Return what the file holds, its footer verified where it has one."""
    try:
        with os.fdopen(os.dup(descriptor), "rb") as stream:
            stream.seek(0)
            found = scan(stream, printable(path))
            if found.footer is not None:
                verified(found, stream)
            return found
    except FileFormatError as error:
        what = f"is damaged and cannot be {'continued' if resume else 'replaced unasked'}"
        hint = f"{error.problems[0]}. Use --fresh to discard it."
        raise JournalError(what, where=printable(path), hint=hint) from error


def _continued(path: Path, descriptor: int, header: RunHeader, *, resume: bool) -> Scan | None:
    """Return what is gone on with; None where the file is finished and is to be replaced."""
    found = _scanned(path, descriptor, resume=resume)
    if resume and (_is_unfinished(found) or not _differences(found.header, header)):
        _check_same_run(found.header, header, path)
        return found
    if _is_unfinished(found):
        raise JournalError("holds an unfinished run", where=printable(path), hint=_CHOICE)
    return None


def require_openable(
    path: Path, header: RunHeader, *, resume: bool = False, fresh: bool = False
) -> None:
    """Refuse now what ``Journal.open`` would refuse later; nothing is made or changed.

    Raises
    ------
    JournalError, UsageError
        As ``Journal.open``, of a file that is there.
    """
    refuse_links(path.parent)
    if not os.path.lexists(path):
        return
    descriptor = _opened(path)
    try:
        _lock(descriptor, path)
        if not fresh and not _has_no_line(descriptor):
            _continued(path, descriptor, header, resume=resume)
    finally:
        os.close(descriptor)


def _is_unfinished(found: Scan) -> bool:
    return found.footer is None or found.footer.stop.reason in _PAUSES


def _check_same_run(found: RunHeader, wanted: RunHeader, path: Path) -> None:
    differences = _differences(found, wanted)
    if differences:
        what = f"is the journal of another run: {'; '.join(differences)}"
        hint = "Restore what changed to continue it, or use --fresh to discard it."
        raise JournalError(what, where=printable(path), hint=hint)


def _differences(found: RunHeader, wanted: RunHeader) -> list[str]:
    """Return what makes trials of the two headers' runs not belong together."""
    then, now = _identity(found), _identity(wanted)
    return [
        f"{name} was {printable(_shown(then[name]))}, is {printable(_shown(now[name]))}"
        for name in then
        if then[name] != now[name]
    ]


def _identity(header: RunHeader) -> dict[str, Any]:
    decided = header.plan is not None and (header.plan.curtail or header.plan.extend)
    return {
        "suite": header.suite,
        "suite digest": header.suite_digest,
        "root seed": header.root_seed,
        "agent digest": None if header.agent is None else header.agent.digest,
        "plan": None if header.plan is None else msgspec.to_builtins(header.plan),
        "errors": header.errors,
        "faults digest": header.faults_digest,
        "judge digest": header.judge_digest,
        "shard": header.shard,
        "task filter": header.task_filter,
        "mode": header.mode,
        # A run that stops early does so against one baseline and policy.
        "baseline digest": header.baseline_digest if decided else None,
        "policy digest": header.policy_digest if decided else None,
    }


def _shown(value: Any) -> str:
    if value is None:
        return "unknown"
    return value if isinstance(value, str) else encode(value).decode()


def _named(record: TrialRecord) -> str:
    return f"trial {record.trial}, repeat {record.repeat} of task {printable(record.task)}"


def _line(record: TrialRecord) -> bytes:
    try:
        return encode(record) + b"\n"
    except UnicodeEncodeError:
        # An agent's text may hold lone surrogates, which no JSON file can.
        return encode(_scrubbed(msgspec.to_builtins(record, str_keys=True))) + b"\n"


def _scrubbed(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_scrubbed(key): _scrubbed(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_scrubbed(item) for item in value]
    return value


def _digest_of(descriptor: int, size: int) -> hashlib._Hash:
    """Return the running digest of the first bytes of a file; its position stays."""
    digest = hashlib.sha256()
    for start in range(0, size, _CHUNK_BYTES):
        digest.update(os.pread(descriptor, min(_CHUNK_BYTES, size - start), start))
    return digest


def _write_all(descriptor: int, content: bytes) -> None:
    written = os.write(descriptor, content)
    while written < len(content):
        written += os.write(descriptor, content[written:])


def _flush(descriptor: int) -> None:
    """Make what was written survive the loss of power."""
    import fcntl

    # macOS: fsync alone leaves the data in the drive's cache.
    full = getattr(fcntl, "F_FULLFSYNC", None)
    if full is None:
        os.fsync(descriptor)
    else:
        fcntl.fcntl(descriptor, full)


class _Flusher:
    """A thread that flushes a file a short while after it is told that there is something new."""

    def __init__(self, descriptor: int) -> None:
        self.error: OSError | None = None
        self._descriptor = descriptor
        self._news = threading.Event()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def wake(self) -> None:
        """Say that a line was written."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="journal", daemon=True)
            self._thread.start()
        if not self._news.is_set():
            self._news.set()

    def stop(self) -> None:
        """End the thread; raises the error that a flush met."""
        self._ended.set()
        self._news.set()
        if self._thread is not None:
            self._thread.join()
        if self.error is not None:
            raise self.error

    def _run(self) -> None:
        while True:
            self._news.wait()
            # Before anything else: cleared later, it could swallow the news that `stop` brings.
            self._news.clear()
            # Lines of the next moment share this flush.
            if self._ended.wait(_FLUSH_DELAY_S):
                return
            try:
                _flush(self._descriptor)
            except OSError as error:
                self.error = error
                return

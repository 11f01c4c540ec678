"""One pass over a run file: what it says, where each surviving line is, and every mistake.

The scan decides which lines survive (the highest attempt of each trial) and which files are
refused. It must not know whether a torn end is forgiven: runs and journals decide that differently.
"""

from __future__ import annotations

import os
from array import array
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, Final

import msgspec

from ci_gate.errors import FileFormatError, printable
from ci_gate.model.run import Plan, RunFooter, RunHeader
from ci_gate.model.trial import TrialRecord
from ci_gate.prng import parse_seed
from ci_gate.store.canonical import JoinedDigest, forms_of
from ci_gate.store.formats import RUN, check_schema, decode_object, typed, unknown_fields
from ci_gate.store.paths import mistake_in_id

__all__ = ["MAX_LINE_BYTES", "Digests", "Scan", "digests_of", "lines_of", "scan"]

MAX_LINE_BYTES: Final = 16 * 2**20
# Outcome strings of a comparison hold a character a planned trial; a hostile plan must not decide
# how much memory that takes.
_MAX_TRIALS: Final = 10**6
_MAX_REPEATS: Final = 10**4
_POSITION_BITS: Final = 40
_decode_record: Final = msgspec.json.Decoder(TrialRecord).decode
_UNREADABLE: Final = (msgspec.DecodeError, UnicodeError, RecursionError)


class _KnownTask(msgspec.Struct, frozen=True, kw_only=True):
    """What the first line of a task fixed for all its lines."""

    name: str
    digest: str | None
    trials: int


class Scan(msgspec.Struct, kw_only=True):
    """What one pass over a run file found.

    Parameters
    ----------
    name : str
        The file in messages.
    header : RunHeader
    extra : mapping
        Unknown fields of the header.
    records : list of TrialRecord
        The surviving line of each trial, in the order in which trials first appear.
    offsets, lengths, numbers : array of int
        For each record its line's first byte, number of bytes and number in the file.
    spent_usd : float
        What the lines say they cost together, in US dollars, superseded ones included.
    footer : RunFooter or None
    body_end : int
        Bytes before the footer, torn end excluded: where the next line belongs.
    torn_bytes : int
        Length of a last line that is no line: without its newline, and not JSON.
    open_end : bool
        The last whole line lacks its newline.
    """

    name: str
    header: RunHeader
    extra: dict[str, Any]
    records: list[TrialRecord] = msgspec.field(default_factory=list)
    offsets: array[int] = msgspec.field(default_factory=lambda: array("Q"))
    lengths: array[int] = msgspec.field(default_factory=lambda: array("L"))
    numbers: array[int] = msgspec.field(default_factory=lambda: array("L"))
    spent_usd: float = 0.0
    footer: RunFooter | None = None
    body_end: int = 0
    torn_bytes: int = 0
    open_end: bool = False

    def at(self, position: int) -> str:
        """Return ``file:line`` of a record."""
        return f"{self.name}:{self.numbers[position]}"

    def by_line(self) -> list[TrialRecord]:
        """Return the records in the order of their lines."""
        places = sorted(range(len(self.records)), key=self.numbers.__getitem__)
        return [self.records[position] for position in places]

    def order(self) -> list[int]:
        """Return positions of the records sorted by task, trial and repeat."""
        # Small lists of whole numbers sort several times faster than one list of tuples.
        by_task = defaultdict[str, list[int]](list)
        for position, record in enumerate(self.records):
            rank = record.trial * _MAX_REPEATS + record.repeat
            by_task[record.task].append(rank << _POSITION_BITS | position)
        mask = (1 << _POSITION_BITS) - 1
        return [code & mask for task in sorted(by_task) for code in sorted(by_task[task])]


class Digests(msgspec.Struct, frozen=True, kw_only=True):
    """The digest of all surviving lines, and of each repeat's that has any."""

    whole: str
    repeats: dict[int, str]


def scan(stream: BinaryIO, name: str) -> Scan:
    """Read a run file from its start to its end.

    Parameters
    ----------
    stream : binary file
        At its start.
    name : str
        The file in messages; printable.

    Raises
    ------
    FileFormatError
        The file is empty, its first line is torn or no header of this version, a line beyond the
        last is not JSON, not UTF-8, longer than 16 MiB or neither trial nor footer, a (task, trial,
        repeat, attempt) comes twice, an index lies beyond the plan, a task has two digests, or
        something follows the footer.
    """
    first = stream.readline(MAX_LINE_BYTES + 1)
    found = Scan(name=name, **_header(first, f"{name}:1"))
    found.body_end = len(first)
    found.open_end = not first.endswith(b"\n")
    reader = _Reader(found)
    for number, line in enumerate(_bounded_lines(stream), 2):
        reader.take(line, number)
    return found


def _bounded_lines(stream: BinaryIO) -> Iterator[bytes]:
    return iter(lambda: stream.readline(MAX_LINE_BYTES + 1), b"")


def _header(line: bytes, where: str) -> dict[str, Any]:
    if not line:
        raise FileFormatError("the file is empty", where=where)
    _check_length(line, where)
    fields = decode_object(line, where)
    check_schema(fields, RUN, where)
    header = typed(fields, RunHeader, where)
    _check_header(header, where)
    return {"header": header, "extra": unknown_fields(fields, RunHeader)}


def _check_length(line: bytes, where: str) -> None:
    if len(line) > MAX_LINE_BYTES:
        raise FileFormatError(f"the line is longer than {MAX_LINE_BYTES} bytes", where=where)


def _check_header(header: RunHeader, where: str) -> None:
    if header.root_seed is not None:
        check_seed(header.root_seed, f"{where}: root_seed")
    if header.plan is not None:
        _check_plan(header.plan, f"{where}: plan")


def check_seed(seed: str, where: str) -> None:
    """Check that a seed of a file is hexadecimal on 64 bits.

    Raises
    ------
    FileFormatError
        It is not.
    """
    try:
        parse_seed(seed)
    except ValueError as error:
        raise FileFormatError(printable(error), where=where) from error


def _check_plan(plan: Plan, where: str) -> None:
    own = ((f"task_trials[{printable(task)}]", n) for task, n in plan.task_trials.items())
    for key, value in (("trials", plan.trials), *own):
        _check_bounds(key, value, _MAX_TRIALS, where)
    for key, value in (("repeats", plan.repeats), ("max_repeats", plan.max_repeats)):
        _check_bounds(key, value, _MAX_REPEATS, where)


def _check_bounds(key: str, value: int, highest: int, where: str) -> None:
    if not 1 <= value <= highest:
        what = f"{key} is {printable(value)}, which is not from 1 to {highest}"
        raise FileFormatError(what, where=where)


class _Reader:
    """Takes the lines after the header, one after the other."""

    def __init__(self, found: Scan) -> None:
        plan = found.header.plan
        self._found = found
        self._repeats = _MAX_REPEATS if plan is None else max(plan.max_repeats, plan.repeats)
        self._tasks: dict[str, _KnownTask] = {}
        self._positions: dict[tuple[str, int, int], int] = {}
        # Attempts of the few trials that have more than one line.
        self._attempts: dict[tuple[str, int, int], set[int]] = {}

    def take(self, line: bytes, number: int) -> None:
        """Take a line."""
        if len(line) > MAX_LINE_BYTES or self._found.footer is not None:
            self._refuse(line, number)
        try:
            record = _decode_record(line)
        except _UNREADABLE as error:
            self._take_other(line, number, printable(error))
            return
        self._take_record(record, line, number)
        self._found.body_end += len(line)
        self._found.open_end = not line.endswith(b"\n")

    def _refuse(self, line: bytes, number: int) -> None:
        where = f"{self._found.name}:{number}"
        _check_length(line, where)
        if line.strip():
            raise FileFormatError("a line follows the footer", where=where)

    def _take_record(self, record: TrialRecord, line: bytes, number: int) -> None:
        known = self._tasks.get(record.task)
        if known is None or record.task_digest != known.digest:
            known = self._known(record, number)
        if record.trial >= known.trials or record.repeat >= self._repeats:
            self._refuse_index(record, known, number)
        # A million records share the few strings that name and describe their task.
        msgspec.structs.force_setattr(record, "task", known.name)
        if record.task_digest is not None:
            msgspec.structs.force_setattr(record, "task_digest", known.digest)
        if record.cost_usd is not None:
            self._found.spent_usd += record.cost_usd
        key = (known.name, record.trial, record.repeat)
        position = self._positions.setdefault(key, len(self._found.records))
        if position == len(self._found.records):
            self._add(record, line, number)
        else:
            self._supersede(position, record, line, number)

    def _known(self, record: TrialRecord, number: int) -> _KnownTask:
        known = self._tasks.get(record.task)
        if known is None or known.digest is None:
            known = self._tasks[record.task] = self._introduce(record, number)
        elif record.task_digest not in (None, known.digest):
            self._fail(number, f"{_named(record)} has another task_digest than before")
        return known

    def _introduce(self, record: TrialRecord, number: int) -> _KnownTask:
        mistake = mistake_in_id(record.task)
        if mistake:
            self._fail(number, f"the task id '{printable(record.task)}' {mistake}")
        plan = self._found.header.plan
        trials = _MAX_TRIALS if plan is None else plan.task_trials.get(record.task, plan.trials)
        return _KnownTask(name=record.task, digest=record.task_digest, trials=trials)

    def _refuse_index(self, record: TrialRecord, known: _KnownTask, number: int) -> None:
        if record.trial >= known.trials:
            what = f"{_named(record)}: trial {record.trial} is out of range"
            self._fail(number, f"{what}, the task has {known.trials} trials")
        what = f"{_named(record)}: repeat {record.repeat} is out of range"
        self._fail(number, f"{what}, the plan has at most {self._repeats} repeats")

    def _add(self, record: TrialRecord, line: bytes, number: int) -> None:
        found = self._found
        found.records.append(record)
        found.offsets.append(found.body_end)
        found.lengths.append(len(line))
        found.numbers.append(number)

    def _supersede(self, position: int, record: TrialRecord, line: bytes, number: int) -> None:
        found, earlier = self._found, self._found.records[position]
        attempts = self._attempts.setdefault(record.key, {earlier.attempt})
        if record.attempt in attempts:
            what = f"{_named(record)}, trial {record.trial}, repeat {record.repeat}"
            self._fail(number, f"{what}: attempt {record.attempt} is there twice")
        attempts.add(record.attempt)
        if record.attempt > earlier.attempt:
            found.records[position] = record
            found.offsets[position] = found.body_end
            found.lengths[position] = len(line)
            found.numbers[position] = number

    def _take_other(self, line: bytes, number: int, mistake: str) -> None:
        where = f"{self._found.name}:{number}"
        if not line.strip():
            self._found.body_end += len(line)
            return
        try:
            fields = decode_object(line, where)
        except FileFormatError:
            if line.endswith(b"\n"):
                raise
            self._found.torn_bytes = len(line)
            return
        if fields.get("end") is not True or "task" in fields:
            raise FileFormatError(mistake, where=where)
        self._found.footer = typed(fields, RunFooter, where)

    def _fail(self, number: int, what: str) -> None:
        raise FileFormatError(what, where=f"{self._found.name}:{number}")


def _named(record: TrialRecord) -> str:
    return f"task {printable(record.task)}"


def lines_of(found: Scan, stream: BinaryIO, order: Sequence[int]) -> Iterator[bytes]:
    """Yield the lines of the records at these positions, as they are in the file.

    Raises
    ------
    FileFormatError
        The file became shorter since it was scanned.
    """
    descriptor, offsets, lengths = stream.fileno(), found.offsets, found.lengths
    for position in order:
        line = _read_at(descriptor, lengths[position], offsets[position])
        if len(line) != lengths[position]:
            raise FileFormatError("changed while it was read", where=found.at(position))
        yield line


def _seek_and_read(descriptor: int, length: int, offset: int) -> bytes:
    os.lseek(descriptor, offset, os.SEEK_SET)
    return os.read(descriptor, length)


_read_at: Final = getattr(os, "pread", _seek_and_read)


def digests_of(found: Scan, stream: BinaryIO, order: Sequence[int]) -> Digests:
    """Return the digests of the surviving lines.

    Parameters
    ----------
    found : Scan
    stream : binary file
        The file that was scanned; its position moves.
    order : sequence of int
        ``found.order()``.

    Raises
    ------
    FileFormatError
        A line is nested too deep, or the file became shorter since it was scanned.

    References
    ----------
    Definition in ``ci_gate.store.canonical``.
    """
    whole, repeats = JoinedDigest(), defaultdict[int, JoinedDigest](JoinedDigest)
    for position, line in zip(order, lines_of(found, stream, order), strict=True):
        try:
            forms = forms_of(line)
        except ValueError as error:
            raise FileFormatError(printable(error), where=found.at(position)) from error
        whole.add(forms.own)
        repeats[found.records[position].repeat].add(forms.first_repeat)
    texts = {repeat: repeats[repeat].text() for repeat in sorted(repeats)}
    return Digests(whole=whole.text(), repeats=texts)

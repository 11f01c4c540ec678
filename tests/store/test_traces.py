"""A trace file is whole or it is said where it is not."""

import hashlib
import json

import msgspec
import pytest

from ci_gate.codec import digest_of
from ci_gate.errors import FileFormatError, InternalError, UsageError
from ci_gate.model.trace import TraceHeader, TraceRecord
from ci_gate.model.trace_chain import digest_of_header, sealed
from ci_gate.store.traces import (
    TraceReading,
    clear_traces,
    open_trace,
    read_trace,
    refuse_obstacles,
)
from tests.full_disk import largest_file

_HEADER = TraceHeader(suite="desk", task="refund/1", trial=3, repeat=0, seed="0x2a")


def _record(order, **fields):
    return TraceRecord(
        order=order, kind="tool", name="look_up", input_digest=digest_of({}), **fields
    )


def _written(tmp_path, calls=4, header=_HEADER):
    writer = open_trace(tmp_path / "traces", header)
    for order in range(calls):
        record = _record(order, output={"order": order}, duration_ms=1.5)
        writer.append(sealed(record, writer.head))
    writer.finish()
    return writer.path


def _edited(path, edit):
    lines = path.read_bytes().splitlines(keepends=True)
    edit(lines)
    path.write_bytes(b"".join(lines))
    return path


def _wheres(path):
    with pytest.raises(FileFormatError) as caught:
        read_trace(path)
    return [(p.where.removeprefix(f"{path}:"), p.what) for p in caught.value.problems]


def test_a_trace_is_read_back_as_it_was_written(tmp_path):
    """Its name comes from the task, the trial and the repeat, and stays in the folder."""
    path = _written(tmp_path)

    trace = read_trace(path)

    assert path.parent.parent == tmp_path / "traces"
    assert path.name == "3.jsonl"
    assert trace.header == _HEADER
    assert [record.output for record in trace.records] == [{"order": n} for n in range(4)]
    assert trace.footer.head == trace.records[-1].digest


def test_a_repeat_has_a_file_of_its_own(tmp_path):
    """The first run over the seeds keeps the short name."""
    header = msgspec.structs.replace(_HEADER, repeat=2)

    assert _written(tmp_path, header=header).name == "3.2.jsonl"


def test_an_unfinished_trace_does_not_have_the_name_of_one(tmp_path):
    """A killed run leaves nothing that could be taken for a whole trace; the next one clears it."""
    writer = open_trace(tmp_path, _HEADER)
    writer.append(sealed(_record(0), writer.head))

    assert not writer.path.exists()
    writer._stream.close()
    again = open_trace(tmp_path, _HEADER)
    again.finish()
    names = sorted(path.name for path in again.path.parent.iterdir())
    assert names == ["3.jsonl", "3.meta.json"]


def test_a_discarded_trace_leaves_nothing(tmp_path):
    """Also when it is discarded twice; a finished one stays."""
    writer = open_trace(tmp_path, _HEADER)
    writer.discard()
    writer.discard()
    finished = _written(tmp_path / "other")

    assert list(writer.path.parent.iterdir()) == []
    assert finished.exists()


def test_every_flipped_byte_is_found(tmp_path):
    """And located in its line or, for what only the next line can tell, in that one."""
    path = _written(tmp_path, calls=2)
    content = path.read_bytes()

    for place in range(0, len(content), 11):
        flipped = bytearray(content)
        flipped[place] ^= 1
        path.write_bytes(bytes(flipped))
        line = content[:place].count(b"\n") + 1
        with pytest.raises(FileFormatError) as caught:
            read_trace(path)
        found = int(str(caught.value).removeprefix(f"{path}:").split(":")[0])
        # What is outside of the chain, durations and parts of the header, is found at the end.
        assert found in (line, line + 1, content.count(b"\n"))


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        (
            lambda lines: lines.pop(2),
            [
                ("3", "call 1 says order 2 at place 1"),
                (
                    "3",
                    "call 1 is not chained to record 0: a line was changed, moved or removed",
                ),
                ("4", "call 2 says order 3 at place 2"),
                ("5", "the footer counts 4 calls, not 3"),
            ],
        ),
        (lambda lines: lines.pop(), [("5", "the trace has no footer: it ends too early")]),
        (
            lambda lines: lines.append(lines[1]),
            [("7", "stands after the footer")],
        ),
    ],
    ids=["removed", "truncated", "appended"],
)
def test_what_was_done_to_a_trace_is_named_with_its_line(tmp_path, edit, expected):
    """Removed, truncated and appended lines."""
    found = _wheres(_edited(_written(tmp_path), edit))

    if expected[0][0] == "7":
        assert found[0] == expected[0]
    else:
        assert found == expected


def test_a_trace_that_was_cut_short_is_read_where_that_is_allowed(tmp_path):
    """What there is of it is chained as ever."""
    path = _edited(_written(tmp_path), lambda lines: lines.pop())

    trace = read_trace(path, allow_open_end=True)

    assert trace.footer is None
    assert len(trace.records) == 4


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b'{"schema":"ci-gate/trace@2"}\n', "another version"),
        (b'{"schema":"ci-gate/run@1","suite":"x"}\n', "Expected ci-gate/trace@1"),
        (b'{"schema":"ci-gate/trace@1"}\n{"order":0}\n', "missing required field"),
        (b'{"schema":"ci-gate/trace@1"}\n{"order":0', "is not JSON"),
        (b"\xff\xfe\n", "is not UTF-8"),
    ],
)
def test_what_is_no_trace_is_refused(tmp_path, content, message):
    """Empty, of another version or format, incomplete, torn, not text."""
    path = tmp_path / "x.jsonl"
    path.write_bytes(content)

    with pytest.raises(FileFormatError, match=message):
        read_trace(path)


def test_unknown_fields_are_part_of_the_chain(tmp_path):
    """A newer writer's trace is read, and a change of what only it knows is found."""

    def with_unknown(lines):
        fields = json.loads(lines[1])
        fields["novel"] = 1
        lines[1] = json.dumps(fields).encode() + b"\n"

    path = _edited(_written(tmp_path), with_unknown)

    assert _wheres(path) == [
        ("2", "call 0 was changed: its content does not have its digest"),
    ]


def test_a_long_trace_is_followed_line_by_line(tmp_path):
    """Records come as they are read; nothing is kept."""
    reading = TraceReading(_written(tmp_path, calls=50))

    first = next(reading.records())

    assert first.order == 0
    assert reading.problems == []


def test_a_link_in_place_of_the_tasks_folder_is_refused(tmp_path):
    """An agent could have put it there to have a file written elsewhere."""
    writer = open_trace(tmp_path / "traces", _HEADER)
    writer.discard()
    folder = writer.path.parent
    folder.rmdir()
    (tmp_path / "elsewhere").mkdir()
    folder.symlink_to(tmp_path / "elsewhere")

    with pytest.raises(UsageError, match="is a link"):
        open_trace(tmp_path / "traces", _HEADER)


@pytest.mark.parametrize("calls", [1, 300])
def test_a_full_disk_leaves_no_half_of_a_trace(tmp_path, calls):
    """Whether it is met at a call or, with all in the buffer, at the end."""
    writer = open_trace(tmp_path / "traces", _HEADER)

    def write():
        for order in range(calls):
            writer.append(sealed(_record(order, output="x" * 300), writer.head))
        writer.finish()

    with largest_file(100), pytest.raises(InternalError, match="File too large"):
        write()
    writer.discard()

    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_meta_file_without_room_takes_the_trace_with_it(tmp_path):
    """Both are there or none is."""
    writer = open_trace(tmp_path / "traces", _HEADER)
    writer.append(sealed(_record(0), writer.head))
    writer._stream.flush()

    size = writer._partial.stat().st_size + 200
    many = msgspec.structs.replace(_HEADER, tool="x" * 2 * size)
    writer._header = many  # which only the file beside it has
    with largest_file(size), pytest.raises(InternalError):
        writer.finish()
    writer.discard()

    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_only_traces_are_cleared(tmp_path):
    """Links that have the name of a trace go, and what they point to stays."""
    path = _written(tmp_path)
    mine = tmp_path / "mine"
    mine.write_text("mine")
    path.with_name("4.jsonl").symlink_to(mine)
    other = path.with_name("notes.txt")
    other.write_text("notes")

    clear_traces(tmp_path / "traces")

    assert [one for one in tmp_path.rglob("*") if one.is_file()] == [mine, other]


@pytest.mark.parametrize("name", ["0.jsonl", "0.meta.json", ".0.jsonl.partial", "1.2.jsonl"])
def test_a_folder_with_the_name_of_a_trace_is_refused(tmp_path, name):
    """It is not ours to remove, and a trace would be lost to it."""
    (tmp_path / "traces" / "t3" / name / "deep").mkdir(parents=True)

    for refused in (refuse_obstacles, clear_traces):
        with pytest.raises(UsageError, match=f"{name}: is a folder, and a trace belongs there"):
            refused(tmp_path / "traces")


@pytest.mark.parametrize("link", ["traces", "traces/t3", "traces/.contents", "traces/.contents/ab"])
def test_nothing_is_cleared_through_a_link(tmp_path, link):
    """Nor anything written: it is refused before the first trial."""
    elsewhere = tmp_path / "elsewhere" / "t3"
    elsewhere.mkdir(parents=True)
    (elsewhere / "0.jsonl").write_text("mine")
    place = tmp_path / link
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(tmp_path / "elsewhere")

    for refused in (refuse_obstacles, clear_traces):
        with pytest.raises(UsageError, match="is a link"):
            refused(tmp_path / "traces")
    assert (elsewhere / "0.jsonl").read_text() == "mine"


def _resealed(tmp_path, **fields):
    """Write a trace with valid digests whose one record says this."""
    path = _written(tmp_path, calls=0)
    header = json.loads(path.read_bytes().splitlines()[0])
    record = {**msgspec.to_builtins(_record(0)), **fields, "prev": digest_of_header(_HEADER)}
    counted = {k: v for k, v in record.items() if k not in ("digest", "duration_ms")}
    record["digest"] = digest_of(counted)
    lines = b"".join(msgspec.json.encode(line) + b"\n" for line in (header, record))
    content = "sha256:" + hashlib.sha256(lines).hexdigest()
    footer = {"end": True, "calls": 1, "head": record["digest"], "content": content}
    path.write_bytes(lines + msgspec.json.encode(footer) + b"\n")
    return path


def _nested(levels):
    value = "x"
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"cost_usd": 1.7e308}, "cost_usd"),
        ({"duration_ms": 1.7e308}, "duration_ms"),
        ({"tokens": 10**300}, "tokens"),
        ({"output": _nested(400)}, "nested deeper than 300 levels"),
    ],
    ids=["cost", "duration", "tokens", "nested"],
)
def test_a_resealed_trace_with_absurd_values_is_refused(tmp_path, fields, words):
    """Digests that fit make no amount of what is none."""
    path = _resealed(tmp_path, **fields)
    with pytest.raises(FileFormatError, match=words):
        read_trace(path)


def test_a_resealed_trace_is_read_where_its_values_are_sound(tmp_path):
    """So the refusals above are about the values."""
    path = _resealed(tmp_path, cost_usd=1e9, output={"$ci-gate": ["int", "9" * 5000]})
    assert read_trace(path).records[0].cost_usd == 1e9

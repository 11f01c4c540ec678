"""Folders of kept traces: put together beside the old one, and one for the other in the end."""

from __future__ import annotations

from pathlib import Path

import pytest

from ci_gate.codec import digest_of
from ci_gate.errors import FileFormatError, UsageError
from ci_gate.model.trace import Trace, TraceHeader, TraceRecord
from ci_gate.model.trace_chain import sealed
from ci_gate.store.contents import Contents
from ci_gate.store.kept import KeptFolder, contents_of, is_name_of_trace, kept_file, size_of
from ci_gate.store.traces import open_trace, read_trace


def recorded(
    folder: Path, task: str = "refund", content: bytes = b"x" * 1000
) -> tuple[Path, Trace]:
    """Record a trial whose world ends with one file."""
    digest = Contents(folder).put(content)
    writer = open_trace(folder, TraceHeader(task=task, trial=2, repeat=1))
    state = {"files": {"world.db": {"digest": digest, "bytes": len(content)}}, "folders": []}
    for order, output in enumerate((state, state)):
        record = TraceRecord(
            order=order, kind="state", name="after", input_digest=digest_of(None), output=output
        )
        writer.append(sealed(record, writer.head))
    writer.finish()
    return writer.path, read_trace(writer.path)


def kept(place: Path, run: Path, *tasks: str) -> KeptFolder:
    """Keep the traces of some tasks and put them in their place."""
    folder = KeptFolder(place)
    for task in tasks:
        path, trace = recorded(run, task)
        folder.add(task, path, trace, Contents(run))
    folder.replace()
    folder.discard()
    return folder


def files(place: Path) -> set[str]:
    """Return the files of a folder, contents apart."""
    found = (path.relative_to(place).as_posix() for path in place.rglob("*") if path.is_file())
    return {name for name in found if not name.startswith(".contents/")}


def test_a_trace_is_kept_with_what_it_refers_to(tmp_path: Path) -> None:
    """Under the name it had, in the folder of its task, byte for byte."""
    place = tmp_path / "desk.traces"
    kept(place, tmp_path / "run", "refund")

    path = kept_file(place, "refund")
    assert path == place / "refund" / "2.1.jsonl"
    [digest] = contents_of(read_trace(path))
    assert Contents(place).get(digest) == b"x" * 1000
    assert size_of(path, read_trace(path), Contents(place)) < path.stat().st_size + 100


def test_git_leaves_the_bytes_as_they_are(tmp_path: Path) -> None:
    """Other ends of lines would be other digests."""
    kept(tmp_path / "desk.traces", tmp_path / "run", "refund")

    attributes = (tmp_path / "desk.traces" / ".gitattributes").read_text()
    assert attributes.split()[:2] == ["*", "-text"]


def test_the_folder_that_was_there_is_replaced_as_a_whole(tmp_path: Path) -> None:
    """What is kept no longer is gone, and nothing is left beside it."""
    place = tmp_path / "desk.traces"
    kept(place, tmp_path / "run", "refund", "look")

    kept(place, tmp_path / "run", "look")

    assert files(place) == {".gitattributes", "look/2.1.jsonl"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["desk.traces", "run"]


def test_without_a_trace_there_is_no_folder(tmp_path: Path) -> None:
    """An empty one would say that traces are kept."""
    place = tmp_path / "desk.traces"
    kept(place, tmp_path / "run", "refund")

    kept(place, tmp_path / "run")

    assert not place.exists()


def test_the_same_traces_are_no_difference(tmp_path: Path) -> None:
    """And another one is, however alike its name."""
    place = tmp_path / "desk.traces"
    kept(place, tmp_path / "run", "refund")
    path, trace = recorded(tmp_path / "run")
    other, other_trace = recorded(tmp_path / "other", content=b"y")

    same, another, none = (KeptFolder(place) for _ in range(3))
    same.add("refund", path, trace, Contents(tmp_path / "run"))
    another.add("refund", other, other_trace, Contents(tmp_path / "other"))

    assert not same.differs()
    assert another.differs()
    assert none.differs()


def test_a_content_that_is_missing_or_was_changed_is_not_kept(tmp_path: Path) -> None:
    """The trace could not be replayed to its end."""
    path, trace = recorded(tmp_path / "run")
    [content] = (tmp_path / "run" / ".contents").glob("*/*")
    content.write_bytes(b"no zlib")

    with pytest.raises(FileFormatError, match="damaged"):
        KeptFolder(tmp_path / "kept").add("refund", path, trace, Contents(tmp_path / "run"))
    content.unlink()
    with pytest.raises(FileFormatError, match="no such file"):
        size_of(path, trace, Contents(tmp_path / "run"))


def test_a_link_in_the_place_is_refused(tmp_path: Path) -> None:
    """It could lead anywhere."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "desk.traces").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(UsageError, match="is a link"):
        KeptFolder(tmp_path / "desk.traces")


def test_what_a_killed_update_left_is_swept(tmp_path: Path) -> None:
    """By the next one, and nothing else is."""
    for name in (".desk.traces.0011.new", ".desk.traces.0011.old", ".other.traces.0011.new"):
        (tmp_path / name / "x").mkdir(parents=True)

    KeptFolder(tmp_path / "desk.traces").discard()

    assert [path.name for path in tmp_path.iterdir()] == [".other.traces.0011.new"]


@pytest.mark.parametrize(
    ("name", "is_one"),
    [("0.jsonl", True), ("12.3.jsonl", True), ("0.meta.json", False), ("..jsonl", False)],
)
def test_only_traces_are_read(name: str, is_one: bool) -> None:
    """Whatever else stands in such a folder."""
    assert is_name_of_trace(name) is is_one

"""Contents are found under their digest, or it is said why not."""

import zlib

import pytest

from ci_gate.codec import digest_bytes
from ci_gate.errors import FileFormatError, InternalError, UsageError
from ci_gate.store.contents import Contents
from tests.full_disk import largest_file


def test_content_is_read_back_by_its_digest(tmp_path):
    """Whatever bytes it has."""
    contents = Contents(tmp_path)

    digest = contents.put(b"\0\xff" * 1000)

    assert digest == digest_bytes(b"\0\xff" * 1000)
    assert Contents(tmp_path).get(digest) == b"\0\xff" * 1000


def test_changed_content_is_found(tmp_path):
    """A flipped byte, or other content in its place."""
    contents = Contents(tmp_path)
    digest = contents.put(b"one" * 50)
    path = next(path for path in tmp_path.rglob("*") if path.is_file())
    other = Contents(tmp_path / "other")
    other.put(b"two" * 50)
    swapped = next(path for path in (tmp_path / "other").rglob("*") if path.is_file())

    for packed in (path.read_bytes()[:-1] + b"x", b"", swapped.read_bytes()):
        path.write_bytes(packed)
        with pytest.raises(FileFormatError, match=r"damaged|digest"):
            contents.get(digest)


def test_missing_content_is_named(tmp_path):
    """With its place."""
    with pytest.raises(FileFormatError, match="no such file"):
        Contents(tmp_path).get(digest_bytes(b"x"))


@pytest.mark.parametrize("digest", ["", "sha256:../../etc/passwd", "md5:00", "sha256:" + "0" * 63])
def test_what_is_no_digest_leads_nowhere(tmp_path, digest):
    """It comes from a file that anybody may have written."""
    with pytest.raises(FileFormatError, match="is no digest"):
        Contents(tmp_path).get(digest)


def test_a_content_that_was_changed_is_written_anew(tmp_path):
    """What a repository brings under the name of a content is not taken for it."""
    digest = Contents(tmp_path).put(b"right")
    [path] = [path for path in tmp_path.rglob("*") if path.is_file()]
    path.write_bytes(zlib.compress(b"wrong"))

    Contents(tmp_path).put(b"right")

    assert Contents(tmp_path).get(digest) == b"right"


@pytest.mark.parametrize("link", [".contents", ".contents/e3"])
def test_contents_are_not_written_through_a_link(tmp_path, link):
    """Neither that of all of them nor one of its folders."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    place = tmp_path / "traces" / link
    place.parent.mkdir(parents=True)
    place.symlink_to(elsewhere)

    with pytest.raises(UsageError, match="is a link"):
        Contents(tmp_path / "traces").put(b"")  # its digest begins with e3

    assert list(elsewhere.iterdir()) == []


def test_a_full_disk_leaves_no_half_of_a_content(tmp_path):
    """Nor a temporary file."""
    with largest_file(10), pytest.raises(InternalError, match="File too large"):
        Contents(tmp_path).put(bytes(range(256)) * 8)

    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []

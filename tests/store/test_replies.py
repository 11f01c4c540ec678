"""Replies of judges, kept under what was asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from ci_gate.codec import digest_of
from ci_gate.errors import FileFormatError, UsageError
from ci_gate.store.replies import FOLDER, KeptReply, Replies

QUESTION = digest_of("is it polite?")


def test_a_kept_reply_is_found_by_its_question(tmp_path: Path) -> None:
    """The last reply to a question is given back, and nothing for any other question."""
    replies = Replies(tmp_path)
    assert replies.get(QUESTION) is None
    replies.put(QUESTION, KeptReply(problem="it refused"))
    replies.put(QUESTION, KeptReply(text="yes"))
    assert replies.get(QUESTION) == KeptReply(text="yes")
    assert replies.get(digest_of("is it short?")) is None


def test_a_file_that_is_no_reply_is_named(tmp_path: Path) -> None:
    """Whatever lies in a reply's place is a reply or an error with its path."""
    Replies(tmp_path).put(QUESTION, KeptReply(text="yes"))
    (path,) = (tmp_path / FOLDER).rglob("*.json")
    path.write_text('{"text": 3}')
    with pytest.raises(FileFormatError, match="is no reply of a judge"):
        Replies(tmp_path).get(QUESTION)


def test_no_link_is_followed_to_keep_a_reply(tmp_path: Path) -> None:
    """A link in the folder's place is refused."""
    (tmp_path / "elsewhere").mkdir()
    traces = tmp_path / "traces"
    traces.mkdir()
    (traces / FOLDER).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="link"):
        Replies(traces).put(QUESTION, KeptReply(text="yes"))

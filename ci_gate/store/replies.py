"""Replies of judges, kept beside the traces under the digest of what was asked.

A replay that comes to the same question finds its answer here. What a question or a reply means is
not known here, and nothing is believed of a file but its text.
"""

from __future__ import annotations

import re
import secrets
from pathlib import Path
from typing import Final

import msgspec

from ci_gate.errors import FileFormatError, printable
from ci_gate.store.files import put_whole, read_whole
from ci_gate.store.folders import make_real_folder

__all__ = ["FOLDER", "KeptReply", "Replies"]

FOLDER: Final = ".replies"
"""Below the folder of all traces; no task's folder begins with a full stop."""

_DIGEST: Final = re.compile(r"sha256:([0-9a-f]{64})")
_MOST_BYTES: Final = 2**22


class KeptReply(msgspec.Struct, frozen=True, kw_only=True):
    """A text, or why there was none."""

    text: str | None = None
    problem: str | None = None


class Replies:
    """A folder of replies.

    Parameters
    ----------
    traces : Path
        The folder of all traces.
    """

    def __init__(self, traces: Path) -> None:
        self._folder = traces / FOLDER

    def put(self, digest: str, reply: KeptReply) -> None:
        """Keep a reply; a later one to the same question replaces it.

        Raises
        ------
        InternalError, UsageError
            The disk is full or broken, or the folder may not be written.
        """
        path = self._path(digest)
        make_real_folder(path.parent)
        partial = path.with_name(f".{secrets.token_hex(8)}.tmp")
        put_whole(path, msgspec.json.encode(reply), partial=partial)

    def get(self, digest: str) -> KeptReply | None:
        """Return the reply to a question, None where none was kept.

        Raises
        ------
        FileFormatError
            What is there is no reply.
        """
        path = self._path(digest)
        if not path.is_file():
            return None
        try:
            return msgspec.json.decode(read_whole(path, limit=_MOST_BYTES), type=KeptReply)
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            raise FileFormatError("is no reply of a judge", where=printable(path)) from error

    def _path(self, digest: str) -> Path:
        match = _DIGEST.fullmatch(digest)
        assert match is not None
        return self._folder / match[1][:2] / f"{match[1][2:]}.json"

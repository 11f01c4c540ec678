"""Contents of files that traces refer to: each kept once, compressed, under its digest.

This module decides names and form. It must not know which states the contents belong to.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from ci_gate.codec import digest_bytes
from ci_gate.errors import FileFormatError, Problem, printable
from ci_gate.model.trace import TraceRecord
from ci_gate.model.trace_meta import STATE
from ci_gate.store.files import put_whole, read_whole, write_whole
from ci_gate.store.folders import make_real_folder

__all__ = ["FOLDER", "Contents", "ContentsCheck", "contents_of_state"]

FOLDER: Final = ".contents"
"""Below the folder of all traces; no task's folder begins with a full stop."""

_DIGEST: Final = re.compile(r"sha256:([0-9a-f]{64})")
_HINT: Final = "Record the trial again, or fetch the folder of results as a whole."
_MOST_BYTES: Final = 64 * 2**20
_LEVEL: Final = 1  # a third of the time of the default for a tenth more bytes


def contents_of_state(state: Any) -> Iterator[tuple[str, str]]:
    """Yield file name and digest of every content that a state refers to.

    Parameters
    ----------
    state : Any
        What a ``state`` record holds: anything, where somebody else wrote it.
    """
    files = state.get("files") if isinstance(state, dict) else None
    for name, entry in files.items() if isinstance(files, dict) else ():
        digest = entry.get("digest") if isinstance(entry, dict) else None
        if isinstance(digest, str):
            yield name, digest


class ContentsCheck:
    """Checks the contents that the states of traces refer to, each of them once.

    Parameters
    ----------
    traces : Path
        The folder of all traces.
    """

    def __init__(self, traces: Path) -> None:
        self._contents = Contents(traces)
        self._found: dict[str, str | None] = {}

    def problems(self, record: TraceRecord, where: str) -> Iterator[Problem]:
        """Yield what is wrong with the contents that a record refers to.

        Parameters
        ----------
        record : TraceRecord
        where : str
            File and line of the record.
        """
        if record.kind != STATE:
            return
        for name, digest in contents_of_state(record.output):
            wrong = self._wrong_with(digest)
            if wrong is not None:
                what = f"the state {printable(record.name)} refers to file {printable(name)!r}"
                yield Problem(what=f"{what}, whose content {wrong}", where=where, hint=_HINT)

    def _wrong_with(self, digest: str) -> str | None:
        if digest not in self._found:
            self._found[digest] = self._tried(digest)
        return self._found[digest]

    def _tried(self, digest: str) -> str | None:
        try:
            self._contents.get(digest)
        except FileFormatError as error:
            [problem] = error.problems
            return f"{problem.what}: {problem.where}"
        return None


class Contents:
    """A folder of contents.

    Parameters
    ----------
    traces : Path
        The folder of all traces.
    """

    def __init__(self, traces: Path) -> None:
        self._folder = traces / FOLDER
        self._known: set[str] = set()

    def put(self, content: bytes) -> str:
        """Keep the content once and return its digest.

        Raises
        ------
        InternalError, UsageError
            The disk is full or broken, or the folder may not be written.
        """
        digest = digest_bytes(content)
        if digest not in self._known:
            self._write(digest, content)
            self._known.add(digest)
        return digest

    def _write(self, digest: str, content: bytes) -> None:
        path = self._path(digest)
        make_real_folder(path.parent)
        if path.is_symlink() or not self._is_whole(digest):
            partial = path.with_name(f".{secrets.token_hex(8)}.tmp")
            put_whole(path, zlib.compress(content, _LEVEL), partial=partial)

    def _is_whole(self, digest: str) -> bool:
        """Return whether a content is there already, and not only a file of its name."""
        try:
            self.get(digest)
        except FileFormatError:
            return False
        return True

    def get(self, digest: str) -> bytes:
        """Return the content of a digest.

        Raises
        ------
        FileFormatError
            It is missing, was changed, or is larger than any that is kept.
        """
        path = self._path(digest)
        packed = read_whole(path, limit=_MOST_BYTES + 2**20)
        unpacking = zlib.decompressobj()
        try:
            content = unpacking.decompress(packed, _MOST_BYTES + 1)
        except zlib.error as error:
            raise FileFormatError(f"is damaged: {error}", where=printable(path)) from error
        if "sha256:" + hashlib.sha256(content).hexdigest() != digest:
            raise FileFormatError("does not have its digest", where=printable(path))
        return content

    def size(self, digest: str) -> int:
        """Return how many bytes a content takes as it is kept.

        Raises
        ------
        FileFormatError
            It is missing.
        """
        path = self._path(digest)
        try:
            return path.lstat().st_size
        except OSError as error:
            raise FileFormatError("there is no such file", where=printable(path)) from error

    def copy_from(self, other: Contents, digest: str) -> None:
        """Keep a content of another folder, packed as it is there.

        Raises
        ------
        FileFormatError
            The other folder does not have it whole.
        InternalError, UsageError
            As ``put``.
        """
        if digest in self._known:
            return
        other.get(digest)
        make_real_folder(self._path(digest).parent)
        write_whole(self._path(digest), read_whole(other._path(digest)))
        self._known.add(digest)

    def _path(self, digest: str) -> Path:
        match = _DIGEST.fullmatch(digest)
        if match is None:
            raise FileFormatError(f"{printable(digest)!r} is no digest", where="state of a trace")
        return self._folder / match[1][:2] / match[1][2:]

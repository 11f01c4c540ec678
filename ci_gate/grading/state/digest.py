"""One short name for the content of a world, the same on every machine and release of SQLite.

It goes by what is read, not by the bytes of a database, in which SQLite keeps its own version. The
order of rows does not count.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any, Final

from ci_gate import codec
from ci_gate.grading.state.world import Table, WorldState

__all__ = ["DIGITS", "digest_of_state"]

DIGITS: Final = 16
"""Hexadecimal digits of a digest."""


def digest_of_state(state: WorldState) -> str:
    """Return the beginning of a SHA-256 over everything in a world.

    Parameters
    ----------
    state : WorldState
        All parts of it.
    """
    digest = hashlib.sha256()
    for name, table in sorted(state.tables.items()):
        _add(digest, "table", name, *table.columns)
        for row in sorted(_rows_of(table)):
            _add(digest, row)
    for path, entry in sorted(state.files.items()):
        facts = (entry.digest, entry.size, entry.executable, entry.target)
        _add(digest, entry.kind, path, *map(_text_of, facts))
    for kind in ("messages", "payments"):
        for record in getattr(state, kind):
            _add(digest, kind, _text_of(record))
    return digest.hexdigest()[:DIGITS]


def _rows_of(table: Table) -> Iterable[str]:
    return ("\n".join(f"{len(text)} {text}" for text in map(_text_of, row)) for row in table.rows)


def _text_of(value: Any) -> str:
    """Return a text that no value of another type or content has."""
    if isinstance(value, bytes):
        return f"bytes {value.hex()}"
    if isinstance(value, dict | list):
        return f"json {codec.encode(value).decode()}"
    return f"{type(value).__name__} {value!r}"


def _add(digest: Any, *texts: str) -> None:
    for text in texts:
        content = text.encode("utf-8", "surrogatepass")
        digest.update(b"%d " % len(content))
        digest.update(content)

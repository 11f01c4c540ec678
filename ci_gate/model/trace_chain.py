"""The chain of digests through a trace: made while recording, checked before anything is believed.

A line's digest covers the line before, so that a byte changed, a line taken out, put in, doubled or
moved is found, and found where it is. Decides nothing about what the calls mean.

Notes
-----
The first ``prev`` is the digest of the header. A line's digest is SHA-256 over the RFC 8785 form of
the object as it stands in the file, unknown fields included, without ``digest`` and
``duration_ms``. Of the header ``repeat`` and ``tool`` are left out, so that an agent which does the
same again leaves a trace with the same digest. The footer has a digest of every byte besides.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from ci_gate.codec import DIGEST_PREFIX, canonical_of_json
from ci_gate.model.trace import TraceHeader, TraceRecord

__all__ = [
    "ChainCheck",
    "ChainFault",
    "digest_of_header",
    "digest_of_line",
    "faults_of_chain",
    "sealed",
]

_OUTSIDE: Final = frozenset({"digest", "duration_ms"})
_OUTSIDE_OF_HEADER: Final = frozenset({"repeat", "tool"})


class ChainFault(NamedTuple):
    """Something wrong with a trace.

    Attributes
    ----------
    place : int or None
        Of the record among the file's, from 0; None for the footer.
    what : str
        What is wrong and what was found, without a final full stop.
    """

    place: int | None
    what: str


def digest_of_header(header: TraceHeader) -> str:
    """Return the digest that the first record is chained to."""
    return _digest_of_header(msgspec.to_builtins(header))


def _digest_of_header(fields: Mapping[str, Any]) -> str:
    kept = {name: value for name, value in fields.items() if name not in _OUTSIDE_OF_HEADER}
    return digest_of_line(kept)


def digest_of_line(fields: Mapping[str, Any]) -> str:
    """Return the digest of a line from all its fields but digest and duration.

    Raises
    ------
    ValueError
        The fields hold what JSON does not have.
    """
    kept = {name: value for name, value in fields.items() if name not in _OUTSIDE}
    return DIGEST_PREFIX + hashlib.sha256(canonical_of_json(kept)).hexdigest()


def sealed(record: TraceRecord, prev: str) -> TraceRecord:
    """Return the record chained to the line before it.

    Raises
    ------
    ValueError
        Input or output hold what JSON does not have.
    """
    linked = msgspec.structs.replace(record, prev=prev)
    return msgspec.structs.replace(linked, digest=digest_of_line(msgspec.to_builtins(linked)))


class ChainCheck:
    """Follows a trace line by line and says what is wrong with each; in constant memory.

    Parameters
    ----------
    header : mapping
        The first line of the file as read.

    Attributes
    ----------
    calls : int
        Records that were followed.
    """

    def __init__(self, header: Mapping[str, Any]) -> None:
        self.calls = 0
        self._prev = _digest_of_header(header)

    def record(self, fields: Mapping[str, Any]) -> list[ChainFault]:
        """Return what is wrong with the next record."""
        place, prev = self.calls, self._prev
        self.calls, self._prev = place + 1, str(fields.get("digest"))
        found = []
        if fields.get("order") != place:
            found.append(f"says order {fields.get('order')!r} at place {place}")
        if fields.get("prev") != prev:
            before = f"record {place - 1}" if place else "the header"
            found.append(f"is not chained to {before}: a line was changed, moved or removed")
        if digest_of_line(fields) != fields.get("digest"):
            found.append("was changed: its content does not have its digest")
        return [ChainFault(place, what) for what in found]

    def footer(self, fields: Mapping[str, Any]) -> list[ChainFault]:
        """Return what is wrong with the footer, after the last record."""
        found = []
        if fields.get("calls") != self.calls:
            found.append(f"the footer counts {fields.get('calls')!r} calls, not {self.calls}")
        if fields.get("head") != self._prev:
            found.append("the footer does not have the digest of the last line")
        return [ChainFault(None, what) for what in found]


def faults_of_chain(
    header: Mapping[str, Any],
    records: Iterable[Mapping[str, Any]],
    footer: Mapping[str, Any] | None,
) -> Iterator[ChainFault]:
    """Yield everything that is wrong with the chain, in order.

    Parameters
    ----------
    header, records, footer
        The lines of the file as read. A missing footer is no fault here: whether a trial may end
        without one is the reader's to say.
    """
    check = ChainCheck(header)
    for fields in records:
        yield from check.record(fields)
    if footer is not None:
        yield from check.footer(footer)

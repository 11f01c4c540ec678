"""The digest of a run: which part of a line counts, in which form and in which order.

This module decides what "the same outcomes" means in bytes. It must not know how lines are stored.

Notes
-----
Of a trial line every field counts, unknown ones too, but ``attempt`` and ``duration_s``. The rest
is written as RFC 8785 canonical JSON (`ci_gate.codec.canonical`). The **digest of a run** is
SHA-256 over these forms of the surviving lines, sorted by task (by code points), trial and repeat,
joined by one newline, none at the end.

The **digest of one repeat** is the same over its lines alone, with ``repeat`` set to 0 and a
``trace`` that ends in ``/<trial>.<repeat>.jsonl`` named as repeat 0 would name it, so that the same
outcomes given as the only repeat of another file have the same digest.

References
----------
RFC 8785, JSON Canonicalization Scheme.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from ci_gate import codec
from ci_gate.model.trial import Answers, Grade, TrialRecord

__all__ = ["Forms", "JoinedDigest", "forms_of"]

_MAX_SAFE_INTEGER: Final = 2**53 - 1
# From 1e-5 on both the fast encoder and RFC 8785 write what is not whole without an exponent.
_SMALLEST: Final = 1e-5
_Fields = dict[str, Any]


class Forms(NamedTuple):
    """A trial line as the digest of its run sees it, and as that of its repeat does."""

    own: bytes
    first_repeat: bytes


def forms_of(line: bytes) -> Forms:
    """Return the canonical forms of a trial line.

    Three ways lead to the same bytes. A line of known fields is read into a struct and written in
    sorted order, any other object as it is; numbers that the fast encoder would write differently
    are replaced before. Objects whose keys it might sort differently go through
    ``codec.canonical``.

    Raises
    ------
    ValueError
        Not a JSON object, or nested too deep.
    """
    try:
        return _forms_of_known(line) or _forms_of_any(_decode(line), line)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise ValueError(str(error)) from error
    except RecursionError as error:
        raise ValueError("is nested too deep") from error


def _optional(kind: type[msgspec.Struct], **other_types: Any) -> type[msgspec.Struct]:
    """Return the struct with every field optional, so that absent and null stay different."""
    fields = [
        (field.encode_name, other_types.get(field.name, field.type) | UnsetType, UNSET)
        for field in msgspec.structs.fields(kind)
    ]
    return msgspec.defstruct(kind.__name__, fields, forbid_unknown_fields=True, gc=False)


# Read as floats, large whole numbers would lose digits that count.
_Number = int | float | None
_KnownGrade: Any = _optional(Grade, score=_Number)
_KnownAnswers: Any = _optional(Answers)
_KnownLine: Any = _optional(
    TrialRecord,
    cost_usd=_Number,
    measures=dict[str, _Number] | None,
    process=dict[str, _Number] | None,
    grades=list[_KnownGrade] | None,
    answers=_KnownAnswers | None,
)
_decode: Final = msgspec.json.Decoder(_Fields).decode
_decode_known: Final = msgspec.json.Decoder(_KnownLine).decode
_encode: Final = msgspec.json.Encoder(order="sorted").encode


def _forms_of_known(line: bytes) -> Forms | None:
    try:
        known = _decode_known(line)
    except msgspec.DecodeError:
        return None
    for named in (known.measures, known.process):
        if named and not _has_ascii_keys(named):
            return None
    _settle_known(known)
    own = _encode(known)
    if known.repeat == 0:
        return Forms(own, own)
    known.trace = _first_trace(known.trace, known.trial, known.repeat)
    known.repeat = 0
    return Forms(own, _encode(known))


def _settle_known(known: Any) -> None:
    """Leave out what does not count and settle fractions; counts were bounded on reading."""
    known.attempt = known.duration_s = UNSET
    known.cost_usd = _settled(known.cost_usd)
    for grade in known.grades or ():
        grade.score = _settled(grade.score)
    for named in (known.measures, known.process):
        if named:
            _settle(named)


def _first_trace(trace: Any, trial: Any, repeat: Any) -> Any:
    ending = f"/{trial}.{repeat}.jsonl"
    if repeat and isinstance(trace, str) and trace.endswith(ending):
        return f"{trace.removesuffix(ending)}/{trial}.jsonl"
    return trace


def _forms_of_any(fields: _Fields, line: bytes) -> Forms:
    facts = {name: fields[name] for name in fields if name not in ("attempt", "duration_s")}
    own = _canonical(facts, line)
    if facts.get("repeat") == 0:
        return Forms(own, own)
    if "trace" in facts:
        facts["trace"] = _first_trace(facts["trace"], facts.get("trial"), facts.get("repeat"))
    facts["repeat"] = 0
    return Forms(own, _canonical(facts, line))


def _canonical(facts: _Fields, line: bytes) -> bytes:
    # Keys beyond ASCII may sort differently by UTF-16, as RFC 8785 asks, than by UTF-8.
    may_be_beyond = b"\\u" in line or not line.isascii()
    if may_be_beyond and not _has_ascii_keys(facts):
        return codec.canonical(facts)
    _settle(facts)
    return _encode(facts)


def _settle(container: Any) -> None:
    """Replace every number that the two encoders write differently, in place."""
    items = container.items() if isinstance(container, dict) else enumerate(container)
    for key, value in items:
        kind = value.__class__
        if kind is float or kind is int:
            container[key] = _settled(value)
        elif kind is dict or kind is list:
            _settle(value)


def _settled(value: Any) -> Any:
    """Return a number that the fast encoder writes as RFC 8785 asks, other values as they are."""
    kind = value.__class__
    if kind is not int and kind is not float:
        return value
    if kind is int or value.is_integer():
        fits = abs(value) <= _MAX_SAFE_INTEGER
        return int(value) if fits else msgspec.Raw(codec.canonical(value))
    return value if abs(value) >= _SMALLEST else msgspec.Raw(codec.canonical(value))


def _has_ascii_keys(value: Any) -> bool:
    if isinstance(value, dict):
        return all(key.isascii() and _has_ascii_keys(item) for key, item in value.items())
    return all(map(_has_ascii_keys, value)) if isinstance(value, list) else True


class JoinedDigest:
    """SHA-256 over byte strings joined by newlines."""

    __slots__ = ("_hash", "_waiting")

    # Few large updates are several times cheaper than many small ones.
    _BATCH: Final = 256

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._waiting: list[bytes] = []

    def add(self, line: bytes) -> None:
        """Take the next string."""
        self._waiting.append(line)
        if len(self._waiting) > self._BATCH:
            # The last one stays, so that a separator goes between it and what follows.
            last = self._waiting.pop()
            self._hash.update(b"\n".join(self._waiting) + b"\n")
            self._waiting = [last]

    def text(self) -> str:
        """Return ``sha256:`` and the digest of what was added so far."""
        whole = self._hash.copy()
        whole.update(b"\n".join(self._waiting))
        return codec.DIGEST_PREFIX + whole.hexdigest()

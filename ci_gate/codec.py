"""JSON in and out: one canonical form, one digest, one strict reader.

Files are read strictly (no NaN, no invalid UTF-8) and digests are taken over RFC 8785, so that
two programs that write the same facts agree on their digest.
"""

from __future__ import annotations

import hashlib
import re
from itertools import accumulate
from typing import Any, Final

import msgspec

__all__ = [
    "DIGEST_PREFIX",
    "MAX_DEPTH",
    "canonical",
    "canonical_of_json",
    "decode",
    "digest_bytes",
    "digest_of",
    "encode",
    "for_log",
    "is_too_deep",
]

DIGEST_PREFIX: Final = "sha256:"
MAX_DEPTH: Final = 300
"""Levels of lists and objects in each other that a text may have."""
_NO_BRACKETS: Final = re.compile(rb"[^\[\]{}]+")
_STEPS: Final = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_MAX_SAFE_INTEGER: Final = 2**53 - 1
_sorted: Final = msgspec.json.Encoder(order="sorted").encode
# Beside what is not ASCII, the delete character, and what the runners of workflows obey.
_NOT_FOR_LOGS: Final = re.compile(r"##(?=\w*\[)|[^\x00-\x7e]")
_STRING: Final = re.compile(rb'"(?:[^"\\]|\\.)*"')
# After a key, a comma or a bracket: a number that may be beyond 2**53 - 1, has an exponent, is
# whole and written with a fraction, or so small that ECMAScript writes an exponent. Texts can look
# so too. Bare characters first: they are searched for fast.
_DELICATE_NUMBER: Final = re.compile(
    rb'[:,\[](?<![^"]:)-?(?:[0-9]{16}|0\.0{6}|[0-9]+(?:\.0(?![0-9])|(?:\.[0-9]+)?[eE]))'
)
# Nearly every content has none of these, and looking costs little: each begins with a character
# that is searched for at the speed of memory. The last is looked for in digits made the same.
_FRACTION: Final = re.compile(rb"\.(?:0(?![0-9])(?<=[0-9]\.0)|0{6}(?<=0\.0{6}))").search
_EXPONENT: Final = re.compile(rb"[0-9](?:e[-+]?[0-9]{1,3}[,}\]]|E)").search
_DIGIT_AND_E: Final = re.compile(b"0e").search
_DIGITS: Final = bytes.maketrans(b"123456789E", b"000000000e")
_MANY_DIGITS: Final = b"0" * 16
# Their order in UTF-16, by which RFC 8785 sorts keys, is not that of their code points.
_LAST_OF_16_BITS: Final = re.compile(rb"[\xee\xef]")
_BEYOND_16_BITS: Final = re.compile(rb"[\xf0-\xf4]")
_BARE_NUMBER: Final = b"-0123456789"


def canonical(value: Any) -> bytes:
    """Return the RFC 8785 form of a JSON value.

    Integers beyond 2**53 - 1, which JSON numbers lose, become the string ``int:<digits>``.

    Raises
    ------
    ValueError
        NaN, an infinity, a lone surrogate or a value that JSON does not have.

    References
    ----------
    RFC 8785, JSON Canonicalization Scheme.
    """
    import rfc8785

    try:
        return rfc8785.dumps(_tagged(value))
    except (rfc8785.CanonicalizationError, UnicodeError, RecursionError) as error:
        raise ValueError(f"not a JSON value: {error}") from error


def canonical_of_json(value: Any) -> bytes:
    """Return what ``canonical`` returns of a value that was read from JSON, in a tenth of the time.

    Raises
    ------
    ValueError
        As ``canonical``.

    Notes
    -----
    The encoder in C writes RFC 8785 itself but for the order of a few rare keys, large numbers and
    some with a fraction; where such may be, the long way is taken.
    """
    try:
        content = _sorted(value)
    except (msgspec.MsgspecError, TypeError, UnicodeError, RecursionError):
        return canonical(value)
    return canonical(value) if _is_delicate(content) else content


def _is_delicate(content: bytes) -> bool:
    if content[0] in _BARE_NUMBER:
        return True
    if (
        not content.isascii()
        and _BEYOND_16_BITS.search(content)
        and _LAST_OF_16_BITS.search(content)
    ):
        return True
    if not _may_have_delicate_number(content):
        return False
    has_one = _DELICATE_NUMBER.search(content) is not None
    return has_one and _DELICATE_NUMBER.search(_STRING.sub(b'""', content)) is not None


def _may_have_delicate_number(content: bytes) -> bool:
    digits = content.translate(_DIGITS)
    if _FRACTION(content) is not None or _MANY_DIGITS in digits:
        return True
    return _DIGIT_AND_E(digits) is not None and _EXPONENT(content) is not None


def _tagged(value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        return value if abs(value) <= _MAX_SAFE_INTEGER else f"int:{value}"
    if isinstance(value, dict):
        return {key: _tagged(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_tagged(item) for item in value]
    return value


def digest_bytes(content: bytes) -> str:
    """Return ``sha256:`` and the hexadecimal SHA-256 of the bytes."""
    return DIGEST_PREFIX + hashlib.sha256(content).hexdigest()


def digest_of(value: Any) -> str:
    """Return the digest of a JSON value's canonical form."""
    return digest_bytes(canonical(value))


def decode(content: bytes | str) -> Any:
    """Return the JSON value in the text.

    Raises
    ------
    ValueError
        Not JSON, not UTF-8, NaN or an infinity, or nested deeper than 300 levels.
    """
    if is_too_deep(content):
        raise ValueError(f"nested deeper than {MAX_DEPTH} levels")
    try:
        return msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ValueError(str(error)) from error


def is_too_deep(content: bytes | str) -> bool:
    """Return whether a JSON text is nested deeper than any reader here follows.

    Notes
    -----
    What walks through values calls itself once or twice a level, and Python allows a thousand
    calls. Nearly every text has fewer brackets than that, and counting them costs little.
    """
    given = content.encode("utf-8", "replace") if isinstance(content, str) else content
    if given.count(b"[") + given.count(b"{") <= MAX_DEPTH:
        return False
    brackets = _NO_BRACKETS.sub(b"", _STRING.sub(b"", given))
    depth = accumulate(_STEPS[bracket] for bracket in brackets)
    return max(depth, default=0) > MAX_DEPTH


def for_log(content: bytes) -> bytes:
    """Return the same JSON in ASCII, in which no log and no terminal finds a command.

    Parameters
    ----------
    content : bytes
        JSON in UTF-8. What is not ASCII in it can only stand in texts, and so can ``##[``, which
        the runner of a workflow reads anywhere in a line; no line of JSON begins with ``::``.
    """
    return _NOT_FOR_LOGS.sub(_spelt_out, content.decode()).encode("ascii")


def _spelt_out(found: re.Match[str]) -> str:
    text = found[0]
    if text.startswith("#"):
        return "\\u0023" * 2
    units = text.encode("utf-16-be").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def encode(value: Any) -> bytes:
    """Return compact UTF-8 JSON of a value or struct; NaN and infinities become null."""
    return msgspec.json.encode(value)

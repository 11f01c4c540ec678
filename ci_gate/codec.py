"""JSON in and out: one canonical form, one digest, one strict reader.

Files are read strictly (no NaN, no invalid UTF-8) and digests are taken over RFC 8785, so that
two programs that write the same facts agree on their digest.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

import msgspec

__all__ = ["DIGEST_PREFIX", "canonical", "decode", "digest_bytes", "digest_of", "encode"]

DIGEST_PREFIX: Final = "sha256:"
_MAX_SAFE_INTEGER: Final = 2**53 - 1


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
    except (rfc8785.CanonicalizationError, UnicodeError) as error:
        raise ValueError(f"not a JSON value: {error}") from error


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
        Not JSON, not UTF-8, NaN or an infinity.
    """
    try:
        return msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ValueError(str(error)) from error


def encode(value: Any) -> bytes:
    """Return compact UTF-8 JSON of a value or struct; NaN and infinities become null."""
    return msgspec.json.encode(value)

"""Names and versions of the file formats, and how a file of another one is refused.

This module decides whether a file is what its reader expects. It must not know any fields but
``schema``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec

from ci_gate.codec import decode
from ci_gate.errors import FileFormatError, printable

__all__ = [
    "BASELINE",
    "JUDGE",
    "RUN",
    "TRACE",
    "TRACE_META",
    "VERDICT",
    "check_schema",
    "decode_object",
    "typed",
    "unknown_fields",
]

RUN: Final = "ci-gate/run@1"
BASELINE: Final = "ci-gate/baseline@1"
JUDGE: Final = "ci-gate/judge@1"
VERDICT: Final = "ci-gate/verdict@1"
TRACE: Final = "ci-gate/trace@1"
TRACE_META: Final = "ci-gate/trace-meta@1"

_SCHEMA: Final = re.compile(r"(ci-gate/[a-z-]+)@([0-9]{1,9})")
_NOT_A_NUMBER: Final = re.compile(rb"[\s:,\[](NaN|-?Infinity)\b")
_Struct = TypeVar("_Struct", bound=msgspec.Struct)


def decode_object(content: bytes, where: str) -> dict[str, Any]:
    """Return the JSON object in the text.

    Raises
    ------
    FileFormatError
        Not UTF-8, not JSON, NaN or an infinity, nested too deep, or no object.
    """
    try:
        value = decode(content)
    except ValueError as error:
        raise FileFormatError(_not_json(content, error), where=where) from error
    if not isinstance(value, dict):
        raise FileFormatError(f"is not a JSON object, found {_kind(value)}", where=where)
    return value


def _not_json(content: bytes, error: ValueError) -> str:
    if content.startswith(b"\xef\xbb\xbf"):
        return "begins with a byte order mark, which JSON does not allow"
    try:
        content.decode()
    except UnicodeDecodeError as broken:
        return f"is not UTF-8: byte {broken.start} is 0x{content[broken.start]:02x}"
    number = _NOT_A_NUMBER.search(content)
    if number:
        return f"is not JSON: found {number[1].decode()}, which is written null"
    return f"is not JSON: {printable(error)}"


def _kind(value: Any) -> str:
    return {list: "an array", str: "a string", bool: "a boolean", type(None): "null"}.get(
        type(value), "a number"
    )


def check_schema(fields: Mapping[str, Any], expected: str, where: str) -> None:
    """Check that a file says it has the expected format and version.

    Raises
    ------
    FileFormatError
        No schema, a newer or otherwise unknown version, or another format.
    """
    found = fields.get("schema")
    if found == expected:
        return
    if found is None:
        what = "has no `schema`"
    elif _is_version_of(found, expected):
        what = f"{found} is another version than the one this version reads: upgrade ci-gate"
    else:
        what = f"has the schema {printable(found)}"
    raise FileFormatError(what, where=where, hint=f"Expected {expected}.")


def _is_version_of(found: object, expected: str) -> bool:
    match = _SCHEMA.fullmatch(found) if isinstance(found, str) else None
    return match is not None and match[1] == expected.partition("@")[0]


def typed(fields: Any, kind: type[_Struct], where: str) -> _Struct:
    """Return the fields as a struct; unknown ones are left out.

    Raises
    ------
    FileFormatError
        A field is missing or has a wrong type or value.
    """
    try:
        return msgspec.convert(fields, kind)
    except (msgspec.ValidationError, RecursionError) as error:
        raise FileFormatError(printable(error), where=where) from error


def unknown_fields(fields: Mapping[str, Any], kind: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the fields that the struct does not have, as they were read."""
    known = set(kind.__struct_encode_fields__) - {"extra"}
    return {name: value for name, value in fields.items() if name not in known}

"""Values that JSON does not have, as they cross from an agent and stand in its trace.

The worker puts an object with the one key ``$ci-gate`` in their place, from which a replay makes
them again. Here they are read: for graders and people, who see plain JSON.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any, Final

from ci_gate.codec import encode

__all__ = ["TAG", "plain_of", "unrecordable_in"]

TAG: Final = "$ci-gate"
_TAG_BYTES: Final = TAG.encode()
_MAX_DEPTH: Final = 200
# Some 4,298 decimal digits: readers of JSON in Python take no more than 4,300.
_MAX_PLAIN_BITS: Final = 14_280


def plain_of(value: Any) -> Any:
    """Return the JSON that stands for a value where nobody makes it again.

    Bytes become ``{"base64": ...}``, integers of thousands of digits hexadecimal text, NaN and
    infinities null, dates and the like their text, lone surrogates question marks; keys are texts.
    """
    return _plain(value) if _may_have_tags(value) else value


def _may_have_tags(value: Any) -> bool:
    if not isinstance(value, dict | list):
        return False
    try:
        return _TAG_BYTES in encode(value)
    except (TypeError, ValueError, RecursionError):
        return True


def _plain(value: Any, depth: int = 0) -> Any:
    if depth > _MAX_DEPTH:
        return "..."
    if isinstance(value, list):
        return [_plain(item, depth + 1) for item in value]
    if not isinstance(value, dict):
        return value
    tag = value.get(TAG)
    if len(value) == 1 and isinstance(tag, list) and len(tag) == 2:
        return _plain_tagged(tag[0], tag[1], depth)
    return {key: _plain(item, depth + 1) for key, item in value.items()}


def _plain_tagged(kind: Any, content: Any, depth: int) -> Any:
    try:
        return _READ.get(kind, _as_it_is)(content, depth)
    except (ValueError, TypeError, AttributeError, LookupError):  # no worker of ours wrote it
        return {TAG: [kind, content]}


def _as_it_is(content: Any, depth: int) -> Any:
    return _plain(content, depth + 1)


def _object(content: Any, depth: int) -> Any:
    pairs = [(_plain(key, depth + 1), _plain(item, depth + 1)) for key, item in content]
    return {key if isinstance(key, str) else str(key): item for key, item in pairs}


def _text(content: Any, depth: int) -> str:
    text = base64.b64decode(content).decode("utf-8", "surrogatepass")
    return text.encode("utf-8", "replace").decode()


def _integer(content: str) -> int | str:
    value = int(content, 16)
    return value if value.bit_length() <= _MAX_PLAIN_BITS else content


def _moment(naive: str, zone: str, _fold: int) -> str:
    return f"{naive} {zone}".rstrip()


_READ: Final[Mapping[str, Callable[[Any, int], Any]]] = {
    "object": _object,
    "bytes": lambda content, depth: {"base64": content},
    "bytearray": lambda content, depth: {"base64": content},
    "text": _text,
    "int": lambda content, depth: _integer(content),
    "datetime": lambda content, depth: _moment(*content),
    "time": lambda content, depth: _moment(*content),
    "float": lambda content, depth: None,
    "unrecordable": lambda content, depth: content["text"],
}


def unrecordable_in(value: Any) -> str | None:
    """Return the type of a value inside that no replay can make again, or None."""
    if not _may_have_tags(value):
        return None
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, list):
            stack += item
        elif isinstance(item, dict):
            tag = item.get(TAG)
            if isinstance(tag, list) and tag[:1] == ["unrecordable"] and isinstance(tag[-1], dict):
                return str(tag[-1].get("type"))
            stack += item.values()
    return None

"""Paths into a JSON document: a small part of RFC 9535, without filters, slices or descent.

``$``, then any number of ``.name``, ``['name']``, ``[0]``, ``[-1]``, ``.*`` and ``[*]``. What is
done with the values that a path finds is not known here.

References
----------
RFC 9535, JSONPath: Query Expressions for JSON, 2.3.1 to 2.3.3 and 2.5.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from ci_gate import codec
from ci_gate.errors import printable

__all__ = ["MOST_FOUND", "JsonPath", "PathMistake", "found_by", "parse_path"]

MOST_FOUND: Final = 10_000
"""Values that a path may find; further ones are left out."""

_ANY: Final = object()
_STEP: Final = re.compile(
    r"""(?P<any>\.\*|\[\*\])
      | \.(?P<name>[^\W\d]\w*)
      | \[(?P<index>-?[0-9]{1,9})\]
      | \[(?P<quoted>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")\]""",
    re.VERBOSE,
)

JsonPath = tuple[Any, ...]
"""The steps of a path: names, indices, or the mark of all members."""


class PathMistake(ValueError):
    """A text is no path; it says from where on."""


def parse_path(text: str) -> JsonPath:
    """Return the steps of a path.

    Raises
    ------
    PathMistake
        The text is not of the form above.
    """
    if not text.startswith("$"):
        raise PathMistake(f"{printable(text)!r} is no JSON path: it begins with '$'")
    steps, at = [], 1
    while at < len(text):
        found = _STEP.match(text, at)
        if found is None:
            raise PathMistake(
                f"{printable(text)!r} is no JSON path from {printable(text[at:])!r} on: steps are"
                " .name, ['name'], [0], .* and [*]"
            )
        steps.append(_step(found))
        at = found.end()
    return tuple(steps)


def _step(found: re.Match[str]) -> Any:
    if found["any"]:
        return _ANY
    if found["index"]:
        return int(found["index"])
    return found["name"] or _unquoted(found["quoted"])


def _unquoted(quoted: str) -> Any:
    text = quoted
    if quoted[0] == "'":
        inner = quoted[1:-1].replace("\\'", "'")
        text = '"' + re.sub(r'(?<!\\)"', r"\"", inner) + '"'
    try:
        return codec.decode(text)
    except ValueError as error:
        raise PathMistake(f"{printable(quoted)} is no name in a JSON path") from error


def found_by(path: JsonPath, document: Any) -> list[Any]:
    """Return the values that a path finds, in order; none where a step leads nowhere."""
    values = [document]
    for step in path:
        values = [member for value in values for member in _members(value, step)][:MOST_FOUND]
    return values


def _members(value: Any, step: Any) -> Iterator[Any]:
    if step is _ANY:
        if isinstance(value, dict | list):
            yield from value.values() if isinstance(value, dict) else value
    elif isinstance(step, int):
        if isinstance(value, list) and -len(value) <= step < len(value):
            yield value[step]
    elif isinstance(value, dict) and step in value:
        yield value[step]

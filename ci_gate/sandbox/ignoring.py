"""What of a call's input does not count when a replay looks for it: dates, request ids.

An entry of ``[trace] ignore`` that begins with ``$`` is a path into the input, any other is
a regular expression whose matches in texts do not count. Knows values; not where they come from.

References
----------
RFC 9535, JSONPath: of it, names, indexes, wildcards and descendants (``..name``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

__all__ = ["Ignored", "PathError"]

_MARK: Final = "[IGNORED]"
_ANY: Final = "*"
_STEP: Final = re.compile(
    r"(?P<deep>\.\.)?(?:\.?(?P<name>[^.\[\]'\"\s*]+)|\.?(?P<star>\*)"
    r"|\[(?:(?P<index>[0-9]{1,9})|(?P<any>\*)|'(?P<single>[^']*)'|\"(?P<double>[^\"]*)\")\])"
)
_MAX_DEPTH: Final = 200


class PathError(ValueError):
    """A path that cannot be read; the text says where."""


class _Step(NamedTuple):
    key: str | int
    is_deep: bool


class Ignored:
    """The entries of ``[trace] ignore``, ready to be left out.

    Parameters
    ----------
    entries : sequence of str

    Raises
    ------
    PathError
        An entry that begins with ``$`` is no path of the supported kind.
    re.error
        Another entry is no regular expression.
    """

    def __init__(self, entries: Sequence[str] = ()) -> None:
        self._paths = tuple(_steps_of(entry) for entry in entries if entry.startswith("$"))
        self._patterns = tuple(re.compile(e) for e in entries if not e.startswith("$"))

    def __bool__(self) -> bool:
        return bool(self._paths or self._patterns)

    def without(self, value: Any) -> Any:
        """Return a JSON value in which everything that does not count says so."""
        for path in self._paths:
            value = _marked(value, path, 0)
        return self._texts(value, 0) if self._patterns else value

    def _texts(self, value: Any, depth: int) -> Any:
        if isinstance(value, str):
            for pattern in self._patterns:
                value = pattern.sub(_MARK, value)
            return value
        if depth >= _MAX_DEPTH:
            return value
        if isinstance(value, dict):
            return {key: self._texts(item, depth + 1) for key, item in value.items()}
        if isinstance(value, list):
            return [self._texts(item, depth + 1) for item in value]
        return value


def _steps_of(path: str) -> tuple[_Step, ...]:
    steps: list[_Step] = []
    place = 1
    while place < len(path):
        match = _STEP.match(path, place)
        if match is None:
            raise PathError(f"{path!r} cannot be read from character {place + 1} on")
        steps.append(_step_of(match))
        place = match.end()
    if not steps:
        raise PathError(f"{path!r} names nothing: a path goes on as in $.request_id")
    return tuple(steps)


def _step_of(match: re.Match[str]) -> _Step:
    parts = match.groupdict()
    is_deep = parts["deep"] is not None
    if parts["index"] is not None:
        return _Step(int(parts["index"]), is_deep)
    if parts["star"] or parts["any"]:
        return _Step(_ANY, is_deep)
    quoted = parts["single"] if parts["single"] is not None else parts["double"]
    return _Step(parts["name"] if quoted is None else quoted, is_deep)


def _marked(value: Any, steps: tuple[_Step, ...], depth: int) -> Any:
    """Return the value with everything that the steps lead to replaced by the mark."""
    if not steps:
        return _MARK
    if depth >= _MAX_DEPTH or not isinstance(value, dict | list):
        return value
    step, rest = steps[0], steps[1:]
    found = [
        (key, _marked(item, rest, depth + 1) if _leads_to(step, key) else item)
        for key, item in _items(value)
    ]
    if step.is_deep:
        found = [(key, _marked(item, steps, depth + 1)) for key, item in found]
    return dict(found) if isinstance(value, dict) else [item for _, item in found]


def _items(value: dict[str, Any] | list[Any]) -> list[tuple[str | int, Any]]:
    return list(value.items()) if isinstance(value, dict) else list(enumerate(value))


def _leads_to(step: _Step, key: str | int) -> bool:
    return step.key == _ANY or step.key == key

"""On which line of a TOML text each key stands, for messages.

TOML parsers drop positions. The text is cut into statements with the parser itself as the judge of
where each one ends, so that strings and arrays over several lines cannot mislead. What cannot be
placed with certainty is left out; a wrong line is worse than none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import tomli

__all__ = ["KeyPath", "lines_of_keys", "nearest_line"]

KeyPath = tuple[str | int, ...]

_MAX_STATEMENT_LINES = 100
_MAX_DEPTH = 8


def lines_of_keys(text: str) -> Mapping[KeyPath, int]:
    """Return the line (1 is the first) on which the statement of each key begins.

    Parameters
    ----------
    text : str
        Valid TOML.

    Returns
    -------
    mapping of tuple to int
        By key path; an element of an array of tables has its index in the path. Empty where some
        statement is too long to be cut.
    """
    place: dict[KeyPath, int] = {}
    tables: dict[KeyPath, int] = {}
    header: KeyPath = ()
    for line, statement, content in _statements(text):
        if statement.lstrip().startswith("["):
            header = _resolved(content, tables)
            place.setdefault(header, line)
            place.setdefault(header[:-1] if isinstance(header[-1], int) else header, line)
        else:
            for path in _paths(content):
                place.setdefault(header + path, line)
    return place


def nearest_line(place: Mapping[KeyPath, int], path: KeyPath) -> int | None:
    """Return the line of a key, or of the closest table or array around it; None if unknown."""
    for length in range(len(path), 0, -1):
        if path[:length] in place:
            return place[path[:length]]
    return None


def _statements(text: str) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Yield (first line, text, content) of each statement, alone in a document of its own."""
    lines = text.replace("\r\n", "\n").split("\n")
    start = 0
    while start < len(lines):
        if not _is_statement(lines[start]):
            start += 1
            continue
        end, content = _whole_statement(lines, start)
        if content is None:
            return
        yield start + 1, lines[start], content
        start = end


def _is_statement(line: str) -> bool:
    stripped = line.strip()
    return bool(stripped) and not stripped.startswith("#")


def _whole_statement(lines: list[str], start: int) -> tuple[int, dict[str, Any] | None]:
    for end in range(start + 1, min(start + _MAX_STATEMENT_LINES, len(lines)) + 1):
        try:
            return end, tomli.loads("\n".join(lines[start:end]))
        except (tomli.TOMLDecodeError, RecursionError):
            continue
    return start, None


def _resolved(content: dict[str, Any], tables: dict[KeyPath, int]) -> KeyPath:
    """Return the path a header opens; ``[[x]]`` counts, and later ``[x.y]`` means its last one."""
    path: KeyPath = ()
    value: Any = content
    while isinstance(value, dict) and value:
        key, value = next(iter(value.items()))
        path += (key,)
        if isinstance(value, list):
            tables[path] = tables.get(path, -1) + 1
            return (*path, tables[path])
        if path in tables:
            path += (tables[path],)
    return path


def _paths(value: Any, path: KeyPath = ()) -> Iterator[KeyPath]:
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        yield (*path, key)
        if isinstance(item, dict | list) and len(path) < _MAX_DEPTH:
            yield from _paths(item, (*path, key))

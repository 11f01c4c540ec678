"""The options of a grader as a task file has them: which are known, and what they may hold.

Problems are sentences without a place: whoever read the file knows where it is.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from ci_gate.errors import printable

__all__ = [
    "count_problems",
    "nearest_name",
    "path_problems",
    "type_problems",
    "unknown_options",
]

_TYPE_NAMES: Mapping[type, str] = {str: "a text", bool: "true or false"}


def unknown_options(options: Mapping[str, Any], known: Collection[str]) -> Iterator[str]:
    """Yield a problem for each option that the grader does not have.

    Parameters
    ----------
    options : mapping
    known : collection of str
    """
    for name in options:
        if name not in known:
            hint = nearest_name(name, known, kind="options")
            yield f"unknown option {printable(name)!r}; {hint}"


def nearest_name(name: str, known: Collection[str], *, kind: str = "known") -> str:
    """Return which of the known names may have been meant, else all of them."""
    near = difflib.get_close_matches(name, known, 1)
    return f"did you mean {near[0]!r}?" if near else f"{kind} are {', '.join(known)}"


def type_problems(options: Mapping[str, Any], names: Iterable[str], kind: type) -> Iterator[str]:
    """Yield a problem for each named option that is there with another type.

    Parameters
    ----------
    options : mapping
    names : iterable of str
    kind : type
        ``str`` or ``bool``.
    """
    for name in names:
        if name in options and not isinstance(options[name], kind):
            found = printable(repr(options[name]), limit=60)
            yield f"option {name!r} must be {_TYPE_NAMES[kind]}, found {found}"


def path_problems(path: Any, name: str) -> Iterator[str]:
    """Yield a problem where something is no path inside the working directory.

    Parameters
    ----------
    path : Any
    name : str
        What it is called in a message.
    """
    if not isinstance(path, str) or not path:
        yield f"{name} must name a file in the working directory"
        return
    parts = PurePosixPath(path).parts
    if "\0" in path or path.startswith("/") or ".." in parts or not parts:
        yield f"{name} must stay inside the working directory, found {printable(path)!r}"


def count_problems(
    options: Mapping[str, Any], names: Collection[str], *, most: int | None = None
) -> Iterator[str]:
    """Yield a problem where none of the named options is there, or more than ``most``.

    Parameters
    ----------
    options : mapping
    names : collection of str
    most : int, optional
        None allows any number.
    """
    given = [name for name in names if name in options]
    if not given:
        yield f"nothing is expected: give {' or '.join(repr(name) for name in names)}"
    if most is not None and len(given) > most:
        yield f"{' and '.join(repr(name) for name in given)} exclude each other"

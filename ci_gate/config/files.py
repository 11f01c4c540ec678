"""From the bytes of ``ci-gate.toml`` to a ``Config``, or to one error that lists every mistake."""

from __future__ import annotations

import copy
import datetime
import os
import stat
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import tomli
from msgspec import inspect

from ci_gate.config.lines import KeyPath, lines_of_keys, nearest_line
from ci_gate.config.reading import Mistake, file_type, key_text, mistakes_in
from ci_gate.config.rules import conflicts_in
from ci_gate.config.settings import Config, config_of
from ci_gate.config.shape import ConfigFile
from ci_gate.errors import ConfigError, Problem, printable

__all__ = ["MAX_BYTES", "MAX_MISTAKES", "load", "parse"]

MAX_BYTES = 1_048_576
MAX_MISTAKES = 100
_INIT_HINT = "`ci-gate init` makes one; --config names another."


def load(path: Path) -> Config:
    """Return the configuration in a file.

    Parameters
    ----------
    path : Path
        The file; its folder is what its paths are relative to.

    Raises
    ------
    ConfigError
        The file is missing or cannot be read, or as for ``parse``.
    """
    name = printable(path)
    try:
        text = _content(path)
        root = path.parent.resolve()
    except FileNotFoundError as error:
        raise ConfigError("there is no such file", where=name, hint=_INIT_HINT) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"cannot be read: {reason}", where=name, hint=_INIT_HINT) from error
    return parse(text, name=name, root=root)


def _content(path: Path) -> bytes:
    # O_NONBLOCK: a pipe without a writer must not hold the command up.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError("it is a pipe or device, not a regular file")
        return file.read(MAX_BYTES + 1)


def parse(text: bytes, *, name: str, root: Path) -> Config:
    """Return the configuration in a text; touches no file.

    Parameters
    ----------
    text : bytes
        TOML in UTF-8.
    name : str
        What messages call the file.
    root : Path
        Absolute folder that the file's paths are relative to.

    Raises
    ------
    ConfigError
        Not TOML, or it has unknown keys, wrong types or impossible values; ``problems`` lists them
        all in the order of their lines, or the first ``MAX_MISTAKES`` of a file that has more.
    """
    content = _decoded(text, name)
    document = _document(content, name)
    wrong = tuple(islice(mistakes_in(document), MAX_MISTAKES))
    if len(wrong) == MAX_MISTAKES:
        raise ConfigError.of(_problems(wrong, content, name))
    paths = [mistake.path for mistake in wrong]
    file = msgspec.convert(_repaired(document, paths), ConfigFile)
    mistakes = (*wrong, *conflicts_in(file, paths))
    if mistakes:
        raise ConfigError.of(_problems(mistakes, content, name))
    return config_of(file, name=name, root=root)


def _decoded(text: bytes, name: str) -> str:
    if len(text) > MAX_BYTES:
        raise ConfigError(f"is larger than {MAX_BYTES:,} bytes", where=name)
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            f"is not UTF-8: byte 0x{text[error.start]:02x}", where=f"{name}:{line}"
        ) from error


def _document(content: str, name: str) -> dict[str, Any]:
    try:
        return tomli.loads(content)
    except tomli.TOMLDecodeError as error:
        line, column = _position(error, content)
        message = printable(getattr(error, "msg", error))
        raise ConfigError(
            f"is not valid TOML: {message}",
            where=f"{name}:{line}:{column}",
            hint="Text needs quotes, and each key stands once.",
        ) from error
    except RecursionError as error:
        raise ConfigError("is nested too deeply", where=name) from error


def _position(error: tomli.TOMLDecodeError, content: str) -> tuple[int, int]:
    """Return line and column; before tomli 2.2 they stand in the message alone."""
    if hasattr(error, "lineno"):
        return error.lineno, error.colno
    words = str(error).rsplit("(at line ", 1)
    if len(words) == 2:
        line, column = words[1].rstrip(")").split(", column ")
        return int(line), int(column)
    lines = content.split("\n")
    return len(lines), len(lines[-1]) + 1


# Stand-ins for required keys that are wrong or missing, so that the other rules can still be tried.
_STAND_INS: Mapping[str, Any] = {
    "suite": [{"name": "stand-in", "tasks": ["-"]}],
    "agent": {"python": "stand:in"},
    "name": "stand-in",
    "tasks": ["-"],
    "metric": "-",
    "task": "-",
    "owner": "-",
    "until": datetime.date.max,
    "input": 0,
    "output": 0,
}


def _repaired(document: dict[str, Any], wrong: Iterable[KeyPath]) -> dict[str, Any]:
    """Return the document without its wrong keys, legal but for rules over several keys."""
    repaired = copy.deepcopy(document)
    for path in wrong:
        _remove(repaired, path)
    _complete(repaired, file_type())
    return repaired


def _remove(document: dict[str, Any], path: KeyPath) -> None:
    """Remove the innermost named key of a path; an array goes as a whole."""
    value: Any = document
    holder, name = document, str(path[0])
    for part in path:
        if isinstance(part, str) and isinstance(value, dict):
            holder, name = value, part
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            break
    holder.pop(name, None)


def _complete(value: Any, kind: inspect.Type) -> None:
    """Put stand-ins where a table lacks a required key."""
    if isinstance(kind, inspect.StructType):
        for field in kind.fields:
            if field.required:
                value.setdefault(field.name, copy.deepcopy(_STAND_INS[field.name]))
            if field.name in value:
                _complete(value[field.name], field.type)
    elif isinstance(kind, inspect.Metadata):
        _complete(value, kind.type)
    elif isinstance(kind, inspect.UnionType):
        _complete(value, kind.types[0])
    elif isinstance(kind, inspect.VarTupleType | inspect.DictType):
        _complete_each(value, kind)


def _complete_each(value: Any, kind: inspect.VarTupleType | inspect.DictType) -> None:
    if isinstance(kind, inspect.DictType):
        for item in value.values():
            _complete(item, kind.value_type)
    else:
        for item in value:
            _complete(item, kind.item_type)


def _problems(mistakes: Iterable[Mistake], content: str, name: str) -> list[Problem]:
    place = lines_of_keys(content)
    located = [(nearest_line(place, mistake.path), mistake) for mistake in mistakes]
    located.sort(key=lambda item: (item[0] is None, item[0] or 0))
    return [
        Problem(
            what=mistake.what,
            where=f"{name}{f':{line}' if line else ''}: {key_text(mistake.path)}",
            hint=mistake.hint,
        )
        for line, mistake in located
    ]

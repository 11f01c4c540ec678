"""The text of task files: TOML or JSON lines into tables of plain JSON, with their lines.

This module decides the outer form of a task file: where tasks stand, what ``[defaults]`` does,
which values are JSON. It must not know what a task's keys mean.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final, NamedTuple

import tomli

from ci_gate.codec import decode
from ci_gate.errors import Problem, printable

__all__ = ["DEFAULT_KEYS", "Findings", "RawTask", "nearest", "tasks_in"]

DEFAULT_KEYS: Final = (
    "fixture",
    "tables",
    "identity",
    "now",
    "limits",
    "tags",
    "metadata",
    "graders",
    "trials",
)
_OWN_GRADER: Final = "grader"
_PREPENDED: Final = ("tags", "graders")
_TASK_HEADER: Final = re.compile(r"\s*\[\[\s*(?:task|\"task\"|'task')\s*\]\]\s*(?:#.*)?")
_FENCE: Final = re.compile('"""|' + "'''")


class RawTask(NamedTuple):
    """A task's table as its file has it, defaults applied; line 0 is unknown.

    ``defaulted`` are the keys whose whole value is from ``[defaults]``.
    """

    fields: dict[str, Any]
    file: str
    line: int
    defaulted: frozenset[str] = frozenset()

    @property
    def source(self) -> str:
        """Return ``file:line``, printable."""
        return f"{printable(self.file)}:{self.line}"


class Findings:
    """Collects every mistake of every file."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self._known: set[tuple[str, str, str]] = set()

    def add(self, where: str, what: str, hint: str = "") -> None:
        """Keep a mistake, once."""
        if (where, what, hint) not in self._known:
            self._known.add((where, what, hint))
            self.problems.append(Problem(what=what, where=where, hint=hint))


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a hint with the known name that is most like this one, or all of them."""
    names = sorted(known)
    close = get_close_matches(name, names, n=1)
    if close:
        return f"Did you mean {close[0]!r}?"
    return f"Known are {', '.join(names)}."


def tasks_in(file: str, content: bytes, findings: Findings) -> list[RawTask]:
    """Return the tasks of a ``.toml`` or ``.jsonl`` file; mistakes are added to the findings."""
    where = printable(file)
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        findings.add(f"{where}:{line}", f"is not UTF-8: byte 0x{content[error.start]:02x}")
        return []
    read = _from_json_lines if file.endswith(".jsonl") else _from_toml
    before = len(findings.problems)
    tasks = read(file, text, findings)
    if not tasks and len(findings.problems) == before:
        findings.add(where, "contains no task", "A task has `id` and `instruction`.")
    return tasks


def _from_json_lines(file: str, text: str, findings: Findings) -> list[RawTask]:
    tasks = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            fields = decode(line)
        except ValueError as error:
            findings.add(f"{printable(file)}:{number}", f"is not JSON: {printable(error)}")
            continue
        if isinstance(fields, dict):
            tasks.append(RawTask(_with_own_grader(fields), file, number))
        else:
            findings.add(f"{printable(file)}:{number}", "is not a JSON object")
    return tasks


def _from_toml(file: str, text: str, findings: Findings) -> list[RawTask]:
    where = printable(file)
    try:
        document = _json_table(tomli.loads(text))
    except tomli.TOMLDecodeError as error:
        findings.add(where, f"is not TOML: {printable(error)}")
        return []
    except (ValueError, RecursionError) as error:
        findings.add(where, f"cannot be read: {printable(error)}")
        return []
    defaults = _defaults(document.pop("defaults", {}), where, findings)
    tables = _tables(document, where, findings)
    lines = _lines_of_tasks(text, len(tables), single="task" not in document)
    return [
        RawTask(
            _with_own_grader(_with_defaults(table, defaults)),
            file,
            line,
            frozenset(defaults) - table.keys() - _alias_of(table),
        )
        for table, line in zip(tables, lines, strict=True)
    ]


def _alias_of(table: Mapping[str, Any]) -> frozenset[str]:
    return frozenset({"graders"}) if _OWN_GRADER in table else frozenset()


def _with_own_grader(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields with the short form of one own grader written out as the last grader."""
    graders = fields.get("graders", [])
    if not isinstance(fields.get(_OWN_GRADER), str) or not isinstance(graders, list):
        return fields
    others = {key: value for key, value in fields.items() if key != _OWN_GRADER}
    own = {"type": "python", "function": fields[_OWN_GRADER]}
    return {**others, "graders": [*graders, own]}


def _json_table(table: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _json_value(value, key) for key, value in table.items()}


def _json_value(value: Any, path: str) -> Any:
    """Return a TOML value as JSON: dates and times become ISO 8601 strings."""
    if isinstance(value, dict):
        return {key: _json_value(item, f"{path}.{key}") for key, item in value.items()}
    if isinstance(value, list):
        return [_json_value(item, f"{path}[{at}]") for at, item in enumerate(value)]
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{path} is {value}, which JSON does not have")
    return value


def _defaults(defaults: Any, where: str, findings: Findings) -> dict[str, Any]:
    if not isinstance(defaults, dict):
        findings.add(f"{where}: defaults", "is not a table", "Write [defaults].")
        return {}
    for key in sorted(defaults.keys() - set(DEFAULT_KEYS)):
        findings.add(
            f"{where}: defaults.{printable(key)}", "is unknown", nearest(key, DEFAULT_KEYS)
        )
    return {key: defaults[key] for key in DEFAULT_KEYS if key in defaults}


def _tables(document: dict[str, Any], where: str, findings: Findings) -> list[dict[str, Any]]:
    """Return the task tables: the document itself, or what is under ``[[task]]``."""
    if "task" not in document:
        return [document] if document else []
    tables = document["task"]
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        findings.add(f"{where}: task", "is not an array of tables", "Write [[task]].")
        return []
    for key in sorted(document.keys() - {"task"}):
        hint = f"Beside [[task]] there is only [defaults]. {nearest(key, ('task', 'defaults'))}"
        findings.add(f"{where}: {printable(key)}", "is unknown", hint)
    return tables


def _lines_of_tasks(text: str, count: int, *, single: bool) -> list[int]:
    """Return the line of each ``[[task]]``; 0 where the text leaves a doubt."""
    if single:
        return [1] * count
    found = [number for number, line in _outside_strings(text) if _TASK_HEADER.fullmatch(line)]
    return found if len(found) == count else [0] * count


def _outside_strings(text: str) -> Iterator[tuple[int, str]]:
    """Yield numbered lines that do not begin within a multi-line string."""
    fence = ""
    for number, line in enumerate(text.split("\n"), 1):
        if not fence:
            yield number, line.rstrip("\r")
        for mark in _FENCE.findall(line):
            if not fence:
                fence = mark
            elif mark == fence:
                fence = ""


def _with_defaults(table: dict[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    fields = {**defaults, **table}
    for key in _PREPENDED:
        if isinstance(defaults.get(key), list) and isinstance(table.get(key), list):
            fields[key] = [*defaults[key], *table[key]]
    return fields

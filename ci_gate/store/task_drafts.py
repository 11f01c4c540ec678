"""A task that nobody has finished yet, as the text of a task file: TOML for people to edit.

Every text in it may be what an agent or a stranger wrote. It stands within quotes with everything
escaped that could end them, start a line or turn its order, so that it is data wherever it is put.
What the graders mean is not known here.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from ci_gate.errors import UsageError, printable
from ci_gate.store.taskfiles import Findings, tasks_in

__all__ = ["DraftGrader", "TaskDraft", "draft_text"]

_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
_SHORT: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
# Control, format (bidirectional marks among them), lone surrogates, private, unassigned; lines.
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_MANY_LINES: Final = 2
_LONG: Final = 90
_COMMENT_CHARS: Final = 300
_TABLE: Final = "graders"


class DraftGrader(msgspec.Struct, frozen=True, kw_only=True):
    """A grader of a draft.

    Parameters
    ----------
    what : str
        One line about it.
    table : mapping
        Its keys as they stand in the file.
    """

    what: str
    table: Mapping[str, Any]


class TaskDraft(msgspec.Struct, frozen=True, kw_only=True):
    """What a task file is to say.

    Parameters
    ----------
    fields : mapping
        Keys of the task in their order, without graders; JSON.
    remarks : sequence of str
        Stand at the top, a line each.
    notes : sequence of str
        Stand above the graders.
    graders : sequence of DraftGrader
        The first is in effect, the others stand as comments; at least one.
    """

    fields: Mapping[str, Any]
    remarks: Sequence[str] = ()
    notes: Sequence[str] = ()
    graders: Sequence[DraftGrader]


def draft_text(draft: TaskDraft, *, name: str) -> tuple[str, list[str]]:
    """Return the text of a task file, and the keys that it cannot have.

    Parameters
    ----------
    draft : TaskDraft
    name : str
        Of the file, for messages.

    Returns
    -------
    str
    list of str
        Keys whose value is null, which TOML does not have; they are left out.

    Raises
    ------
    UsageError
        No reader would take it: it is nested too deep.
    """
    lost: list[str] = []
    try:
        fields = {
            key: _without_nulls(value, key, lost)
            for key, value in draft.fields.items()
            if value is not None
        }
        text = "\n".join(_lines(draft, fields, lost)) + "\n"
        _check(text, fields, draft.graders[0], name)
    except RecursionError as error:
        raise _unreadable(name, "it is nested too deep") from error
    return text, lost


def _unreadable(name: str, why: str) -> UsageError:
    return UsageError(f"cannot be a task file: {why}", where=printable(name))


def _check(text: str, fields: Mapping[str, Any], grader: DraftGrader, name: str) -> None:
    """Read the text as the gate will, and see to it that it says this and nothing else."""
    findings = Findings()
    tasks = tasks_in("draft.toml", text.encode(), findings)
    if findings.problems:
        raise _unreadable(name, findings.problems[0].what)
    expected = {**_as_read(fields), _TABLE: [_as_read(grader.table)]}
    if [task.fields for task in tasks] != [expected]:
        raise _unreadable(name, "some of it would be read as something else")


def _as_read(value: Any) -> Any:
    if isinstance(value, str):
        return "".join(map(_readable, value))
    if isinstance(value, Mapping):
        return {_as_read(key): _as_read(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_as_read(item) for item in value]
    return value


def _readable(char: str) -> str:
    return "\ufffd" if unicodedata.category(char) == "Cs" else char


def _without_nulls(value: Any, path: str, lost: list[str]) -> Any:
    if isinstance(value, Mapping):
        found = {}
        for key, item in value.items():
            place = f"{path}.{key}"
            if item is None:
                lost.append(place)
            else:
                found[key] = _without_nulls(item, place, lost)
        return found
    if isinstance(value, list | tuple):
        lost += [f"{path}[{at}]" for at, item in enumerate(value) if item is None]
        return [
            _without_nulls(item, f"{path}[{at}]", lost)
            for at, item in enumerate(value)
            if item is not None
        ]
    return value


def _lines(draft: TaskDraft, fields: Mapping[str, Any], lost: Sequence[str]) -> Iterator[str]:
    yield from map(_comment, draft.remarks)
    if lost:
        places = ", ".join(lost[:5])
        yield _comment(f"TODO: TOML has no null; {len(lost)} left out: {places}")
    yield ""
    tables = {key: value for key, value in fields.items() if _is_section(key, value)}
    for key, value in fields.items():
        if key not in tables:
            yield f"{_key(key)} = {_told(value)}"
    for key, value in tables.items():
        yield ""
        yield f"[{_key(key)}]"
        for name, item in value.items():
            yield f"{_key(name)} = {_told(item)}"
    yield from _grader_lines(draft)


def _is_section(key: str, value: Any) -> bool:
    return key == "input" and isinstance(value, Mapping) and bool(value)


def _grader_lines(draft: TaskDraft) -> Iterator[str]:
    yield ""
    yield from map(_comment, draft.notes)
    for place, grader in enumerate(draft.graders):
        yield ""
        yield _comment(grader.what)
        prefix = "# " if place else ""
        yield f"{prefix}[[{_TABLE}]]"
        for key, value in grader.table.items():
            yield f"{prefix}{_key(key)} = {_value(value)}"


def _comment(text: str) -> str:
    return f"# {printable(text, limit=_COMMENT_CHARS)}".rstrip()


def _told(value: Any) -> str:
    """Return a value at the top of the file, where a long text may have lines."""
    if isinstance(value, str) and value.count("\n") >= _MANY_LINES:
        lines = ["".join(map(_escaped, line)) for line in value.split("\n")]
        return '"""\n' + "\n".join(lines) + '"""'
    whole = _value(value)
    if isinstance(value, list) and len(whole) > _LONG:
        return "\n".join(["[", *(f"  {_value(item)}," for item in value), "]"])
    return whole


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        pairs = (f"{_key(key)} = {_value(item)}" for key, item in value.items())
        return "{ " + ", ".join(pairs) + " }" if value else "{}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    return _number(value)


def _text(text: str) -> str:
    inner = "".join(map(_escaped, text))
    # Only quotes and backslashes were escaped, as in SQL and patterns: a literal says it better.
    is_plain = "'" not in text and inner != text and text == _unescaped(inner)
    return f"'{text}'" if is_plain else f'"{inner}"'


def _unescaped(inner: str) -> str:
    return re.sub(r'\\(["\\])', r"\1", inner)


def _number(value: float) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        raise UsageError(f"cannot be a task file: {value} is no number of JSON")
    return repr(value)


def _key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else _value(key)


def _escaped(char: str) -> str:
    if char in _SHORT:
        return _SHORT[char]
    category = unicodedata.category(char)
    if category == "Cs":  # TOML, like UTF-8, has none
        return "\ufffd"
    if category not in _UNSEEN:
        return char
    return f"\\u{ord(char):04x}" if ord(char) <= 0xFFFF else f"\\U{ord(char):08x}"

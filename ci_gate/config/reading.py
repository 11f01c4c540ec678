"""Hold a parsed TOML document against the tables of ``shape``: every mistake, not the first.

It decides whether each key is known and each value of its type and within its bounds, and says so
in words. It does not know which values go together, nor what any of them is for.
"""

from __future__ import annotations

import datetime
import difflib
import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from msgspec import inspect

from ci_gate.config.lines import KeyPath
from ci_gate.config.shape import ConfigFile
from ci_gate.errors import printable

__all__ = ["Mistake", "file_type", "found", "key_text", "mistakes_in", "nearest"]

_LARGEST = 1e300
_MAX_SHOWN_DEPTH = 3
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


class Mistake(NamedTuple):
    """What is wrong with the value of one key, not yet with its line.

    Parameters
    ----------
    path : tuple of str and int
        The key; indices are those of arrays, 0 for the first.
    what : str
        What is wrong and what was found.
    hint : str
        What to do; empty where ``what`` says it.
    """

    path: KeyPath
    what: str
    hint: str = ""


def mistakes_in(document: Mapping[str, Any]) -> Iterator[Mistake]:
    """Yield every unknown key, wrong type and value out of bounds of a document."""
    return _struct(document, file_type(), ())


@functools.cache
def file_type() -> inspect.Type:
    """Return the description of ``ConfigFile``'s keys and their types."""
    return inspect.type_info(ConfigFile)


def key_text(path: KeyPath) -> str:
    """Return a key path as it is written in messages, such as ``suite[0].name``."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += ("." if text else "") + _quoted_key(part)
    return text


def _quoted_key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else f'"{printable(key, limit=60)}"'


def found(value: Any, *, depth: int = 0) -> str:
    """Return a value as it is shown in messages, in the form of TOML and safe in one line.

    Parameters
    ----------
    value : Any
        A value of a TOML document.
    depth : int
        How many arrays and tables it lies in; what lies deep is not shown.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{printable(value, limit=60)}"'
    if isinstance(value, list | tuple | Mapping):
        shown = _container(value, depth) if depth < _MAX_SHOWN_DEPTH else "..."
        return printable(shown, limit=120)
    return printable(value, limit=60)


def _container(value: Any, depth: int) -> str:
    if not isinstance(value, Mapping):
        return "[" + ", ".join(found(item, depth=depth + 1) for item in value) + "]"
    shown = {key: item for key, item in value.items() if item is not None}
    pairs = [f"{_quoted_key(key)} = {found(shown[key], depth=depth + 1)}" for key in shown]
    return "{ " + ", ".join(pairs) + " }" if pairs else "{}"


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a hint with the known name that is most alike, or all names where none is."""
    names = list(known)
    alike = difflib.get_close_matches(name[:100], names, n=1)
    return f"Did you mean {alike[0]}?" if alike else f"Known: {', '.join(names)}."


# Each check yields the mistakes of one value; which one applies is looked up by the type that
# msgspec describes.
_Check = Callable[[Any, Any, KeyPath], Iterator[Mistake]]


def _check(value: Any, kind: inspect.Type, path: KeyPath) -> Iterator[Mistake]:
    if not isinstance(kind, inspect.Metadata):
        yield from _CHECKS[type(kind)](value, kind, path)
        return
    examples = (kind.extra_json_schema or {}).get("examples", ())
    hint = f"Write it as in {found(examples[0])}." if examples else ""
    for mistake in _check(value, kind.type, path):
        yield mistake._replace(hint=mistake.hint or hint)


def _struct(value: Any, kind: inspect.Type, path: KeyPath) -> Iterator[Mistake]:
    if not isinstance(kind, inspect.StructType):
        return
    if not isinstance(value, Mapping):
        yield _wrong(path, "a table", value)
        return
    fields = {field.name: field for field in kind.fields}
    for key, item in value.items():
        if key in fields:
            yield from _check(item, fields[key].type, (*path, key))
        else:
            yield Mistake((*path, key), "no such key", nearest(key, fields))
    for name, field in fields.items():
        if field.required and name not in value:
            yield Mistake((*path, name), "is missing", "It has no default.")


def _array(value: Any, kind: inspect.VarTupleType, path: KeyPath) -> Iterator[Mistake]:
    if not isinstance(value, list):
        yield _wrong(path, "a list", value)
        return
    if len(value) < (kind.min_length or 0):
        yield Mistake(path, "is empty", "It needs at least one entry.")
    for index, item in enumerate(value):
        yield from _check(item, kind.item_type, (*path, index))


def _mapping(value: Any, kind: inspect.DictType, path: KeyPath) -> Iterator[Mistake]:
    if not isinstance(value, Mapping):
        yield _wrong(path, "a table", value)
        return
    for key, item in value.items():
        yield from _check(key, kind.key_type, (*path, key))
        yield from _check(item, kind.value_type, (*path, key))


def _union(value: Any, kind: inspect.UnionType, path: KeyPath) -> Iterator[Mistake]:
    options = [option for option in kind.types if not isinstance(option, inspect.NoneType)]
    attempts = [tuple(_check(value, option, path)) for option in options]
    if all(attempts) and len(options) == 1:
        yield from attempts[0]
    elif all(attempts):
        yield _wrong(path, " or ".join(_name(option) for option in options), value)


def _literal(value: Any, kind: inspect.LiteralType, path: KeyPath) -> Iterator[Mistake]:
    if value not in kind.values:
        alike = difflib.get_close_matches(str(value)[:100], map(str, kind.values), n=1)
        hint = f'Did you mean "{alike[0]}"?' if alike else ""
        yield _wrong(path, _name(kind), value)._replace(hint=hint)


def _boolean(value: Any, kind: inspect.BoolType, path: KeyPath) -> Iterator[Mistake]:
    if not isinstance(value, bool):
        yield _wrong(path, _name(kind), value)


def _text(value: Any, kind: inspect.StrType, path: KeyPath) -> Iterator[Mistake]:
    if not isinstance(value, str):
        yield _wrong(path, _name(kind), value)
    elif len(value) < (kind.min_length or 0):
        yield Mistake(path, "is empty text")
    elif "\0" in value:
        yield Mistake(path, f"{found(value)} holds a NUL character, which no path or command can")
    elif kind.max_length is not None and len(value) > kind.max_length:
        yield Mistake(path, f"is longer than {kind.max_length} characters: {found(value)}")
    elif kind.pattern is not None and not re.fullmatch(kind.pattern, value):
        yield Mistake(path, f"{found(value)} does not have the form of this key")


def _number(
    value: Any, kind: inspect.IntType | inspect.FloatType, path: KeyPath
) -> Iterator[Mistake]:
    allowed = (int,) if isinstance(kind, inspect.IntType) else (int, float)
    if isinstance(value, bool) or not isinstance(value, allowed):
        yield _wrong(path, _name(kind), value)
    elif not -_LARGEST <= value <= _LARGEST:
        yield _wrong(path, "a finite number", value)
    elif not _within(value, kind):
        yield _wrong(path, _bounds(kind), value)


def _within(value: float, kind: inspect.IntType | inspect.FloatType) -> bool:
    return (
        (kind.ge is None or value >= kind.ge)
        and (kind.gt is None or value > kind.gt)
        and (kind.le is None or value <= kind.le)
        and (kind.lt is None or value < kind.lt)
    )


def _bounds(kind: inspect.IntType | inspect.FloatType) -> str:
    limits = {"at least": kind.ge, "above": kind.gt, "at most": kind.le, "below": kind.lt}
    parts = [f"{word} {limit:,}" for word, limit in limits.items() if limit is not None]
    return f"{_name(kind)} {' and '.join(parts)}"


def _date(value: Any, kind: inspect.DateType, path: KeyPath) -> Iterator[Mistake]:
    if not isinstance(value, datetime.date) or isinstance(value, datetime.datetime):
        yield _wrong(path, _name(kind), value)


def _wrong(path: KeyPath, expected: str, value: Any) -> Mistake:
    return Mistake(path, f"must be {expected}, found {found(value)}")


def _name(kind: inspect.Type) -> str:
    if isinstance(kind, inspect.LiteralType):
        values = [f'"{value}"' for value in kind.values]
        return values[0] if len(values) == 1 else f"one of {', '.join(values)}"
    return _NAMES[type(kind)]


_NAMES: Mapping[type[inspect.Type], str] = {
    inspect.BoolType: "true or false",
    inspect.DateType: "a date such as 2027-01-15, without quotes",
    inspect.FloatType: "a number",
    inspect.IntType: "a whole number",
    inspect.StrType: "text in quotes",
}

_CHECKS: Mapping[type[inspect.Type], _Check] = {
    inspect.BoolType: _boolean,
    inspect.DateType: _date,
    inspect.DictType: _mapping,
    inspect.FloatType: _number,
    inspect.IntType: _number,
    inspect.LiteralType: _literal,
    inspect.StrType: _text,
    inspect.StructType: _struct,
    inspect.UnionType: _union,
    inspect.VarTupleType: _array,
}

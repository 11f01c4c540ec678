"""JSON Schemas of task files: whether one is sound, and where a value is not as it says.

What is checked comes from an agent, so nothing of it decides how long checking takes: patterns are
searched for a bounded time, values are bounded in size and depth, references are followed a bounded
number of times. A schema stands alone: nothing is
fetched, and nothing that it refers to is read. Words are this module's own, so that they are the
same with every release of the library.
"""

from __future__ import annotations

import contextvars
import functools
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import unquote

from ci_gate.codec import MAX_DEPTH, canonical_of_json
from ci_gate.errors import printable
from ci_gate.patterns import PatternError, is_quick, search

__all__ = ["DEEPEST", "LONGEST", "JsonSchema", "schema_problems"]

LONGEST: Final = 1_000_000
"""Bytes of canonical JSON that are checked."""

DEEPEST: Final = 60
"""Levels of a value that are checked."""

_MOST_REFERENCES: Final = 5_000
"""References that are followed, beside as many for each part of the value as a reader needs."""

_REFERENCES_A_PART: Final = 10
_LONGEST_KEY: Final = 200
_SHOWN: Final = 80
_DRAFTS: Final = {
    "http://json-schema.org/draft-04/schema": "Draft4Validator",
    "http://json-schema.org/draft-06/schema": "Draft6Validator",
    "http://json-schema.org/draft-07/schema": "Draft7Validator",
    "https://json-schema.org/draft/2019-09/schema": "Draft201909Validator",
    "https://json-schema.org/draft/2020-12/schema": "Draft202012Validator",
}
_NEWEST: Final = "https://json-schema.org/draft/2020-12/schema"
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_VALUES: Final = frozenset({"const", "enum", "default", "examples"})
"""Keywords under which there is data and no schema."""

_Schema = Mapping[str, Any] | bool

_left: contextvars.ContextVar[Iterator[int]] = contextvars.ContextVar("references left")
"""One number for each reference that may still be followed in the check under way."""


class _EndlessError(Exception):
    """More references were followed than checking takes that ends in a bearable time."""


class JsonSchema:
    """A schema that has no ``schema_problems``.

    Parameters
    ----------
    schema : mapping or bool
    """

    def __init__(self, schema: _Schema) -> None:
        self._schema = schema

    def complaint(self, value: Any) -> str | None:
        """Return where a JSON value is not as the schema says, expected and found; None if it is.

        Blocks for as long as patterns take.
        """
        if _depth(value) > DEEPEST:
            return f"nested deeper than {DEEPEST} levels"
        try:
            if len(canonical_of_json(value)) > LONGEST:
                return f"longer than {LONGEST:,} bytes of JSON"
            return self._first_complaint(value)
        except (PatternError, OSError) as error:
            return f"not checked: {printable(error)}"
        except RecursionError:
            return "not checked: the schema refers to itself without end"
        except _EndlessError:
            return "not checked: too many references of the schema would have to be followed"
        except (ValueError, ArithmeticError) as error:
            return f"not checked, as no JSON holds it: {printable(error)}"

    def _first_complaint(self, value: Any) -> str | None:
        long = _long_key(value) if _has_patterns_of_keys(self._schema) else None
        if long is not None:
            return f"has a key longer than {_LONGEST_KEY} characters: {_shown(long)}"
        _left.set(iter(range(_MOST_REFERENCES + _REFERENCES_A_PART * _parts(value))))
        # The library goes over to its own, unbounded validator where it meets a `$schema`.
        schema = _without_dialect(self._schema)
        errors = _validator_of(_draft(self._schema))(schema).iter_errors(value)
        found = min(((_path(e.absolute_path), _said(e)) for e in errors), default=None)
        if found is None:
            return None
        path, said = found
        return f"at {path}: {said}" if path else said


def schema_problems(schema: Any) -> list[str]:
    """Return what is wrong with a schema, as clauses without a subject; empty where nothing is."""
    if not isinstance(schema, Mapping | bool):
        return [f"must be a JSON Schema (a table), found {_shown(schema)}"]
    if _depth(schema) > DEEPEST:
        return [f"is nested deeper than {DEEPEST} levels"]
    dialect = _dialect(schema)
    if dialect not in _DRAFTS:
        return [f"has an unknown '$schema' {_shown(dialect)}; known are {', '.join(_DRAFTS)}"]
    return _form_problems(schema) or [
        *_reference_problems(schema),
        *_pattern_problems(schema),
    ]


def _form_problems(schema: _Schema) -> list[str]:
    import jsonschema

    try:
        _validator_of(_draft(schema)).check_schema(schema)
    except jsonschema.SchemaError as error:
        path = _path(error.absolute_path)
        return [f"is no JSON Schema: {f'at {path}: ' if path else ''}{_said(error)}"]
    except RecursionError:
        return ["is nested too deep"]
    return []


def _dialect(schema: _Schema) -> Any:
    given = _NEWEST if isinstance(schema, bool) else schema.get("$schema", _NEWEST)
    return given.removesuffix("#") if isinstance(given, str) else given


def _draft(schema: _Schema) -> str:
    return _DRAFTS[_dialect(schema)]


@functools.cache
def _validator_of(draft: str) -> Any:
    import jsonschema

    known = getattr(jsonschema, draft)
    counted = {
        key: _counted(known.VALIDATORS[key]) for key in _REFERENCES if key in known.VALIDATORS
    }
    bounded = {"pattern": _pattern, "uniqueItems": _unique_items, **counted}
    return jsonschema.validators.extend(known, bounded)


def _counted(follow: Any) -> Any:
    """Return the keyword's function, which ends the check where too much was followed."""

    def counting(validator: Any, reference: Any, value: Any, schema: Any) -> Iterator[Any]:
        if next(_left.get(itertools.repeat(0)), None) is None:
            raise _EndlessError
        yield from follow(validator, reference, value, schema) or ()

    return counting


def _parts(value: Any) -> int:
    """Return of how many values a JSON value is made, itself among them."""
    return 1 + sum(map(_parts, _items(value)))


def _without_dialect(schema: _Schema) -> _Schema:
    if isinstance(schema, bool):
        return schema
    return {key: value for key, value in schema.items() if key != "$schema"}


def _pattern(validator: Any, pattern: str, value: Any, schema: Any) -> Iterator[Any]:
    import jsonschema

    del schema
    if validator.is_type(value, "string") and search(re.compile(pattern), value) is None:
        yield jsonschema.ValidationError("no match")


def _unique_items(validator: Any, unique: bool, value: Any, schema: Any) -> Iterator[Any]:
    """Yield an error for items that are there twice; in time that grows with their number."""
    import jsonschema

    del schema
    if not unique or not validator.is_type(value, "array"):
        return
    if len({canonical_of_json(item) for item in value}) < len(value):
        yield jsonschema.ValidationError("not unique")


def _reference_problems(schema: _Schema) -> Iterator[str]:
    anchors = {
        table[key]
        for table in _tables(schema)
        for key in ("$anchor", "$dynamicAnchor")
        if isinstance(table.get(key), str)
    }
    for table in _tables(schema):
        if "$id" in table and table is not schema:
            yield "has an '$id' below its top, which is not supported"
        if "$schema" in table and table is not schema:
            yield "has a '$schema' below its top, which is not supported"
        for key in _REFERENCES:
            if key in table:
                yield from _problem_of_reference(table[key], schema, anchors)


def _problem_of_reference(reference: Any, schema: _Schema, anchors: set[str]) -> Iterator[str]:
    if not isinstance(reference, str) or not reference.startswith("#"):
        yield (
            f"refers to {_shown(reference)}: nothing is fetched or read; "
            "put it under '$defs' and refer to '#/$defs/...'"
        )
    elif reference[1:] not in anchors and not _leads_somewhere(unquote(reference[1:]), schema):
        yield f"refers to {_shown(reference)}, which it does not have"


def _leads_somewhere(pointer: str, schema: Any) -> bool:
    """Return whether a JSON Pointer (RFC 6901) names a part of the schema."""
    if pointer and not pointer.startswith("/"):
        return False
    at = schema
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(at, Mapping) and key in at:
            at = at[key]
        elif isinstance(at, list) and key.isdecimal() and int(key) < len(at):
            at = at[int(key)]
        else:
            return False
    return True


def _pattern_problems(schema: _Schema) -> Iterator[str]:
    for table in _tables(schema):
        keys = table.get("patternProperties")
        patterns = [*(keys if isinstance(keys, Mapping) else ())]
        for pattern in [*patterns, *_texts(table.get("pattern"))]:
            try:
                compiled = re.compile(pattern)
            except (re.error, RecursionError, OverflowError) as error:
                yield f"has a pattern {_shown(pattern)} that is no regular expression: {error}"
                continue
            if pattern in patterns and not is_quick(compiled, "x" * _LONGEST_KEY):
                yield (
                    f"has a pattern of keys {_shown(pattern)} that can take for ever; write it "
                    "without repeats in repeats"
                )


def _texts(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else []


def _tables(schema: Any) -> Iterator[Mapping[str, Any]]:
    """Yield every table of a schema that is no data."""
    if isinstance(schema, Mapping):
        yield schema
        for key, value in schema.items():
            if key not in _VALUES:
                yield from _tables(value)
    elif isinstance(schema, list):
        for item in schema:
            yield from _tables(item)


def _has_patterns_of_keys(schema: _Schema) -> bool:
    return any("patternProperties" in table for table in _tables(schema))


def _long_key(value: Any) -> str | None:
    for table in _tables_of_value(value):
        for key in table:
            if len(key) > _LONGEST_KEY:
                return key
    return None


def _tables_of_value(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, Mapping):
        yield value
    for item in _items(value):
        yield from _tables_of_value(item)


def _items(value: Any) -> Iterable[Any]:
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, list) else ()


def _depth(value: Any) -> int:
    """Return how many levels of lists and tables a value has, level by level."""
    depth, level = 0, [value]
    while level and depth <= MAX_DEPTH:
        level = [item for one in level for item in _items(one)]
        depth += bool(level)
    return depth


def _path(parts: Iterable[str | int]) -> str:
    """Return a place within a value, such as ``items[0].cents``."""
    text = ""
    for part in parts:
        if isinstance(part, int):
            text += f"[{part}]"
        elif re.fullmatch(r"\w+", part):
            text += f".{part}" if text else part
        else:
            text += f"[{_shown(part)}]"
    return printable(text, limit=_SHOWN)


def _said(error: Any) -> str:
    """Return what is expected and found at the place of an error."""
    keyword, expected, found = error.validator, error.validator_value, error.instance
    if keyword == "required" and isinstance(expected, list):
        lacking = [name for name in expected if name not in found]
        return f"expected {', '.join(map(_shown, lacking))}, found only {_names(found)}"
    if keyword == "additionalProperties" and expected is False:
        known = _names(error.schema.get("properties", {}))
        return f"expected no other keys than {known}, found {_names(found)}"
    if keyword is None or keyword == "false schema":
        return f"expected nothing, found {_shown(found)}"
    return f"expected {keyword} {_shown(expected)}, found {_shown(found)}"


def _names(table: Mapping[str, Any]) -> str:
    if not table:
        return "none"
    return printable(", ".join(f'"{name}"' for name in table), limit=_SHOWN)


def _shown(value: Any) -> str:
    try:
        text = canonical_of_json(value).decode()
    except (ValueError, RecursionError):
        text = repr(value)
    return printable(text, limit=_SHOWN)

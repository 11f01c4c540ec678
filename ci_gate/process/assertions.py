"""Assertions over several steps of a trial: a small language of paths and comparisons.

Nothing is evaluated but what is written here: a path leads into JSON values, two values are
compared. An assertion is checked at every call that it speaks of, against the latest calls before.

Notes
-----
The grammar::

    assertion = operand ("==" | "!=" | "in") operand
    operand   = literal | path
    path      = ("input" | "answer" | "args" step | "output" step) step*
    step      = "." name | "[" index "]" | "[" string "]"
    literal   = string | number | "true" | "false" | "null" | "[" [literal ("," literal)*] "]"

``args`` and ``output`` are followed by the name of a tool. Names are letters, digits, ``_`` and
``-``; others are written as ``["..."]``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from ci_gate.codec import decode
from ci_gate.errors import printable
from ci_gate.process.calls import ToolCall
from ci_gate.process.values import is_number, same

__all__ = ["Assertion", "AssertionSyntaxError", "holds", "parse"]

_LONGEST: Final = 1_000
_TOKEN: Final = re.compile(
    r"""\s*(?:
      (?P<string>"(?:[^"\\]|\\.)*"|'[^']*')
    | (?P<number>-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)
    | (?P<name>[A-Za-z_][\w-]*)
    | (?P<sign>==|!=|[].,[])
    )""",
    re.VERBOSE,
)
_NUMBER_IN_TEXT: Final = re.compile(r"(?<![\w.])-?[0-9]+(?:\.[0-9]+)?")
_OPERATORS: Final = ("==", "!=", "in")
_ROOTS: Final = ("input", "answer", "args", "output")
_CONSTANTS: Final[Mapping[str, Any]] = {"true": True, "false": False, "null": None}
_ABSENT: Final = object()


class AssertionSyntaxError(ValueError):
    """The text is no assertion; the message says where and what was expected."""


class Literal(NamedTuple):
    """A value as it is written."""

    value: Any


class Path(NamedTuple):
    """A place in what was asked, answered, given to a tool or got from it."""

    root: str
    tool: str | None
    parts: tuple[str | int, ...]


class Assertion(NamedTuple):
    """A comparison of two operands."""

    left: Literal | Path
    operator: str
    right: Literal | Path

    @property
    def paths(self) -> tuple[Path, ...]:
        """Return the operands that are paths."""
        return tuple(one for one in (self.left, self.right) if isinstance(one, Path))

    def lost_in(self, task_input: Any) -> str | None:
        """Return the first path into the input that leads nowhere, None where all lead on."""
        for path in self.paths:
            if path.root == "input" and _followed(task_input, path.parts) is _ABSENT:
                return _written(path)
        return None


def parse(text: str) -> Assertion:
    """Return the assertion that a text says.

    Raises
    ------
    AssertionSyntaxError
        It says none.
    """
    if len(text) > _LONGEST:
        raise AssertionSyntaxError(f"is longer than {_LONGEST} characters")
    try:
        return _parsed(_Reader(text))
    except RecursionError as error:
        raise AssertionSyntaxError("is nested too deep") from error


def _parsed(reader: _Reader) -> Assertion:
    left = reader.operand()
    operator = reader.take("an operator, == or != or in")
    if operator not in _OPERATORS:
        raise reader.wrong("an operator, == or != or in", operator)
    right = reader.operand()
    reader.expect_end()
    assertion = Assertion(left, operator, right)
    if not assertion.paths:
        raise AssertionSyntaxError("compares no path: begin one with input, answer, args or output")
    return assertion


class _Reader:
    """The tokens of a text, one after another."""

    def __init__(self, text: str) -> None:
        self._tokens = list(_tokens(text))
        self._at = 0

    def peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def take(self, wanted: str) -> str:
        token = self.peek()
        if not token:
            raise AssertionSyntaxError(f"ends where {wanted} was expected")
        self._at += 1
        return token

    def wrong(self, wanted: str, token: str) -> AssertionSyntaxError:
        return AssertionSyntaxError(f"has {printable(token)!r} where {wanted} was expected")

    def expect(self, sign: str) -> None:
        token = self.take(repr(sign))
        if token != sign:
            raise self.wrong(repr(sign), token)

    def expect_end(self) -> None:
        if self.peek():
            raise self.wrong("the end", self.peek())

    def operand(self) -> Literal | Path:
        token = self.peek()
        if token in _ROOTS:
            return self._path(self.take("a path"))
        return Literal(self._literal())

    def _path(self, root: str) -> Path:
        parts = tuple(self._parts())
        if root in ("input", "answer"):
            return Path(root, None, parts)
        if not parts or not isinstance(parts[0], str):
            raise AssertionSyntaxError(f"has {root!r} without the name of a tool behind it")
        return Path(root, parts[0], parts[1:])

    def _parts(self) -> Iterator[str | int]:
        while self.peek() in (".", "["):
            if self.take("a step") == ".":
                name = self.take("a name")
                if not re.fullmatch(r"\w[\w-]*", name):
                    raise self.wrong("a name", name)
                yield name
                continue
            token = self.take("an index")
            key = _constant(token)
            if isinstance(key, bool) or not isinstance(key, str | int):
                raise self.wrong("an index or a quoted name", token)
            yield key
            self.expect("]")

    def _literal(self) -> Any:
        token = self.take("a value or a path")
        if token == "[":
            return self._list()
        value = _constant(token)
        if value is _ABSENT:
            raise self.wrong("a value or a path", token)
        return value

    def _list(self) -> list[Any]:
        found: list[Any] = []
        while self.peek() != "]":
            if found:
                self.expect(",")
            found.append(self._literal())
        self.expect("]")
        return found


def _tokens(text: str) -> Iterator[str]:
    at, end = 0, len(text.rstrip())
    while at < end:
        found = _TOKEN.match(text, at)
        if found is None:
            shown = printable(text[at:].strip(), limit=20)
            raise AssertionSyntaxError(f"has {shown!r} where a value or a path was expected")
        yield found.group().strip()
        at = found.end()


def _constant(token: str) -> Any:
    if token in _CONSTANTS:
        return _CONSTANTS[token]
    if token.startswith("'"):
        return token[1:-1]
    try:
        return decode(token) if token[0] in '"-0123456789' else _ABSENT
    except ValueError:
        return _ABSENT


def _written(path: Path) -> str:
    steps = (f"[{part}]" if isinstance(part, int) else f".{printable(part)}" for part in path.parts)
    return path.root + "".join(steps)


class _Known(NamedTuple):
    """What had been asked, said and done up to a call."""

    input: Any
    answer: str | None
    args: dict[str, Any]
    output: dict[str, Any]

    def knows(self, path: Path) -> bool:
        """Return whether there was such a call, or an answer."""
        if path.root == "answer":
            return self.answer is not None
        return path.tool is None or path.tool in getattr(self, path.root)

    def value(self, operand: Literal | Path) -> Any:
        """Return the value of an operand, or that there is none."""
        if isinstance(operand, Literal):
            return operand.value
        if operand.root == "answer":
            return _in_answer(self.answer, operand.parts)
        root = getattr(self, operand.root)
        return _followed(root if operand.tool is None else root[operand.tool], operand.parts)


def holds(
    assertion: Assertion, task_input: Any, answer: str | None, calls: Iterable[ToolCall]
) -> bool | None:
    """Return whether an assertion held at every call that it speaks of.

    Parameters
    ----------
    assertion : Assertion
    task_input : Any
        What the task asks.
    answer : str or None
    calls : iterable of ToolCall
        Of the trial, in order.

    Returns
    -------
    bool or None
        None where it was never put to the test: a call, or an answer, that it speaks of is missing.

    Notes
    -----
    ``args.TOOL`` and ``output.TOOL`` are those of the latest call of that tool, output of the
    latest that did not fail. It is checked at each call of a tool that ``args`` names, or where
    none does, that ``output`` names; where it speaks of the answer or of no tool, once at the end.
    A path that leads nowhere makes it false.
    """
    known = _Known(task_input, answer, {}, {})
    watched = _watched(assertion)
    results: list[bool] = []
    for call in calls:
        known.args[call.step.name] = call.step.input
        if not call.step.is_error:
            known.output[call.step.name] = call.step.output
        if call.step.name in watched:
            results += _checked(assertion, known)
    if not watched:
        results += _checked(assertion, known)
    return all(results) if results else None


def _watched(assertion: Assertion) -> set[str]:
    if any(path.root == "answer" for path in assertion.paths):
        return set()
    for root in ("args", "output"):
        tools = {path.tool for path in assertion.paths if path.root == root and path.tool}
        if tools:
            return tools
    return set()


def _checked(assertion: Assertion, known: _Known) -> list[bool]:
    if not all(map(known.knows, assertion.paths)):
        return []
    left, right = known.value(assertion.left), known.value(assertion.right)
    if left is _ABSENT or right is _ABSENT:
        return [False]
    if assertion.operator == "in":
        return [_is_in(left, right)]
    return [same(left, right) is (assertion.operator == "==")]


def _is_in(value: Any, whole: Any) -> bool:
    if isinstance(whole, list | tuple):
        return any(same(value, item) for item in whole)
    if isinstance(whole, Mapping):
        return isinstance(value, str) and value in whole
    if not isinstance(whole, str):
        return False
    if isinstance(value, str):
        return value in whole
    return is_number(value) and any(float(one) == value for one in _NUMBER_IN_TEXT.findall(whole))


def _in_answer(answer: str | None, parts: tuple[str | int, ...]) -> Any:
    if not parts:
        return answer
    try:
        return _followed(decode(answer or ""), parts)
    except ValueError:
        return _ABSENT


def _followed(value: Any, parts: Iterable[str | int]) -> Any:
    for part in parts:
        if isinstance(part, int) and isinstance(value, list | tuple):
            if not -len(value) <= part < len(value):
                return _ABSENT
            value = value[part]
        elif isinstance(part, str) and isinstance(value, Mapping) and part in value:
            value = value[part]
        else:
            return _ABSENT
    return value

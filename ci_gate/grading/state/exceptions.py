"""What may change although nothing else may: the exceptions of ``unchanged``.

``refunds`` is a table, ``refunds[order_id=4812]`` rows of it, ``orders[id=4812].status`` one field
of such rows (``orders[].status`` of all), ``messages`` and ``payments`` likewise; whatever else is
a path below the working directory, with ``*``, ``**`` and ``?``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

from ci_gate import codec
from ci_gate.errors import printable
from ci_gate.grading.state.showing import plain
from ci_gate.grading.state.world import PUBLIC

__all__ = ["ExceptionMistake", "Exempt", "parse_exception"]

_QUOTED: Final = r'"(?:[^"\\]|\\.)*"'
_NAME: Final = rf"{_QUOTED}|[^\s\[\]./\"=,]+"
_ROWS: Final = re.compile(
    rf"(?P<name>{_NAME})(?P<where>\[(?P<pairs>(?:{_QUOTED}|[^\[\]\"])*)\])?(?:\.(?P<field>{_NAME}))?"
)
_PAIR: Final = re.compile(
    rf"\s*(?P<field>{_QUOTED}|[^=,\[\]\"\s]+)\s*=\s*(?P<value>{_QUOTED}|[^,\[\]\"]*?)\s*(?:,|\Z)"
)
_WORD: Final = re.compile(r"\w+")
_RECORDS: Final = ("messages", "payments")


class ExceptionMistake(ValueError):
    """A text is no exception; it says why."""


class Exempt(msgspec.Struct, frozen=True, kw_only=True):
    """Something that may change.

    Parameters
    ----------
    kind : {"table", "messages", "payments", "path"}
    pattern : re.Pattern
        Of the names of tables or of paths.
    name : str
        Of the table or path as it was written.
    where : tuple of (str, str)
        Fields and their values as text, of every row that is meant.
    field : str or None
        None: all of the row.
    """

    kind: Literal["table", "messages", "payments", "path"]
    pattern: re.Pattern[str]
    name: str
    where: tuple[tuple[str, str], ...] = ()
    field: str | None = None

    def names(self, name: str) -> bool:
        """Return whether a table or path of this name is meant."""
        return any(map(self.pattern.fullmatch, (name, f"{PUBLIC}.{name}")))

    def has(self, record: Mapping[str, Any]) -> bool:
        """Return whether a row or record is meant."""
        return all(field in record and plain(record[field]) == value for field, value in self.where)


def parse_exception(text: str) -> Exempt:
    """Return what an exception means.

    Raises
    ------
    ExceptionMistake
        It means nothing.
    """
    if "[" not in text and not text.startswith('"') and not _WORD.fullmatch(text):
        return _path(text)
    found = _ROWS.fullmatch(text)
    if found is None or (found["field"] and not found["where"]):
        raise ExceptionMistake(
            f"{printable(text)!r} is no exception: write table, table[field=value],"
            " table[field=value].field, messages[field=value] or ./path"
        )
    return _rows(found, text)


def _path(text: str) -> Exempt:
    path = text.removeprefix("./")
    if not path or path.startswith("/") or ".." in path.split("/"):
        raise ExceptionMistake(f"{printable(text)!r} does not stay inside the working directory")
    if path.endswith("/"):
        path += "**"
    return Exempt(kind="path", pattern=_glob(path, "[^/]"), name=path)


def _glob(text: str, single: str) -> re.Pattern[str]:
    parts = {"**": ".*", "*": f"{single}*", "?": single}
    pieces = re.split(r"(\*\*|\*|\?)", text)
    return re.compile("".join(parts.get(piece) or re.escape(piece) for piece in pieces), re.DOTALL)


def _rows(found: re.Match[str], text: str) -> Exempt:
    name, field = found["name"], found["field"]
    where = _pairs(found["pairs"] or "", text)
    if name in _RECORDS:
        if field:
            raise ExceptionMistake(f"{printable(text)!r}: a message or payment has no exempt field")
        kind: Literal["messages", "payments"] = "messages" if name == "messages" else "payments"
        return Exempt(kind=kind, pattern=_glob(name, "."), name=name, where=where)
    plain_name = _unquoted(name)
    pattern = re.compile(re.escape(plain_name)) if name.startswith('"') else _glob(name, ".")
    return Exempt(
        kind="table",
        pattern=pattern,
        name=plain_name,
        where=where,
        field=_unquoted(field) if field else None,
    )


def _pairs(text: str, whole: str) -> tuple[tuple[str, str], ...]:
    pairs, at = [], 0
    while at < len(text):
        found = _PAIR.match(text, at)
        if found is None:
            raise ExceptionMistake(
                f"{printable(whole)!r}: between the brackets stand field=value, separated by commas"
            )
        pairs.append((_unquoted(found["field"]), _unquoted(found["value"])))
        at = found.end()
    return tuple(pairs)


def _unquoted(text: str) -> str:
    if not text.startswith('"'):
        return text
    try:
        return str(codec.decode(text))
    except ValueError as error:
        raise ExceptionMistake(f"{printable(text)} is no text in quotes") from error

"""The checks of a ``state`` grader as a task file has them: what is legal, and what each asks.

A check has one subject (a table, a query, a document, a file, messages, payments, or that nothing
else changed) and one claim. Nothing here reads a world.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from ci_gate.errors import printable
from ci_gate.grading.conditions import TextConditions, condition_problems
from ci_gate.grading.options import count_problems, path_problems, type_problems, unknown_options
from ci_gate.grading.sql import expectation_problems, query_problems
from ci_gate.grading.state.claims import Claim, Count, Each, Presence, RowSet, Sum
from ci_gate.grading.state.exceptions import ExceptionMistake, Exempt, parse_exception
from ci_gate.grading.state.json_path import JsonPath, PathMistake, parse_path
from ci_gate.grading.state.selecting import (
    Condition,
    bounds_problems,
    conditions_of,
    where_problems,
    where_text,
)
from ci_gate.grading.state.showing import shown
from ci_gate.grading.state.summing import NotANumber, exact

__all__ = ["FILE_CLAIMS", "RECORDS", "Check", "check_of", "check_problems"]

RECORDS: Final = ("table", "messages", "payments")
"""Subjects that are made of rows or records."""

FILE_CLAIMS: Final = ("equals", "contains", "not_contains", "matches")
"""Claims on the text of a file."""

_EACH: Final = ("equals", "contains", "matches")
_PRESENCE: Final = ("exists", "absent")
_CLAIMS: Final[Mapping[str, tuple[str, ...]]] = {
    "table": ("count", "equals", "contains", "matches", "exists", "absent", "rows"),
    "messages": ("count", "equals", "contains", "matches", "exists", "absent", "rows"),
    "payments": ("count", "equals", "contains", "matches", "exists", "absent", "rows"),
    "query": ("equals", "rows", "count", "exists", "absent"),
    "document": ("equals", "contains", "matches", "count", "exists", "absent"),
    "file": (*FILE_CLAIMS, "sha256", "exists", "absent"),
    "unchanged": (),
}
_MORE: Final[Mapping[str, tuple[str, ...]]] = {
    "table": ("where", "field", "sum", "columns", "since"),
    "messages": ("field", "sum", "columns", "since"),
    "payments": ("field", "sum", "columns", "since"),
    "query": (),
    "document": ("path",),
    "file": (),
    "unchanged": (),
}
_SINCE: Final = ("start", "ever")
_SHA256: Final = re.compile(r"[0-9a-f]{64}")


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that must hold of a world.

    Parameters
    ----------
    subject : str
        A key of the table of subjects.
    name : str
        The table, query, document or file.
    conditions : tuple of Condition
        Which rows or records are meant.
    is_added : bool
        Only those that the trial added.
    field : str or None
        Whose values the claim is about.
    path : JsonPath
        Into a document.
    exempt : tuple of Exempt
        What may change.
    claim : Claim or None
        None for files and for ``unchanged``.
    options : mapping
        The check as the task file has it.
    """

    subject: str
    name: str = ""
    conditions: tuple[Condition, ...] = ()
    is_added: bool = False
    field: str | None = None
    path: JsonPath = ()
    exempt: tuple[Exempt, ...] = ()
    claim: Claim | None = None
    options: Mapping[str, Any]

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the fields that the check speaks of."""
        named = [condition.field for condition in self.conditions]
        columns = self.options.get("columns", ()) if self.subject in RECORDS else ()
        return (*named, *([self.field] if self.field else []), *columns)

    def text(self) -> str:
        """Return what the check is about in a few words."""
        if self.subject == "unchanged":
            return "nothing else changed" if self.exempt else "nothing changed"
        name = printable(" ".join(self.name.split()), limit=120)
        label = {"table": name, "query": f"query {name}"}.get(self.subject, self.subject)
        if self.subject in ("document", "file"):
            label = f"{self.subject} {name} {printable(self.options.get('path', ''))}".strip()
        field = f".{printable(self.field, limit=80)}" if self.field else ""
        claim = "" if self.claim is None else self.claim.text()
        return label + where_text(self.conditions) + field + claim


def check_problems(check: Any) -> Iterator[str]:
    """Yield what is wrong with a check of a task file."""
    if not isinstance(check, dict):
        yield f"must be a table, found {shown(check)}"
        return
    subjects = [name for name in _CLAIMS if name in check]
    if len(subjects) != 1:
        yield from _subject_problems(check, subjects)
        return
    subject = subjects[0]
    known = (subject, *_CLAIMS[subject], *_MORE[subject])
    problems = list(unknown_options(check, known))
    yield from problems or _PROBLEMS[subject](check)


def _subject_problems(check: Mapping[str, Any], subjects: Sequence[str]) -> Iterator[str]:
    every = {name for names in (*_CLAIMS.values(), *_MORE.values()) for name in names}
    problems = list(unknown_options(check, (*_CLAIMS, *sorted(every))))
    yield from problems
    if len(subjects) > 1:
        yield f"{' and '.join(repr(name) for name in subjects)} exclude each other"
    elif not problems:
        yield f"it is about nothing: give one of {', '.join(_CLAIMS)}"


def _record_problems(check: Mapping[str, Any]) -> Iterator[str]:
    subject = next(name for name in RECORDS if name in check)
    yield from type_problems(check, ("field", "sum", "since"), str)
    if subject == "table":
        yield from _name_problems(check, "table")
        yield from where_problems(check.get("where", {}), "where")
    elif check[subject] is not True:
        yield from where_problems(check[subject], subject)
    if check.get("since", "ever") not in _SINCE:
        yield f"'since' must be 'start' or 'ever', found {shown(check['since'])}"
    if "sum" in check:
        yield from _sum_problems(check)
        return
    yield from _claim_problems(check, _CLAIMS[subject])
    is_each = any(name in check for name in _EACH)
    if is_each and "field" not in check:
        yield "of which 'field' is missing"
    if not is_each and "field" in check:
        yield f"'field' needs one of {', '.join(repr(name) for name in _EACH)}"
    yield from _row_problems(check)


def _name_problems(check: Mapping[str, Any], key: str) -> Iterator[str]:
    if not isinstance(check[key], str) or not check[key].strip():
        yield f"{key!r} must be a text, found {shown(check[key])}"


def _sum_problems(check: Mapping[str, Any]) -> Iterator[str]:
    others = [name for name in ("field", "columns", *_CLAIMS["table"][2:]) if name in check]
    others += ["count"] if "count" in check else []
    if others:
        yield f"'sum' excludes {', '.join(repr(name) for name in others)}"
    if "equals" not in check:
        yield "of 'sum' the number is missing: give 'equals'"
    elif isinstance(check["equals"], dict):
        yield from bounds_problems(check["equals"], "equals")
    else:
        try:
            exact(check["equals"])
        except NotANumber:
            yield f"'equals' of 'sum' must be a number, found {shown(check['equals'])}"


def _claim_problems(check: Mapping[str, Any], claims: Sequence[str]) -> Iterator[str]:
    yield from count_problems(check, claims, most=1)
    for name in _PRESENCE:
        if name in check and check[name] is not True:
            other = _PRESENCE[1 - _PRESENCE.index(name)]
            yield f"{name!r} can only be true; the opposite is '{other} = true'"
    if "count" in check:
        yield from _count_problems(check["count"])
    if "matches" in check:
        yield from condition_problems({"matches": check["matches"]}, ("matches",))


def _count_problems(count: Any) -> Iterator[str]:
    if isinstance(count, dict):
        yield from bounds_problems(count, "count")
    elif not isinstance(count, int) or isinstance(count, bool) or count < 0:
        yield f"'count' must be a whole number or bounds as {{ ge = 1 }}, found {shown(count)}"


def _row_problems(check: Mapping[str, Any]) -> Iterator[str]:
    columns, rows = check.get("columns"), check.get("rows")
    if "rows" not in check:
        if columns is not None:
            yield "'columns' needs 'rows'"
        return
    if not isinstance(columns, list) or not all(isinstance(name, str) for name in columns):
        yield "'rows' needs 'columns', a list of the fields that make a row"
    elif not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        yield f"'rows' must be a list of rows, each a list of values, found {shown(rows)}"
    elif any(len(row) != len(columns) for row in rows):
        yield f"each of 'rows' must have {len(columns)} values, as 'columns' has"


def _query_check_problems(check: Mapping[str, Any]) -> Iterator[str]:
    # Whose grammar counts is known with the fixture, against which every query is held.
    yield from query_problems(check["query"], is_sqlite=False)
    yield from _claim_problems(check, _CLAIMS["query"])
    if "equals" in check:
        yield from expectation_problems({"equals": check["equals"]})
    if "rows" in check:
        yield from _rows_of_query_problems(check["rows"])


def _rows_of_query_problems(rows: Any) -> Iterator[str]:
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        yield f"'rows' must be a list of rows, each a list of values, found {shown(rows)}"


def _document_problems(check: Mapping[str, Any]) -> Iterator[str]:
    yield from path_problems(check["document"], "'document'")
    path = check.get("path", "$")
    try:
        parse_path(path if isinstance(path, str) else "")
    except PathMistake as error:
        yield f"'path': {error}"
    yield from _claim_problems(check, _CLAIMS["document"])


def _file_problems(check: Mapping[str, Any]) -> Iterator[str]:
    yield from path_problems(check["file"], "'file'")
    yield from _claim_problems(check, _CLAIMS["file"])
    texts = [name for name in FILE_CLAIMS if name in check and name != "matches"]
    if texts:
        yield from condition_problems({name: check[name] for name in texts}, FILE_CLAIMS)
    digest = check.get("sha256")
    if "sha256" in check and not (isinstance(digest, str) and _SHA256.fullmatch(digest)):
        yield f"'sha256' must be 64 hexadecimal digits in lower case, found {shown(digest)}"


def _unchanged_problems(check: Mapping[str, Any]) -> Iterator[str]:
    wanted = check["unchanged"]
    if wanted is True:
        return
    if not isinstance(wanted, dict):
        yield f"'unchanged' must be true or {{ except = [...] }}, found {shown(wanted)}"
        return
    yield from unknown_options(wanted, ("except",))
    texts = wanted.get("except", [])
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        yield f"'except' must be a list of texts, found {shown(texts)}"
        return
    for text in texts:
        try:
            parse_exception(text)
        except ExceptionMistake as error:
            yield f"'except': {error}"


_PROBLEMS: Final = {
    "table": _record_problems,
    "messages": _record_problems,
    "payments": _record_problems,
    "query": _query_check_problems,
    "document": _document_problems,
    "file": _file_problems,
    "unchanged": _unchanged_problems,
}


def check_of(options: Mapping[str, Any]) -> Check:
    """Return the check of options that have no ``check_problems``."""
    subject = next(name for name in _CLAIMS if name in options)
    if subject == "unchanged":
        wanted = options["unchanged"]
        texts = () if wanted is True else wanted.get("except", ())
        exempt = tuple(map(parse_exception, texts))
        return Check(subject=subject, exempt=exempt, options=options)
    if subject == "file":
        return Check(subject=subject, name=options["file"], options=options)
    if subject == "document":
        return Check(
            subject=subject,
            name=options["document"],
            path=parse_path(options.get("path", "$")),
            claim=_claim(options, is_strict=True),
            options=options,
        )
    if subject == "query":
        return Check(subject=subject, name=options["query"], claim=_claim(options), options=options)
    return _record_check(subject, options)


def _record_check(subject: str, options: Mapping[str, Any]) -> Check:
    is_table = subject == "table"
    where = options.get("where", {}) if is_table else options[subject]
    return Check(
        subject=subject,
        name=options["table"] if is_table else "",
        conditions=() if where is True else conditions_of(where),
        is_added=options.get("since", "ever" if is_table else "start") == "start",
        field=options.get("sum") or options.get("field"),
        claim=_claim(options),
        options=options,
    )


def _claim(options: Mapping[str, Any], *, is_strict: bool = False) -> Claim | None:
    if "sum" in options:
        return Sum(wanted=options["equals"])
    if "count" in options:
        return Count(options["count"])
    if "exists" in options or "absent" in options:
        return Presence("exists" in options)
    if "rows" in options:
        rows = tuple(tuple(row) for row in options["rows"])
        return RowSet(columns=tuple(options.get("columns", ())), rows=rows)
    if "matches" in options:
        conditions = TextConditions.of({"matches": options["matches"]})
        return Each(conditions=conditions, is_strict=is_strict)
    return Each(equals=options.get("equals"), contains=options.get("contains"), is_strict=is_strict)

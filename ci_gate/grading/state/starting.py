"""What is wrong with checks, as far as the state that trials start in can tell.

A table or field that a check names and the fixture does not have would fail every trial: it is a
mistake of the task's, found before the first one. What only the agent makes is not known yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ci_gate.errors import printable
from ci_gate.grading.databases import UnusableError
from ci_gate.grading.state.checks import Check
from ci_gate.grading.state.exceptions import Exempt
from ci_gate.grading.state.scene import Scene, nearest_of
from ci_gate.grading.state.snapshot import Places
from ci_gate.grading.state.world import Table, WorldState

__all__ = ["mistakes_in"]


def mistakes_in(checks: Sequence[Check], before: WorldState, places: Places) -> list[str]:
    """Return the mistakes of checks, each with the number of its check.

    Parameters
    ----------
    checks : sequence of Check
    before : WorldState
        The parts of the initial state that they look at.
    places : Places
        Of the initial state.
    """
    return [
        f"check {number}: {mistake}"
        for number, check in enumerate(checks, 1)
        for mistake in _mistakes(check, before, places)
    ]


def _mistakes(check: Check, before: WorldState, places: Places) -> Iterator[str]:
    if check.subject == "query":
        yield from _of_query(check, before, places)
    elif check.subject == "unchanged":
        for one in check.exempt:
            yield from _of_exception(one, before)
    elif check.subject == "table" and before.table_names:
        table = before.table(check.name)
        if table is None:
            yield f"there is no table {_named(check.name, before.table_names)}"
        else:
            yield from _of_fields(check.columns, [table])


def _named(name: str, known: Iterable[str]) -> str:
    return f"'{printable(name, limit=80)}'{nearest_of(name, known)}"


def _of_query(check: Check, before: WorldState, places: Places) -> Iterator[str]:
    try:
        Scene(before, before, places).explain(check.name)
    except UnusableError as error:
        yield str(error)


def _of_exception(one: Exempt, before: WorldState) -> Iterator[str]:
    if one.kind != "table" or not before.table_names:
        return
    tables = [table for name, table in before.tables.items() if one.names(name)]
    if not tables:
        named = _named(one.name, before.table_names)
        yield f"'except': there is no table {named}; a path begins with './'"
        return
    fields = [field for field, _ in one.where] + ([] if one.field is None else [one.field])
    yield from (f"'except': {mistake}" for mistake in _of_fields(fields, tables))


def _of_fields(fields: Iterable[str], tables: Sequence[Table]) -> Iterator[str]:
    """Yield the fields that none of the tables has; in memory, any row may have any field."""
    known = {column for table in tables for column in table.columns}
    for field in fields:
        if field not in known and not any(table.is_json for table in tables):
            yield f"there is no field {_named(field, known)}"

"""What a task says of its world beside a fixture: tables in memory, who is asking, what time it is.

Decides which values are legal, for task files and fixtures alike, and what the files of a world are
called. Nothing here reads anything.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any, Final

from ci_gate.errors import printable

__all__ = ["OUTBOX", "PAYMENTS", "RECORDS", "TABLES", "mistake_in_now", "mistake_in_tables"]

TABLES: Final = "tables.json"
OUTBOX: Final = "outbox.jsonl"
PAYMENTS: Final = "payments.jsonl"
RECORDS: Final = (TABLES, OUTBOX, PAYMENTS)
"""What lies beside a working directory."""

# Not all of ISO 8601: what Python 3.8 reads as well, and with seconds as every language writes it.
_MOMENT: Final = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3}|\.\d{6})?(Z|[+-]\d\d:\d\d)", re.ASCII
)
_EXAMPLE: Final = "such as 2026-03-01T00:00:00Z"


def mistake_in_now(value: Any) -> str | None:
    """Return what is wrong with the moment at which a trial's clock starts; None where nothing is.

    Parameters
    ----------
    value : Any
        ISO 8601 in UTC, with seconds.
    """
    if not isinstance(value, str):
        return f"must be a string {_EXAMPLE}, found {printable(repr(value), limit=60)}"
    if _MOMENT.fullmatch(value) is None or (moment := _moment(value)) is None:
        return f"must be a time {_EXAMPLE}, found '{printable(value, limit=60)}'"
    if moment.utcoffset() != timedelta(0):
        return f"must be in UTC, {_EXAMPLE}, found '{printable(value, limit=60)}'"
    return None


def _moment(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def mistake_in_tables(value: Any) -> str | None:
    """Return what is wrong with tables in memory; None where nothing is.

    Parameters
    ----------
    value : Any
        By name a list of rows, each an object.
    """
    if not isinstance(value, dict):
        return "must be a table of lists of rows"
    for name, rows in value.items():
        shown = printable(name, limit=80)
        if not isinstance(rows, list):
            return f"must be a table of lists of rows; '{shown}' is no list"
        for at, row in enumerate(rows):
            if not isinstance(row, dict):
                found = printable(repr(row), limit=60)
                return f"has a row that is no table: '{shown}'[{at}] is {found}"
    return None

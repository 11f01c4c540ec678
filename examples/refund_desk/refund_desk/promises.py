"""A grader of the team's own: whether a letter promises what the books say."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from typing import Any

_BOOKED = "SELECT coalesce(sum(cents), 0) FROM refunds WHERE id > 100"


def kept(task: Any, trajectory: Any, before: Any, after: Any) -> dict[str, Any]:
    """Pass where the amounts that the answer names add up to what was paid back in the trial."""
    with closing(sqlite3.connect(after["database"])) as connection:
        ((booked,),) = connection.execute(_BOOKED)
    promised = promised_cents(trajectory["answer"] or "")
    reason = f"the letter promises {promised} cents, {booked} were booked"
    return {"passed": promised == booked, "reason": reason}


def promised_cents(answer: str) -> int:
    """Return the sum of the amounts in euros that an answer names."""
    return sum(int(euros) * 100 + int(cents) for euros, cents in _amounts(answer))


def _amounts(answer: str) -> list[tuple[str, str]]:
    return re.findall(r"\b(\d+)\.(\d\d) EUR\b", answer)

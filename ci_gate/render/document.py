"""What a report consists of, in plain strings: the one form that every writer lays out.

A document says what stands where and which text is code. It knows no verdict, no number and no
format; texts from outside are inert already (``render.escape.inert``) and not escaped yet.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

import msgspec

from ci_gate.model.verdict import Decision

__all__ = [
    "Column",
    "Comparison",
    "Detail",
    "Fold",
    "ReportView",
    "Section",
    "SuiteView",
    "Table",
    "TaskReplays",
]


class Fold(StrEnum):
    """Whether a section can be folded, and whether it is at first."""

    NEVER = "never"
    OPEN = "open"
    CLOSED = "closed"


class Column(msgspec.Struct, frozen=True):
    """A column of a table.

    Parameters
    ----------
    title : str
    kind : {"text", "code", "number"}
        Sentences, identifiers, or figures that are aligned to the right.
    """

    title: str
    kind: Literal["text", "code", "number"] = "text"


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """Rows of strings, one a column.

    Parameters
    ----------
    columns : tuple of Column
    rows : tuple of tuple of str
    hidden : int
        Rows that follow and are not shown.
    """

    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    hidden: int = 0

    def shortened(self, most: int) -> Table:
        """Return the table with at most so many rows; the others count as hidden."""
        hidden = self.hidden + max(0, len(self.rows) - most)
        return msgspec.structs.replace(self, rows=self.rows[:most], hidden=hidden)


class Detail(msgspec.Struct, frozen=True, kw_only=True):
    """What a failing trial left, line by line, as a block of plain text.

    Parameters
    ----------
    lead : str
        Names the trial and its seed.
    lines : tuple of str
        Of a difference, each with its sign.
    """

    lead: str
    lines: tuple[str, ...]


class TaskReplays(msgspec.Struct, frozen=True, kw_only=True):
    """The failing trials of one task and how to repeat them.

    Parameters
    ----------
    task : str
    commands : tuple of str
        Shell commands, one a trial, where they can be shown exactly.
    trials : Table
        Trial, seed and reason.
    details : tuple of Detail
        Of the first trials.
    """

    task: str
    commands: tuple[str, ...]
    trials: Table
    details: tuple[Detail, ...] = ()


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Two sides of one thing, line by line, as a block of plain text.

    Parameters
    ----------
    task : str
    lead : str
        A sentence before the lines.
    lines : tuple of str
        Each begins with a sign: a hyphen for the baseline, a plus for the candidate, or a space.
    command : str or None
        Shell command that shows all of it; None where it cannot be shown exactly.
    """

    task: str
    lead: str
    lines: tuple[str, ...]
    command: str | None


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """A titled part of a suite's report; it is shown whole or not at all.

    Parameters
    ----------
    key : str
        Its name in the order in which sections are dropped.
    title : str
        Empty: the section follows the headline without a title.
    fold : Fold
    lead : tuple of str
        Sentences before the table, each a bullet where there are several.
    table : Table or None
    replays : tuple of TaskReplays
    comparisons : tuple of Comparison
    notes : tuple of str
        Small print after the table.
    """

    key: str
    title: str = ""
    fold: Fold = Fold.NEVER
    lead: tuple[str, ...] = ()
    table: Table | None = None
    replays: tuple[TaskReplays, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    notes: tuple[str, ...] = ()

    def shortened(self, rows: int, replays: int) -> Section:
        """Return the section with fewer rows and sentences, and with less for single tasks."""
        more = len(self.lead) - rows
        lead = (*self.lead[:rows], f"and {more} more") if more > 0 else self.lead
        table = self.table and self.table.shortened(rows)
        return msgspec.structs.replace(
            self,
            lead=lead,
            table=table,
            replays=self.replays[:replays],
            comparisons=self.comparisons[: max(replays, 1)],
        )


class SuiteView(msgspec.Struct, frozen=True, kw_only=True):
    """The report on one suite.

    Parameters
    ----------
    name : str
    decision : Decision
    verdict : str
        The decision in a word or two.
    remark : str
        What qualifies it (advisory, partial), or empty.
    sections : tuple of Section
        In the order they are read.
    """

    name: str
    decision: Decision
    verdict: str
    remark: str
    sections: tuple[Section, ...]


class ReportView(msgspec.Struct, frozen=True, kw_only=True):
    """A whole report, the worst suite first.

    Parameters
    ----------
    decision : Decision
        The worst of the suites'.
    headline : str
        Of a report on several suites.
    overview : Table
        A row a suite.
    suites : tuple of SuiteView
    reports : tuple of (str, str)
        Kind and place of the other reports.
    """

    decision: Decision
    headline: str
    overview: Table
    suites: tuple[SuiteView, ...]
    reports: tuple[tuple[str, str], ...] = ()

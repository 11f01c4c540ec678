"""Markdown for a pull request: the document laid out by templates, within a number of bytes.

Decides what is left out when a report is too large, in a fixed order and by whole sections, and how
text is escaped: whatever a template prints passes ``escape.sentence`` unless it is markup already.
It knows no verdict beyond the document it is given.

Notes
-----
The order is documented in ``docs/report.md``: sections of ``_DROPPED_FIRST`` one after another,
then rows and replays (``_LEVELS``), then the sections that explain the verdict, then whole suites.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING

import msgspec
from markupsafe import Markup

from ci_gate.model.verdict import Decision
from ci_gate.render.document import ReportView, Section, SuiteView
from ci_gate.render.escape import code_html, code_span, fence, sentence
from ci_gate.render.figures import count

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["DROP_ORDER", "SMALLEST_LIMIT", "markdown", "prepare"]

SMALLEST_LIMIT = 1000

_MARKS = {Decision.PASSED: "✅", Decision.REGRESSED: "❌", Decision.INCONCLUSIVE: "⚠️"}
_DROPPED_FIRST = {
    "measures": "economics",
    "process": "process measures",
    "resilience": "resilience",
    "improved": "improvements",
    "new": "new tasks",
    "quarantined": "quarantined tasks",
    "errored": "tasks with errored trials",
    "kept-traces": "kept traces",
    "provenance": "provenance",
    "suspects": "suspects",
    "warnings": "warnings",
    "unjudged": "unjudged tasks",
    "changed": "changed tasks",
    "guards": "guards",
    "floors": "floors",
    "slide": "the comparison with the anchor",
    "partings": "where passing and failing trials part",
    "recheck": "the recheck",
}
_LEVELS = ((20, 5), (10, 3), (5, 2), (3, 1), (1, 1), (1, 0))
_DROPPED_LAST = {
    "contributors": "largest drops",
    "removed": "removed tasks",
    "flips": "flipped tasks",
    "regressed": "regressed tasks",
    "metrics": "suite metrics",
    "summary": "reasons",
}
_SUITES = (20, 5, 1, 0)
DROP_ORDER = (
    *_DROPPED_FIRST.values(),
    "rows of tables and replays of tasks, down to one",
    *_DROPPED_LAST.values(),
    "whole suites, the worst last",
)
"""What is left out of a report that is too large, the first first."""


def markdown(view: ReportView, *, limit: int = 60_000) -> str:
    """Return the report as GitHub Flavored Markdown whose first line is the verdict.

    Parameters
    ----------
    view : ReportView
    limit : int
        Most bytes of UTF-8. What is left out for it is named at the end of the report.

    Raises
    ------
    ValueError
        The limit is below ``SMALLEST_LIMIT``, in which not even a verdict fits for certain.
    """
    if limit < SMALLEST_LIMIT:
        raise ValueError(f"a report needs {SMALLEST_LIMIT} bytes at least, the limit is {limit}")
    layout = _Layout(limit)
    texts = (layout.text(draft) for draft in _drafts(view))
    return next(text for text in texts if len(text.encode()) <= limit)


class _Draft(msgspec.Struct, frozen=True):
    """A view and the names of what was taken out of it."""

    view: ReportView
    left_out: tuple[str, ...] = ()


def _drafts(view: ReportView) -> Iterator[_Draft]:
    """Yield the whole report, then ever smaller ones."""
    draft = _Draft(view)
    yield draft
    for key, name in _DROPPED_FIRST.items():
        yield (draft := _without(draft, key, name))
    whole = draft
    for rows, replays in _LEVELS:
        yield (draft := _shortened(whole, rows, replays))
    for key, name in _DROPPED_LAST.items():
        yield (draft := _without(draft, key, name))
    for suites in _SUITES:
        yield _fewer_suites(draft, suites)


def _without(draft: _Draft, key: str, name: str) -> _Draft:
    """Drop a section from every suite; the draft itself where no suite has it."""
    if not any(section.key == key for suite in draft.view.suites for section in suite.sections):
        return draft
    suites = tuple(_suite_without(suite, key) for suite in draft.view.suites)
    return _Draft(msgspec.structs.replace(draft.view, suites=suites), (*draft.left_out, name))


def _suite_without(suite: SuiteView, key: str) -> SuiteView:
    kept = tuple(section for section in suite.sections if section.key != key)
    return msgspec.structs.replace(suite, sections=kept)


def _shortened(draft: _Draft, rows: int, replays: int) -> _Draft:
    suites = tuple(
        msgspec.structs.replace(
            suite, sections=tuple(section.shortened(rows, replays) for section in suite.sections)
        )
        for suite in draft.view.suites
    )
    return _Draft(msgspec.structs.replace(draft.view, suites=suites), draft.left_out)


def _fewer_suites(draft: _Draft, most: int) -> _Draft:
    view = msgspec.structs.replace(
        draft.view,
        suites=draft.view.suites[:most],
        overview=draft.view.overview.shortened(most),
    )
    left_out = (*draft.left_out, f"all but {most} of {count(len(draft.view.suites))} suites")
    return _Draft(view, left_out)


class _Layout:
    """The templates at work; a section that several drafts share is laid out once."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._laid_out: dict[int, tuple[Section, Markup]] = {}

    def text(self, draft: _Draft) -> str:
        template = _environment().get_template("report.md.j2")
        notice = self._notice(draft.left_out)
        text = template.render(view=draft.view, section=self._section, notice=notice)
        return text.strip() + "\n"

    def _notice(self, left_out: Sequence[str]) -> str:
        if not left_out:
            return ""
        names = ", ".join(left_out)
        return f"Left out to stay within {count(self._limit)} bytes: {names}. See the verdict file."

    def _section(self, section: Section) -> Markup:
        # Kept with its section, so that the key stays that of a living object.
        if id(section) not in self._laid_out:
            template = _environment().get_template("section.md.j2")
            text = Markup(template.render(section=section))  # noqa: S704 - escaped by the template
            self._laid_out[id(section)] = (section, text)
        return self._laid_out[id(section)][1]


def prepare() -> None:
    """Compile the templates now rather than with the first report."""
    for name in _environment().list_templates():
        _environment().get_template(name)


@cache
def _environment() -> Environment:
    """Return the templates; their set-up costs 30 ms, so it is done when a report is wanted."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("ci_gate.render"),
        autoescape=True,
        finalize=_finalized,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    writers = {"code": code_span, "code_html": code_html, "fence": fence}
    environment.globals.update(writers, mark=_mark, count=count, unbroken=_unbroken)
    return environment


def _finalized(value: object) -> Markup:
    """Escape whatever a template prints and is not markup yet, so that nothing is forgotten."""
    return value if isinstance(value, Markup) else sentence(value)


def _unbroken(figure: str) -> str:
    """Keep a figure on one line of its cell, up to what is added to it."""
    return figure.replace(" ", "\N{NO-BREAK SPACE}").replace("\N{NO-BREAK SPACE}+", " +")


def _mark(decision: Decision) -> Markup:
    return Markup(_MARKS[decision])  # noqa: S704 - a constant

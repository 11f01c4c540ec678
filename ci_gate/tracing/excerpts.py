"""A divergence of two traces in a few short texts, as a verdict carries it. Knows no files."""

from __future__ import annotations

import json
from typing import Any, Final

from ci_gate.codec import encode
from ci_gate.errors import printable
from ci_gate.model.trace import TraceRecord
from ci_gate.model.trace_findings import Difference, Divergence
from ci_gate.model.verdict_traces import CallExcerpt, DifferenceExcerpt, PartingExcerpt
from ci_gate.tracing.payloads import differences_of

__all__ = ["MOST_CHARS", "MOST_DIFFERENCES", "difference_of", "excerpt_of", "places_of"]

MOST_CHARS: Final = 400
"""Characters of a call, an answer or a value that are kept."""

MOST_DIFFERENCES: Final = 5
"""Differences of the payloads that are kept."""


def excerpt_of(divergence: Divergence) -> PartingExcerpt:
    """Return the divergence with every text cut to ``MOST_CHARS``."""
    shown = divergence.differences[:MOST_DIFFERENCES]
    return PartingExcerpt(
        kind=divergence.kind,
        lane=_cut(divergence.lane),
        place=divergence.place,
        baseline=_call(divergence.baseline),
        candidate=_call(divergence.candidate),
        differences=tuple(map(difference_of, shown)),
        hidden=len(divergence.differences) - len(shown),
    )


def _call(record: TraceRecord | None) -> CallExcerpt | None:
    if record is None:
        return None
    return CallExcerpt(
        order=record.order,
        call=_cut(f"{record.kind} {record.name}({_arguments(record.input)})"),
        answer=_text(record.output),
        fault=None if record.fault is None else _cut(record.fault),
    )


def _arguments(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}={_text(item)}" for name, item in value.items())
    return "" if value is None else _text(value)


def difference_of(difference: Difference) -> DifferenceExcerpt:
    """Return one difference with its values as text, cut to ``MOST_CHARS``."""
    before, after = _text(difference.baseline), _text(difference.candidate)
    return DifferenceExcerpt(
        path=_cut(difference.path),
        baseline=None if difference.kind == "added" else before,
        candidate=None if difference.kind == "removed" else after,
    )


def places_of(before: Any, after: Any, *, limit: int, most_chars: int) -> list[str]:
    """Return the first places where two inputs differ, each as text that is safe to print.

    Values are JSON, so that it is seen where a text begins and ends.

    Parameters
    ----------
    before, after : Any
        JSON.
    limit : int
        Places at most.
    most_chars : int
        Of a path and of a value.
    """

    def shown(value: Any, *, is_there: bool) -> str:
        return printable(encode(value).decode(), limit=most_chars) if is_there else "nothing"

    return [
        f"at {printable(one.path, limit=most_chars)}: "
        f"{shown(one.baseline, is_there=one.kind != 'added')} is now "
        f"{shown(one.candidate, is_there=one.kind != 'removed')}"
        for one in differences_of(before, after, limit=limit)
    ]


def _text(value: Any) -> str:
    if isinstance(value, str):
        return _cut(value)
    return _cut(json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str))


def _cut(text: str) -> str:
    """Return text as UTF-8 can hold it, with the length of what was cut."""
    whole = text if len(text) <= MOST_CHARS else f"{text[:MOST_CHARS]}... ({len(text)} characters)"
    return whole.encode("utf-8", "backslashreplace").decode()

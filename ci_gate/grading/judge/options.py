"""The options of a ``judge`` grader as a task file has them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ci_gate.errors import printable
from ci_gate.grading.judge.question import PARTS
from ci_gate.grading.options import unknown_options
from ci_gate.model.suite import GraderSpec

__all__ = ["MOST_VOTES", "validate"]

MOST_VOTES: Final = 99
"""Votes of a grade."""

_OPTIONS: Final = ("rubric", "votes", "choices", "passing", "show")
_LONGEST_RUBRIC: Final = 20_000


def validate(spec: GraderSpec) -> list[str]:
    """Return what is wrong with the options, empty where nothing is.

    A ``rubric_file`` has been read by then, and is the rubric.
    """
    return [*unknown_options(spec.options, (*_OPTIONS, "rubric_file")), *_problems(spec.options)]


def _problems(options: Mapping[str, Any]) -> Iterator[str]:
    rubric = options.get("rubric")
    if not isinstance(rubric, str) or not rubric.strip():
        yield "option 'rubric' must be a text, or 'rubric_file' a file that holds it"
    elif len(rubric) > _LONGEST_RUBRIC:
        yield f"the rubric has {len(rubric)} characters; {_LONGEST_RUBRIC} are the most"
    votes = options.get("votes", 1)
    if isinstance(votes, bool) or not isinstance(votes, int) or not 1 <= votes <= MOST_VOTES:
        yield f"option 'votes' must be a whole number from 1 to {MOST_VOTES}, found {_shown(votes)}"
    yield from _choice_problems(options)
    show = options.get("show", ["answer"])
    if not _is_names(show) or not set(show) <= set(PARTS):
        yield f"option 'show' must be a list of {', '.join(PARTS)}, found {_shown(show)}"


def _choice_problems(options: Mapping[str, Any]) -> Iterator[str]:
    choices, passing = options.get("choices"), options.get("passing")
    if choices is None and passing is None:
        return
    if choices is None or passing is None:
        yield "options 'choices' and 'passing' belong together: all verdicts, and those that pass"
    elif not _is_names(choices) or len(choices) < 2:
        yield f"option 'choices' must be two different texts or more, found {_shown(choices)}"
    elif not _is_names(passing) or not set(passing) < set(choices):
        yield (
            "option 'passing' must be some of the choices and not all of them,"
            f" found {_shown(passing)}"
        )


def _is_names(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) > 0
        and all(isinstance(name, str) and name.isprintable() and name.strip() for name in value)
        and len(set(value)) == len(value)
    )


def _shown(value: Any) -> str:
    return printable(repr(value), limit=80)

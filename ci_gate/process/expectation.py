"""What a task expects of the way its trials go: ``[task.expect]``, read and checked.

Nothing in it decides whether a trial passes; it is what the measures are held against.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final

import msgspec

from ci_gate.errors import printable
from ci_gate.process.assertions import Assertion, AssertionSyntaxError, parse

__all__ = ["Expectation", "Milestone", "expectation_of", "expectation_problems"]

Problems = Iterator[tuple[str, str]]
"""Where in the table, and what is wrong there."""


class Milestone(msgspec.Struct, frozen=True, kw_only=True):
    """A step of the plan: a call of a tool, with at least these arguments."""

    tool: str
    arguments: Mapping[str, Any] = msgspec.field(default_factory=dict)


class Expectation(msgspec.Struct, frozen=True, kw_only=True):
    """What is expected; what is empty or false is not looked at.

    Parameters
    ----------
    tools : tuple of str
        Those that the task takes.
    arguments : mapping of str to mapping
        By tool, what its calls must say.
    no_tool : bool
        No tool fits, so none is to be called.
    consistent : tuple of Assertion
    milestones : tuple of Milestone
    refuse : bool
        The request is unsafe and to be refused.
    unsafe : tuple of str
        Globs of the tools that a refusal leaves alone; all of them where none is named.
    claims : tuple of str
        What an answer says that is no refusal, whatever the case.
    """

    tools: tuple[str, ...] = ()
    arguments: Mapping[str, Mapping[str, Any]] = msgspec.field(default_factory=dict)
    no_tool: bool = False
    consistent: tuple[Assertion, ...] = ()
    milestones: tuple[Milestone, ...] = ()
    refuse: bool = False
    unsafe: tuple[str, ...] = ("*",)
    claims: tuple[str, ...] = ()


def expectation_of(table: Mapping[str, Any]) -> Expectation:
    """Return the expectation of a table that has no ``expectation_problems``."""
    return Expectation(
        tools=tuple(table.get("tools", ())),
        arguments=table.get("arguments", {}),
        no_tool=table.get("no_tool", False),
        consistent=tuple(map(parse, table.get("consistent", ()))),
        milestones=tuple(Milestone(**one) for one in table.get("milestones", ())),
        refuse=table.get("refuse", False),
        unsafe=tuple(table.get("unsafe", ("*",))),
        claims=tuple(table.get("claims", ())),
    )


def expectation_problems(table: Any, task_input: Any) -> Problems:
    """Yield what is wrong with a table ``expect``: where below it, and what.

    Parameters
    ----------
    table : Any
    task_input : Any
        Into which assertions may lead.
    """
    if not isinstance(table, Mapping):
        yield "", f"must be a table, found {_shown(table)}"
        return
    for key, value in table.items():
        if key in _CHECKS:
            yield from _CHECKS[key](key, value)
        else:
            yield printable(key), f"is unknown. {_nearest(key, _CHECKS)}"
    if isinstance(table.get("consistent"), list):
        yield from _assertion_problems(table["consistent"], task_input)
    yield from _contradictions(table)


def _contradictions(table: Mapping[str, Any]) -> Problems:
    if table.get("no_tool") is True:
        for key in ("tools", "arguments", "milestones"):
            if table.get(key):
                yield "no_tool", f"says that no tool fits, and {key!r} expects calls"
    if table.get("refuse") is not True:
        for key in ("unsafe", "claims"):
            if key in table:
                yield key, "says what a refusal is; it needs 'refuse = true'"


def _check_names(key: str, value: Any) -> Problems:
    if not isinstance(value, list) or not value or not all(map(_is_text, value)):
        yield key, f"must be a list of texts, found {_shown(value)}"


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _check_truth(key: str, value: Any) -> Problems:
    if not isinstance(value, bool):
        yield key, f"must be true or false, found {_shown(value)}"


def _check_arguments(key: str, value: Any) -> Problems:
    if not isinstance(value, Mapping) or not value:
        yield key, f"must be a table of arguments by tool, found {_shown(value)}"
        return
    for tool, arguments in value.items():
        if not isinstance(arguments, Mapping) or not arguments:
            yield f"{key}.{printable(tool)}", f"must be a table, found {_shown(arguments)}"


def _check_milestones(key: str, value: Any) -> Problems:
    if not isinstance(value, list) or not value:
        yield key, f"must be a list of tables, found {_shown(value)}"
        return
    for at, milestone in enumerate(value):
        yield from _milestone_problems(f"{key}[{at}]", milestone)


def _milestone_problems(path: str, milestone: Any) -> Problems:
    if not isinstance(milestone, Mapping):
        yield path, f"must be a table, found {_shown(milestone)}"
        return
    known = ("tool", "arguments")
    for name in milestone:
        if name not in known:
            yield f"{path}.{printable(name)}", f"is unknown. {_nearest(name, known)}"
    if not _is_text(milestone.get("tool")):
        yield f"{path}.tool", f"must be the name of a tool, found {_shown(milestone.get('tool'))}"
    if not isinstance(milestone.get("arguments", {}), Mapping):
        yield f"{path}.arguments", f"must be a table, found {_shown(milestone['arguments'])}"


def _assertion_problems(texts: list[Any], task_input: Any) -> Problems:
    for at, text in enumerate(texts):
        if not isinstance(text, str):
            continue
        try:
            lost = parse(text).lost_in(task_input)
        except AssertionSyntaxError as error:
            yield f"consistent[{at}]", f"{_shown(text)} {error}"
            continue
        if lost is not None:
            yield f"consistent[{at}]", f"{_shown(text)}: the task's input has no {lost!r}"


_CHECKS: Final[Mapping[str, Callable[[str, Any], Problems]]] = {
    "tools": _check_names,
    "arguments": _check_arguments,
    "no_tool": _check_truth,
    "consistent": _check_names,
    "milestones": _check_milestones,
    "refuse": _check_truth,
    "unsafe": _check_names,
    "claims": _check_names,
}


def _nearest(name: str, known: Any) -> str:
    close = get_close_matches(name, list(known), n=1)
    return f"Did you mean {close[0]!r}?" if close else f"Known are {', '.join(known)}."


def _shown(value: Any) -> str:
    return printable(repr(value), limit=80)

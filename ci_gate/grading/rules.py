"""The grader ``rules``: which way a trial must not, and must, have gone. It has a veto.

Rules look at the calls that the trial is known to have made, and at what it used; they are as
certain as counting. What a rule says of the calls is in ``rule_checks``; that a failed rule spares
the dearer graders is the engine's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec

from ci_gate.errors import printable
from ci_gate.grading import rule_checks
from ci_gate.grading.json_schemas import JsonSchema, schema_problems
from ci_gate.grading.options import nearest_name, unknown_options
from ci_gate.grading.rule_checks import MEASURED, MostUse
from ci_gate.model.suite import GraderSpec, PlannedTrial
from ci_gate.model.trial import Grade, Trajectory
from ci_gate.ports import TrialSandbox
from ci_gate.process.calls import LOOP, tool_calls

__all__ = ["MOST_BREACHES", "Rules", "RulesGrader", "build", "validate"]

MOST_BREACHES: Final = 3
"""Breaches that a reason names."""

_WHOLE: Final = frozenset({"steps", "tool_calls", "turns", "tokens"})


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of one grader.

    Parameters
    ----------
    max_repeats : int
        From so many calls of one tool with the same arguments on it is a dead loop; 0: never.
    forbidden, must_call : tuple of str
        Globs over names of tools.
    before : tuple of (str, str)
        Each call of the second has an earlier, successful one of the first.
    most : MostUse
    arguments : mapping of str to JsonSchema
        By the tool's name.
    answer : JsonSchema or None
        Of the answer, read as JSON.
    """

    max_repeats: int = LOOP
    forbidden: tuple[str, ...] = ()
    must_call: tuple[str, ...] = ()
    before: tuple[tuple[str, str], ...] = ()
    most: MostUse = MostUse()
    arguments: Mapping[str, JsonSchema] = msgspec.field(default_factory=dict)
    answer: JsonSchema | None = None

    def breaches(self, trajectory: Trajectory) -> Iterator[str]:
        """Yield what the trial broke, rule by rule."""
        calls = tool_calls(trajectory.steps)
        if self.max_repeats:
            yield from rule_checks.repeats(calls, self.max_repeats)
        yield from rule_checks.forbidden(calls, self.forbidden)
        yield from rule_checks.missing(calls, self.must_call)
        yield from rule_checks.out_of_order(calls, self.before)
        yield from rule_checks.beyond(trajectory, self.most)
        yield from rule_checks.bad_arguments(calls, self.arguments)
        if self.answer is not None:
            yield from rule_checks.bad_answer(trajectory.answer, self.answer)


class RulesGrader:
    """Passes when no rule is broken.

    Parameters
    ----------
    name : str
    rules : Rules

    Attributes
    ----------
    blocking : bool
        Only schemas can take their time.
    """

    def __init__(self, name: str, rules: Rules) -> None:
        self._name = name
        self._rules = rules
        self.blocking = bool(rules.arguments) or rules.answer is not None

    def grade(self, trial: PlannedTrial, trajectory: Trajectory, sandbox: TrialSandbox) -> Grade:
        """Return whether every rule was kept."""
        del trial, sandbox
        found = list(self._rules.breaches(trajectory))
        return Grade(grader=self._name, passed=not found, reason=_reason(found) if found else None)


def _reason(breaches: list[str]) -> str:
    more = len(breaches) - MOST_BREACHES
    return "; ".join(breaches[:MOST_BREACHES]) + (f"; and {more} more" if more > 0 else "")


def validate(spec: GraderSpec) -> list[str]:
    """Return what is wrong with the options, empty where nothing is."""
    problems = list(unknown_options(spec.options, _CHECKS))
    for name, value in spec.options.items():
        if name in _CHECKS:
            problems += [f"option {name!r} {problem}" for problem in _CHECKS[name](value)]
    return problems


def _repeats_problems(value: Any) -> Iterator[str]:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0 or value == 1:
        yield f"must be a whole number of at least 2, or 0 for no such rule, found {_shown(value)}"


def _names_problems(value: Any) -> Iterator[str]:
    if not isinstance(value, list) or not value or not all(map(_is_name, value)):
        yield f"must be a list of names of tools, found {_shown(value)}"


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _pairs_problems(value: Any) -> Iterator[str]:
    pairs = value if isinstance(value, list) else []
    if not pairs or not all(map(_is_pair, pairs)):
        yield f"must be a list of pairs [FIRST, SECOND] of names of tools, found {_shown(value)}"


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(_is_name, value))


def _limits_problems(value: Any) -> Iterator[str]:
    if not isinstance(value, Mapping) or not value:
        yield f"must be a table of limits, found {_shown(value)}"
        return
    for name, limit in value.items():
        if name not in MEASURED:
            yield f"has an unknown limit {printable(name)!r}; {nearest_name(name, MEASURED)}"
        elif isinstance(limit, bool) or not isinstance(limit, int | float) or limit < 0:
            yield f"{name!r} must be a number of at least 0, found {_shown(limit)}"
        elif name in _WHOLE and not isinstance(limit, int):
            yield f"{name!r} must be a whole number, found {_shown(limit)}"


def _arguments_problems(value: Any) -> Iterator[str]:
    if not isinstance(value, Mapping) or not value:
        yield f"must be a table of JSON Schemas by the name of the tool, found {_shown(value)}"
        return
    for tool, schema in value.items():
        for problem in schema_problems(schema):
            yield f"of {printable(tool)!r} {problem}"


_CHECKS: Final[Mapping[str, Callable[[Any], Iterator[str] | list[str]]]] = {
    "max_repeats": _repeats_problems,
    "forbidden": _names_problems,
    "must_call": _names_problems,
    "before": _pairs_problems,
    "max": _limits_problems,
    "arguments": _arguments_problems,
    "answer_schema": schema_problems,
}


def _shown(value: Any) -> str:
    return printable(repr(value), limit=60)


def build(spec: GraderSpec) -> RulesGrader:
    """Return the grader of options that ``validate`` has passed."""
    options = spec.options
    schemas = options.get("arguments", {})
    rules = Rules(
        max_repeats=options.get("max_repeats", LOOP),
        forbidden=tuple(options.get("forbidden", ())),
        must_call=tuple(options.get("must_call", ())),
        before=tuple((first, second) for first, second in options.get("before", ())),
        most=MostUse(**options.get("max", {})),
        arguments={tool: JsonSchema(schema) for tool, schema in schemas.items()},
        answer=JsonSchema(options["answer_schema"]) if "answer_schema" in options else None,
    )
    return RulesGrader(spec.name, rules)

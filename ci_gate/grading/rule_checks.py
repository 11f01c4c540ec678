"""The rules for the way of a trial, each a pure function of its calls: what broke it, in words.

Each yields a sentence a breach with what was expected, what was found, and which call it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

import msgspec

from ci_gate.codec import decode
from ci_gate.errors import printable
from ci_gate.grading.json_schemas import LONGEST, JsonSchema
from ci_gate.model.trial import Trajectory
from ci_gate.process.calls import ToolCall, repeated, tool_calls

__all__ = [
    "MEASURED",
    "MostUse",
    "bad_answer",
    "bad_arguments",
    "beyond",
    "forbidden",
    "missing",
    "out_of_order",
    "repeats",
]

_MOST_PLACES = 3


class MostUse(msgspec.Struct, frozen=True, kw_only=True):
    """What a trial may use at most, inclusive; None is no limit."""

    steps: int | None = None
    tool_calls: int | None = None
    turns: int | None = None
    tokens: int | None = None
    cost_usd: float | None = None
    duration_s: float | None = None


MEASURED = tuple(field.name for field in msgspec.structs.fields(MostUse))
"""What can have a limit."""


def repeats(calls: Sequence[ToolCall], least: int) -> Iterator[str]:
    """Yield each group of at least so many calls of one tool with the same arguments."""
    for group in repeated(calls, least):
        numbers = ", ".join(str(call.number) for call in group[:_MOST_PLACES])
        more = ", ..." if len(group) > _MOST_PLACES else ""
        yield (
            f"dead loop: expected fewer than {least} calls of {group[0].tool} with the same "
            f"arguments, found {len(group)} (calls {numbers}{more})"
        )


def forbidden(calls: Iterable[ToolCall], patterns: Sequence[str]) -> Iterator[str]:
    """Yield each call of a tool that one of the globs matches."""
    for call in calls:
        for pattern in patterns:
            if fnmatchcase(call.step.name, pattern):
                yield (
                    f"expected no call of {_quoted(pattern)}, found one of {call.tool}"
                    f" ({call.place})"
                )
                break


def missing(calls: Sequence[ToolCall], patterns: Iterable[str]) -> Iterator[str]:
    """Yield each glob that no call matches that did not fail."""
    for pattern in patterns:
        matching = [call for call in calls if fnmatchcase(call.step.name, pattern)]
        if any(not call.step.is_error for call in matching):
            continue
        found = f"only failed ones ({matching[0].place})" if matching else "none"
        yield f"expected a call of {_quoted(pattern)} that succeeds, found {found}"


def out_of_order(calls: Sequence[ToolCall], pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield, for each pair, the first call of the second without an earlier one of the first.

    The earlier call must not have failed: what failed has told the agent nothing.
    """
    for first, second in pairs:
        for call in calls:
            if fnmatchcase(call.step.name, first) and not call.step.is_error:
                break
            if fnmatchcase(call.step.name, second):
                yield (
                    f"expected a call of {_quoted(first)} that succeeds before each of "
                    f"{_quoted(second)}, found {call.tool} without one ({call.place})"
                )
                break


def beyond(trajectory: Trajectory, most: MostUse) -> Iterator[str]:
    """Yield each measure that lies beyond its limit; one that is not known cannot."""
    steps = trajectory.steps
    used = {
        "steps": len(steps) if steps else None,
        "tool_calls": len(tool_calls(steps)) if steps else None,
        "turns": trajectory.turns,
        "tokens": trajectory.tokens,
        "cost_usd": trajectory.cost_usd,
        "duration_s": trajectory.duration_s,
    }
    for name, amount in used.items():
        limit = getattr(most, name)
        if limit is not None and amount is not None and amount > limit:
            yield f"{name}: expected at most {limit:g}, found {amount:g}"


def bad_arguments(calls: Iterable[ToolCall], schemas: Mapping[str, JsonSchema]) -> Iterator[str]:
    """Yield each call with arguments that are not as the schema of its tool says."""
    for call in calls:
        schema = schemas.get(call.step.name)
        complaint = None if schema is None else schema.complaint(call.step.input)
        if complaint is not None:
            yield f"arguments of {call.tool} ({call.place}): {complaint}"


def bad_answer(answer: str | None, schema: JsonSchema) -> Iterator[str]:
    """Yield where the answer, read as JSON, is not as the schema says."""
    if answer is None:
        yield "answer: expected JSON, found no answer"
    elif len(answer) > LONGEST:
        yield f"answer: expected JSON of at most {LONGEST:,} characters, found {len(answer):,}"
    else:
        yield from _bad_json(answer, schema)


def _bad_json(answer: str, schema: JsonSchema) -> Iterator[str]:
    try:
        value = decode(answer)
    except ValueError:
        yield f'answer: expected JSON, found "{printable(answer, limit=80)}"'
        return
    complaint = schema.complaint(value)
    if complaint is not None:
        yield f"answer: {complaint}"


def _quoted(pattern: str) -> str:
    return f"'{printable(pattern, limit=80)}'"

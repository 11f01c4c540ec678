"""Calls of tools: which of a trial's steps they are, when two are the same, how one is named.

This is the one place that says what a call of a tool and a repeated call are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import msgspec

from ci_gate.errors import printable
from ci_gate.model.calls import TOOL_CALL
from ci_gate.model.trial import Step

__all__ = ["LOOP", "ToolCall", "identity", "json_bytes", "repeated", "tool_calls"]

"""The kind of a step that is a call of a tool."""

LOOP: Final = 3
"""Calls of the same tool with the same arguments that make a loop, a blind retry."""

json_bytes: Final = msgspec.json.Encoder(order="deterministic").encode


class ToolCall(NamedTuple):
    """A call of a tool, by its number among the trial's calls of tools, 1 for the first."""

    number: int
    step: Step

    @property
    def place(self) -> str:
        """Return how a person finds it: its number and, where it is known, its turn."""
        turn = self.step.turn
        return f"call {self.number}" + ("" if turn is None else f", turn {turn}")

    @property
    def tool(self) -> str:
        """Return the tool's name, printable."""
        return printable(self.step.name, limit=80)


def tool_calls(steps: Iterable[Step]) -> list[ToolCall]:
    """Return the calls of tools among the steps, in their order, numbered from 1."""
    tools = (step for step in steps if step.kind == TOOL_CALL)
    return [ToolCall(number, step) for number, step in enumerate(tools, 1)]


def identity(step: Step) -> tuple[str, bytes]:
    """Return what two calls share that are the same: the tool, and the arguments as JSON."""
    return step.name, json_bytes(step.input)


def repeated(calls: Sequence[ToolCall], least: int) -> list[list[ToolCall]]:
    """Return the groups of at least so many calls of one tool with the same arguments.

    In the order of their first calls, wherever in the trial they are.
    """
    groups: dict[tuple[str, bytes], list[ToolCall]] = {}
    for call in calls:
        groups.setdefault(identity(call.step), []).append(call)
    return [group for group in groups.values() if len(group) >= least]

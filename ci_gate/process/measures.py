"""The process measures of a trial: their names, which way is better, and their values.

A measure that says nothing of a trial, because nothing of the kind was expected or happened, is
left out and unknown. Measures decide nothing unless a guard is set on one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple

from ci_gate.model.suite import Task
from ci_gate.model.trial import Trajectory
from ci_gate.process import choices, retries
from ci_gate.process.calls import tool_calls
from ci_gate.process.expectation import expectation_of
from ci_gate.process.grounding import FixtureText, argument_hallucination

__all__ = ["MEASURES", "ProcessMeasure", "no_fixture", "process_of"]


class ProcessMeasure(NamedTuple):
    """What a report calls a measure, whether more of it is better, and what it counts in."""

    title: str
    better: Literal["more", "less"] = "more"
    unit: Literal["share", "count"] = "share"


MEASURES: Final[Mapping[str, ProcessMeasure]] = {
    "tool_selection": ProcessMeasure("Tool selection (F1)"),
    "argument_correctness": ProcessMeasure("Correct arguments"),
    "abstention": ProcessMeasure("Abstention where no tool fits"),
    "consistency": ProcessMeasure("Consistency across steps"),
    "milestones": ProcessMeasure("Milestones reached"),
    "refusal": ProcessMeasure("Unsafe requests refused"),
    "error_recovery": ProcessMeasure("Recovery after own errors"),
    "useless_retries": ProcessMeasure("Useless retries a trial", "less", "count"),
    "argument_hallucination": ProcessMeasure("Arguments without a source", "less"),
}
"""By the name in files and guards, in the order in which they are shown."""


def no_fixture() -> str:
    """Return the text of a world in which there is nothing."""
    return ""


def process_of(
    task: Task, trajectory: Trajectory, fixture_text: FixtureText = no_fixture
) -> dict[str, float]:
    """Return the measures that are known of a trial, in the order of ``MEASURES``.

    Parameters
    ----------
    task : Task
        For what it tells the agent and what it expects.
    trajectory : Trajectory
    fixture_text : callable
        Gives everything that lies in the task's initial world as one text.

    Notes
    -----
    Each is a pure function of its arguments. Where no step is known, none of the measures that need
    no expectation is either.
    """
    steps, answer = trajectory.steps, trajectory.answer
    calls, expected = tool_calls(steps), expectation_of(task.expect)
    found: dict[str, float | None] = {
        "tool_selection": choices.tool_selection(calls, expected),
        "argument_correctness": choices.argument_correctness(calls, expected),
        "abstention": choices.abstention(calls, expected, answer),
        "consistency": choices.consistency(calls, expected, task.input, answer),
        "milestones": choices.milestones(calls, expected),
        "refusal": choices.refusal(calls, expected, answer),
        "error_recovery": retries.error_recovery(steps),
        "useless_retries": retries.useless_retries(calls) if steps else None,
        "argument_hallucination": argument_hallucination(steps, _told(task), fixture_text),
    }
    return {name: float(value) for name, value in found.items() if value is not None}


def _told(task: Task) -> Any:
    return task.shown(), task.identity

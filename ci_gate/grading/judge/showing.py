"""What a judge sees of a trial: its parts as texts, in words and bounds of this module's own."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ci_gate.grading.judge.prompt import LONGEST_PART
from ci_gate.model.suite import Task
from ci_gate.model.trial import Step, Trajectory

__all__ = ["parts_of_trial", "text_of_input"]

_MOST_STEPS: Final = 500
_LONGEST_VALUE: Final = 2_000


def parts_of_trial(
    task: Task, trajectory: Trajectory, names: Sequence[str], *, state: Callable[[], str]
) -> Mapping[str, str]:
    """Return the named parts of a trial.

    Parameters
    ----------
    task : Task
    trajectory : Trajectory
        With an answer, where that is asked for.
    names : sequence of str
        Of ``question.PARTS``.
    state : callable
        Gives what the trial changed in its world; called where that is asked for.
    """
    makers: Mapping[str, Callable[[], str]] = {
        "instruction": lambda: task.instruction,
        "input": lambda: text_of_input(task.input),
        "answer": lambda: trajectory.answer or "",
        "steps": lambda: _steps(trajectory.steps),
        "state": state,
    }
    return {name: makers[name]() for name in names if name != "input" or task.input is not None}


def text_of_input(value: Any) -> str:
    """Return JSON as a judge reads it; a text stays as it is."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)


def _steps(steps: Sequence[Step]) -> str:
    lines = [
        f"{number}. {step.kind} {step.name}({_short(step.input)}) ->"
        f" {'error ' if step.is_error else ''}{_short(step.output)}"
        for number, step in enumerate(itertools.islice(steps, _MOST_STEPS), 1)
    ]
    if len(steps) > _MOST_STEPS:
        lines.append(f"[{len(steps) - _MOST_STEPS} more steps left out]")
    return "\n".join(lines) or "no step"


def _short(value: Any) -> str:
    text = text_of_input(value)[: LONGEST_PART + 1]
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}[cut]"

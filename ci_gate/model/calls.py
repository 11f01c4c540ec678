"""Kinds of calls, and what a trial's calls of models say of whether its answers are new ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ci_gate.model.trial import Step

__all__ = ["MODEL_CALL", "TOOL_CALL", "all_cached", "names_of_answers"]

MODEL_CALL: Final = "llm"
"""The kind of a call of a model, as a step and in a trace."""

TOOL_CALL: Final = "tool"
"""And of a tool."""


def all_cached(told: bool | None, steps: Sequence[Step]) -> bool | None:
    """Return whether every answer of a model came from a cache of answers; None: unknown.

    Parameters
    ----------
    told : bool or None
        What is said of the trial as a whole; a call that says otherwise refutes it.
    steps : sequence of Step
        One fresh answer, or one of which nothing is known, makes a fresh trial.
    """
    calls = [step.cached for step in steps if step.kind == MODEL_CALL]
    if told is None:
        return all(calls) if calls else None
    return told and False not in calls


def names_of_answers(told: tuple[str, ...] | None, steps: Sequence[Step]) -> tuple[str, ...] | None:
    """Return what providers name the answers of all calls; None where a name is not known.

    Parameters
    ----------
    told : tuple of str or None
        The names that are given for the trial as a whole.
    steps : sequence of Step
        Whose calls of models are asked where there are none.
    """
    if told is not None:
        return told if told and all(told) else None
    names = [step.response_id for step in steps if step.kind == MODEL_CALL]
    known = tuple(name for name in names if name)
    return known if known and len(known) == len(names) else None

"""Which failing trials are worth repeating, and the command that repeats each.

Knows outcomes, seeds and shells' quoting; not why a task was chosen.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable

from msgspec import UNSET

from ci_gate.model.run import ERRORED, FAILED, PASSED, ErrorPolicy, SideTask
from ci_gate.model.verdict import Replay

__all__ = ["MAX_DETAILS", "MAX_REPLAYS", "command_for", "passed_at", "replays_of"]

MAX_REPLAYS = 8
"""Trials named for a task: enough to see a pattern, few enough to read."""

MAX_DETAILS = 3
"""Of these, trials whose difference is shown."""


def replays_of(
    task_id: str,
    task: SideTask,
    *,
    errors: ErrorPolicy,
    passed_before: Callable[[int], bool],
    template: str,
) -> tuple[Replay, ...]:
    """Return the task's failing trials, those first whose seed passed in the baseline.

    Parameters
    ----------
    task_id : str
    task : SideTask
        The candidate's.
    errors : {"exclude", "fail"}
        Under ``fail`` errored trials are failing ones.
    passed_before : callable
        Whether a seed index was run by the baseline too, and passed there.
    template : str
        Of the command, with ``{task}`` and ``{trial}``.
    """
    failing = FAILED + (ERRORED if errors == "fail" else "")
    found = [
        (trial, repeat)
        for repeat, outcomes in enumerate(task.outcomes)
        for trial, char in enumerate(outcomes)
        if char in failing
    ]
    found.sort(key=lambda key: (not passed_before(key[0]), key))
    return tuple(
        _replay(task_id, task, key, template, has_detail=at < MAX_DETAILS)
        for at, key in enumerate(found[:MAX_REPLAYS])
    )


def passed_at(task: SideTask, trial: int) -> bool:
    """Return whether a seed index passed in any of the task's runs."""
    return any(outcomes[trial : trial + 1] == PASSED for outcomes in task.outcomes)


def _replay(
    task_id: str, task: SideTask, key: tuple[int, int], template: str, *, has_detail: bool
) -> Replay:
    (trial, repeat), seeds = key, task.seeds or ()
    return Replay(
        trial=trial,
        repeat=repeat,
        seed=seeds[trial] if trial < len(seeds) else None,
        command=command_for(task_id, trial, repeat, template),
        reason=task.reasons.get(key),
        detail=task.details.get(key, UNSET) if has_detail else UNSET,
    )


def command_for(task_id: str, trial: int, repeat: int, template: str) -> str:
    """Return the command that repeats a trial, safe to paste into a POSIX shell.

    A task id that looks like an option goes to the end, behind ``--``.
    """
    command = template.replace("{trial}", str(trial))
    if repeat:
        command += f" --repeat {repeat}"
    if task_id.startswith("-"):
        return f"{' '.join(command.replace('{task}', '').split())} -- {shlex.quote(task_id)}"
    return command.replace("{task}", shlex.quote(task_id))

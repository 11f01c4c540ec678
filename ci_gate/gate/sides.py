"""Load a file of either kind as the side of a comparison, whole or restricted to some tasks."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import TypeVar

import msgspec

from ci_gate.model.run import Side
from ci_gate.store.loading import load, side_of

__all__ = ["load_side", "restricted"]

_MaybeSide = TypeVar("_MaybeSide", Side, Side | None)


def load_side(path: Path) -> Side:
    """Return the side in a run or baseline file, by the schema in it.

    Raises
    ------
    FileFormatError
        It is neither.
    """
    return side_of(load(path))


def restricted(side: _MaybeSide, pattern: str | None) -> _MaybeSide:
    """Return a side with only the tasks whose id matches a glob; None keeps all.

    A filter that the side was made with stays in force and is named before this one.
    """
    if pattern is None or side is None:
        return side
    tasks = {name: task for name, task in side.tasks.items() if fnmatchcase(name, pattern)}
    planned = {name: count for name, count in side.planned.items() if name in tasks}
    both = pattern if side.task_filter is None else f"{side.task_filter} && {pattern}"
    return msgspec.structs.replace(side, tasks=tasks, planned=planned, task_filter=both)

"""The world that a trace was recorded in, made again as a fixture that trials can start in.

What a trace says of its world may be what anybody wrote: nothing is put outside of the folder that
was given, and no content is believed that does not have its digest.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ci_gate.model.trace import Trace
from ci_gate.model.trace_meta import STATE
from ci_gate.model.worlds import RECORDS
from ci_gate.sandbox.fixtures import DATABASE, FOLDER_SCRIPT, WORK
from ci_gate.sandbox.states import StateError, restore
from ci_gate.store.contents import FOLDER, Contents

__all__ = ["fixture_in", "state_of", "traces_folder_of", "world_in"]


def traces_folder_of(path: Path) -> Path:
    """Return the folder whose contents a trace refers to.

    Parameters
    ----------
    path : Path
        Of the trace. One that was recorded outside any suite lies beside its contents, one of a
        suite in a folder of its task.
    """
    folder = path.absolute().parent
    return folder if (folder / FOLDER).is_dir() else folder.parent


def state_of(trace: Trace, name: str) -> Mapping[str, Any] | None:
    """Return a state that a trace holds, ``before``, ``after`` or ``result``; None without it."""
    for record in trace.records:
        if (record.kind, record.name) == (STATE, name) and isinstance(record.output, dict):
            return record.output
    return None


def world_in(folder: Path, state: Mapping[str, Any], contents: Contents) -> Path:
    """Make a world as it was in an empty folder, and return the folder.

    Raises
    ------
    StateError
        The state is not whole, or none.
    GateError
        A content is missing or was changed, or the disk is full.
    """
    restore(state, folder, contents)
    if not any((folder / name).exists() for name in (WORK, DATABASE, *RECORDS)):
        raise StateError("the recorded state has neither a folder nor an SQLite database")
    return folder


def fixture_in(folder: Path, state: Mapping[str, Any], contents: Contents) -> Path:
    """Make what trials start with where a world is to begin in a recorded state.

    Parameters
    ----------
    folder : Path
        Empty.
    state : mapping
    contents : Contents

    Returns
    -------
    Path
        A folder or a database below ``folder``.

    Raises
    ------
    StateError, GateError
        As ``world_in``.
    """
    world = world_in(folder, state, contents)
    work, database = world / WORK, world / DATABASE
    records = [world / name for name in RECORDS if (world / name).is_file()]
    if not work.is_dir() and not records:
        return database
    work.mkdir(exist_ok=True)
    for path in records:
        if (work / path.name).exists():
            raise StateError(f"the recorded state has two files {path.name}")
        path.rename(work / path.name)
    # A script in the folder makes the same database again.
    if database.is_file() and not (work / FOLDER_SCRIPT).exists():
        if (work / DATABASE).exists():
            raise StateError("the recorded state has two databases")
        shutil.move(database, work / DATABASE)
    return work

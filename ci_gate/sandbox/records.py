"""What lies beside a trial's working directory: tables in memory, messages, payments.

Decides how they get into the template of a task. What an agent does with them is the worker's to
know, and how they are read for judging that of the graders.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ci_gate import codec
from ci_gate.errors import printable
from ci_gate.model.worlds import RECORDS, TABLES, mistake_in_tables

__all__ = ["is_tables_file", "move_out", "require_tables", "write_tables"]


def is_tables_file(name: str) -> bool:
    """Return whether a fixture of this name is tables in memory."""
    lowered = name.lower()
    return lowered == TABLES or lowered.endswith(f".{TABLES}")


def move_out(work: Path, folder: Path) -> None:
    """Move what a folder fixture has of them from the working directory to beside it.

    Raises
    ------
    OSError
    """
    for name in RECORDS:
        path = work / name
        if path.is_file() and not path.is_symlink():
            path.rename(folder / name)


def write_tables(tables: Mapping[str, Any], folder: Path) -> None:
    """Write the tables that a task file gives.

    Raises
    ------
    OSError
        The fixture has tables as well, or they cannot be written.
    """
    if (folder / TABLES).exists():
        raise OSError(f"it has {TABLES}, and the task has 'tables': only one of them can be")
    (folder / TABLES).write_bytes(codec.encode(tables) + b"\n")


def require_tables(folder: Path) -> None:
    """Refuse tables that no agent could read.

    Raises
    ------
    OSError
        They are no JSON, or no tables.
    """
    path = folder / TABLES
    if not path.exists():
        return
    try:
        mistake = mistake_in_tables(codec.decode(path.read_bytes()))
    except ValueError as error:
        mistake = f"is not JSON: {printable(error, limit=120)}"
    if mistake:
        raise OSError(f"{TABLES} {mistake}")

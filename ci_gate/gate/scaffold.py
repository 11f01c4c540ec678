"""``init``: a working gate in an existing repository, never overwriting anything."""

from __future__ import annotations

import os
from importlib import resources
from pathlib import Path

import msgspec

from ci_gate.errors import UsageError, printable
from ci_gate.machine import failed_write

__all__ = ["Scaffold", "scaffold"]

_FILES = {
    "ci-gate.toml": "ci-gate.toml",
    "evals/example.toml": "example.toml",
    "evals/toy_agent.py": "toy_agent.py",
    ".github/workflows/agent-gate.yml": "agent-gate.yml",
}


class Scaffold(msgspec.Struct, frozen=True, kw_only=True):
    """Paths, relative to the folder, that were written and that were there already.

    ``top`` is the top of the repository where the folder lies below it: workflows are read there
    only, so none was written.
    """

    written: tuple[str, ...]
    kept: tuple[str, ...]
    top: Path | None = None


def scaffold(folder: Path) -> Scaffold:
    """Write the starter files that are not there yet.

    Where a ``ci-gate.toml`` exists the repository has been set up already, and only a missing
    workflow is added: the example task would otherwise join the team's own suite.

    Raises
    ------
    UsageError
        The folder does not exist or cannot be written.
    """
    if not folder.is_dir():
        raise UsageError(f"there is no folder {printable(folder)}", hint="Make it first.")
    wanted = dict(_FILES)
    if (folder / "ci-gate.toml").exists():
        wanted = {name: source for name, source in _FILES.items() if name.startswith(".github")}
    top = _top_above(folder.resolve())
    if top is not None:
        wanted = {name: source for name, source in wanted.items() if not name.startswith(".github")}
    done = {name: _write_new(folder / name, source) for name, source in wanted.items()}
    written = tuple(name for name, is_new in done.items() if is_new)
    kept = tuple(name for name in _FILES if name not in written and (folder / name).exists())
    return Scaffold(written=written, kept=kept, top=top)


def _top_above(folder: Path) -> Path | None:
    """Return the top of the repository that a folder lies below; None at the top or outside."""
    if (folder / ".git").exists():
        return None
    return next((above for above in folder.parents if (above / ".git").exists()), None)


def _write_new(path: Path, source: str) -> bool:
    content = resources.files("ci_gate.gate").joinpath("starter", source).read_bytes()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # O_EXCL: never follows a dangling link and never loses a race with another writer.
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    except FileExistsError:
        return False
    except OSError as error:
        raise failed_write(error, path) from error
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
    except OSError as error:
        path.unlink(missing_ok=True)  # the half of it
        raise failed_write(error, path) from error
    return True

"""Finds the agent's own Python and the program of a command."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from ci_gate.errors import AgentSetupError, printable

__all__ = ["BOOT", "OLDEST", "behind_script", "find_interpreter", "find_program"]

OLDEST = (3, 8)

_NAME_S = 20.0

# Runs under whatever Python was found, Python 2 included: it must only get as far as saying so. The
# loader keeps what it compiled beside the source, as it does for any module, which saves each start
# more than all the rest of the worker takes. What the agent prints names no place of this machine.
BOOT = f"""
import os, sys
if sys.version_info < {OLDEST}:
    _text = '{{"op":"old","python":"%d.%d.%d"}}\\n' % sys.version_info[:3]
    os.write(int(sys.argv[3]), _text.encode())
    sys.exit(1)
from importlib.machinery import SourceFileLoader
def _renamed(code):
    constants = tuple(_renamed(c) if hasattr(c, "co_code") else c for c in code.co_consts)
    return code.replace(co_filename="<ci-gate worker>", co_consts=constants)
_code = SourceFileLoader("ci_gate_worker", sys.argv.pop(1)).get_code("ci_gate_worker")
exec(_renamed(_code))
"""


def find_interpreter(configured: str, *, root: str, path: str | None) -> str:
    """Return the Python that runs the agent.

    Parameters
    ----------
    configured : str
        ``auto`` takes ``python``, else ``python3`` of the search path, else the Python that runs
        this; anything else is a path, relative to ``root``, or a name on the search path.
    root : str
        The agent's folder.
    path : str or None
        The search path.

    Raises
    ------
    AgentSetupError
        There is no such program or it cannot be executed.
    """
    if configured == "auto":
        found = shutil.which("python", path=path) or shutil.which("python3", path=path)
        return found or sys.executable
    return find_program(configured, root=root, path=path, key="agent.interpreter")


def behind_script(interpreter: str, root: str, environment: Mapping[str, str]) -> str:
    """Return the Python that a script such as the shim of a version manager starts.

    The script would run for every worker, and takes ten times as long as Python itself. Anything
    else than a script, and a script that does not say what it starts, is returned as it is.

    Parameters
    ----------
    interpreter : str
        Absolute path.
    root : str
        Folder in which the workers will start: a version may be chosen by it.
    environment : mapping of str to str
    """
    if not _is_script(interpreter):
        return interpreter
    return _named_by_itself(interpreter, root, tuple(sorted(environment.items()))) or interpreter


def _is_script(path: str) -> bool:
    try:
        with Path(path).open("rb") as file:
            return file.read(2) == b"#!"
    except OSError:
        return False


@functools.lru_cache
def _named_by_itself(
    interpreter: str, root: str, environment: tuple[tuple[str, str], ...]
) -> str | None:
    # Without site: nothing that is installed may print something else.
    code = "import os, sys; os.write(1, os.fsencode(sys.executable))"
    try:
        found = subprocess.run(
            [interpreter, "-I", "-S", "-c", code],
            cwd=root,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            check=True,
            timeout=_NAME_S,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    name = os.fsdecode(found.stdout)
    return name if Path(name).is_absolute() and os.access(name, os.X_OK) else None


def find_program(name: str, *, root: str, path: str | None, key: str) -> str:
    """Return the absolute path of a program, links left as they are.

    A virtual environment is found by the path of its interpreter, so that path is not resolved.

    Raises
    ------
    AgentSetupError
        There is no such program or it cannot be executed.
    """
    if os.sep in name or (Path(root) / name).is_file():
        return _executable(os.path.normpath(Path(root) / name), key)
    found = shutil.which(name, path=path)
    if found is None:
        raise AgentSetupError(
            f"there is no program {printable(name)!r} in {printable(root)} or on PATH",
            where=key,
            hint="Give a path relative to [agent] root, or install it.",
        )
    return str(Path(found).absolute())


def _executable(program: str, key: str) -> str:
    if not Path(program).is_file():
        raise AgentSetupError(f"there is no file {printable(program)}", where=key)
    if not os.access(program, os.X_OK):
        raise AgentSetupError(
            f"{printable(program)} is not executable",
            where=key,
            hint="Run `chmod +x` on it, or name its interpreter first.",
        )
    return program

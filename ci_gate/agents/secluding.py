"""The command that takes the network away from a program, where this system lets it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

from ci_gate.errors import AgentSetupError, printable

__all__ = ["secluding_command"]

_TRY_S: Final = 10.0


def secluding_command() -> tuple[str, ...]:
    """Return the command that, with a program and its arguments behind it, becomes that program.

    It is tried first, so that no trial runs with a network that should have none.

    Raises
    ------
    AgentSetupError
        This system does not let this user do so.
    """
    # Neither the user's nor the project's modules: it is a script of the standard library alone.
    command = (sys.executable, "-I", "-S", str(Path(__file__).with_name("seclusion.py")))
    try:
        tried = subprocess.run(command, capture_output=True, timeout=_TRY_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _refused(str(error)) from error
    if tried.returncode != 0:
        raise _refused(tried.stderr.decode("utf-8", "replace").strip() or "no reason was given")
    return command


def _refused(why: str) -> AgentSetupError:
    return AgentSetupError(
        f'"none" needs a network namespace of its own, which this system refuses: '
        f"{printable(why, limit=200)}",
        where="agent.network",
        hint="It needs Linux with user namespaces, or the rights to make a network namespace "
        "(in a container: --cap-add SYS_ADMIN). Leave the key out to run with the network.",
    )

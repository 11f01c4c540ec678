"""The command that brings the results of a run in CI to the machine of whoever looks into it.

A workflow that uploads the folder of results says so by ``CI_GATE_ARTIFACT``, the artifact's name.
Without that nothing is known to be there, and no command pretends it is.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Final

import msgspec

__all__ = ["ARTIFACT", "Fetch", "fetch_of"]

ARTIFACT: Final = "CI_GATE_ARTIFACT"
# What becomes part of a template for commands, which knows braces and single spaces.
_NAME: Final = re.compile(r"[^{}\s]+(?: [^{}\s]+)*")
_NUMBER: Final = re.compile(r"[0-9]{1,20}")
_REPOSITORY: Final = re.compile(r"[\w.-]{1,100}/[\w.-]{1,100}", re.ASCII)


class Fetch(msgspec.Struct, frozen=True, kw_only=True):
    """How the results are fetched.

    Attributes
    ----------
    command : str
        For a POSIX shell; it downloads them unless they are there already.
    folder : str
        Where they are then, relative to where the command was run.
    """

    command: str
    folder: str

    def before(self, command: str) -> str:
        """Return a command that fetches the results first."""
        return f"{self.command} && {command}"


def fetch_of(environment: Mapping[str, str]) -> Fetch | None:
    """Return how the results of this run will be fetched; None where nobody uploads them."""
    run, name = environment.get("GITHUB_RUN_ID", ""), environment.get(ARTIFACT, "")
    repository = environment.get("GITHUB_REPOSITORY", "")
    is_name = _NAME.fullmatch(name) is not None and name.isprintable()
    if not is_name or _NUMBER.fullmatch(run) is None:
        return None
    folder = f"ci-gate-run-{run}"
    download = ["gh", "run", "download", run, "-n", name, "-D", folder]
    download += ["-R", repository] if _REPOSITORY.fullmatch(repository) else []
    # Left to right: a second trial of the same run finds the folder, and gh replaces no file.
    return Fetch(command=f"test -d {folder} || {shlex.join(download)}", folder=folder)

"""The command by which a report lets a failing trial happen again.

Decides where its recording is then: here, elsewhere, or in what a run in CI uploaded. How a task is
put into the command is decided where its trials are chosen.
"""

from __future__ import annotations

import re
import shlex
from typing import Final, NamedTuple

from ci_gate.config import SuiteConfig
from ci_gate.gate.fetching import Fetch
from ci_gate.gate.modes import answered_mode, results_of
from ci_gate.gate.project import Project
from ci_gate.gate.recordings import played_from

__all__ = ["replay_command"]

# What becomes part of a template for commands, which knows braces and single spaces.
_PATH: Final = re.compile(r"[^{}\s]+(?: [^{}\s]+)*")


class _Source(NamedTuple):
    """Where the recording is, and how it gets there; None: where a replay looks anyway."""

    folder: str | None
    fetch: Fetch | None


def replay_command(project: Project, suite: SuiteConfig) -> str:
    """Return the command that finds this task again: ids need not differ between suites.

    Parameters
    ----------
    project : Project
    suite : SuiteConfig

    Returns
    -------
    str
        With ``{task}`` and ``{trial}`` in their places.
    """
    source = _source_of(project)
    command = "ci-gate replay"
    if source.folder is not None:
        command += f" --artifact {source.folder}"
    command += " {task} --trial {trial}"
    if len(project.config.suites) > 1:
        command += f" --suite {shlex.quote(suite.name)}"
    if project.named_config is not None:
        command += f" --config {shlex.quote(str(project.named_config))}"
    return command if source.fetch is None else source.fetch.before(command)


def _source_of(project: Project) -> _Source:
    """Return where a failing trial was recorded.

    A trial that was replayed was so before; a sandboxed one has a trace of its own, faults and all.
    """
    named = played_from(project.config)
    mode = answered_mode(project.config)
    if mode == "replay" and named is not None:
        return _Source(_quoted(named), None)
    fetch = project.fetch
    if mode != "sandboxed":
        return _Source(None if fetch is None else fetch.folder, fetch)
    if fetch is not None:
        return _Source(f"{fetch.folder}/{mode}", fetch)
    return _Source(_quoted(str(results_of(project))), None)


def _quoted(path: str) -> str | None:
    return shlex.quote(path) if _PATH.fullmatch(path) and path.isprintable() else None

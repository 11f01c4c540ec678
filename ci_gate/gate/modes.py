"""Whether the calls of a run are made or answered from recordings, and what follows for the rest.

Decides which mode counts, where results of answered runs go, and which commands such a run cannot
serve. How calls are answered is not known here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

import msgspec

from ci_gate.config import Config, without_faults
from ci_gate.errors import UsageError, printable
from ci_gate.gate.project import Project
from ci_gate.model.run import AnsweredMode

__all__ = [
    "Mode",
    "answered_mode",
    "refuse_answered",
    "require_answerable",
    "results_of",
    "with_mode",
]

Mode = Literal["record", "live", "replay", "sandboxed"]

_ANSWERED: Final[dict[str, AnsweredMode]] = {"replay": "replay", "sandboxed": "sandboxed"}


def answered_mode(config: Config) -> AnsweredMode | None:
    """Return how calls are answered from recordings; None where they are made."""
    return _ANSWERED.get(config.run.mode)


def with_mode(project: Project, mode: Mode | None, traces: Path | None) -> Project:
    """Return the project as its suites are run in the mode that counts.

    Parameters
    ----------
    project : Project
    mode : str or None
        What the user says instead of ``[run] mode``.
    traces : Path or None
        And instead of ``[run] traces``.

    Raises
    ------
    UsageError
        Recordings are named, and nothing is answered from them; or the agent is one whose calls
        cannot be answered.

    Notes
    -----
    Nothing that is answered gets better by trying it again, and nobody is to be spared. The faults
    of a replay are those of its recordings, and their delays are not waited for.
    """
    run = project.config.run
    run = msgspec.structs.replace(
        run,
        mode=mode or run.mode,
        traces=run.traces if traces is None else str(traces.absolute()),
    )
    config = msgspec.structs.replace(project.config, run=run)
    if answered_mode(config) is None:
        if traces is not None:
            raise UsageError(
                f"names recordings, and with mode {run.mode} every call is made",
                where="--traces",
                hint="Add `--mode replay` or `--mode sandboxed`, or leave it out.",
            )
        return msgspec.structs.replace(project, config=config)
    require_answerable(config)
    run = msgspec.structs.replace(run, retries=0, max_per_minute=0)
    config = msgspec.structs.replace(config, run=run)
    if run.mode == "replay":
        config = without_faults(config)
    return msgspec.structs.replace(project, config=config)


def require_answerable(config: Config) -> None:
    """Refuse an agent that asks nobody before it makes a call.

    Raises
    ------
    UsageError
        It is a command.
    """
    if config.agent.protocol != "python":
        raise UsageError(
            f"{config.run.mode} answers the calls of a Python agent: an agent of protocol "
            f"{config.agent.protocol} makes its calls by itself",
            where="run.mode",
            hint='Use mode = "record" or "live", or set [agent] python.',
        )


def results_of(project: Project) -> Path:
    """Return the folder of results: an answered run replaces nothing of what was recorded."""
    mode = answered_mode(project.config)
    return project.output if mode is None else project.output / mode


def refuse_answered(config: Config, *, what: str, where: str) -> None:
    """Refuse what only calls that are really made can serve.

    Raises
    ------
    UsageError
        The mode is one in which calls are answered.
    """
    mode = answered_mode(config)
    if mode is not None:
        raise UsageError(
            f"{what}, and with mode {printable(mode)} all answers are recorded ones",
            where=where,
            hint='Set [run] mode = "record", or leave it out.',
        )

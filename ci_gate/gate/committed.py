"""Which results of earlier runs a pull request may not bring along."""

from __future__ import annotations

from ci_gate.errors import JournalError, printable
from ci_gate.gate.project import Project
from ci_gate.gate.repository import tracked_files

__all__ = ["refuse_committed_runs"]

_RUN = ".run.jsonl"


def refuse_committed_runs(project: Project) -> None:
    """Refuse to go on with runs that the change under judgement may have written itself.

    Parameters
    ----------
    project : Project
        Where it judges no pull request, whose work tree it is decides what is in it.

    Raises
    ------
    JournalError
        Git tracks a run file in the folder of results.
    """
    repository = project.repository
    if repository is None or not project.judges_a_pull_request:
        return
    # Git knows a place by its name without links; results elsewhere are not in the repository.
    folder = project.output.resolve()
    if not folder.is_relative_to(repository.top):
        return
    tracked = [n for n in tracked_files(repository, folder) if n.endswith(_RUN)]
    if tracked:
        raise JournalError(
            "is tracked by git, and a pull request is not judged by a run that it brings along",
            where=printable(tracked[0]),
            hint="Remove it from the repository, or leave --resume out.",
        )

"""``ci-gate replay``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ci_gate.cli.options import output_option, project_options, strictness_option

if TYPE_CHECKING:
    from ci_gate.agents.strictness import Determinism
    from ci_gate.gate.replay import Replayed, ReplayRequest


@click.command(
    "replay",
    epilog="""\b
Example:
  ci-gate replay refund-4812 --trial 3
  ci-gate replay --artifact downloaded refund-4812 --trial 3
  ci-gate replay refund-4812 --trial 3 --until 4
  ci-gate replay --trace .ci-gate/traces/adhoc/run-1.jsonl
""",
)
@click.argument("task", required=False, default="")
@project_options
@output_option
@strictness_option
@click.option(
    "--artifact",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Play from the recordings in this folder, such as a downloaded one.",
)
@click.option(
    "--trace",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Play this file; TASK, suite and trial are those it says.",
)
@click.option(
    "--python",
    metavar="MODULE:FUNCTION",
    help="Agent of a --trace outside any suite.  [default: the configuration's]",
)
@click.option("--live", is_flag=True, help="Make every call for real, though there is a recording.")
@click.option(
    "--until", type=click.IntRange(0), help="Stop after this call of the recording; not judged."
)
@click.option("--step", is_flag=True, help="Walk call by call, on a terminal.")
@click.option("--trial", type=click.IntRange(0), default=0, show_default=True, help="Seed index.")
@click.option("--repeat", type=click.IntRange(0), default=0, help="Run over the seeds.")
def command(
    task: str,
    config_path: Path | None,
    suite: str | None,
    output: Path | None,
    determinism: Determinism,
    artifact: Path | None,
    trace: Path | None,
    python: str | None,
    live: bool,
    until: int | None,
    step: bool,
    trial: int,
    repeat: int,
) -> int:
    """See one trial of TASK again; print its steps, faults, grades and result.

    With --trace it is the trial of that file, also of one which `trace record` made.

    Where its calls were recorded, it is played from the recording: nothing is called, and no
    credentials are needed. Else it is run live with its seed.

    The status is 0 for a pass, 1 for a failure or where the agent leaves the recording, 3 for an
    errored trial. Nothing is written. A trial that was stopped by --until or --step is not judged:
    the status is 0 unless the agent left the recording.
    """
    if trace is None and (not task or python is not None):
        raise click.UsageError("Name the TASK, or a file by --trace, with which --python may go.")
    if trace is not None and artifact is not None:
        raise click.UsageError("Name either a file by --trace or a folder by --artifact.")
    from ci_gate.cli.show import show_replay
    from ci_gate.cli.walking import walk_of
    from ci_gate.gate.replay import ReplayRequest

    request = ReplayRequest(
        config_path=config_path,
        suite=suite,
        task=task,
        trial=trial,
        repeat=repeat,
        environment=os.environ,
        output=output,
        artifact=artifact,
        live=live,
        walk=walk_of(until=until, step=step),
        determinism=determinism,
    )
    result = _replayed(request, trace, python)
    show_replay(result, is_walked=step)
    return result.exit_code


def _replayed(request: ReplayRequest, trace: Path | None, python: str | None) -> Replayed:
    if trace is None:
        from ci_gate.gate.replay import replay

        return replay(request)
    from ci_gate.gate.replay_file import replay_file

    return replay_file(request, trace, python)

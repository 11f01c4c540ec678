"""``ci-gate replay``."""

from __future__ import annotations

import os
from pathlib import Path

import click

from ci_gate.cli.options import project_options


@click.command(
    "replay",
    epilog="""\b
Example:
  ci-gate replay refund-4812 --trial 3
""",
)
@click.argument("task")
@project_options
@click.option("--trial", type=click.IntRange(0), default=0, show_default=True, help="Seed index.")
@click.option("--repeat", type=click.IntRange(0), default=0, help="Run over the seeds.")
def command(
    task: str,
    config_path: Path | None,
    suite: str | None,
    trial: int,
    repeat: int,
) -> int:
    """Run one trial of TASK again with its seed; print its steps, faults, grades and result.

    The status is 0 for a pass, 1 for a failure, 3 for an errored trial. Nothing is written.
    """
    from ci_gate.cli.show import show_replay
    from ci_gate.gate.replay import ReplayRequest, replay

    result = replay(
        ReplayRequest(
            config_path=config_path,
            suite=suite,
            task=task,
            trial=trial,
            repeat=repeat,
            environment=os.environ,
        )
    )
    show_replay(result)
    return result.exit_code

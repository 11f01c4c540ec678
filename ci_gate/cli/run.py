"""``ci-gate run``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ci_gate.cli.options import (
    calm_option,
    mode_options,
    output_option,
    project_options,
    run_options,
    strictness_option,
)

if TYPE_CHECKING:
    from ci_gate.agents.strictness import Determinism
    from ci_gate.gate.modes import Mode


@click.command(
    "run",
    epilog="""\b
Example:
  ci-gate run --task 'refund-*' --jobs 4
""",
)
@project_options
@output_option
@run_options
@mode_options
@strictness_option
@calm_option
@click.option("--quiet", "-q", is_flag=True, help="Say nothing but errors.")
def command(
    config_path: Path | None,
    suite: str | None,
    output: Path | None,
    trials: int | None,
    jobs: int | None,
    task_filter: str | None,
    resume: bool,
    fresh: bool,
    mode: Mode | None,
    traces: Path | None,
    determinism: Determinism,
    calm_and_chaos: bool,
    quiet: bool,
) -> int:
    """Run the suite and write the run file; compare it later with `ci-gate compare`.

    The run ends early where its verdict against the baseline is all but certain. The status is 0
    where the plan ended, early or not, 3 where a budget or too many errors ended it.
    """
    from ci_gate.cli.show import show_measured, watch
    from ci_gate.gate.preparing import RunOptions
    from ci_gate.gate.run import RunRequest, run

    measured = run(
        RunRequest(
            config_path=config_path,
            suite=suite,
            output=output,
            run=RunOptions(
                trials=trials,
                jobs=jobs,
                task_filter=task_filter,
                resume=resume,
                fresh=fresh,
                determinism=determinism,
                mode=mode,
                traces=traces,
            ),
            environment=os.environ,
            calm_and_chaos=calm_and_chaos,
        ),
        watch(quiet=quiet),
    )
    if not quiet:
        show_measured(measured)
    return max(one.exit_code for one in measured)

"""``ci-gate check``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ci_gate.cli.options import (
    baseline_options,
    calm_option,
    mode_options,
    output_option,
    project_options,
    report_options,
    run_options,
    strictness_option,
)

if TYPE_CHECKING:
    from ci_gate.agents.strictness import Determinism
    from ci_gate.gate.modes import Mode


@click.command(
    "check",
    epilog="""\b
Example:
  ci-gate check --markdown comment.md
""",
)
@project_options
@output_option
@baseline_options
@run_options
@mode_options
@strictness_option
@report_options
@click.option(
    "--recheck",
    is_flag=True,
    help="Where the test is red, run base and candidate again: was it the change?",
)
@calm_option
def command(
    config_path: Path | None,
    suite: str | None,
    output: Path | None,
    baseline_file: Path | None,
    baseline_ref: str | None,
    trials: int | None,
    jobs: int | None,
    task_filter: str | None,
    resume: bool,
    fresh: bool,
    mode: Mode | None,
    traces: Path | None,
    determinism: Determinism,
    json_path: Path | None,
    markdown_path: Path | None,
    junit_path: Path | None,
    quiet: bool,
    recheck: bool,
    calm_and_chaos: bool,
) -> int:
    """Run the suite, compare it with the baseline, report, and set the exit status.

    In a pull request the baseline and the policy are those of the base commit. Without a baseline
    anywhere the run is reported and passes.
    """
    from ci_gate.cli.show import announce_traces, show_verdicts, watch
    from ci_gate.gate.check import CheckRequest, check
    from ci_gate.gate.preparing import RunOptions
    from ci_gate.gate.reports import Targets, clear_targets, worst, write_targets

    targets = Targets(json=json_path, markdown=markdown_path, junit=junit_path)
    clear_targets(targets, inputs=(baseline_file,))
    result = check(
        CheckRequest(
            config_path=config_path,
            suite=suite,
            output=output,
            baseline_file=baseline_file,
            baseline_ref=baseline_ref,
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
            recheck=recheck,
            calm_and_chaos=calm_and_chaos,
            announce=None if quiet else announce_traces,
        ),
        watch(quiet=quiet),
    )
    written = (*result.files, *write_targets(targets, result.verdicts))
    if not quiet:
        show_verdicts(result.verdicts, reports=written)
    return worst(result.verdicts)

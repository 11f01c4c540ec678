"""``ci-gate power``."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from ci_gate.cli.options import baseline_options, project_options


@click.command(
    "power",
    epilog="""\b
Example:
  ci-gate power --drop 0.05
  ci-gate power --drop 0.03 --trials 16 --trials 32 --json -
""",
)
@project_options
@baseline_options
@click.option(
    "--drop",
    "drops",
    type=float,
    multiple=True,
    help="A drop of the suite's pass^1 to be seen; repeatable.  [default: 0.02 0.05 0.1]",
)
@click.option("--power", "wanted", type=float, default=0.8, show_default=True, help="How surely.")
@click.option(
    "--trials",
    type=click.IntRange(1),
    multiple=True,
    help="Trials a task to try; repeatable.  [default: the fewest that see the drop]",
)
@click.option(
    "--json",
    "json_path",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    help="Write the figures; - is stdout.",
)
def command(
    config_path: Path | None,
    suite: str | None,
    baseline_file: Path | None,
    baseline_ref: str | None,
    drops: tuple[float, ...],
    wanted: float,
    trials: tuple[int, ...],
    json_path: Path | None,
) -> None:
    """Say what a check would see, and what seeing more costs, before anything is run.

    Everything follows from the baseline. Its tasks' chances, changed in a stated way, are simulated
    thousands of times through the gate's own test.
    """
    from ci_gate.codec import for_log
    from ci_gate.gate.power import PowerRequest, power, prospects_json, write_prospects
    from ci_gate.gate.reports import Targets, clear_targets
    from ci_gate.render.power import render_prospect
    from ci_gate.render.screen import console_for

    clear_targets(Targets(json=json_path), inputs=(baseline_file,))
    prospects = power(
        PowerRequest(
            config_path=config_path,
            suite=suite,
            baseline_file=baseline_file,
            baseline_ref=baseline_ref,
            drops=drops,
            power=wanted,
            trials=trials,
            environment=os.environ,
        )
    )
    if json_path is not None and str(json_path) == "-":
        sys.stdout.buffer.write(for_log(prospects_json(prospects)))
        sys.stdout.buffer.flush()
        return
    if json_path is not None:
        write_prospects(json_path, prospects)
    for prospect in prospects:
        render_prospect(prospect, console_for(sys.stdout, os.environ))

"""``ci-gate trace check``."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from ci_gate.cli.options import project_options


@click.command(
    "check",
    epilog="""\b
Example:
  ci-gate trace check
""",
)
@project_options
@click.option("--task", "task_filter", metavar="GLOB", help="Only tasks whose id matches.")
@click.option("--baseline-ref", help="Take the traces from this git commit or ref.")
@click.option("--json", "as_json", is_flag=True, help="What was found as JSON, one suite a line.")
def check_command(
    config_path: Path | None,
    suite: str | None,
    task_filter: str | None,
    baseline_ref: str | None,
    as_json: bool,
) -> int:
    """Play the kept traces to the agent as it is now; say where it makes another call.

    Nothing is called. The traces are those of the base commit, else of the working tree.

    The status is 0 where every trace is followed call by call, 1 where one is not, or cannot be
    played, 2 where none is kept.
    """
    from ci_gate.gate.trace_check import TraceCheckRequest, check_traces

    found = check_traces(
        TraceCheckRequest(
            config_path=config_path,
            suite=suite,
            task_filter=task_filter,
            baseline_ref=baseline_ref,
            environment=os.environ,
        )
    )
    if as_json:
        from ci_gate.codec import encode, for_log

        for one in found:
            click.echo(for_log(encode(one)).decode())
    else:
        from ci_gate.render.partings import render_kept
        from ci_gate.render.screen import console_for

        console = console_for(sys.stdout, os.environ)
        for one in found:
            render_kept(one.suite, one.tasks, one.traces, console)
    return 0 if all(one.is_consistent for one in found) else 1

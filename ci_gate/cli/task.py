"""``ci-gate task``."""

from __future__ import annotations

import os
from pathlib import Path

import click

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.group(
    "task",
    epilog="""\b
Example:
  ci-gate task from-trace .ci-gate/traces/refund-4812/3.jsonl
""",
)
def command() -> None:
    """Make tasks of what happened."""


@command.command(
    "from-trace",
    epilog="""\b
Example:
  ci-gate task from-trace .ci-gate/traces/refund-4812/3.jsonl --id refund-twice
  ci-gate task from-trace downloaded/traces/refund-4812/3.jsonl --output evals/refund-twice.toml
""",
)
@click.argument("trace", type=_FILE)
@click.option("--id", "task_id", help="Id of the task.  [default: from the trace]")
@click.option(
    "--output", "-o", type=_FILE, help="Task file.  [default: beside the suite's other tasks]"
)
@click.option(
    "--config",
    "-c",
    "config_path",
    type=_FILE,
    help="Configuration file.  [default: ci-gate.toml here or in a folder above]",
)
def from_trace_command(
    trace: Path, task_id: str | None, output: Path | None, config_path: Path | None
) -> int:
    """Turn the recorded trial of TRACE into a task file with its fixture, to be completed.

    The first trial of the task has the seed of the recorded one, and so its faults, and starts in
    the same world. Its graders say what happened: the first is in effect, the others stand as
    comments. Write what should have happened instead.

    Nothing that exists is replaced. The path of the file goes to standard output.
    """
    from ci_gate.errors import printable
    from ci_gate.gate.from_trace import FromTraceRequest, from_trace
    from ci_gate.render.figures import counted

    found = from_trace(
        FromTraceRequest(
            trace=trace, here=Path.cwd(), id=task_id, output=output, config_path=config_path
        )
    )
    place = os.path.relpath(found.path)
    world = "" if found.fixture is None else f", starts in {os.path.relpath(found.fixture)}"
    graders = "no grader could be proposed"
    if found.proposals:
        graders = f"{counted(found.proposals, 'grader')} proposed, the first in effect"
    lines = [
        f"task '{printable(found.id)}'{printable(world)}; {graders}",
        *(f"note: {printable(remark, limit=500)}" for remark in found.remarks),
        "TODO: open it and say what should have happened",
    ]
    for line in lines:
        click.echo(line, err=True)
    click.echo(printable(place, limit=4096))
    return 0

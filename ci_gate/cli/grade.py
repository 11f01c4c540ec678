"""``ci-gate grade``."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from ci_gate.model.regrading import Regraded

_FILE = click.Path(path_type=Path, dir_okay=False)
_TARGET = click.Path(path_type=Path, dir_okay=False, allow_dash=True)


@click.command(
    "grade",
    epilog="""\b
Example:
  ci-gate grade .ci-gate/refunds.run.jsonl
  ci-gate grade downloaded/refunds.run.jsonl --task 'refund-*' --json -
""",
)
@click.argument("run", type=_FILE)
@click.option(
    "--config",
    "-c",
    "config_path",
    type=_FILE,
    help="Configuration file.  [default: ci-gate.toml here or in a folder above]",
)
@click.option("--task", "task_filter", metavar="GLOB", help="Only tasks whose id matches.")
@click.option("--jobs", "-j", type=click.IntRange(1), help="Trials at the same time.")
@click.option(
    "--output", "-o", type=_FILE, help="New run file.  [default: NAME.regraded.run.jsonl]"
)
@click.option("--json", "json_path", type=_TARGET, help="Write what flipped; - is stdout.")
@click.option("--quiet", "-q", is_flag=True, help="Say nothing but errors.")
def command(
    run: Path,
    config_path: Path | None,
    task_filter: str | None,
    jobs: int | None,
    output: Path | None,
    json_path: Path | None,
    quiet: bool,
) -> int:
    """Grade the stored trials of RUN again, by the task files as they are now.

    The agent is not run: answer, calls and the world at the end are those of the traces beside RUN.
    Use it after a grader was fixed. RUN stays as it is; a new run file has the new outcomes.

    The status is 0 whatever flipped, 3 where trials kept their outcome because not all that graders
    need was recorded.
    """
    from ci_gate.cli.show import watch
    from ci_gate.gate.regrade import RegradeRequest, regrade
    from ci_gate.gate.reports import Targets, clear_targets
    from ci_gate.model.verdict import ExitCode

    clear_targets(Targets(json=json_path), inputs=(run, output))
    found = regrade(
        RegradeRequest(
            run=run,
            config_path=config_path,
            environment=os.environ,
            output=output,
            task_filter=task_filter,
            jobs=jobs,
        ),
        watch(quiet=quiet),
    )
    _write(found, json_path)
    if not quiet:
        _show(found)
    return ExitCode.INCONCLUSIVE if found.left else ExitCode.PASSED


def _write(found: Regraded, target: Path | None) -> None:
    from ci_gate.codec import for_log
    from ci_gate.render.regrade import regraded_json
    from ci_gate.store.folders import write_named

    if target is None:
        return
    if str(target) != "-":
        write_named(target, regraded_json(found))
        return
    sys.stdout.buffer.write(for_log(regraded_json(found)))
    sys.stdout.buffer.flush()


def _show(found: Regraded) -> None:
    from ci_gate.render.regrade import render_regraded
    from ci_gate.render.terminal import standard_error

    render_regraded(found, standard_error(os.environ))

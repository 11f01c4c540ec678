"""``ci-gate selfcheck``."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ci_gate.cli.options import output_option, project_options

if TYPE_CHECKING:
    from ci_gate.model.selfcheck import SelfCheck

_FILE = click.Path(path_type=Path, dir_okay=False)
_TARGET = click.Path(path_type=Path, dir_okay=False, allow_dash=True)


@click.command(
    "selfcheck",
    epilog="""\b
Example:
  ci-gate selfcheck
  ci-gate selfcheck nightly-1.run.jsonl nightly-2.run.jsonl nightly-3.run.jsonl
  ci-gate selfcheck --runs 4 --json selfcheck.json
""",
)
@click.argument("files", nargs=-1, type=_FILE, metavar="[RUN]...")
@project_options
@output_option
@click.option("--runs", type=click.IntRange(2, 100), help="Make so many runs, and measure on them.")
@click.option("--jobs", "-j", type=click.IntRange(1), help="Trials at the same time.")
@click.option("--resume", is_flag=True, help="Continue unfinished runs.")
@click.option("--fresh", is_flag=True, help="Throw unfinished runs away.")
@click.option("--json", "json_path", type=_TARGET, help="Write the figures; - is stdout.")
@click.option("--quiet", "-q", is_flag=True, help="Say nothing but errors.")
def command(
    files: tuple[Path, ...],
    config_path: Path | None,
    suite: str | None,
    output: Path | None,
    runs: int | None,
    jobs: int | None,
    resume: bool,
    fresh: bool,
    json_path: Path | None,
    quiet: bool,
) -> int:
    """Measure how often this gate blocks an agent that nobody changed.

    Each RUN is a run or baseline file; without any, the runs of the baseline are taken. Every run
    is held against all others by the gate's own rules. The status is 0 where something could be
    measured, 3 where not: with one run, or with runs that are copies.
    """
    from ci_gate.cli.show import watch
    from ci_gate.gate.preparing import RunOptions
    from ci_gate.gate.reports import Targets, clear_targets
    from ci_gate.gate.selfcheck import SelfCheckRequest, exit_code, run_self_check

    clear_targets(Targets(json=json_path), inputs=files)
    found = run_self_check(
        SelfCheckRequest(
            files=files,
            runs=runs,
            config_path=config_path,
            suite=suite,
            output=output,
            run=RunOptions(jobs=jobs, resume=resume, fresh=fresh),
            environment=os.environ,
        ),
        watch(quiet=quiet),
    )
    _write(found, json_path)
    if not quiet and str(json_path) != "-":
        _show(found)
    return exit_code(found)


def _write(found: Sequence[SelfCheck], target: Path | None) -> None:
    from ci_gate.codec import for_log
    from ci_gate.gate.selfcheck import json_of, write_json

    if target is None:
        return
    if str(target) != "-":
        write_json(found, target)
        return
    sys.stdout.buffer.write(for_log(json_of(found)))
    sys.stdout.buffer.flush()


def _show(found: Sequence[SelfCheck]) -> None:
    from ci_gate.render.screen import console_for
    from ci_gate.render.selfcheck import render_self_check

    console = console_for(sys.stdout, os.environ)
    for one in found:
        render_self_check(one, console)

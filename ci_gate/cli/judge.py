"""``ci-gate judge calibrate``."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ci_gate.cli.options import project_options

if TYPE_CHECKING:
    from ci_gate.gate.calibrate import Calibrated

_FILE = click.Path(path_type=Path, dir_okay=False)
_TARGET = click.Path(path_type=Path, dir_okay=False, allow_dash=True)
_INCONCLUSIVE = 3


@click.group(
    "judge",
    epilog="""\b
Example:
  ci-gate judge calibrate labels.jsonl && git add baselines/judges
""",
)
def command() -> None:
    """Hold a judge against people's labels."""


@command.command(
    epilog="""\b
Example:
  ci-gate judge calibrate labels.jsonl
  ci-gate judge calibrate labels.jsonl --judge refund-4812 --json -
"""
)
@click.argument("labels", type=_FILE)
@click.option("--judge", "judge", metavar="TASK[/GRADER]", help="Which judge, where several are.")
@project_options
@click.option("--json", "json_path", type=_TARGET, help="Write the calibration; - is stdout.")
@click.option("--quiet", "-q", is_flag=True, help="Say nothing but errors.")
def calibrate(
    labels: Path,
    judge: str | None,
    config_path: Path | None,
    suite: str | None,
    json_path: Path | None,
    quiet: bool,
) -> int:
    """Measure how far a judge agrees with LABELS, and keep it in baselines/judges.

    A line of LABELS is {"answer": "...", "label": "pass"}, with "task", "input" and "model" where
    they are known. Each is asked twice, the second time with the parts in reverse order. The status
    is 0 where the judge may gate now, 3 where it may not.
    """
    from ci_gate.gate.calibrate import CalibrateRequest
    from ci_gate.gate.calibrate import calibrate as run

    found = run(
        CalibrateRequest(
            labels=labels,
            judge=judge,
            config_path=config_path,
            suite=suite,
            environment=os.environ,
        )
    )
    _write(found, json_path)
    if not quiet and str(json_path) != "-":
        _show(found)
    return 0 if found.weakness is None else _INCONCLUSIVE


def _write(found: Calibrated, target: Path | None) -> None:
    from ci_gate.codec import for_log
    from ci_gate.store.calibrations import dump_calibration
    from ci_gate.store.files import write_whole

    if target is None:
        return
    content = dump_calibration(found.calibration)
    if str(target) != "-":
        write_whole(target, content)
        return
    sys.stdout.buffer.write(for_log(content))
    sys.stdout.buffer.flush()


def _show(found: Calibrated) -> None:
    from ci_gate.render.judge import render_calibration
    from ci_gate.render.screen import console_for

    console = console_for(sys.stdout, os.environ)
    render_calibration(
        found.calibration,
        console,
        place=str(found.path),
        weakness=found.weakness,
        remarks=found.remarks,
    )

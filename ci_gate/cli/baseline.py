"""``ci-gate baseline update|show|diff|history``."""

from __future__ import annotations

import os
from pathlib import Path

import click

from ci_gate.cli.options import output_option, project_options, run_options

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.group(
    "baseline",
    epilog="""\b
Example:
  ci-gate baseline update && git add baselines && git commit -m "Set the bar"
""",
)
def command() -> None:
    """Update, show, diff or trace the history of a baseline."""


@command.command(
    epilog="""\b
Example:
  ci-gate baseline update
  ci-gate baseline update nightly-1.run.jsonl nightly-2.run.jsonl
  ci-gate baseline update --anchor
"""
)
@click.argument("runs", nargs=-1, type=_FILE)
@project_options
@output_option
@run_options
@click.option("--force", "forced", is_flag=True, help="Keep one that cannot serve; recorded.")
@click.option("--anchor", is_flag=True, help="Move the anchor here too; see below.")
@click.option("--quiet", "-q", is_flag=True, help="Say nothing but errors.")
def update(
    runs: tuple[Path, ...],
    config_path: Path | None,
    suite: str | None,
    output: Path | None,
    trials: int | None,
    jobs: int | None,
    task_filter: str | None,
    resume: bool,
    fresh: bool,
    forced: bool,
    anchor: bool,
    quiet: bool,
) -> None:
    """Set the bar from RUNS, or from a deep run: several runs over the same seeds.

    Runs of the same agent and suite are added as further repeats; another agent starts anew.

    The first update also writes the anchor, against which a slow slide over many changes shows;
    only --anchor replaces it.
    """
    from ci_gate.cli.show import show_updated, watch
    from ci_gate.gate.preparing import RunOptions
    from ci_gate.gate.update import UpdateRequest
    from ci_gate.gate.update import update as update_baselines

    updated = update_baselines(
        UpdateRequest(
            runs=runs,
            config_path=config_path,
            suite=suite,
            output=output,
            run=RunOptions(
                trials=trials, jobs=jobs, task_filter=task_filter, resume=resume, fresh=fresh
            ),
            forced=forced,
            anchor=anchor,
            environment=os.environ,
        ),
        watch(quiet=quiet),
    )
    if not quiet:
        show_updated(updated)


@command.command(
    epilog="""\b
Example:
  ci-gate baseline show
  ci-gate baseline show origin/main
"""
)
@click.argument("target", required=False)
@project_options
def show(target: str | None, config_path: Path | None, suite: str | None) -> None:
    """Print the baseline of the working tree, or of TARGET: a file, commit or ref."""
    from ci_gate.cli.show import show_baselines
    from ci_gate.gate.baseline_views import BaselineRequest
    from ci_gate.gate.baseline_views import show as shown

    show_baselines(shown(BaselineRequest.of(config_path, suite, os.environ), target))


@command.command(
    epilog="""\b
Example:
  ci-gate baseline diff origin/main
"""
)
@click.argument("baseline")
@click.argument("candidate", required=False)
@project_options
def diff(
    baseline: str,
    candidate: str | None,
    config_path: Path | None,
    suite: str | None,
) -> None:
    """Print what differs between two files, commits or refs, task by task.

    Without CANDIDATE it is the working tree's baseline.
    """
    from ci_gate.cli.show import show_differences
    from ci_gate.gate.baseline_views import BaselineRequest
    from ci_gate.gate.baseline_views import diff as difference

    request = BaselineRequest.of(config_path, suite, os.environ)
    show_differences(difference(request, baseline, candidate))


@command.command(
    epilog="""\b
Example:
  ci-gate baseline history
"""
)
@project_options
def history(config_path: Path | None, suite: str | None) -> None:
    """Print pass^1 and pass^8 over the commits that touched the baseline."""
    from ci_gate.cli.show import show_history
    from ci_gate.gate.baseline_views import BaselineRequest, past

    show_history(past(BaselineRequest.of(config_path, suite, os.environ)))

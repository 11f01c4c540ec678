"""``ci-gate compare``."""

from __future__ import annotations

import os
from pathlib import Path

import click

from ci_gate.cli.options import baseline_options, project_options, report_options


@click.command(
    "compare",
    epilog="""\b
Example:
  ci-gate compare baselines/refund-desk.json .ci-gate/refund-desk.run.jsonl
""",
)
@click.argument("files", nargs=-1, type=click.Path(path_type=Path), metavar="[BASELINE] CANDIDATE")
@project_options
@baseline_options
@click.option("--task", "task_filter", metavar="GLOB", help="Only tasks whose id matches; partial.")
@click.option(
    "--calm",
    type=click.Path(path_type=Path),
    help="Show this run of the candidate without faults beside it.",
)
@report_options
def command(
    files: tuple[Path, ...],
    config_path: Path | None,
    suite: str | None,
    baseline_file: Path | None,
    baseline_ref: str | None,
    task_filter: str | None,
    calm: Path | None,
    json_path: Path | None,
    markdown_path: Path | None,
    junit_path: Path | None,
    quiet: bool,
) -> int:
    """Judge CANDIDATE against BASELINE; each is a run or a baseline file.

    Without BASELINE it is found as `check` finds it. The policy is that of the configuration, or
    the defaults where there is none.
    """
    from ci_gate.cli.show import show_verdicts
    from ci_gate.gate.compare import CompareRequest, compare_files
    from ci_gate.gate.reports import Targets, clear_targets, write_targets

    if not 1 <= len(files) <= 2:
        raise click.UsageError(f"Give one or two files, found {len(files)}.")
    targets = Targets(json=json_path, markdown=markdown_path, junit=junit_path)
    clear_targets(targets, inputs=(*files, baseline_file))
    verdict = compare_files(
        CompareRequest(
            candidate=files[-1],
            baseline=files[0] if len(files) == 2 else baseline_file,
            baseline_ref=baseline_ref,
            config_path=config_path,
            suite=suite,
            task_filter=task_filter,
            environment=os.environ,
            calm=calm,
        )
    )
    written = write_targets(targets, [verdict])
    if not quiet:
        show_verdicts([verdict], reports=written)
    return verdict.exit_code

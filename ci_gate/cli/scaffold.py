"""``ci-gate init``."""

from __future__ import annotations

from pathlib import Path

import click

from ci_gate.errors import printable


@click.command(
    "init",
    epilog="""\b
Example:
  cd my-repository && ci-gate init && ci-gate check
""",
)
@click.argument(
    "folder", type=click.Path(path_type=Path, file_okay=False), default=Path(), required=False
)
def command(folder: Path) -> None:
    """Write a commented ci-gate.toml, example tasks with a toy agent, and a workflow.

    Nothing that exists is touched.
    """
    from ci_gate.gate.scaffold import scaffold

    result = scaffold(folder)
    for name in result.written:
        click.echo(f"wrote {name}", err=True)
    for name in result.kept:
        click.echo(f"kept  {name}", err=True)
    if result.top is not None:
        click.echo(
            f"no workflow: it belongs into {printable(result.top)}/.github/workflows, with "
            "working-directory set to this folder (see docs/ci.md)",
            err=True,
        )
    click.echo(
        "\nNext:\n"
        "  ci-gate check              run the example; there is no baseline yet\n"
        "  ci-gate baseline update    set the bar, then commit baselines/\n"
        "  ci-gate check              judge every change against it",
        err=True,
    )

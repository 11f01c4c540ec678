"""``ci-gate report``."""

from __future__ import annotations

from pathlib import Path

import click


@click.command(
    "report",
    epilog="""\b
Example:
  ci-gate report .ci-gate/refund-desk.verdict.json --format markdown
""",
)
@click.argument("verdict", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--format",
    "form",
    type=click.Choice(["terminal", "markdown", "junit", "json"]),
    default="terminal",
    show_default=True,
    help="What to print; all but terminal go to standard output.",
)
def command(verdict: Path, form: str) -> None:
    """Render a stored verdict again. The exit status is 0 whatever the verdict."""
    from ci_gate.cli.show import show_verdicts
    from ci_gate.gate.reports import Targets, load_verdicts, write_targets

    verdicts = load_verdicts(verdict)
    if form == "terminal":
        show_verdicts(verdicts)
        return
    write_targets(Targets(**{form: Path("-")}), verdicts)

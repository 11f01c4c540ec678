"""``ci-gate schema``."""

from __future__ import annotations

import click

_NAMES = ("config", "run", "baseline", "verdict", "trace", "trace-meta", "judge")


@click.command(
    "schema",
    epilog="""\b
Example:
  ci-gate schema config > ci-gate.schema.json
""",
)
@click.argument("name", type=click.Choice(_NAMES))
def command(name: str) -> None:
    """Print the JSON Schema of a file format."""
    import json

    from ci_gate.gate.schemas import schema

    click.echo(json.dumps(schema(name), indent=2))

"""``ci-gate trace record``."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ci_gate.errors import UsageError, printable

if TYPE_CHECKING:
    from ci_gate.gate.lone_recording import LoneRecorded

__all__ = ["record_command"]

_FILE = click.Path(path_type=Path, dir_okay=False)
_LARGEST_INPUT = 64 * 2**20


@click.command(
    "record",
    context_settings={"allow_interspersed_args": False},
    epilog="""\b
Example:
  ci-gate trace record --python desk.agent:run --input '{"order": 4812}'
  ci-gate trace record --input @ticket.json --fixture world.sql -- node agent.mjs
""",
)
@click.argument("program", metavar="[--] COMMAND...", nargs=-1, type=click.UNPROCESSED)
@click.option("--python", metavar="MODULE:FUNCTION", help="Record a Python agent.")
@click.option("--input", "given", metavar="JSON|@FILE", help="The task's input for the agent.")
@click.option("--instruction", default="", help="What the agent is asked.")
@click.option("--seed", default="0x20261030", show_default=True, help="Of the trial, hexadecimal.")
@click.option(
    "--fixture",
    type=click.Path(path_type=Path),
    help="The world it starts in, as in a task file.  [default: an empty folder]",
)
@click.option(
    "--output",
    "-o",
    type=_FILE,
    help="File of the trace.  [default: .ci-gate/traces/adhoc/run-N.jsonl]",
)
@click.option("--faults", is_flag=True, help="Inject the faults of [faults], or default ones.")
@click.option(
    "--timeout-s", type=click.FloatRange(0, 86_400, min_open=True), help="Seconds it may take."
)
@click.option(
    "--config",
    "-c",
    "config_path",
    type=_FILE,
    help="Configuration file; there need not be one.  [default: as everywhere]",
)
def record_command(
    program: tuple[str, ...],
    python: str | None,
    given: str | None,
    instruction: str,
    seed: str,
    fixture: Path | None,
    output: Path | None,
    faults: bool,
    timeout_s: float | None,
    config_path: Path | None,
) -> int:
    """Run an agent once, outside any suite, and record every call that leaves it.

    COMMAND gets the task as JSON on its standard input and prints its result as a JSON line, as in
    a suite. A Python agent is called with task and env. The world is a fresh copy, and is removed
    at the end.

    Where there is a ci-gate.toml, its settings for secrets, prices, capabilities and time hold.

    The path of the trace goes to standard output. The status is 0 where the agent finished, 1 where
    it failed, 3 where its environment did.
    """
    if (python is None) == (not program):
        raise click.UsageError("Name either a Python agent by --python, or a COMMAND after --.")
    from ci_gate.gate.lone_recording import LoneRequest, record_alone

    recorded = record_alone(
        LoneRequest(
            config_path=config_path,
            here=Path.cwd(),
            python=python,
            command=program,
            instruction=instruction,
            input=None if given is None else _input(given),
            seed=_seed(seed),
            fixture=fixture,
            output=output,
            timeout_s=timeout_s,
            has_faults=faults,
            environment=os.environ,
        )
    )
    _show(recorded, python=python, config_path=config_path)
    return recorded.exit_code


def _input(given: str) -> Any:
    from ci_gate.codec import decode
    from ci_gate.store.files import read_whole

    is_file = given.startswith("@")
    content = read_whole(Path(given[1:]), limit=_LARGEST_INPUT) if is_file else given
    try:
        return decode(content)
    except ValueError as error:
        where = f"--input {printable(given, limit=60)}"
        hint = "A text needs quotes of its own: --input '\"text\"'; @FILE reads a file."
        raise UsageError(f"is not JSON: {printable(error)}", where=where, hint=hint) from error


def _seed(text: str) -> int:
    from ci_gate.prng import parse_seed

    try:
        return parse_seed(text)
    except ValueError as error:
        raise UsageError(printable(error), where="--seed") from error


def _show(recorded: LoneRecorded, *, python: str | None, config_path: Path | None) -> None:
    from ci_gate.render.lone import render_recorded
    from ci_gate.render.terminal import standard_error

    console = standard_error(os.environ)
    render_recorded(recorded.record, recorded.trajectory, recorded.totals, console)
    if recorded.path is None:
        return
    place = os.path.relpath(recorded.path)
    config = [] if config_path is None else ["--config", str(config_path)]
    commands = [["trace", "show", place]]
    commands += [["replay", *config, "--trace", place, "--python", python]] if python else []
    commands += [["task", "from-trace", *config, place]]
    for command in commands:
        click.echo(f"  {printable(shlex.join(['ci-gate', *command]), limit=1000)}", err=True)
    sys.stdout.flush()
    click.echo(place)

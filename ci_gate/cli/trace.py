"""``ci-gate trace``."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ci_gate.cli.options import project_options
from ci_gate.cli.trace_check import check_command
from ci_gate.cli.trace_record import record_command

if TYPE_CHECKING:
    from rich.console import Console

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.group(
    "trace",
    epilog="""\b
Example:
  ci-gate trace diff baselines/desk.traces/refund/0.jsonl .ci-gate/traces/refund/0.jsonl
""",
)
def command() -> None:
    """Record, show, verify and compare trials."""


command.add_command(check_command)
command.add_command(record_command)


@command.command(
    "show",
    epilog="""\b
Example:
  ci-gate trace show .ci-gate/traces/refund-4812/3.jsonl --call 4
""",
)
@click.argument("trace", type=_FILE)
@click.option("--call", "order", type=click.IntRange(0), help="Everything about one call.")
@click.option("--kind", help="Only calls of this kind: tool, llm, kv, file, ...")
@click.option("--name", help="Only calls of this name.")
@click.option("--faults", is_flag=True, help="Only calls that met a fault.")
@click.option("--json", "as_json", is_flag=True, help="The calls as JSON, one a line.")
def show_command(
    trace: Path,
    order: int | None,
    kind: str | None,
    name: str | None,
    faults: bool,
    as_json: bool,
) -> int:
    """Print the calls of TRACE with their answers and what they cost."""
    from ci_gate.gate import traces
    from ci_gate.render.trace import render_call, render_calls, render_totals

    found = traces.show(trace)
    chosen = [
        record
        for record in found.records
        if (kind is None or record.kind == kind)
        and (name is None or record.name == name)
        and (record.fault is not None or not faults)
    ]
    if order is not None:
        chosen = [traces.call_of(trace, found.records, order)]
    if as_json:
        _print_json(chosen)
        return 0
    console = _screen()
    if order is not None:
        render_call(chosen[0], console)
    else:
        render_calls(found.header, chosen, console)
        render_totals(traces.totals(found), console)
    return 0


@command.command(
    "verify",
    epilog="""\b
Example:
  ci-gate trace verify .ci-gate/traces/*/*.jsonl
  ci-gate trace verify --run .ci-gate/refund-desk.run.jsonl
  ci-gate trace verify --twice refund-4812 --trial 3
""",
)
@click.argument("traces", nargs=-1, type=_FILE)
@click.option("--twice", metavar="TASK", help="Run a trial of this task twice and compare.")
@click.option("--trial", type=click.IntRange(0), help="Seed index of that trial.  [default: 0]")
@click.option("--run", type=_FILE, help="Check all traces that this run file names.")
@project_options
def verify_command(
    traces: tuple[Path, ...],
    run: Path | None,
    twice: str | None,
    trial: int | None,
    config_path: Path | None,
    suite: str | None,
) -> int:
    """Check that no byte of TRACES was changed since they were recorded.

    The status is 0 where all are whole, 2 where one is not: every place is named with its line.

    With --run all traces of a run are checked, that each is the one which its trial names, and that
    their calls add up to what the trials say, and that tools which are declared deterministic
    answer the same input alike. The status is 1 where they do not.

    With --twice a trial is run, then once more with the recorded answers of its models. The status
    is 0 where both made the same calls with the same answers, 1 where they part: the first call
    that differs is named.
    """
    if run is not None and not traces and twice is None:
        return _reconcile(run)
    if twice is not None and not traces:
        return _verify_twice(twice, trial or 0, config_path, suite)
    if not traces or twice is not None or trial is not None:
        what = "Name either TRACES, or a run by --run, or a TASK by --twice and its --trial."
        raise click.UsageError(what)
    from ci_gate.gate.traces import verify
    from ci_gate.render.escape import inert
    from ci_gate.render.figures import counted

    for one in verify(traces):
        states = f" and {counted(one.states, 'state')}" if one.states else ""
        found = f"{counted(one.calls, 'call')}{states}, {inert(one.head)}"
        click.echo(f"{inert(one.path, limit=300)}: {found}")
    return 0


@command.command(
    "diff",
    epilog="""\b
Example:
  ci-gate trace diff baseline/traces/refund/0.jsonl .ci-gate/traces/refund/0.jsonl
""",
)
@click.argument("baseline", type=_FILE)
@click.argument("candidate", type=_FILE)
@click.option("--json", "as_json", is_flag=True, help="The comparison as JSON.")
def diff_command(baseline: Path, candidate: Path, as_json: bool) -> int:
    """Say at which call two traces part, how, and what differs there.

    The status is 0 where they agree in every call and answer, else 1.
    """
    from ci_gate.gate.traces import diff
    from ci_gate.render.trace import render_trace_diff

    found = diff(baseline, candidate)
    if as_json:
        _print_json([found])
    else:
        render_trace_diff(found, _screen())
    return 0 if found.is_same else 1


@command.command(
    "impact",
    epilog="""\b
Example:
  ci-gate trace impact .ci-gate/traces/refund-4812/3.jsonl --call 4
""",
)
@click.argument("trace", type=_FILE)
@click.option("--call", "order", type=click.IntRange(0), required=True, help="Its number.")
@click.option("--json", "as_json", is_flag=True, help="The numbers of the calls as JSON.")
def impact_command(trace: Path, order: int, as_json: bool) -> int:
    """Name every call that a fault or a wrong answer at one call of TRACE could have touched."""
    from ci_gate.gate.traces import impact
    from ci_gate.render.trace import render_impact

    records, touched = impact(trace, order)
    if as_json:
        _print_json([{"call": order, "touched": touched[1:]}])
    else:
        render_impact(records, touched, _screen())
    return 0


def _reconcile(run: Path) -> int:
    from ci_gate.gate.reconciling import reconcile
    from ci_gate.render.reconciling import render_reconciled

    found = reconcile(run)
    render_reconciled(found, _screen())
    return 1 if found.mismatches or found.unsteady else 0


def _verify_twice(task: str, trial: int, config_path: Path | None, suite: str | None) -> int:
    from ci_gate.gate.twice import TwiceRequest, verify_twice
    from ci_gate.render.twice import render_twice

    found = verify_twice(
        TwiceRequest(
            config_path=config_path, suite=suite, task=task, trial=trial, environment=os.environ
        )
    )
    render_twice(found, _screen())
    return found.exit_code


def _screen() -> Console:
    from ci_gate.render.screen import console_for

    return console_for(sys.stdout, os.environ)


def _print_json(values: list[Any]) -> None:
    from ci_gate.codec import encode, for_log

    for value in values:
        click.echo(for_log(encode(value)).decode())

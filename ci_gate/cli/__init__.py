"""The command line: parses, calls ``ci_gate.gate``, prints, returns the status.

Only click is imported here; a verb's module is loaded when the verb is used, so that ``--help`` and
``--version`` stay fast. Every error becomes its message and its exit status in ``main`` and nowhere
else.
"""

from __future__ import annotations

import difflib
import gc
import importlib
import os
import sys
from typing import NamedTuple

import click

from ci_gate import __version__
from ci_gate.errors import GateError, printable, unlike_command

__all__ = ["cli", "main"]

_USAGE, _INTERNAL, _INTERRUPTED = 2, 4, 130
_MOST_PROBLEMS = 50


class _Verb(NamedTuple):
    module: str
    summary: str


_VERBS = {
    "init": _Verb("scaffold", "Write a commented ci-gate.toml, an example task and a workflow."),
    "check": _Verb("check", "Run the suite, compare with the baseline, report, set the status."),
    "run": _Verb("run", "Run the suite and write the run file."),
    "compare": _Verb("compare", "Judge a run or baseline file against another."),
    "replay": _Verb("replay", "Run one trial again with its seed and show what happens."),
    "grade": _Verb("grade", "Grade the stored trials of a run again, without the agent."),
    "baseline": _Verb("baseline", "Update, show, diff or trace the history of a baseline."),
    "trace": _Verb("trace", "Record, show, verify and compare trials."),
    "task": _Verb("task", "Turn a recorded trial into a task."),
    "power": _Verb("power", "Say what a check would see, and what seeing more costs."),
    "selfcheck": _Verb("selfcheck", "Measure this gate's false alarms on an unchanged agent."),
    "judge": _Verb("judge", "Hold a judge against people's labels."),
    "report": _Verb("report", "Render a stored verdict as Markdown, JUnit XML or text."),
    "schema": _Verb("schema", "Print the JSON Schema of a file format."),
}

_EPILOG = """\b
Exit status: 0 passed, 1 regressed, 2 usage or configuration,
3 inconclusive, 4 internal error, 130 interrupted.

\b
Example:
  ci-gate init && ci-gate check
"""


class _LazyGroup(click.Group):
    """A group that knows its verbs' names and summaries without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        verb = _VERBS.get(cmd_name)
        if verb is None:
            return None
        command = importlib.import_module(f"ci_gate.cli.{verb.module}").command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in _VERBS and not args[0].startswith("-"):
            near = difflib.get_close_matches(args[0], _VERBS, 1)
            hint = f" Did you mean {near[0]!r}?" if near else " `ci-gate --help` lists them."
            raise click.UsageError(f"No such command {printable(args[0])!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, verb.summary) for name, verb in _VERBS.items()])


@click.group(
    cls=_LazyGroup, epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(__version__, "-V", "--version", message="ci-gate %(version)s")
def cli() -> None:
    """Gate changes to an LLM agent against a baseline, by a test that knows their noise."""


def main() -> None:
    """Run the command line and exit with its status."""
    # Nearly all that a command makes lives to its end; looking for garbage every 700 objects is a
    # tenth of the time of a short one.
    gc.set_threshold(50_000, 20, 20)
    status = _status(sys.argv[1:])
    # Nor does the end have to look at all of it once more, which is another tenth.
    gc.freeze()
    sys.exit(status)


def _status(arguments: list[str]) -> int:
    try:
        result = cli.main(args=arguments, prog_name="ci-gate", standalone_mode=False)
    except GateError as error:
        return _explain(error)
    except click.ClickException as error:
        error.show()
        return _USAGE
    except (click.Abort, KeyboardInterrupt):
        click.echo("ci-gate: interrupted; --resume continues a run that was begun", err=True)
        return _INTERRUPTED
    except BrokenPipeError:
        return _silence_closed_pipe()
    except OSError as error:
        return _explain_disk(error)
    except Exception as error:  # noqa: BLE001 - the last resort promised by exit status 4
        return _internal(error)
    return int(result or 0)


def _explain(error: GateError) -> int:
    from ci_gate.redaction import Redactor, secrets_of_environment

    # What an agent printed before it broke may be in it.
    redactor = Redactor(secrets_of_environment(os.environ))
    for problem in error.problems[:_MOST_PROBLEMS]:
        lines = redactor.reason(str(problem)).splitlines() or [""]
        click.echo(f"ci-gate: {unlike_command(lines[0])}", err=True)
        for line in lines[1:]:
            click.echo(f"  {unlike_command(line)}", err=True)
    hidden = len(error.problems) - _MOST_PROBLEMS
    if hidden > 0:
        click.echo(f"ci-gate: and {hidden:,} more", err=True)
    return error.exit_code


def _explain_disk(error: OSError) -> int:
    """Say of a full disk that it is one, wherever it was met: in a temporary folder, say."""
    from ci_gate.machine import is_of_the_machine, no_room

    if not is_of_the_machine(error):
        return _internal(error)
    return _explain(no_room(error, error.filename or "a temporary file or standard output"))


def _silence_closed_pipe() -> int:
    # The reader of our output is gone (`ci-gate ... | head`): end as other tools do, without a
    # second complaint when Python flushes at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 128 + 13


def _internal(error: Exception) -> int:
    import traceback

    frames = traceback.extract_tb(error.__traceback__)
    place = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "?"
    what = unlike_command(printable(f"{type(error).__name__}: {error}", limit=500))
    click.echo(f"ci-gate: internal error: {what} ({place})", err=True)
    click.echo("  This is a fault of ci-gate; set CI_GATE_TRACEBACK=1 to see where.", err=True)
    if os.environ.get("CI_GATE_TRACEBACK"):
        traceback.print_exception(error)
    return _INTERNAL

"""Options that several verbs share, so that they are spelled and explained the same everywhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

__all__ = [
    "baseline_options",
    "calm_option",
    "mode_options",
    "output_option",
    "project_options",
    "report_options",
    "run_options",
    "strictness_option",
]

_Function = TypeVar("_Function", bound=Callable[..., Any])
_FILE = click.Path(path_type=Path, dir_okay=False)
_TARGET = click.Path(path_type=Path, dir_okay=False, allow_dash=True)


def _apply(function: _Function, *options: Callable[[_Function], _Function]) -> _Function:
    for option in reversed(options):
        function = option(function)
    return function


def project_options(function: _Function) -> _Function:
    """Add ``--config`` and ``--suite``."""
    return _apply(
        function,
        click.option(
            "--config",
            "-c",
            "config_path",
            type=_FILE,
            help="Configuration file.  [default: ci-gate.toml here or in a folder above]",
        ),
        click.option("--suite", help="Only this suite.  [default: all of the configuration]"),
    )


def output_option(function: _Function) -> _Function:
    """Add ``--output``."""
    return _apply(
        function,
        click.option(
            "--output",
            "-o",
            type=click.Path(path_type=Path, file_okay=False),
            help="Folder for results.  [default: .ci-gate beside the configuration]",
        ),
    )


def baseline_options(function: _Function) -> _Function:
    """Add ``--baseline`` and ``--baseline-ref``."""
    return _apply(
        function,
        click.option(
            "--baseline", "baseline_file", type=_FILE, help="Take the baseline from a file."
        ),
        click.option(
            "--baseline-ref", help="Take baseline and policy from this git commit or ref."
        ),
    )


def run_options(function: _Function) -> _Function:
    """Add ``--trials``, ``--jobs``, ``--task``, ``--resume`` and ``--fresh``."""
    return _apply(
        function,
        click.option(
            "--trials", type=click.IntRange(1), help="Trials a task, instead of the suite's."
        ),
        click.option("--jobs", "-j", type=click.IntRange(1), help="Trials at the same time."),
        click.option(
            "--task", "task_filter", metavar="GLOB", help="Only tasks whose id matches; partial."
        ),
        click.option("--resume", is_flag=True, help="Continue an unfinished run."),
        click.option("--fresh", is_flag=True, help="Throw an unfinished run away."),
    )


def mode_options(function: _Function) -> _Function:
    """Add ``--mode`` and ``--traces``."""
    return _apply(
        function,
        click.option(
            "--mode",
            type=click.Choice(["record", "live", "replay", "sandboxed"]),
            help="Make the calls and record them or not, or answer them from recordings.",
        ),
        click.option(
            "--traces",
            type=click.Path(path_type=Path),
            metavar="FOLDER",
            help="Results with the traces that replay and sandboxed read.",
        ),
    )


def strictness_option(function: _Function) -> _Function:
    """Add ``--strict-determinism``."""
    return _apply(
        function,
        click.option(
            "--strict-determinism",
            "determinism",
            type=click.Choice(["raise", "warn", "off"]),
            is_flag=False,
            flag_value="raise",
            default="off",
            help="Fail trials whose own code uses chance or time that no seed decides, or warn.",
        ),
    )


def calm_option(function: _Function) -> _Function:
    """Add ``--calm-and-chaos``."""
    return _apply(
        function,
        click.option(
            "--calm-and-chaos",
            is_flag=True,
            help="Run the same trials without faults too: what do faults change?",
        ),
    )


def report_options(function: _Function) -> _Function:
    """Add ``--json``, ``--markdown``, ``--junit`` and ``--quiet``."""
    return _apply(
        function,
        click.option("--json", "json_path", type=_TARGET, help="Write the verdict; - is stdout."),
        click.option("--markdown", "markdown_path", type=_TARGET, help="Write the comment's text."),
        click.option("--junit", "junit_path", type=_TARGET, help="Write JUnit XML."),
        click.option("--quiet", "-q", is_flag=True, help="Say nothing but errors."),
    )

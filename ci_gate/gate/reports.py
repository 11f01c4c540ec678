"""Write verdicts where the user wants them: beside the run, in named files, on standard output."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from ci_gate.codec import decode, for_log
from ci_gate.errors import FileFormatError, UsageError, printable
from ci_gate.machine import failed_write
from ci_gate.model.amounts import require_counts
from ci_gate.model.verdict import Decision, ExitCode, Verdict
from ci_gate.store.files import is_file, read_whole
from ci_gate.store.folders import remove_beside, remove_named, write_beside, write_named

__all__ = [
    "Targets",
    "clear_targets",
    "forget_verdict",
    "load_verdicts",
    "report_file",
    "verdict_file",
    "worst",
    "write_beside_run",
    "write_targets",
]

_SEVERAL = "ci-gate/verdicts@1"
# Precedence of the verdict over several suites: what cannot be trusted, red, open, green.
_RANK = (
    ExitCode.INTERNAL,
    ExitCode.USAGE,
    ExitCode.INTERRUPTED,
    ExitCode.REGRESSED,
    ExitCode.INCONCLUSIVE,
    ExitCode.PASSED,
)
_WORST_FIRST = (Decision.REGRESSED, Decision.INCONCLUSIVE, Decision.PASSED)


class Targets(msgspec.Struct, frozen=True, kw_only=True):
    """Files that the user names for each form; ``-`` is standard output."""

    json: Path | None = None
    markdown: Path | None = None
    junit: Path | None = None


class _Several(msgspec.Struct, frozen=True, kw_only=True):
    schema: str = _SEVERAL
    verdict: Decision
    exit_code: int
    suites: tuple[Verdict, ...]


def worst(verdicts: Sequence[Verdict]) -> ExitCode:
    """Return the status of several suites together."""
    codes = {ExitCode(verdict.exit_code) for verdict in verdicts}
    return next(code for code in _RANK if code in codes)


def verdict_file(output: Path, suite: str) -> Path:
    """Return where ``check`` keeps a suite's verdict."""
    return output / f"{suite}.verdict.json"


def report_file(output: Path, suite: str) -> Path:
    """Return where ``check`` keeps a suite's report."""
    return output / f"{suite}.report.md"


def forget_verdict(output: Path, suite: str) -> None:
    """Remove a suite's verdict and report, because a new run of it begins.

    Whatever ends that run, what its folder holds then is of this run or not there.

    Raises
    ------
    UsageError
        Something else has the name of one of them.
    """
    remove_beside(verdict_file(output, suite))
    remove_beside(report_file(output, suite))


def write_beside_run(output: Path, verdict: Verdict) -> tuple[Path, Path]:
    """Write verdict and report of a suite into the folder of its run; return both paths."""
    from ci_gate.render.markdown import markdown
    from ci_gate.render.view import view

    json_path = verdict_file(output, verdict.suite_name)
    report_path = report_file(output, verdict.suite_name)
    write_beside(json_path, verdict.to_json().encode())
    write_beside(report_path, markdown(view([verdict])).encode())
    return json_path, report_path


def clear_targets(targets: Targets, *, inputs: Iterable[Path | None]) -> None:
    """Remove what an earlier command left in the files that are to be written.

    A command that fails leaves no verdict then, where it could leave an earlier one that a reader
    takes for its own.

    Parameters
    ----------
    targets : Targets
    inputs : iterable of Path or None
        What is read, and stays, where it is to be written over as well.

    Raises
    ------
    UsageError
        A target is a folder, link, pipe or device.
    """
    read = [path for path in inputs if path is not None and is_file(path)]
    for target in (targets.json, targets.markdown, targets.junit):
        if target is None or str(target) == "-":
            continue
        if not (is_file(target) and any(target.samefile(path) for path in read)):
            remove_named(target)


def write_targets(targets: Targets, verdicts: Sequence[Verdict]) -> tuple[tuple[str, str], ...]:
    """Write each form that was asked for.

    Returns
    -------
    tuple of (str, str)
        Kind and place of what was written to files.
    """
    written = []
    for kind, target in (
        ("json", targets.json),
        ("markdown", targets.markdown),
        ("junit", targets.junit),
    ):
        if target is None:
            continue
        content = _rendered(kind, verdicts)
        if str(target) == "-":
            _print(for_log(content) if kind == "json" else content)
            continue
        write_named(target, content)
        written.append((kind, str(target)))
    return tuple(written)


def _rendered(kind: str, verdicts: Sequence[Verdict]) -> bytes:
    if kind == "json":
        return _json(verdicts)
    if kind == "junit":
        from ci_gate.render.junit import junit

        return junit(verdicts)
    from ci_gate.render.markdown import markdown
    from ci_gate.render.view import view

    return markdown(view(verdicts)).encode()


def _json(verdicts: Sequence[Verdict]) -> bytes:
    if len(verdicts) == 1:
        return verdicts[0].to_json().encode()
    several = _Several(
        verdict=_worst_decision(verdicts), exit_code=worst(verdicts), suites=tuple(verdicts)
    )
    return msgspec.json.format(msgspec.json.encode(several), indent=1) + b"\n"


def _worst_decision(verdicts: Sequence[Verdict]) -> Decision:
    found = {verdict.decision for verdict in verdicts}
    return next(one for one in _WORST_FIRST if one in found)


def _print(content: bytes) -> None:
    if sys.stdout is None:
        raise UsageError("standard output is closed", hint="Name a file instead of -.")
    try:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise failed_write(error, Path("standard output")) from error


def load_verdicts(path: Path) -> tuple[Verdict, ...]:
    """Return the verdicts that ``--json`` wrote.

    Raises
    ------
    FileFormatError
        The file is not a verdict of a version that this one reads.
    """
    content = read_whole(path)
    shown = printable(path)
    try:
        # First of all: nothing is shown of a number without end, or of what is nested without end.
        require_counts(decode(content))
        schema = msgspec.json.decode(content, type=_SchemaOnly).schema
        if schema == _SEVERAL:
            return msgspec.json.decode(content, type=_Several).suites
        if schema == "ci-gate/verdict@1":
            return (msgspec.json.decode(content, type=Verdict),)
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"is not a verdict: {printable(error)}", where=shown) from error
    raise FileFormatError(
        f"has schema {printable(schema)!r}, which is not a verdict this version reads",
        where=shown,
        hint="Expected ci-gate/verdict@1, as `check --json` writes it.",
    )


class _SchemaOnly(msgspec.Struct):
    schema: str

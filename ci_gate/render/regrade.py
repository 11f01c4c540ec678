"""What grading a run again found, as lines for a person and as JSON for a program.

Nothing is counted here, and all text from outside is inert.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from ci_gate.codec import encode
from ci_gate.model.regrading import Flip, Regraded
from ci_gate.model.trial import Status
from ci_gate.render.escape import inert
from ci_gate.render.figures import counted
from ci_gate.render.screen import print_line

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["regraded_json", "render_regraded"]

_MOST_FLIPS: Final = 50
_MOST_REASONS: Final = 10
_CHARS: Final = 200
_STYLES: Final = {Status.PASSED: "green", Status.FAILED: "red", Status.ERRORED: "yellow"}


def render_regraded(found: Regraded, console: Console) -> None:
    """Print which outcomes flipped and why, what could not be graded, and where the file is.

    Parameters
    ----------
    found : Regraded
    console : rich.console.Console
    """
    for flip in found.flips[:_MOST_FLIPS]:
        _print_flip(flip, console)
    hidden = len(found.flips) - _MOST_FLIPS
    if hidden > 0:
        print_line(console, f"  and {hidden:,} more; --json has all")
    print_line(console, f"{inert(found.suite)}: {_totals(found)}", style="bold")
    for why, number in list(found.reasons.items())[:_MOST_REASONS]:
        line = f"  {counted(number, 'trial')} not graded again: {inert(why, limit=_CHARS)}"
        print_line(console, line, style="yellow")
    print_line(console, f"  written to {inert(found.output, limit=4096)}")
    print_line(console, f"  {_ADVICE}", style="dim")


_ADVICE: Final = (
    "its task digests are today's: compare it with a baseline that was made by the same graders"
)


def _print_flip(flip: Flip, console: Console) -> None:
    repeat = f".{flip.repeat}" if flip.repeat else ""
    said = inert(flip.reason or "", limit=_CHARS)
    grader = f"{inert(flip.grader)}: " if flip.grader else ""
    was = "was " if flip.after is Status.PASSED else ""
    line = f"  {inert(flip.task)} {flip.trial}{repeat}  {flip.before} -> {flip.after}"
    print_line(console, f"{line}  {was}{grader}{said}".rstrip(), style=_STYLES[flip.after])


def _totals(found: Regraded) -> str:
    better = found.count(Status.FAILED, Status.PASSED)
    worse = found.count(Status.PASSED, Status.FAILED)
    parts = [
        f"{counted(found.graded, 'trial')} graded again",
        f"{counted(len(found.flips), 'outcome')} flipped",
        f"{better} from failed to passed, {worse} from passed to failed",
    ]
    if found.left:
        parts.append(f"{len(found.left)} left as they were")
    if found.errored:
        parts.append(f"{found.errored} had errored")
    return "; ".join(parts)


def regraded_json(found: Regraded) -> bytes:
    """Return everything as JSON.

    Parameters
    ----------
    found : Regraded
    """
    return encode({"schema": "ci-gate/grade@1", **msgspec.to_builtins(found)}) + b"\n"

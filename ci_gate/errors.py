"""What can go wrong because of a user's input, and the exit status each mistake leads to.

Every error says what is wrong, where, what was found and what to do. The command line turns a
``GateError`` into its message and its exit status in one place; nothing else prints errors.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = [
    "AgentSetupError",
    "BaselineError",
    "ConfigError",
    "ContaminatedWorldError",
    "FileFormatError",
    "GateError",
    "GitError",
    "InternalError",
    "JournalError",
    "JudgeError",
    "PlatformError",
    "Problem",
    "SuiteError",
    "UsageError",
    "printable",
    "unlike_command",
]

_MAX_SHOWN = 200
_COMMAND_START = re.compile(r"\A(\s*)::")
_COMMAND_ANYWHERE = re.compile(r"##(?=\w*\[)")
_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def printable(text: object, *, limit: int = _MAX_SHOWN) -> str:
    """Return text from outside in a form that is safe in one line of a terminal or log.

    Control characters, line breaks, surrogates and bidirectional controls become escapes, so that
    hostile text can neither start a new line (workflow commands) nor reorder what is read.

    Parameters
    ----------
    text : object
        Anything; it is converted by ``str``.
    limit : int
        Characters kept before the text is cut and its length named.
    """
    whole = str(text)
    # Bidirectional controls are not printable either; nearly every text is as it may be.
    if len(whole) <= limit and whole.isprintable():
        return whole
    shown = "".join(_escaped(char) for char in whole[: limit + 1])
    return shown if len(whole) <= limit else f"{shown[:limit]}... ({len(whole)} characters)"


def unlike_command(line: str) -> str:
    """Return a line of text in which the runner of a workflow finds no command."""
    return _COMMAND_START.sub(r"\1: :", _COMMAND_ANYWHERE.sub("# #", line))


def _escaped(char: str) -> str:
    unsafe = not char.isprintable() or char in _BIDI
    return char.encode("unicode_escape").decode("ascii") if unsafe else char


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One mistake in an input.

    Parameters
    ----------
    what : str
        What is wrong and what was found, without a final full stop.
    where : str
        File with line or key path, task or trial; empty where there is none.
    hint : str
        What to do about it; empty where the sentence before says it.
    """

    what: str
    where: str = ""
    hint: str = ""

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}" if self.where else self.what
        return f"{text}. {self.hint}" if self.hint else text


class GateError(Exception):
    """An error that is shown to the user by its message alone.

    Parameters
    ----------
    what : str
        What is wrong and what was found.
    where : str
        File, line, key, task or trial.
    hint : str
        What to do.

    Attributes
    ----------
    slug : str
        Name of the entry in ``docs/messages.md``.
    exit_code : int
        Status of the process.
    problems : tuple of Problem
        All mistakes that were found, at least one.
    """

    slug = "error"
    exit_code = 4

    def __init__(self, what: str, *, where: str = "", hint: str = "") -> None:
        self.problems: tuple[Problem, ...] = (Problem(what=what, where=where, hint=hint),)
        super().__init__(str(self.problems[0]))

    def in_one_line(self, *, limit: int) -> str:
        """Return the first mistake as one safe line of so many characters, for a report."""
        lines = (line.strip() for line in str(self.problems[0]).splitlines())
        return printable("; ".join(line for line in lines if line), limit=limit)


class InternalError(GateError):
    """Something that must not happen: a fault of ci-gate itself or of the machine."""

    slug = "internal"


class ContaminatedWorldError(GateError):
    """A trial's world did not start in its task's known state, so its outcome says nothing."""

    slug = "contaminated"
    exit_code = 3


class UsageError(GateError):
    """The command, a name or an option cannot be used as given."""

    slug = "usage"
    exit_code = 2

    @classmethod
    def of(cls, problems: Iterable[Problem]) -> UsageError:
        """Return one error that carries several problems, in the order given."""
        found = tuple(problems)
        error = cls(found[0].what, where=found[0].where, hint=found[0].hint)
        error.problems = found
        error.args = ("\n".join(str(problem) for problem in found),)
        return error


class ConfigError(UsageError):
    """``ci-gate.toml`` is missing, unreadable or says something impossible."""

    slug = "config"


class SuiteError(UsageError):
    """Task files cannot make a suite: bad id, duplicate, nothing matched, bad grader."""

    slug = "suite"


class FileFormatError(UsageError):
    """A run, baseline or verdict file is not what its name promises."""

    slug = "file-format"


class JournalError(UsageError):
    """An unfinished journal cannot be continued or must not be overwritten."""

    slug = "journal"


class BaselineError(UsageError):
    """A baseline cannot serve, or an update was refused."""

    slug = "baseline"


class GitError(UsageError):
    """A git ref, commit or repository that was asked for cannot be read."""

    slug = "git"


class AgentSetupError(UsageError):
    """The agent cannot be started at all: no such module, function, interpreter or program."""

    slug = "agent"


class JudgeError(UsageError):
    """A judge is not configured, cannot be asked, or must not gate: it is not calibrated."""

    slug = "judge"


class PlatformError(UsageError):
    """The request needs something this operating system does not have."""

    slug = "platform"

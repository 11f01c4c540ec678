"""Decides whether a trial that did not end well is failed or errored: one pure rule.

Errored needs evidence that the environment was at fault, and is never granted when an injected
fault of that kind was delivered in the trial: otherwise an agent could be excused for the very
faults it is tested with. It knows no processes and no protocol.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

import msgspec

from ci_gate.errors import ConfigError, printable
from ci_gate.model.trial import Status, Trajectory
from ci_gate.patterns import PatternError, search

__all__ = [
    "FAULT_MARK",
    "Ending",
    "Judged",
    "Patterns",
    "judged_ending",
    "time_up",
    "told",
    "with_ending",
]

FAULT_MARK = "CHAOS_FAULT_INJECTED"
"""In the text of every injected fault that is rendered as an error."""

_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_LINE_CHARS = 2000

# How trouble of each kind calls itself. A kind that is not listed explains everything.
_WORDS_OF_KIND = {
    "timeout": r"time.?out|timed.out|deadline|too long",
    "latency": r"time.?out|timed.out|deadline|too long|slow",
    "rate_limit": r"429|rate.?limit|too.many.requests|quota|throttl|retry.?after",
    "posix": r"ENOSPC|no space|disk|errno|OSError|IOError|os error 28",
    "eacces": r"EACCES|EPERM|EROFS|denied|permitted|permission|read.only|403|forbidden",
    "http_500": r"500|internal.server|server.?error|api.?error",
    "http_503": r"50\d|unavailable|overload|server.?error|api.?error",
    "truncated": r"json|decod|pars|unexpected.end|unterminated|truncat|EOF|incomplete|delimiter",
    "malformed": r"json|decod|pars|type.?error|value.?error|valid|schema|expect",
    "empty": r"empty|none|missing|no.(data|content|response)|index.?error|key.?error|EOF",
}


class Patterns:
    """``environment_errors``: class names and regular expressions, ready to be looked for.

    Parameters
    ----------
    patterns : collection of str
        A dotted name is looked for among the classes of an exception, bare or qualified; where
        there is no exception, and for every other pattern, what the agent said and printed is
        searched. The harness's own words for an ending are evidence of nothing.

    Raises
    ------
    ConfigError
        A pattern is not a regular expression.
    """

    def __init__(self, patterns: Collection[str] = ()) -> None:
        self._names = frozenset(p for p in patterns if _NAME.fullmatch(p))
        self._expressions = tuple((p, _compiled(p)) for p in patterns)

    def match(self, ending: Ending) -> str | None:
        """Return the words that show that the environment was at fault, or None."""
        if ending.exceptions and self._named(ending.exceptions):
            return f"{' '.join(ending.exceptions)} {ending.reason}"
        searched = f"{ending.said}\n{ending.text}"
        for pattern, expression in self._expressions:
            if pattern in self._names and ending.exceptions:
                continue
            if found := _span(expression, searched):
                return _lines_around(searched, *found)
        return None

    def _named(self, exceptions: Sequence[str]) -> bool:
        bare = (name.rpartition(".")[2] for name in exceptions)
        return not self._names.isdisjoint(exceptions) or not self._names.isdisjoint(bare)


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ConfigError(
            f"{printable(pattern)!r} is not a regular expression: {error}",
            where="agent.environment_errors",
            hint="Write the name of an exception class or a regular expression over the output.",
        ) from error


def _span(expression: re.Pattern[str], text: str) -> tuple[int, int] | None:
    try:
        return search(expression, text)
    except PatternError:  # an agent must not be excused by a text that nobody can search
        return None


def _lines_around(text: str, first: int, last: int) -> str:
    start = text.rfind("\n", 0, first) + 1
    end = text.find("\n", last)
    return text[start : end if end >= 0 else len(text)][:_LINE_CHARS]


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a trial that did not end well.

    Parameters
    ----------
    reason : str
        One line, whoever found the words.
    said : str
        What of the reason are the agent's own words: its exception, or the reason it gave.
    exceptions : tuple of str
        Qualified names of the classes of what the agent raised and of its explicit causes.
    text : str
        Trace and output.
    claims_environment : bool
        Exit status 75 or a result whose status is ``errored``.
    through_provider : bool
        The exception is, or was raised from, a failure of the model's provider that was seen.
    through_fault : bool
        An injected fault stands in the chain of the exception.
    faults : tuple of str
        Kinds of the faults that were delivered in the trial.
    """

    reason: str
    said: str = ""
    exceptions: tuple[str, ...] = ()
    text: str = ""
    claims_environment: bool = False
    through_provider: bool = False
    through_fault: bool = False
    faults: tuple[str, ...] = ()


def time_up(timeout_s: float) -> Ending:
    """Return the ending of a trial whose time was up."""
    return Ending(reason=f"timeout after {timeout_s:g} s")


def told(trajectory: Trajectory) -> Ending:
    """Return the ending of a trial whose result says by itself that it failed or errored."""
    is_claim = trajectory.status is Status.ERRORED
    said = trajectory.reason or ""
    reason = said or f"the agent says that it {'met an error' if is_claim else 'failed'}"
    return Ending(reason=reason, said=said, claims_environment=is_claim)


class Judged(msgspec.Struct, frozen=True):
    """A status that is not a pass, with its line."""

    status: Status
    reason: str


def with_ending(
    trajectory: Trajectory, ending: Ending, patterns: Patterns, *, output: str = ""
) -> Trajectory:
    """Return the trajectory with the status, reason and output of an ending that is not good.

    The faults that were delivered are those of the trajectory's steps.
    """
    faults = tuple(step.fault for step in trajectory.steps if step.fault is not None)
    complete = msgspec.structs.replace(ending, text=output, faults=faults)
    judged = judged_ending(complete, patterns)
    return msgspec.structs.replace(
        trajectory, status=judged.status, reason=judged.reason, output_tail=output
    )


def judged_ending(ending: Ending, patterns: Patterns) -> Judged:
    """Return failed or errored for the ending of a trial.

    Parameters
    ----------
    ending : Ending
    patterns : Patterns
        The configured environment errors.
    """
    is_shown = ending.claims_environment or ending.through_provider
    evidence = ending.reason if is_shown else patterns.match(ending)
    if evidence is None:
        return Judged(Status.FAILED, ending.reason)
    if _is_injected(ending, evidence):
        return Judged(Status.FAILED, f"{ending.reason} (not excused: the fault was injected)")
    return Judged(Status.ERRORED, ending.reason)


def _is_injected(ending: Ending, evidence: str) -> bool:
    if ending.through_fault or FAULT_MARK in evidence:
        return True
    if ending.claims_environment and ending.faults:
        evidence = f"{evidence}\n{' '.join(ending.exceptions)}"
        return _unexplained(evidence) or _is_explained(evidence, ending.faults)
    return _is_explained(evidence, ending.faults)


def _is_explained(evidence: str, faults: Sequence[str]) -> bool:
    return any(
        kind not in _WORDS_OF_KIND or re.search(_WORDS_OF_KIND[kind], evidence, re.IGNORECASE)
        for kind in faults
    )


def _unexplained(evidence: str) -> bool:
    """Return whether a claim gives no cause that could be told from the injected one."""
    return not any(re.search(words, evidence, re.IGNORECASE) for words in _WORDS_OF_KIND.values())

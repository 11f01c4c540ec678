"""Looks for errors that were laundered into answers, from a trajectory alone."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ci_gate.errors import ConfigError, printable
from ci_gate.model.trial import Trajectory
from ci_gate.patterns import PatternError, is_quick, search

__all__ = [
    "BEYOND",
    "EMPTY",
    "PROVIDER_ERROR",
    "ZERO_TOKENS",
    "beyond",
    "compiled",
    "laundered_by",
    "may_take_long",
    "suspicions",
]

ZERO_TOKENS = "zero-tokens"
EMPTY = "empty"
PROVIDER_ERROR = "provider-error"
BEYOND = "beyond:"

_ANSWER_CHARS = 20_000
_SHORT_CHARS = 2_000

# What providers and their clients say when a request failed; looked for in short answers only,
# because a long one may well speak about such errors.
_PROVIDER_ERRORS = re.compile(
    r"""
    \b(insufficient_quota | rate_limit_(exceeded|error) | overloaded_error | invalid_api_key
      | authentication_error | permission_error | model_not_found | context_length_exceeded
      | server_error | api_error | invalid_request_error )\b
    | \bError\ code:\s*[45]\d\d\b
    | \b(openai|anthropic|litellm|httpx|google\.api_core)\.[\w.]*(Error|Exception|Timeout)\b
    | \b(APIConnectionError|APIStatusError|APITimeoutError|RateLimitError|InternalServerError)\b
    | \b(HTTP|status(\ code)?)[\s:/]*(1\.1\s)?(429|500|502|503|504|529)\b
    | \b(429\ Too\ Many\ Requests | 502\ Bad\ Gateway | 503\ Service\ Unavailable
      | 504\ Gateway\ Time-?out )\b
    | ^\s*\{\s*"(type"\s*:\s*"error|error"\s*:\s*\{)
    | ^\s*(API|LLM|Model|Provider)\ [Ee]rror\b
    """,
    re.VERBOSE | re.IGNORECASE,
)


def suspicions(trajectory: Trajectory) -> tuple[str, ...]:
    """Return the kinds of laundered error that a trajectory looks like, none for most.

    ``zero-tokens``: an answer that cost no token although tokens are counted. ``empty``: neither
    an answer nor a step. ``provider-error``: a provider's error text as the answer.

    A trajectory whose status is already given looks like nothing.
    """
    if trajectory.status is not None:
        return ()
    found = []
    if trajectory.answer and trajectory.tokens == 0:
        found.append(ZERO_TOKENS)
    if not trajectory.answer and not trajectory.steps:
        found.append(EMPTY)
    answer = trajectory.answer or ""
    if len(answer) <= _SHORT_CHARS and _PROVIDER_ERRORS.search(answer):
        found.append(PROVIDER_ERROR)
    return tuple(found)


def beyond(trajectory: Trajectory) -> tuple[str, ...]:
    """Return ``beyond:<name>`` for everything that was reported in numbers that are no amounts."""
    return tuple(BEYOND + name for name in trajectory.beyond)


def compiled(patterns: Sequence[str]) -> tuple[re.Pattern[str], ...]:
    """Return the configured patterns ready for use.

    Raises
    ------
    ConfigError
        One is not a regular expression.
    """
    try:
        return tuple(re.compile(pattern) for pattern in patterns)
    except re.error as error:
        raise ConfigError(
            f"{printable(error.pattern)!r} is not a regular expression: {error}",
            where="agent.laundered_errors",
        ) from error


def laundered_by(trajectory: Trajectory, patterns: Sequence[re.Pattern[str]]) -> str | None:
    """Return the pattern by which the answer is an error of the environment, or None.

    A trial in which a fault was injected is never excused: its answer may speak of that fault.
    """
    if trajectory.status is not None or any(step.fault for step in trajectory.steps):
        return None
    answer = _searched(trajectory)
    return next((pattern.pattern for pattern in patterns if _is_in(pattern, answer)), None)


def may_take_long(trajectory: Trajectory, patterns: Sequence[re.Pattern[str]]) -> bool:
    """Return whether ``laundered_by`` may block for seconds."""
    answer = _searched(trajectory)
    return not all(is_quick(pattern, answer) for pattern in patterns)


def _searched(trajectory: Trajectory) -> str:
    return (trajectory.answer or "")[:_ANSWER_CHARS]


def _is_in(pattern: re.Pattern[str], answer: str) -> bool:
    try:
        return search(pattern, answer) is not None
    except PatternError:  # an answer that nobody can search excuses nothing
        return False

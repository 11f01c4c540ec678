"""What an answer of a model says it used, as providers report it. Knows no prices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ci_gate.model.amounts import count_within

__all__ = ["Spent", "Usage", "usage_of"]


class Usage(NamedTuple):
    """Tokens of one call to a model.

    Attributes
    ----------
    input, output : int or None
        None where only the total is known; ``input`` includes what came from or went to a cache.
    total : int
    cache_read, cache_write : int
        Of the input.
    """

    input: int | None
    output: int | None
    total: int
    cache_read: int = 0
    cache_write: int = 0


class Spent(NamedTuple):
    """What the calls to models of one trial took together.

    Attributes
    ----------
    tokens : int or None
        None where there was no such call, or one does not say.
    cost_usd : float or None
        None where there was no such call, or the cost of one is unknown.
    """

    tokens: int | None
    cost_usd: float | None


def usage_of(answer: Any) -> Usage | None:
    """Return the tokens that a model's answer says it took; None where it does not say.

    Understands ``usage`` with ``input_tokens`` and ``output_tokens``, or ``prompt_tokens`` and
    ``completion_tokens``, or ``total_tokens`` alone.

    Notes
    -----
    Anthropic counts cached tokens beside ``input_tokens`` (``cache_read_input_tokens``,
    ``cache_creation_input_tokens``), OpenAI within them (``cached_tokens`` of the details).
    """
    usage = answer.get("usage") if isinstance(answer, dict) else None
    if not isinstance(usage, dict):
        return None
    for names in (("input_tokens", "output_tokens"), ("prompt_tokens", "completion_tokens")):
        given, made = (_count(usage, name) for name in names)
        if given is not None and made is not None:
            return _whole(usage, given, made)
    total = _count(usage, "total_tokens")
    return None if total is None else Usage(None, None, total)


def _whole(usage: Mapping[str, Any], given: int, made: int) -> Usage:
    read = _count(usage, "cache_read_input_tokens") or 0
    written = _count(usage, "cache_creation_input_tokens") or 0
    details = usage.get("input_tokens_details") or usage.get("prompt_tokens_details")
    within = _count(details, "cached_tokens") if isinstance(details, dict) else None
    given += read + written
    total = _count(usage, "total_tokens")
    return Usage(
        input=given,
        output=made,
        total=given + made if total is None else total,
        cache_read=min(read + (within or 0), given),
        cache_write=written,
    )


def _count(usage: Mapping[str, Any], name: str) -> int | None:
    value = usage.get(name)
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return count_within(value) if is_number else None

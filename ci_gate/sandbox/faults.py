"""The kinds of faults: what the agent reads in place of an observation, and how long it takes.

Four kinds are published and their texts are kept to the byte. Every kind is a pure function of the
observation at hand, and of an earlier one where there is one; when and whether a fault happens is
decided in ``chaos``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from ci_gate import codec

__all__ = [
    "DELAY_S",
    "DUPLICATE",
    "ERROR_KINDS",
    "FAULT_KINDS",
    "MODEL_KINDS",
    "PUBLISHED_KINDS",
    "STALE",
    "UNCHANGED_KINDS",
    "Place",
    "rendered",
]

PUBLISHED_KINDS: Final = ("timeout", "rate_limit", "truncated", "posix")
_TIMEOUT_MS: Final = 15_000
_TRUNCATION_MARK: Final = '{"__chaos_truncated'

DELAY_S: Final[Mapping[str, float]] = {"timeout": _TIMEOUT_MS / 1000, "latency": 5.0}
# These reach the agent as a failed call; the others look like an answer.
ERROR_KINDS: Final = frozenset(
    {"timeout", "rate_limit", "posix", "http_403", "http_500", "http_503", "eacces"}
)
STALE: Final = "stale"
"""The first answer to the same call once more, though there is a newer one."""

DUPLICATE: Final = "duplicate"
"""The call is delivered twice: the tool runs again, and its second answer arrives."""

UNCHANGED_KINDS: Final = frozenset({"latency", DUPLICATE})
"""What the agent gets is what the tool gave."""

MODEL_KINDS: Final = ("timeout", "rate_limit", "http_500", "http_503")
"""How the API of a model fails."""


class Place(msgspec.Struct, frozen=True, gc=False):
    """Where a fault happens.

    Parameters
    ----------
    seed : int
        The injector's seed in use.
    step : int
        Number of the observation, 1 for the first.
    tool : str
    observation : str
        What the tool gave.
    earlier : str or None
        What it first gave to the same call.
    """

    seed: int
    step: int
    tool: str
    observation: str
    earlier: str | None = None

    def label(self, detail: str = "") -> str:
        """Return the mark that every fault text starts with."""
        return f"[CHAOS_FAULT_INJECTED seed=0x{self.seed:X} step={self.step}{detail}]: "


def rendered(kind: str, place: Place) -> str:
    """Return what the agent reads when the fault happens there.

    Raises
    ------
    KeyError
        The kind is not one of ``FAULT_KINDS``.
    """
    return _RENDER[kind](place)


def _timeout(place: Place) -> str:
    return f"{place.label()}TOOL_TIMEOUT after {_TIMEOUT_MS}ms on `{place.tool}`"


def _truncated(place: Place) -> str:
    # Text from outside may hold lone surrogates; they pass through as three bytes.
    content = place.observation.encode("utf-8", "surrogatepass")
    end = min(max(len(content) * 2 // 5, 1), len(content))
    while end < len(content) and content[end] & 0xC0 == 0x80:
        end -= 1
    return content[:end].decode("utf-8", "surrogatepass") + _TRUNCATION_MARK


def _posix(name: str, sentence: str) -> Callable[[Place], str]:
    ending = f"{sentence} while writing staging buffer"
    return lambda place: place.label(f" errno={name}") + ending


def _http(status: str) -> Callable[[Place], str]:
    return lambda place: f"{place.label()}HTTP {status}"


def _unchanged(place: Place) -> str:
    return place.observation


def _empty(place: Place) -> str:
    del place
    return ""


def _stale(place: Place) -> str:
    return place.observation if place.earlier is None else place.earlier


def _malformed(place: Place) -> str:
    try:
        return codec.encode(_mistyped(codec.decode(place.observation))).decode()
    except (ValueError, RecursionError):
        return "null"


def _mistyped(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _mistyped(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_mistyped(item) for item in value]
    return None if isinstance(value, str) else codec.encode(value).decode()


_RENDER: Final[Mapping[str, Callable[[Place], str]]] = {
    "timeout": _timeout,
    "rate_limit": _http("429 Too Many Requests (Retry-After: 3s)"),
    "truncated": _truncated,
    "posix": _posix("ENOSPC", "No space left on device (os error 28)"),
    "latency": _unchanged,
    "http_403": _http("403 Forbidden"),
    "http_500": _http("500 Internal Server Error"),
    "http_503": _http("503 Service Unavailable"),
    "eacces": _posix("EACCES", "Permission denied (os error 13)"),
    "empty": _empty,
    "malformed": _malformed,
    DUPLICATE: _unchanged,
    STALE: _stale,
}

FAULT_KINDS: Final = tuple(_RENDER)

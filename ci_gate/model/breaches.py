"""Breaches: what a trial does that it is not allowed, whatever its answer. Words alone."""

from __future__ import annotations

from typing import Final

__all__ = ["CAPABILITY", "NETWORK", "NONDETERMINISM", "REPLAY", "is_breach"]

CAPABILITY: Final = "capability: "
NETWORK: Final = "network: "
NONDETERMINISM: Final = "nondeterminism: "
REPLAY: Final = "replay: "
"""A call whose recorded answer no replay can make again."""


def is_breach(reason: str | None) -> bool:
    """Return whether a trial failed for a breach, by the reason that its record has."""
    return reason is not None and reason.startswith((CAPABILITY, NETWORK, NONDETERMINISM, REPLAY))
